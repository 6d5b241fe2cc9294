/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock inspect: one name in full. */

#include "cli/said.h"
#include "support/actor.h"

Law(inspect, of_a_free_lock_is_status_one)
{
    const struct said *said = RUN("inspect", "stock");
    expect_said(said, 1);
    check_str(said->out, "'stock' is free\n");
    said = RUN("inspect", "--json", "--prefix", "app:", "stock");
    expect_said(said, 1);
    check_str(said->out, "{\"name\":\"stock\",\"held\":false}\n");
}

Law(inspect, shows_the_holder_and_those_who_wait_in_their_order)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO));
    hl_client *other[] = {open_client(NULL), open_client(NULL)};
    struct actor *waiter[2];
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_REENTRANT);

    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 2; i++) {
        waiter[i] = actor_start_acquire(new_kind(other[i], "stock", HL_LOCK_REENTRANT),
                                        ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
        check(redis_wait_int(server, i + 1, 10000, "ZCARD hirelock_queue:{stock}"));
    }
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{stock}"));
    const struct said *said = RUN("inspect", "stock");
    expect_said(said, 0);
    check_has(said->out, "kind         lock\n");
    check_has(said->out, "\nprocess ");
    check_has(said->out, "\nsince        20");
    check_has(said->out, "\nwaiters      2\n");
    check_has(said->out, "\nfirst waits  ");
    check_has(said->out, hl_client_id(client));
    const char *first = strstr(said->out, hl_client_id(other[0]));
    const char *second = strstr(said->out, hl_client_id(other[1]));
    check(first && second && first < second);
    said = RUN("inspect", "--json", "stock");
    check_has(said->out, "\"waiter_list\":[{\"place\":1,\"owner\":");
    check_int(said_lines(said->out), 1);
    const char *queued = strstr(said->out, "\"queued_ms\":");
    check_msg(queued && strtoll(queued + 12, NULL, 10) < 3600000, "%s", said->out);
    expect_ok(hl_lock_release(lock, ERR));
    for (int i = 0; i < 2; i++) {
        expect_ok(actor_end(waiter[i]));
        expect_ok(actor_release(waiter[i], new_kind(other[i], "stock", HL_LOCK_REENTRANT), NULL));
    }
}

/* As waiters write them that no message reaches. */
Law(inspect, takes_no_sign_of_life_for_a_waiter)
{
    redis_do(server, "HSET full " JAVA ":45 1");
    redis_do(server, "ZADD hirelock_queue:{full} 1700000000000000 " JAVA ":46");
    redis_do(server, "ZADD hirelock_queue:{full} 5700000000000000 @" JAVA ":46");
    const struct said *said = RUN("inspect", "--json", "full");
    check_has(said->out, "\"waiters\":1,");
    check_has(said->out, "\"waiter_list\":[{\"place\":1,\"owner\":\"" JAVA ":46\"}]");
    redis_do(server, "ZREM hirelock_queue:{full} " JAVA ":46");
    said = RUN("inspect", "--json", "full");
    check_has(said->out, "\"waiters\":0,");
    check_has(said->out, "\"waiter_list\":[]");
    check(!strstr(said->out, "queued_ms"));
}

Law(inspect, shows_all_readers_each_with_its_lease)
{
    enum { READERS = 300 }; /* more than one step */

    redis_do(server, "HSET reads mode read");
    for (int i = 0; i < READERS; i++) {
        redis_do(server, "HSET reads " JAVA ":%d 1", i);
        redis_do(server, "SET {reads}:" JAVA ":%d:rwlock_timeout:1 1 PX 600000", i);
    }
    const struct said *said = RUN("inspect", "reads");
    expect_said(said, 0);
    check_has(said->out, "kind         read lock\n");
    check_has(said->out, "owners       300\n");
    check_has(said->out, "holder       " JAVA ":");
    int shown = 0;
    for (const char *at = said->out; (at = strstr(at, JAVA)); at++)
        shown++;
    check_int(shown, READERS + 2); /* and the holder and the owner above the list */
    check_has(said->out, "9m");
}

Law(inspect, shows_permits_by_their_ids)
{
    hl_client *client = open_client(NULL);
    hl_permits *permits = NULL;
    hl_permit permit = {0};

    expect_ok(hl_permits_new(client, "seats", &permits, ERR));
    expect_ok(hl_permits_try_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire(permits, &permit, ERR));
    const struct said *said = RUN("inspect", "seats");
    expect_said(said, 0);
    check_has(said->out, "kind         permits\n");
    check_has(said->out, "available    2\n");
    check_has(said->out, permit.id);
    expect_ok(hl_permits_release(permits, &permit, ERR));
    hl_permits_free(permits);
}

Law(inspect, shows_a_fencing_counter_and_a_minimum_hold)
{
    hl_client *client = open_client(NULL);
    hl_lock *fenced = new_kind(client, "fenced", HL_LOCK_FENCED);
    hl_lock *rests = new_kind(client, "rests", HL_LOCK_REENTRANT);
    char token[48];

    expect_ok(hl_lock_acquire(fenced, ERR));
    snprintf(token, sizeof token, "last token   %s\n",
             redis_str(server, "GET redisson_lock_token:{fenced}"));
    check_has(RUN("inspect", "fenced")->out, token);
    expect_ok(hl_lock_acquire_with(rests, ACQUIRE(.min_hold_ms = slow_ms(60000)), ERR));
    expect_ok(hl_lock_release(rests, ERR));
    check(redis_wait_int(server, 0, 10000, "HGET rests %s", field_of(rests)));
    const struct said *said = RUN("inspect", "rests");
    expect_said(said, 0);
    check_has(said->out, "holder       nobody: it rests\n");
    check_has(said->out, "rests for    ");
}

Law(inspect, shows_numbers_and_strings_as_what_they_are)
{
    redis_do(server, "SET latch 3");
    redis_do(server, "SET classic f00d PX 60000");
    const struct said *said = RUN("inspect", "latch");
    expect_said(said, 0);
    check_has(said->out, "kind         number\n");
    check_has(said->out, "available    3\n");
    said = RUN("inspect", "classic");
    expect_said(said, 0);
    check_has(said->out, "kind         value\nholder       f00d\n");
}

Law(inspect, of_a_key_that_is_no_lock_says_what_it_is)
{
    redis_do(server, "HSET setting color red");
    redis_do(server, "RPUSH jobs 1");
    const struct said *said = RUN("inspect", "setting");
    expect_said(said, 125);
    check_has(said->err, "'setting' is no lock, but another program's hash");
    check_has(RUN("inspect", "jobs")->err, "'jobs' is no lock, but a list");
    expect_said(RUN("inspect"), 125);
    expect_said(RUN("inspect", "a", "b"), 125);
}

static void read_page(const char *name, char *page, size_t size)
{
    char path[512];

    snprintf(path, sizeof path, HL_MAN_PAGES "/%s", name);
    FILE *file = fopen(path, "r");
    check_msg(file != NULL, "no %s", path);
    page[fread(page, 1, size - 1, file)] = '\0';
    fclose(file);
}

static size_t word_length(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz_");
}

static bool page_has(const char *page, const char *field, size_t length)
{
    for (const char *at = page; (at = strstr(at, field)); at += length)
        if (word_length(at) == length && at > page && at[-1] == ' ')
            return true;
    return false;
}

/* Adds each line of fields of a page, ".It Va host , pid , thread" or ".Va id". */
static void collect_fields(const char *page, char *fields, size_t size)
{
    for (const char *at = page; (at = strstr(at, "Va ")); at += strcspn(at, "\n")) {
        size_t length = strlen(fields);
        snprintf(fields + length, size - length, " %.*s", (int)strcspn(at + 3, "\n"), at + 3);
    }
}

static void expect_fields_on_page(const char *said, const char *fields)
{
    char field[80];

    for (const char *at = said; (at = strchr(at, '"')); at++) {
        size_t length = word_length(at + 1);
        if (length == 0 || strncmp(at + 1 + length, "\":", 2) != 0)
            continue;
        snprintf(field, sizeof field, "%.*s", (int)length, at + 1);
        check_msg(page_has(fields, field, length), "the manual does not name %s", field);
    }
}

static void expect_fields_said(const char *said, const char *fields)
{
    char key[80];

    for (const char *at = fields; *at; at++) {
        size_t length = word_length(at);
        if (length == 0 || at == fields || at[-1] != ' ' || at[0] == '_')
            continue;
        snprintf(key, sizeof key, "\"%.*s\":", (int)length, at);
        check_msg(strstr(said, key) != NULL, "the manual names %s; said: %s", key, said);
        at += length - 1;
    }
}

Law(inspect, prints_the_fields_of_the_manual_and_no_others)
{
    static const char *const names[] = {"full", "rests", "seats", "free"};
    static char page[32768], fields[8192], said[32768];

    redis_do(server, "HSET full " JAVA ":45 1");
    redis_do(server, "SET hirelock_holder:{full} %b", JAVA ":45 45 1700000000000 9 host name",
             strlen(JAVA ":45 45 1700000000000 9 host name"));
    redis_do(server, "ZADD hirelock_queue:{full} 1700000000000000 " JAVA ":46");
    redis_do(server, "SET redisson_lock_token:{full} 7");
    redis_do(server, "HSET rests " JAVA ":45 0");
    redis_do(server, "SET seats 2");
    redis_do(server, "ZADD {seats}:timeout 9000000000000 0123456789abcdef");
    read_page("hirelock-list.1", page, sizeof page);
    collect_fields(page, fields, sizeof fields);
    read_page("hirelock-inspect.1", page, sizeof page);
    collect_fields(page, fields, sizeof fields);
    for (int i = 0; i < 4; i++) {
        size_t length = strlen(said);
        snprintf(said + length, sizeof said - length, "%s",
                 RUN("inspect", "--json", names[i])->out);
    }
    expect_fields_on_page(said, fields);
    expect_fields_said(said, fields);
}

Law(inspect, helps)
{
    expect_help_fits("inspect");
}

Law(inspect, takes_one_name_as_all_that_take_one_do)
{
    static const char *const commands[] = {"inspect", "unlock", "watch", "wait"};

    for (int i = 0; i < 4; i++) {
        const struct said *said = RUN(commands[i]);
        expect_said(said, 125);
        check_has(said->err, "which NAME?");
        check_has(RUN(commands[i], "one", "two")->err, "one NAME, please");
    }
}
