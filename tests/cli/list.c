/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock list: which keys are locks, and what is told of each. */

#include "cli/kinds_held.h"
#include "cli/said.h"

static void expect_no_other(const struct said *said, int lines)
{
    check_msg(said_lines(said->out) == lines, "%d lines:\n%s", said_lines(said->out), said->out);
}

Law(list, of_a_server_without_locks_says_so)
{
    redis_do(server, "SET text 1");
    redis_do(server, "HSET setting mode fast");
    redis_do(server, "HSET numbers client:1 1");
    redis_do(server, "ZADD x:timeout 1 a");
    const struct said *said = RUN("list");
    expect_said(said, 0);
    check_str(said->out, "");
    check_has(said->err, "hirelock list: no lock is held");
    check_str(RUN("list", "--json")->out, "");
}

Law(list, shows_locks_of_this_library_with_their_holder_by_name)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO));
    static const char *const names[] = {"den", "area", "cask", "bay"}; /* at several masters */
    char pid[32];

    for (int i = 0; i < 4; i++)
        expect_ok(hl_lock_acquire(new_kind(client, names[i], HL_LOCK_REENTRANT), ERR));
    expect_ok(hl_lock_acquire(new_kind(client, "area", HL_LOCK_REENTRANT), ERR));
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{area}"));
    check(redis_wait_int(server, 2, 10000, "HGET area %s", field_of(new_lock(client, "area"))));
    const struct said *said = RUN("list");
    expect_said(said, 0);
    expect_no_other(said, 5);
    const char *area = strstr(said->out, "\narea "), *bay = strstr(said->out, "\nbay "),
               *den = strstr(said->out, "\nden ");
    check(area && bay && den && area < bay && bay < den);
    said = RUN("list", "--json", "area");
    expect_no_other(said, 1);
    snprintf(pid, sizeof pid, "\"pid\":%d", (int)getpid());
    check_has(said->out, pid);
    check_has(said->out, "\"name\":\"area\",\"kind\":\"lock\"");
    check_has(said->out, "\"levels\":2");
    check_has(said->out, "\"held_ms\":");
    check_has(said->out, hl_client_id(client));
}

Law(list, tells_kinds_apart_as_far_as_the_data_do)
{
    struct kinds_held held = kinds_take(open_client(NULL), open_client(NULL));
    const struct said *said = RUN("list", "--json");
    expect_said(said, 0);
    expect_no_other(said, 5);
    check_has(said->out, "\"name\":\"seats\",\"kind\":\"permits\"");
    check_has(said->out, "\"name\":\"reads\",\"kind\":\"read lock\"");
    check_has(said->out, "\"owners\":2");
    check_has(said->out, "\"name\":\"writes\",\"kind\":\"write lock\"");
    check_has(said->out, "\"name\":\"fenced\",\"kind\":\"fenced lock\"");
    check_has(said->out, "\"name\":\"fair\",\"kind\":\"fair lock\"");
    check_has(said->out, "\"waiters\":1");
    kinds_pass_on(&held);
}

/* libsmartcols never came to an end. */
Law(list, writes_ascii_where_the_locale_has_no_utf8)
{
    static const char name[] = "caf\xc3\xa9 \xe9\x9b\x9b of a name that makes the table wider than "
                               "a terminal of eighty columns is";
    redisReply *made = redis_command(server, "HSET %s " JAVA ":45 1", name);

    freeReplyObject(made);
    said_locale = "LC_ALL=C";
    const struct said *said = RUN("list");
    expect_said(said, 0);
    check_has(said->out, "caf\\xc3\\xa9 \\xe9\\x9b\\x9b of a name");
    check_has(RUN("inspect", name)->out, "caf\\xc3\\xa9 \\xe9");
    check_has(RUN("list", "--json")->out, name);
    said_locale = "LC_ALL=C.UTF-8";
    check_has(RUN("list")->out, name);
}

Law(list, shows_redissons_locks)
{
    redis_do(server, "HSET stock " JAVA ":45 2");
    redis_do(server, "PEXPIRE stock 30000");
    redis_do(server, "HSET {shelf}x mode write " JAVA ":7:write 1");
    const struct said *said = RUN("list");
    expect_said(said, 0);
    expect_no_other(said, 3);
    check_has(said->out, "stock");
    check_has(said->out, JAVA ":45");
    check_has(said->out, "write lock");
    check_has(said->out, JAVA ":7:write");
    check_has(said->out, "no end");
}

Law(list, shows_strings_only_if_it_is_asked_for_them)
{
    redis_do(server, "SET classic f00d NX PX 100000");
    redis_do(server, "SET cached text");
    check_str(RUN("list")->out, "");
    redis_do(server, "SET seats 3");
    redis_do(server, "ZADD {seats}:timeout 9000000000000 0123456789abcdef");
    const struct said *said = RUN("list", "--classic", "--json");
    expect_no_other(said, 2);
    check_has(said->out, "\"name\":\"seats\",\"kind\":\"permits\"");
    check_has(said->out, "\"name\":\"classic\",\"kind\":\"value\",\"holder\":\"f00d\"");
}

Law(list, takes_a_pattern_a_limit_and_a_prefix)
{
    for (int i = 0; i < 30; i++)
        redis_do(server, "HSET app[1]:stock:%d " JAVA ":%d 1", i, i);
    redis_do(server, "HSET app1:stock:1 " JAVA ":1 1");
    redis_do(server, "HSET other " JAVA ":1 1");
    expect_no_other(RUN("list", "--json", "*stock:1*"), 12);
    expect_no_other(RUN("list", "--json", "--limit", "7"), 7);
    const struct said *said = RUN("list", "--json", "--prefix", "app[1]:", "stock:2*");
    expect_no_other(said, 11);
    check_has(said->out, "\"name\":\"stock:2\"");
    said = RUN("list", "--limit", "0");
    expect_said(said, 125);
    check_has(said->err, "no number from 1");
    expect_said(RUN("list", "a", "b"), 125);
}

Law(list, escapes_what_a_terminal_would_obey)
{
    redis_do(server, "HSET %b " JAVA ":1 1", "a\x1b[2J\xff\\\n\xc3\xa4\xc2\x9b\xe2\x80\xae",
             (size_t)15);
    redis_do(server, "HSET %b " JAVA ":1 1", "b\xd8\x9c\xc2\xad\xf3\xa0\x81\xa1", (size_t)9);
    const struct said *said = RUN("list");
    check_has(said->out, "\nb\\xd8\\x9c\\xc2\\xad\\xf3\\xa0\\x81\\xa1 ");
    check_has(said->out, "\na\\x1b[2J\\xff\\\\\\x0a\xc3\xa4\\xc2\\x9b\\xe2\\x80\\xae ");
    said = RUN("list", "--json");
    check_has(said->out, "\"name\":\"a\\\\x1b["
                         "2J\\\\xff\\\\\\\\\\\\x0a\xc3\xa4\\\\xc2\\\\x9b\\\\xe2\\\\x80\\\\xae\"");
}

Law(list, goes_past_keys_that_are_too_long_for_one_answer)
{
    char *name = free_at_end(calloc(1, 9001), free);

    memset(name, 'x', 9000);
    for (int i = 0; i < 40; i++)
        redis_do(server, "HSET %d%s field value", i, name);
    redis_do(server, "HSET stock " JAVA ":45 2");
    const struct said *said = RUN("list", "--json");
    expect_said(said, 0);
    expect_no_other(said, 1);
}

SingleLaw(list, says_that_there_is_no_server)
{
    redis_server_kill(server);
    const struct said *said = RUN("list");
    expect_said(said, 123);
    check_has(said->err, "hirelock list: ");
}

Law(list, helps)
{
    expect_help_fits("list");
}
