/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock unlock: takes a lock of any kind away, and nothing that it must not. */

#include "cli/said.h"
#include "support/actor.h"
#include "support/events.h"

#include <fcntl.h>

Law(unlock, of_a_free_lock_is_status_one)
{
    const struct said *said = RUN("unlock", "--yes", "stock");
    expect_said(said, 1);
    check_has(said->err, "nobody holds it");
}

Law(unlock, takes_each_kind_from_its_owner)
{
    static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR, HL_LOCK_FENCED,
                                         HL_LOCK_SPIN,      HL_LOCK_READ, HL_LOCK_WRITE};
    hl_client *client = open_client(CLIENT(.name_prefix = "app:"));
    char name[16];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(name, sizeof name, "kind%zu", i);
        expect_ok(hl_lock_acquire(new_kind(client, name, kinds[i]), ERR));
        const struct said *said = RUN("unlock", "--yes", "--prefix", "app:", name);
        expect_said(said, 0);
        check_has(said->out, hl_client_id(client)); /* who loses it */
        check_has(said->out, "was taken away");
        check_int(redis_int(server, "EXISTS app:%s", name), 0);
    }
}

Law(unlock, wakes_who_waits)
{
    hl_client *client = open_client(NULL), *other = open_client(CLIENT(.poll_ms = 30000));
    static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR};

    for (int i = 0; i < 2; i++) {
        const char *name = i ? "fair" : "plain";
        hl_lock *waits = new_kind(other, name, kinds[i]);
        expect_ok(hl_lock_acquire(new_kind(client, name, kinds[i]), ERR));
        struct actor *waiter = actor_start_acquire(waits, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
        check(
            redis_wait_int(server, 1, 10000,
                           i ? "LLEN redisson_lock_queue:{fair}" : "ZCARD hirelock_queue:{plain}"));
        expect_said(RUN("unlock", "-y", name), 0);
        expect_ok(actor_end(waiter));
        expect_ok(actor_release(waiter, waits, NULL));
    }
}

Law(unlock, takes_a_string_only_if_it_is_said_to_be_a_lock)
{
    redis_do(server, "SET classic f00d PX 60000");
    redis_do(server, "SET text 1");
    const struct said *said = RUN("unlock", "--yes", "classic");
    expect_said(said, 125);
    check_has(said->err, "--classic says that it is a lock");
    check_int(redis_int(server, "EXISTS classic"), 1);
    expect_said(RUN("unlock", "--yes", "--classic", "classic"), 0);
    check_int(redis_int(server, "EXISTS classic"), 0);
    expect_said(RUN("unlock", "--yes", "--classic", "text"), 125);
    check_int(redis_int(server, "EXISTS text"), 1); /* each lock has an expiry */
}

Law(unlock, leaves_what_is_no_lock)
{
    redis_do(server, "HSET setting color red");
    redis_do(server, "SET seats 1");
    redis_do(server, "ZADD {seats}:timeout 9000000000000 0123456789abcdef");
    expect_said(RUN("unlock", "--yes", "setting"), 125);
    const struct said *said = RUN("unlock", "--yes", "--classic", "seats");
    expect_said(said, 125);
    check_has(said->err, "given back by its id");
    check_int(redis_int(server, "EXISTS setting"), 1);
    check_int(redis_int(server, "EXISTS seats"), 1);
}

Law(unlock, without_a_terminal_needs_yes)
{
    redis_do(server, "HSET stock " JAVA ":45 2");
    const struct said *said = RUN("unlock", "stock");
    expect_said(said, 125);
    check_has(said->err, "--yes");
    check_int(redis_int(server, "EXISTS stock"), 1);
}

struct terminal {
    int fd;
    struct said *said;
};

/* On a terminal of its own; word: one more, or NULL. */
static struct terminal unlock_on_terminal(const char *word)
{
    struct terminal terminal = {.fd = posix_openpt(O_RDWR | O_NOCTTY)};

    check(terminal.fd >= 0 && grantpt(terminal.fd) == 0 && unlockpt(terminal.fd) == 0);
    int keeps = open(ptsname(terminal.fd), O_RDWR | O_NOCTTY); /* what is typed stays until read */
    check(keeps >= 0);
    terminal.said =
        said_start(ptsname(terminal.fd), (const char *const[]){"unlock", "stock", word, NULL});
    return terminal;
}

static bool has_asked(void *said)
{
    return strstr(said_look(said)->out, "Take it away? [y/N] ") != NULL;
}

static struct said *unlock_typed(struct terminal terminal, const char *answer)
{
    check(wait_until(has_asked, terminal.said, 20000));
    check(write(terminal.fd, answer, strlen(answer)) == (ssize_t)strlen(answer));
    return said_end(terminal.said);
}

Law(unlock, asks_on_the_terminal)
{
    redis_do(server, "HSET stock " JAVA ":45 2");
    struct said *said = unlock_typed(unlock_on_terminal(NULL), "n\n");
    expect_said(said, 125);
    check_has(said->err, "nothing was done");
    check_has(said->out, "'stock' (lock) is held by " JAVA ":45; 0 waiting");
    check_int(redis_int(server, "EXISTS stock"), 1);
    expect_said(unlock_typed(unlock_on_terminal(NULL), "y\n"), 0);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(unlock, takes_nothing_from_another_owner_than_the_one_it_showed)
{
    redis_do(server, "HSET stock " JAVA ":45 2");
    struct terminal terminal = unlock_on_terminal(NULL);
    check(wait_until(has_asked, terminal.said, 20000));
    redis_do(server, "DEL stock");
    redis_do(server, "HSET stock " JAVA ":46 1");
    struct said *said = unlock_typed(terminal, "y\n");
    expect_said(said, 1);
    check_has(said->err, "another owner by now");
    check_str(redis_str(server, "HKEYS stock"), JAVA ":46");
}

static void expect_digits_kept(const char *shown, const char *token, const char *next)
{
    redis_do(server, "SET stock %s PX 600000", token);
    struct terminal terminal = unlock_on_terminal("--classic");
    check(wait_until(has_asked, terminal.said, 20000));
    redis_do(server, "SET stock %s PX 600000", next);
    struct said *said = unlock_typed(terminal, "y\n");
    expect_said(said, 1);
    check_has(said->out, shown);
    check_has(said->err, "another owner by now");
    check_str(redis_str(server, "GET stock"), next);
}

/* A token of digits is as good as any, and may be the one of another owner by now. */
Law(unlock, takes_a_string_of_digits_only_from_the_owner_that_it_showed)
{
    expect_digits_kept("'stock' (number) is held by 17\n", "17", "18");
    expect_digits_kept("'stock' (value) is held by 017\n", "017", "0017");
    expect_digits_kept("is held by 18446744073709551615\n", "18446744073709551615",
                       "18446744073709551616");
    expect_said(unlock_typed(unlock_on_terminal("--classic"), "y\n"), 0);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(unlock, helps)
{
    expect_help_fits("unlock");
}
