/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Permits with a time to live leave nothing behind, and no permit outlives its semaphore. */

#include "permits.h"

enum { LINGER_MS = 60000 }; /* how long a semaphore stands behind its last permit */

/* The time that the server gives the semaphore, -1: it has no end; and checks that the permits that
 * are out end with their number. Of names without a brace of their own. */
static int64_t lives(const char *name)
{
    char ids[64];

    snprintf(ids, sizeof ids, "{%s}:timeout", name);
    const char *script = "local ids = redis.call('PTTL', KEYS[2]) "
                         "local name = redis.call('PTTL', KEYS[1]) "
                         "return (ids == -2 or ids == name) and name or 'they differ'";
    return redis_int(server, "EVAL %s 2 %s %s", script, name, ids);
}

static void check_lives(const char *name, int64_t ms)
{
    int64_t left = lives(name);

    check_msg(left <= ms && left > ms - slow_ms(10000), "%s lives for %lld ms, not %lld", name,
              (long long)left, (long long)ms);
}

Law(permit_ttl, ends_a_semaphore_that_nobody_uses)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client);

    expect_ok(hl_permits_try_set_total(gate, 3, slow_ms(200), ERR));
    check(redis_wait_int(server, 0, slow_ms(10000), "EXISTS gate"));
    check_int(redis_int(server, "EXISTS {gate}:timeout"), 0);
    expect_ok(hl_permits_set_total(gate, 2, slow_ms(200), ERR));
    check(redis_wait_int(server, 0, slow_ms(10000), "EXISTS gate"));
    expect_ok(hl_permits_try_set_total(gate, 1, 0, ERR));
    check_int(lives("gate"), -1);
    expect_ok(hl_permits_delete(gate, ERR));
}

Law(permit_ttl, is_behind_the_end_of_the_last_permit)
{
    const int64_t lease_ms = slow_ms(100000), longer_ms = slow_ms(400000);
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client);
    hl_permit permit[2];

    expect_ok(hl_permits_try_set_total(gate, 3, 5000, ERR));
    check(lives("gate") <= 5000);
    expect_ok(hl_permits_acquire_with(gate, ACQUIRE(.lease_ms = lease_ms), &permit[0], ERR));
    check_lives("gate", lease_ms + LINGER_MS);
    expect_ok(hl_permits_acquire_with(gate, ACQUIRE(.lease_ms = 50), &permit[1], ERR));
    check_lives("gate", lease_ms + LINGER_MS);
    expect_ok(hl_permits_update_lease(gate, &permit[0], longer_ms, ERR));
    check_lives("gate", longer_ms + LINGER_MS);
    expect_ok(hl_permits_set_total(gate, 2, 1, ERR));
    check_lives("gate", longer_ms + LINGER_MS);
    expect_ok(hl_permits_release(gate, &permit[0], ERR));
    check_int(redis_int(server, "EXISTS gate"), 1);
}

/* The watchdog's renewals keep the semaphore, however short its time. */
Law(permit_ttl, is_prolonged_by_renewals)
{
    const int64_t watchdog_ms = slow_ms(600);
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = watchdog_ms));
    hl_permits *gate = new_gate(client);
    hl_permit permit;

    expect_ok(hl_permits_try_set_total(gate, 1, 1, ERR));
    expect_ok(hl_permits_set_total(gate, 1, slow_ms(60000), ERR));
    expect_ok(hl_permits_acquire(gate, &permit, ERR));
    redis_do(server, "EVAL %s 2 gate {gate}:timeout",
             "redis.call('PEXPIRE', KEYS[1], ARGV[1] or 30000) "
             "return redis.call('PEXPIRE', KEYS[2], ARGV[1] or 30000)");
    wait_stat(client, renewals, 1);
    check_lives("gate", watchdog_ms + LINGER_MS);
    check(lives("gate") > 30000);
    expect_ok(hl_permits_release(gate, &permit, ERR));
}

/* A waiter of the last permit finds its semaphore still there. */
Law(permit_ttl, does_not_end_before_those_who_wait)
{
    hl_client *client = open_client(CLIENT(.poll_ms = slow_ms(60000)));
    hl_permits *gate = new_gate(client);
    hl_permit permit;

    expect_ok(hl_permits_try_set_total(gate, 1, 1000, ERR));
    expect_ok(
        hl_permits_acquire_with(gate, ACQUIRE(.lease_ms = 1000 + slow_ms(500)), &permit, ERR));
    expect_ok(hl_permits_acquire_for(gate, HL_WAIT_FOREVER, &permit, ERR));
    expect_ok(hl_permits_release(gate, &permit, ERR));
}

/* A limit for each user: each use calls hl_permits_try_set_total() first. */
Law(permit_ttl, grows_with_each_call_that_finds_the_semaphore)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client), *old = new_gate_named(client, "old");

    expect_ok(hl_permits_try_set_total(gate, 3, slow_ms(100000), ERR));
    expect_outcome(hl_permits_try_set_total(gate, 9, slow_ms(200000), NULL), HL_EEXIST);
    check_lives("gate", slow_ms(200000));
    expect_outcome(hl_permits_try_set_total(gate, 9, 1, NULL), HL_EEXIST);
    expect_outcome(hl_permits_try_set_total(gate, 9, 0, NULL), HL_EEXIST);
    check_lives("gate", slow_ms(200000));
    check_int(redis_int(server, "GET gate"), 3);
    expect_ok(hl_permits_try_set_total(old, 3, 0, ERR));
    expect_outcome(hl_permits_try_set_total(old, 3, 1, NULL), HL_EEXIST);
    check_int(lives("old"), -1); /* what was for ever stays so, until it is set */
    expect_ok(hl_permits_set_total(old, 3, 0, ERR));
    check_int(lives("old"), -1);
    expect_ok(hl_permits_set_total(old, 3, slow_ms(100000), ERR));
    check_lives("old", slow_ms(100000));
    expect_ok(hl_permits_add(old, 1, ERR));
    check_lives("old", slow_ms(100000));
}

/* Redisson's permits, which do not prolong it, are kept by the next that asks. */
Law(permit_ttl, is_prolonged_by_one_who_waits_behind_a_permit_of_redisson)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client);
    hl_permit permit;

    expect_ok(hl_permits_try_set_total(gate, 1, 20000, ERR));
    redis_do(server, "EVAL %s 2 gate {gate}:timeout",
             "redis.call('DECR', KEYS[1]) "
             "redis.call('ZADD', KEYS[2], redis.call('TIME')[1] * 1000 + 90000, "
             "'0123456789abcdef') return redis.call('PEXPIRE', KEYS[2], "
             "redis.call('PTTL', KEYS[1]))");
    expect_outcome(hl_permits_try_acquire(gate, &permit, NULL), HL_EBUSY);
    check(lives("gate") > 90000 - slow_ms(1000));
}

Law(permit_ttl, is_checked)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = new_gate(client);
    hl_error err;

    expect_outcome(hl_permits_try_set_total(gate, 3, -1, &err), HL_EINVAL);
    check_str(err.text, "set permits 'gate': ttl_ms is not from 0 to 10^11");
    expect_outcome(hl_permits_set_total(gate, 3, 100000000001, &err), HL_EINVAL);
    check_int(redis_int(server, "EXISTS gate"), 0);
}
