/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Leases of a read-write lock: their ends, their renewals, and the holds that are lost. */

#include "rw_kit.h"
#include "support/process.h"

static bool lives(const char *field)
{
    return redis_int(server, "EXISTS {stock}:%s:rwlock_timeout:1", field) == 1;
}

RwLaw(rw_lock_lease, a_short_lease_shortens_no_other_readers_lease)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire_with(a.read, ACQUIRE(.lease_ms = 60000), NULL));
    expect_ok(hl_lock_acquire_with(b.read, ACQUIRE(.lease_ms = slow_ms(100)), NULL));
    check(redis_int(server, "PTTL stock") > 50000);
    check(redis_wait_int(server, 2, 5000, "DBSIZE")); /* the lock, and one hold key */
    check(redis_int(server, "PTTL stock") > 50000);
    check(hl_lock_is_held(a.read, NULL));
    check(!hl_lock_is_held(b.read, NULL));
    expect_outcome(hl_lock_release(b.read, NULL), HL_ELOST);
    check(redis_int(server, "PTTL stock") > 50000);
    expect_ok(hl_lock_release(a.read, NULL));
}

RwLaw(rw_lock_lease, a_reader_whose_lease_is_over_has_lost_and_others_read_on)
{
    struct recorder told = RECORDER_INIT;
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_acquire_with(
        b.read, ACQUIRE(.lease_ms = slow_ms(100), .on_event = record_event, .event_arg = &told),
        NULL));
    expect_story(&told, "LOST expired");
    check(hl_lock_is_held(a.read, NULL));
    check_int(stats_of(b.client).losses, 1);
    expect_ok(hl_lock_release(a.read, NULL)); /* the last one that lives */
    struct actor *writer = rw_waits(b.write);
    expect_ok(actor_end(writer));
    expect_outcome(hl_lock_release(b.read, NULL), HL_ELOST);
    check(actor_holds(writer, b.write, NULL));
    expect_ok(actor_release(writer, b.write, NULL));
}

enum { GO, READS };

static void read_until_killed(struct process *self, void *arg)
{
    (void)arg;
    check(process_await(self, GO, 1, 60000));
    struct rw rw =
        rw_new(open_client_at(process_shared(self), CLIENT(.watchdog_timeout_ms = slow_ms(3000))));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    process_tell(self, READS);
    process_await(self, GO, 2, 60000);
}

static struct process *dying;

static void dying_up(void)
{
    dying = process_start(read_until_killed, NULL);
    server_up();
    snprintf(process_shared(dying), PROCESS_SHARED, "%s", redis_server_url(server));
    process_tell(dying, GO);
    check(process_await(dying, READS, 1, 30000));
}

/* The lock's own lease is a long one, as many others might have left it. */
Test(rw_lock_lease, a_reader_whose_process_died_keeps_a_writer_out_for_its_own_lease_only,
     .init = dying_up, .fini = rw_down)
{
    struct rw rw = rw_new(open_client(CLIENT(.poll_ms = 100)));
    process_kill(dying);
    redis_do(server, "PEXPIRE stock 3600000");
    expect_outcome(hl_lock_try_acquire(rw.write, NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire_for(rw.write, slow_ms(20000), NULL));
    check(redis_int(server, "PTTL stock") <= 30000);
    expect_ok(hl_lock_release(rw.write, NULL));
    check_int(process_finish(dying, 1000), -9);
}

RwLaw(rw_lock_lease, the_watchdog_renews_each_reader)
{
    struct rw rw = rw_new(open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS)));
    hl_owner *owner[5];
    for (int i = 0; i < 5; i++) {
        owner[i] = new_owner(rw.client);
        expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = owner[i]), NULL));
    }
    wait_stat(rw.client, renewals, 5 * 5);
    for (int i = 0; i < 5; i++)
        check(hl_lock_is_held(rw.read, owner[i]));
    check_int(stats_of(rw.client).losses, 0);
    check_int(redis_int(server, "DBSIZE"), 6);
    for (int i = 0; i < 5; i++)
        expect_ok(hl_lock_release_as(rw.read, owner[i], NULL));
}

RwLaw(rw_lock_lease, the_watchdog_renews_the_levels_of_a_reader_and_a_writer_that_became_one)
{
    struct rw rw = rw_new(open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS)));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    wait_stat(rw.client, renewals, 8);
    check(hl_lock_is_held(rw.write, NULL) && hl_lock_is_held(rw.read, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    wait_stat(rw.client, renewals, stats_of(rw.client).renewals + 4);
    check(hl_lock_is_held(rw.read, NULL));
    check_int(redis_int(server, "DBSIZE"), 3);
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    check_int(stats_of(rw.client).losses, 0);
}

/* As a renewal of Redisson's does for its own reader. */
RwLaw(rw_lock_lease, a_shortened_expiry_is_put_back_for_leased_readers_too)
{
    struct rw rw = rw_new(open_client(CLIENT(.watchdog_timeout_ms = slow_ms(600))));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 60000), NULL));
    for (int i = 0; i < 2; i++) {
        redis_do(server, "PEXPIRE stock 30000");
        struct deadline deadline = deadline_in(5000);
        while (redis_int(server, "PTTL stock") < 50000 && !deadline_is_over(deadline))
            deadline_nap();
        check(redis_int(server, "PTTL stock") > 50000);
    }
    check(redis_int(server, "PTTL stock") <= 60000); /* its lease time is not made longer */
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock_lease, a_nested_reader_with_a_longer_lease_makes_the_hold_longer_to_its_end)
{
    struct rw rw = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 5000), NULL));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 60000), NULL));
    check(hl_lock_validity_ms(rw.read, NULL) > 50000);
    check(redis_int(server, "PTTL stock") > 50000);
    expect_ok(hl_lock_release(rw.read, NULL));
    check(redis_wait_int(server, 2, 5000, "DBSIZE")); /* one hold key is left */
    check(hl_lock_validity_ms(rw.read, NULL) > 50000);
    check(redis_int(server, "PTTL stock") > 50000);
    expect_ok(hl_lock_release(rw.read, NULL));
}

/* Levels above the 1,000th have no hold key of their own. */
RwLaw(rw_lock_lease, a_very_deep_reader_with_a_longer_lease_has_it_in_redis_too)
{
    enum { DEEP = 1001 };
    struct rw rw = rw_new(open_client(NULL));
    hl_lock_info info = HL_LOCK_INFO_INIT;
    for (int i = 0; i < DEEP; i++)
        expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = slow_ms(120000)), NULL));
    check(redis_wait_int(server, 1001, 5000, "DBSIZE"));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = 36000000), NULL));
    expect_ok(hl_lock_inspect(rw.read, &info, NULL));
    check(hl_lock_validity_ms(rw.read, NULL) > 30000000);
    check(redis_int(server, "PTTL {stock}:%s:rwlock_timeout:1000", info.owner) > 30000000);
    for (int i = 0; i <= DEEP; i++)
        expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock_lease, a_nested_writer_gets_the_longer_of_both_and_not_the_sum)
{
    struct rw rw = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire_with(rw.write, ACQUIRE(.lease_ms = 40000), NULL));
    expect_ok(hl_lock_acquire_with(rw.write, ACQUIRE(.lease_ms = 60000), NULL));
    int64_t left = redis_int(server, "PTTL stock");
    check(left > 50000 && left <= 60000);
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
}

RwLaw(rw_lock_lease, a_release_after_its_end_says_so)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire_with(a.write, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    expect_ok(hl_lock_acquire(b.write, NULL));
    expect_outcome(hl_lock_release(a.write, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(a.write, NULL), HL_ENOTOWNER);
    check(hl_lock_is_held(b.write, NULL));
    expect_state("write 1");
    expect_ok(hl_lock_release(b.write, NULL));
    expect_ok(hl_lock_acquire_with(a.read, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    expect_ok(hl_lock_acquire(b.write, NULL));
    expect_outcome(hl_lock_release(a.read, NULL), HL_ELOST);
    check(hl_lock_is_held(b.write, NULL));
    expect_ok(hl_lock_release(b.write, NULL));
}

RwLaw(rw_lock_lease, an_owner_that_has_lost_its_read_lock_may_write)
{
    struct rw rw = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    wait_stat(rw.client, losses, 1);
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_outcome(hl_lock_release(rw.read, NULL), HL_ELOST);
    check(hl_lock_is_held(rw.write, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
}

RwLaw(rw_lock_lease, a_forced_release_takes_it_from_all_readers)
{
    struct recorder a_told = RECORDER_INIT, b_told = RECORDER_INIT;
    struct rw a = rw_new(open_client(CLIENT(.on_event = record_event, .arg = &a_told)));
    struct rw b = rw_new(open_client(
        CLIENT(.on_event = record_event, .arg = &b_told, .watchdog_timeout_ms = slow_ms(3000))));
    struct rw c = rw_new_deaf();
    hl_owner *second = new_owner(a.client);
    expect_outcome(hl_lock_force_release(a.read, NULL), HL_ENOENT);
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_acquire_with(a.read, ACQUIRE(.owner = second), NULL));
    expect_ok(hl_lock_acquire(b.read, NULL));
    struct actor *writer = rw_waits(c.write);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    expect_outcome(hl_lock_force_release(a.write, NULL), HL_ENOENT);
    expect_ok(hl_lock_force_release(a.read, NULL));
    expect_ok(actor_end(writer));
    expect_story(&a_told, "LOST gone, LOST gone"); /* at once, by the one who forced */
    expect_story(&b_told, "LOST gone");            /* with its next renewal */
    check_int(redis_int(server, "DBSIZE"), 1);
    expect_outcome(hl_lock_release(a.read, NULL), HL_ELOST);
    expect_outcome(hl_lock_release_as(a.read, second, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(b.read, NULL), HL_ELOST);
    expect_ok(actor_release(writer, c.write, NULL));
}

RwLaw(rw_lock_lease, a_forced_release_takes_it_from_a_writer_and_what_it_reads)
{
    struct recorder told = RECORDER_INIT;
    struct rw a = rw_new(open_client(CLIENT(.on_event = record_event, .arg = &told)));
    struct rw b = rw_new_deaf();
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    struct actor *reader = rw_waits(b.read);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    expect_ok(hl_lock_force_release(a.write, NULL));
    expect_ok(actor_end(reader));
    expect_story(&told, "LOST gone, LOST gone");
    expect_outcome(hl_lock_release(a.write, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(a.read, NULL), HL_ELOST);
    expect_ok(actor_release(reader, b.read, NULL));
}

RwLaw(rw_lock_lease, a_reader_whose_hold_key_was_deleted_has_lost)
{
    struct recorder told = RECORDER_INIT;
    struct rw rw = rw_new(open_client(
        CLIENT(.on_event = record_event, .arg = &told, .watchdog_timeout_ms = slow_ms(3000))));
    hl_owner *other = new_owner(rw.client);
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_inspect(rw.read, &info, NULL));
    check(lives(info.owner));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = other), NULL));
    redis_do(server, "DEL {stock}:%s:rwlock_timeout:1", info.owner);
    expect_story(&told, "LOST gone");
    check(hl_lock_is_held(rw.read, other));
    expect_outcome(hl_lock_release(rw.read, NULL), HL_ELOST);
    expect_ok(hl_lock_release_as(rw.read, other, NULL));
}

RwLaw(rw_lock_lease, a_thread_that_ends_abandons_what_it_reads)
{
    struct recorder told = RECORDER_INIT;
    struct rw rw =
        rw_new(open_client(CLIENT(.on_event = record_event, .arg = &told,
                                  .watchdog_timeout_ms = slow_ms(2000), .poll_ms = 100)));
    struct actor *reader = actor_start();
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(actor_acquire(reader, rw.read, ACQUIRE(.wait_ms = 0)));
    actor_stop(reader);
    expect_story(&told, "LOST thread exit");
    check(hl_lock_is_held(rw.read, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL)); /* when the lease of the abandoned one is over */
    expect_ok(hl_lock_release(rw.write, NULL));
}

RwLaw(rw_lock_lease, max_hold_ends_a_read_hold)
{
    struct recorder told = RECORDER_INIT;
    struct rw rw = rw_new(open_client(CLIENT(.on_event = record_event, .arg = &told)));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.max_hold_ms = 50), NULL));
    expect_story(&told, "LOST max_hold");
    expect_outcome(hl_lock_release(rw.read, NULL), HL_ELOST);
    expect_state("");
}

/* Its owner reads on, and that prolongs the key. */
RwLaw(rw_lock_lease, max_hold_ends_a_write_hold_beside_a_read_hold)
{
    struct recorder told = RECORDER_INIT;
    struct rw a = rw_new(open_client(
        CLIENT(.on_event = record_event, .arg = &told, .watchdog_timeout_ms = slow_ms(2000))));
    struct rw b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire_with(a.write, ACQUIRE(.max_hold_ms = 50), NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_story(&told, "LOST max_hold");
    expect_ok(hl_lock_acquire(b.read, NULL)); /* when the lease of the write hold is over */
    check(hl_lock_is_held(a.read, NULL));
    expect_outcome(hl_lock_release(a.write, NULL), HL_ELOST);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_release(b.read, NULL));
}

RwLaw(rw_lock_lease, a_minimal_hold_keeps_writers_out_until_it_is_over)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire_with(a.read, ACQUIRE(.min_hold_ms = slow_ms(3000)), NULL));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_inspect(a.read, &info, NULL));
    check(info.locked && info.mine);
    check_int(info.hold_count, 0);
    check(info.lease_left_ms <= slow_ms(3000));
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_EBUSY);
    expect_ok(hl_lock_try_acquire(b.read, NULL));
    expect_ok(hl_lock_release(b.read, NULL));
    expect_ok(hl_lock_acquire(b.write, NULL));
    expect_ok(hl_lock_release(b.write, NULL));
    expect_ok(hl_lock_acquire_with(a.write, ACQUIRE(.min_hold_ms = slow_ms(1500)), NULL));
    expect_ok(hl_lock_release(a.write, NULL));
    expect_outcome(hl_lock_try_acquire(b.read, NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire(b.read, NULL));
    expect_ok(hl_lock_release(b.read, NULL));
}

RwLaw(rw_lock_lease, a_close_leaves_holds_to_their_leases_or_releases_them)
{
    struct rw a = rw_new(open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000))));
    struct rw b = rw_new(open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE)));
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_acquire(b.read, NULL));
    expect_ok(actor_acquire(other, b.read, ACQUIRE(.wait_ms = 0)));
    expect_state("read 3");
    close_client(b.client);
    check_str(rw_state(), "read 1");
    close_client(a.client);
    expect_state("");
}
