/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock watch: a line for each change of owner, and a word when the server is away. */

#include "cli/said.h"

#include <signal.h>

struct watched {
    struct said *said;
    const char *out, *err;
};

static bool has_said(void *arg)
{
    const struct watched *watched = arg;

    said_look(watched->said);
    return (!watched->out || strstr(watched->said->out, watched->out)) &&
           (!watched->err || strstr(watched->said->err, watched->err));
}

static void expect_line(struct said *said, const char *out, const char *err)
{
    struct watched watched = {said, out, err};

    check_msg(wait_until(has_said, &watched, 30000), "not said: %s; but: %s%s", out ? out : err,
              said->out, said->err);
}

/* As Ctrl-C does. */
static void watch_interrupt(struct said *said)
{
    int status = 0;

    kill(said->pid, SIGINT);
    check(spawn_reap(said->pid, 30000, &status));
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

Law(watch, tells_each_change_of_owner)
{
    struct said *said = START("watch", "--interval", "10ms", "stock");

    expect_line(said, "Z free\n", NULL);
    redis_do(server, "HSET stock " JAVA ":45 1");
    expect_line(said, "Z lock " JAVA ":45\n", NULL);
    redis_do(server, "HSET stock " JAVA ":45 2"); /* the same owner */
    redis_do(server, "HSET stock " JAVA ":46 1");
    redis_do(server, "HDEL stock " JAVA ":45");
    expect_line(said, "Z lock " JAVA ":46\n", NULL);
    redis_do(server, "DEL stock");
    redis_do(server, "HSET stock mode read " JAVA ":47 1");
    expect_line(said, "Z read lock " JAVA ":47\n", NULL);
    watch_interrupt(said);
    check_msg(strncmp(said->out, "20", 2) == 0, "%s", said->out);
}

Law(watch, tells_it_in_json)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_REENTRANT);
    struct said *said = START("watch", "--json", "stock");

    expect_line(said, "\"held\":false}\n", NULL);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_line(said, "\"held\":true,\"lock\":{\"name\":\"stock\"", NULL);
    expect_line(said, hl_client_id(client), NULL);
    watch_interrupt(said);
}

SingleLaw(watch, tells_that_the_server_goes_away_and_comes_back)
{
    struct said *said = START("watch", "stock");

    expect_line(said, "Z free\n", NULL);
    redis_server_kill(server);
    expect_line(said, NULL, "hirelock watch: the server is away: ");
    redis_server_restart(server);
    redis_do(server, "HSET stock " JAVA ":45 1");
    expect_line(said, JAVA, "hirelock watch: the server is back");
    watch_interrupt(said);
}

Law(watch, of_a_key_that_is_no_lock_ends)
{
    redis_do(server, "HSET setting color red");
    const struct said *said = RUN("watch", "setting");
    expect_said(said, 125);
    check_has(said->err, "is no lock");
    said = RUN("watch", "--interval", "1ms", "stock");
    expect_said(said, 125);
    check_has(said->err, "no time from 10ms on");
}

Law(watch, helps)
{
    expect_help_fits("watch");
}
