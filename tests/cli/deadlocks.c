/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock deadlocks: who waits behind whom, and what is a circle. The owners of most laws are
 * processes; the others' tags are written as the library writes them (docs/semantics.md). */

#include "cli/said.h"
#include "support/process.h"

#include <sys/prctl.h>

enum { HOLDS, WAITS, GO, GO_ON };

/* A process that holds one lock and then waits for another. */
struct part {
    const char *thread, *holds, *waits;
};

static void act(struct process *self, void *arg)
{
    const struct part *part = arg;
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO));
    hl_lock *holds = new_kind(client, part->holds, HL_LOCK_REENTRANT);

    prctl(PR_SET_NAME, part->thread);
    expect_ok(hl_lock_acquire(holds, ERR));
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{%s}", part->holds));
    process_tell(self, HOLDS);
    process_await(self, GO, 1, 60000);
    process_tell(self, WAITS);
    if (part->waits) /* until the lock is taken away from its owner, or this process is killed */
        expect_ok(hl_lock_acquire(new_kind(client, part->waits, HL_LOCK_REENTRANT), ERR));
    process_await(self, GO_ON, 1, 60000);
}

enum { CAST = 4 };

struct cast {
    struct process *process[CAST];
    char who[CAST][128]; /* "web-1 4711 worker" */
    int count;
};

/* All hold what they hold, before any of them waits. */
static struct cast *play(const struct part *parts, int count)
{
    struct cast *cast = free_at_end(calloc(1, sizeof *cast), free);
    char host[64] = "";
    int waits = 0;

    gethostname(host, sizeof host - 1);
    cast->count = count;
    for (int i = 0; i < count; i++) {
        cast->process[i] = process_start(act, (void *)&parts[i]);
        snprintf(cast->who[i], sizeof cast->who[i], "%s %d %s", host,
                 (int)process_pid(cast->process[i]), parts[i].thread);
        check(process_await(cast->process[i], HOLDS, 1, 20000));
        waits += parts[i].waits != NULL;
    }
    for (int i = 0; i < count; i++) {
        process_tell(cast->process[i], GO);
        check(process_await(cast->process[i], WAITS, 1, 20000));
    }
    struct deadline deadline = deadline_in(20000);
    while (said_lines(RUN("deadlocks", "--json")->out) != waits)
        check(!deadline_is_over(deadline));
    return cast;
}

static void end_play(struct cast *cast)
{
    for (int i = 0; i < cast->count; i++) {
        process_kill(cast->process[i]);
        process_finish(cast->process[i], 10000);
    }
}

/* "WHO holds A (" ... ") and waits for B (" in one line. */
static void expect_line(const struct said *said, const char *who, const char *holds,
                        const char *waits)
{
    char begins[300], ends[200];

    snprintf(begins, sizeof begins, "\n  %s holds %s (", who, holds);
    snprintf(ends, sizeof ends, " and waits for %s (", waits);
    const char *line = strstr(said->out, begins), *end = line ? strstr(line, ends) : NULL;
    check_msg(end && end < line + strcspn(line + 1, "\n"), "no %s in\n%s", begins, said->out);
}

Law(deadlocks, of_two_processes_is_told_with_hosts_threads_and_locks)
{
    static const struct part parts[] = {{"worker 1", "area", "bay"}, {"worker-2", "bay", "area"}};
    struct cast *cast = play(parts, 2);
    const struct said *said = RUN("deadlocks");

    expect_said(said, 1);
    check_has(said->out, "deadlock: 2 owners wait for each other\n");
    expect_line(said, cast->who[0], "area", "bay");
    expect_line(said, cast->who[1], "bay", "area");
    check_has(said->out, "    hirelock unlock ");
    said = RUN("deadlocks", "--json");
    expect_said(said, 1);
    check_int(said_lines(said->out), 2);
    check_has(said->out, "{\"name\":\"bay\",\"client\":\"");
    check_has(said->out, "\"thread\":\"worker 1\"");
    check_has(said->out, "\"deadlock\":1}");
    /* What it advises ends it. */
    const char *hint = strstr(RUN("deadlocks")->out, "hirelock unlock ");
    const char *name = strstr(hint, "unlock area") ? "area" : "bay";
    expect_said(RUN("unlock", "--yes", name), 0);
    struct deadline deadline = deadline_in(20000);
    while (RUN("deadlocks")->status != 0)
        check(!deadline_is_over(deadline));
    end_play(cast);
}

Law(deadlocks, of_three_has_those_behind_it_beside)
{
    static const struct part parts[] = {{"one", "area", "bay"},
                                        {"two", "bay", "cask"},
                                        {"three", "cask", "area"},
                                        {"four", "den", "bay"}};
    struct cast *cast = play(parts, 4);
    const struct said *said = RUN("deadlocks");
    char behind[200];

    expect_said(said, 1);
    check_has(said->out, "deadlock: 3 owners wait for each other\n");
    expect_line(said, cast->who[0], "area", "bay");
    expect_line(said, cast->who[1], "bay", "cask");
    expect_line(said, cast->who[2], "cask", "area");
    snprintf(behind, sizeof behind, "    \u2514\u2500 %s waits for bay (", cast->who[3]);
    check_has(said->out, behind);
    said = RUN("deadlocks", "--json");
    check_int(said_lines(said->out), 4);
    const char *four = strstr(said->out, "\"thread\":\"four\"");
    check(four && !memmem(four, strcspn(four, "\n"), "\"deadlock\"", 10));
    end_play(cast);
}

Law(deadlocks, are_not_seen_in_a_chain)
{
    static const struct part parts[] = {
        {"one", "area", NULL}, {"two", "bay", "area"}, {"three", "cask", "bay"}};
    struct cast *cast = play(parts, 3);
    const struct said *said = RUN("deadlocks");
    char text[400];

    expect_said(said, 0);
    check_has(said->err, "no deadlock is seen");
    snprintf(text, sizeof text, "%s holds area (", cast->who[0]);
    check_msg(strncmp(said->out, text, strlen(text)) == 0, "%s", said->out);
    snprintf(text, sizeof text, "\n\u2514\u2500 %s waits for area (", cast->who[1]);
    check_has(said->out, text);
    snprintf(text, sizeof text, "\n   \u2514\u2500 %s waits for bay (", cast->who[2]);
    check_has(said->out, text);
    said = RUN("deadlocks", "c*"); /* nobody waits for cask */
    expect_said(said, 0);
    check_str(said->out, "");
    check_has(RUN("deadlocks", "b*")->out, "waits for area");
    end_play(cast);
}

/* Tags as the library writes them. */
static void set_holder(const char *name, const char *client, int owner, const char *words)
{
    redis_do(server, "HSET %s %s:%d 1", name, client, owner + 1000);
    redis_do(server, "PEXPIRE %s 600000", name);
    redis_do(server, "SET hirelock_holder:{%s} %b PX 600000", name, words,
             strlen(words)); /* the field comes with the words */
}

static void set_wait(const char *name, size_t length, const char *client, int owner,
                     const char *words)
{
    char key[700], text[400];
    size_t used = (size_t)snprintf(key, sizeof key, "hirelock_waiter:{");
    int64_t now = redis_int(server, "EVAL %s 1 x", "return redis.call('TIME')[1]");

    memcpy(key + used, name, length);
    used += length;
    used += (size_t)snprintf(key + used, sizeof key - used, "}:%s:%d", client, owner);
    snprintf(text, sizeof text, "%lld000 %s", (long long)now - 8, words);
    redis_do(server, "SET %b %b PX 600000", key, used, text, strlen(text));
}

#define WEB "11111111-2222-3333-4444-555555555555"

static void set_ring(int first, int count)
{
    char name[32], words[200];

    for (int i = 0; i < count; i++) {
        int owner = first + i, next = first + (i + 1) % count;
        snprintf(name, sizeof name, "ring:%d", owner);
        snprintf(words, sizeof words, WEB ":%d %d 1700000000000 4711 web-1 t%d", owner + 1000,
                 owner, owner);
        set_holder(name, WEB, owner, words);
        snprintf(name, sizeof name, "ring:%d", next);
        snprintf(words, sizeof words, "4711 web-1 t%d", owner);
        set_wait(name, strlen(name), WEB, owner, words);
    }
}

Law(deadlocks, may_be_several_and_long)
{
    set_ring(0, 2);
    set_ring(100, 40);
    set_ring(200, 1);
    const struct said *said = RUN("deadlocks");
    expect_said(said, 1);
    check_has(said->out, "deadlock: 2 owners wait for each other\n");
    check_has(said->out, "deadlock: 40 owners wait for each other\n");
    check_has(said->out, "  ... and 20 more owners of this circle\n");
    check_has(said->out, "deadlock: 1 owner waits for itself\n");
    check_has(said->out, "  web-1 4711 t0 holds ring:0 (");
    said = RUN("deadlocks", "--json", "ring:200");
    expect_said(said, 1);
    check_int(said_lines(said->out), 1);
    said = RUN("deadlocks", "noth*");
    expect_said(said, 0);
    check_str(said->err, "hirelock deadlocks: nobody has waited for a second for a lock whose name "
                         "matches 'noth*'\n");
    check_int(said_lines(RUN("deadlocks", "--prefix", "ring:", "--json")->out), 43);
    check_has(RUN("deadlocks", "--prefix", "ring:", "200")->out,
              "hirelock unlock --prefix ring: 200\n");
}

/* A run that looks at locks more than twice has seen a circle of two at first. */
static int64_t run_while_it_ends(int *ret_status)
{
    set_ring(0, 2);
    int64_t before = redis_calls(server, "eval");
    struct said *said = START("deadlocks");
    struct deadline deadline = deadline_in(10000);

    while (redis_calls(server, "eval") < before + 2 && !deadline_is_over(deadline))
        continue;
    redis_do(server, "DEL hirelock_waiter:{ring:0}:" WEB ":1");
    *ret_status = said_end(said)->status;
    return redis_calls(server, "eval") - before;
}

SingleLaw(deadlocks, that_end_between_two_readings_are_none)
{
    struct deadline deadline = deadline_in(30000);
    int status = 1;

    while (run_while_it_ends(&status) <= 2 || status == 1)
        check(!deadline_is_over(deadline));
    check_int(status, 0);
}

/* A run that sees a circle at first, and may GET no more before it looks again. */
static const struct said *run_while_gets_end(void)
{
    int64_t before = redis_calls(server, "eval");
    struct said *said = START("deadlocks");
    struct deadline deadline = deadline_in(10000);

    while (redis_calls(server, "eval") < before + 2 && !deadline_is_over(deadline))
        continue;
    redis_do(server, "ACL SETUSER default -get");
    said_end(said);
    redis_do(server, "ACL SETUSER default +get");
    return said;
}

SingleLaw(deadlocks, that_cannot_be_read_again_are_not_denied)
{
    struct deadline deadline = deadline_in(30000);

    set_ring(0, 2);
    const struct said *said = run_while_gets_end();
    while (said->status == 1) { /* it was through by then */
        check(!deadline_is_over(deadline));
        said = run_while_gets_end();
    }
    expect_said(said, 125);
    check_has(said->err, "command 'GET'");
}

/* The owner of `mid` waits for `left` and, since later, for `right`, as threads that share an owner
 * against the rules do; each of these two owners waits for `mid`. */
static void set_two_circles(void)
{
    static const char *const held[] = {"mid", "left", "right"};
    char words[200];

    for (int owner = 0; owner < 3; owner++) {
        snprintf(words, sizeof words, WEB ":%d %d 1700000000000 4711 web-1 t%d", owner + 1000,
                 owner, owner);
        set_holder(held[owner], WEB, owner, words);
        if (owner > 0)
            redis_do(server, "SET hirelock_waiter:{mid}:" WEB ":%d %s PX 600000", owner,
                     "1700000002000 4711 web-1 t");
    }
    redis_do(server, "SET hirelock_waiter:{left}:" WEB ":0 %s PX 600000",
             "1700000001000 4711 web-1 t0");
    redis_do(server, "SET hirelock_waiter:{right}:" WEB ":0 %s PX 600000",
             "1700000002000 4711 web-1 t0");
}

/* A run that looks at the three locks again has seen the first circle. Then both waits end. */
static int64_t run_while_both_end(int *ret_status)
{
    set_two_circles();
    int64_t before = redis_calls(server, "eval");
    struct said *said = START("deadlocks");
    struct deadline deadline = deadline_in(10000);

    while (redis_calls(server, "eval") < before + 3 && !deadline_is_over(deadline))
        continue;
    redis_do(server, "DEL hirelock_waiter:{left}:" WEB ":0 hirelock_waiter:{right}:" WEB ":0");
    *ret_status = said_end(said)->status;
    return redis_calls(server, "eval") - before;
}

SingleLaw(deadlocks, of_a_circle_that_was_hidden_by_another_are_looked_at_twice_too)
{
    struct deadline deadline = deadline_in(30000);
    int status = 1;

    while (run_while_both_end(&status) <= 3 || status == 1)
        check(!deadline_is_over(deadline));
    check_int(status, 0);
    set_two_circles();
    redis_do(server, "DEL hirelock_waiter:{left}:" WEB ":0");
    expect_said(RUN("deadlocks"), 1);
}

Law(deadlocks, of_a_server_without_waits_says_so)
{
    redis_do(server, "SET hirelock_waiter:{a} text");
    redis_do(server, "SET hirelock_waiter:{a}:" WEB ":1 text");
    redis_do(server, "LPUSH hirelock_waiter:{a}:" WEB ":2 text");
    redis_do(server, "SET hirelock_waiter:{a}:" WEB ":99999999999999999999999 %s", "1 2 h t");
    redis_do(server, "SET hirelock_waiter:" WEB ":1 text");
    const struct said *said = RUN("deadlocks");
    expect_said(said, 0);
    check_str(said->out, "");
    check_has(said->err, "hirelock deadlocks: no client with HL_CLIENT_HOLDER_INFO has waited");
    check_str(RUN("deadlocks", "--json")->out, "");
    check_str(RUN("deadlocks", "--json")->err, "");
}

Law(deadlocks, escapes_what_a_terminal_would_obey)
{
    static const char name[] = "a b\x1b[2J\n'\xc3\xa4\xff";
    set_wait(name, sizeof name - 1, WEB, 1, "4711 web\x1b-1 t\x1b[1m\n");
    redis_do(server, "HSET %b " JAVA ":45 1", name, sizeof name - 1);
    const struct said *said = RUN("deadlocks");
    expect_said(said, 0);
    check_has(said->out, JAVA ":45 holds a b\\x1b[2J\\x0a'\xc3\xa4\\xff\n");
    check_has(said->out, "web\\x1b-1 4711 t\\x1b[1m\\x0a waits for a b\\x1b[2J");
    check_has(said->err, "the holder of 1 waits shows no tag");
    check(!strchr(said->out, 0x1b));
}

Law(deadlocks, find_a_lock_whose_name_is_in_braces)
{
    set_wait("x", 1, WEB, 1, "4711 web-1 t");
    redis_do(server, "HSET {x} " JAVA ":45 1");
    check_has(RUN("deadlocks")->out, JAVA ":45 holds ");
    redis_do(server, "DEL {x}");
    check_has(RUN("deadlocks")->out, "nobody at the moment holds x\n");
    redis_do(server, "SET x text");
    expect_said(RUN("deadlocks"), 0);
}

/* The keys beside "{a}" have the names of those beside "a". */
Law(deadlocks, of_names_in_braces_are_told_by_these_names)
{
    for (int i = 0; i < 2; i++) {
        const char *held = i ? "b" : "a", *wanted = i ? "a" : "b";
        char words[200];
        snprintf(words, sizeof words, WEB ":%d %d 1700000000000 4711 web-1 t%d", i + 1000, i, i);
        redis_do(server, "HSET {%s} " WEB ":%d 1", held, i + 1000);
        redis_do(server, "SET hirelock_holder:{%s} %b PX 600000", held, words, strlen(words));
        snprintf(words, sizeof words, "4711 web-1 t%d", i);
        set_wait(wanted, 1, WEB, i, words);
    }
    const struct said *said = RUN("deadlocks");
    expect_said(said, 1);
    const char *name = strstr(said->out, "hirelock unlock '{a}'\n") ? "{a}" : "{b}";
    check_has(said->out, "t0 holds {a} (");
    check_has(said->out, " and waits for {b} (");
    said = RUN("deadlocks", "--json", "{b}");
    expect_said(said, 1);
    check_int(said_lines(said->out), 2);
    check_has(said->out, "{\"name\":\"{a}\",");
    check_has(said->out, "{\"name\":\"{b}\",");
    expect_said(RUN("unlock", "--yes", name), 0);
    expect_said(RUN("deadlocks"), 0);
}

Law(deadlocks, draw_a_thousand_waits_in_bounded_form)
{
    char words[64];
    redis_do(server, "HSET stock " JAVA ":45 1");
    for (int i = 0; i < 1000; i++) {
        snprintf(words, sizeof words, "4711 web-%d t", i);
        set_wait("stock", 5, WEB, i, words);
    }
    const struct said *said = RUN("deadlocks");
    expect_said(said, 0);
    check_int(said_lines(said->out), 1 + 10 + 1 + 1);
    check_has(said->out, JAVA ":45 holds stock\n");
    check_has(said->out, "... and 990 more\n");
    check_has(said->out, "10 of 1000 waits are drawn; --json prints each\n");
}

SingleLaw(deadlocks, say_which_right_is_missing)
{
    set_ring(0, 2);
    redis_do(server, "ACL SETUSER default -scan");
    const struct said *said = RUN("deadlocks");
    expect_said(said, 125);
    check_has(said->err, "scan");
    redis_do(server, "ACL SETUSER default +scan -get");
    said = RUN("deadlocks");
    expect_said(said, 125);
    check_has(said->err, "get");
    redis_do(server, "ACL SETUSER default +get");
}

SingleLaw(deadlocks, say_that_there_is_no_server)
{
    redis_server_kill(server);
    const struct said *said = RUN("deadlocks");
    expect_said(said, 123);
    check_has(said->err, "hirelock deadlocks: ");
}

Law(deadlocks, refuse_other_words)
{
    expect_said(RUN("deadlocks", "a", "b"), 125);
    expect_said(RUN("deadlocks", "--interval", "1"), 125);
}

Law(deadlocks, help)
{
    expect_help_fits("deadlocks");
}
