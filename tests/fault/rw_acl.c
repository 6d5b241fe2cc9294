/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The rights that a user of read-write locks needs (docs/read-write-lock.md), and the behaviour
 * without the others. */

#include "acl_kit.h"
#include "support/kinds.h"

#define LEAST_COMMANDS                                                                             \
    "-@all +evalsha +script|load +hget +hset +hincrby +hgetall +pexpire +pttl +del "               \
    "+time +publish +subscribe +unsubscribe +hmget +hlen +hdel +get +set +hrandfield "             \
    "+hscan +zrange +zrem"
#define LEAST_KEYS                                                                                 \
    "resetkeys ~app:* ~{app:* ~hirelock_rw_writer:{app:* ~hirelock_queue:{app:* "                  \
    "resetchannels &redisson_rwlock:{app:* &hirelock:*"

static void start(void)
{
    acl_up("user locker on >pw " LEAST_KEYS " " LEAST_COMMANDS);
}

#define AclTest(name) Test(rw_acl, name, .init = start, .fini = server_down)

struct acl_rw {
    hl_client *client;
    hl_lock *read, *write;
};

static struct acl_rw acl_open(int64_t watchdog_ms, int64_t poll_ms)
{
    hl_client_options options = acl_options(NULL);
    const hl_lock_options prefers = {.size = sizeof(prefers), .flags = HL_LOCK_PREFER_WRITERS};
    struct acl_rw rw;
    options.poll_ms = poll_ms;
    options.watchdog_timeout_ms = slow_ms(watchdog_ms);
    rw.client = open_client(&options);
    expect_ok(rw_lock_new(rw.client, "app:n", &prefers, &rw.read, &rw.write, NULL));
    return rw;
}

static void acl_close(struct acl_rw *rw)
{
    free_lock(rw->read);
    free_lock(rw->write);
    close_client(rw->client);
}

AclTest(the_least_that_is_needed_is_enough)
{
    struct acl_rw a = acl_open(3000, 60000), b = acl_open(3000, 60000);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    struct actor *call = actor_start_acquire(b.write, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_rwlock:{app:n}", 1, 5000));
    check(redis_wait_int(server, 1, 5000, "EXISTS hirelock_rw_writer:{app:n}"));
    expect_outcome(hl_lock_try_acquire(b.read, NULL), HL_EBUSY);
    while (stats_of(a.client).renewals < 2)
        deadline_nap();
    expect_ok(hl_lock_inspect(a.read, &info, NULL));
    check(info.locked && info.mine);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
    check_msg(actor_end(call) == 0, "%s", actor_error(call));
    expect_ok(hl_lock_inspect(a.write, &info, NULL));
    check(info.locked && !info.mine);
    expect_ok(hl_lock_force_release(a.write, NULL));
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_release(a.write, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
    check_int(redis_int(server, "DBSIZE"), 0);
    acl_check_log(NULL);
    acl_close(&a);
    acl_close(&b);
}

AclTest(without_messages_and_looks_at_readers_it_is_found_out_by_polls)
{
    redis_do(server, "ACL SETUSER locker -publish -subscribe -hrandfield -hscan");
    struct acl_rw a = acl_open(3000, 100), b = acl_open(3000, 100);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_inspect(a.read, &info, NULL));
    check(info.locked && !info.mine); /* no holder is named */
    check_str(info.owner, "");
    struct actor *call = actor_start_acquire(b.write, ACQUIRE(.wait_ms = slow_ms(20000)));
    expect_waiters(b.client, 1);
    expect_ok(hl_lock_release(a.read, NULL));
    check_msg(actor_end(call) == 0, "%s", actor_error(call));
    expect_ok(actor_release(call, b.write, NULL));
    acl_close(&a);
    acl_close(&b);
}

AclTest(a_user_without_a_needed_command_is_told)
{
    struct acl_rw rw = acl_open(3000, 100);
    redis_do(server, "ACL SETUSER locker -hmget");
    expect_outcome(hl_lock_try_acquire(rw.read, NULL), HL_EDENIED);
    expect_outcome(hl_lock_try_acquire(rw.write, NULL), HL_EDENIED);
    redis_do(server, "ACL SETUSER locker +hmget");
    expect_ok(hl_lock_try_acquire(rw.read, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    acl_close(&rw);
}
