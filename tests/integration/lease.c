/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Leases: the length of a hold, its renewals, and its end. */

#include "lease/calls/client.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/process.h"
#include "support/recorder.h"

static bool is_not_held(void *lock)
{
    return !hl_lock_is_held(lock, NULL);
}

Law(lease, of_a_hold_is_the_time_it_was_taken_for)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 20000), NULL));
    int64_t in_redis_ms = pttl_of(lock), here_ms = hl_lock_validity_ms(lock, NULL);
    check(in_redis_ms > 15000 && in_redis_ms <= 20000);
    check(here_ms > 15000 && here_ms <= 20000 - 202); /* less its margin */
}

Law(lease, of_a_hold_without_a_lease_time_is_the_watchdogs)
{
    hl_lock *lock = new_lock(open_client(CLIENT(.watchdog_timeout_ms = 40000)), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(pttl_of(lock) > 35000 && pttl_of(lock) <= 40000);
    check(hl_lock_validity_ms(lock, NULL) <= 40000 - 402);
}

/* A thread that returns without the release has to learn why it is locked out. */
Law(lease, that_has_ended_is_told_by_an_acquire_with_what_to_do)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    double ago_s = -1;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(20)), NULL));
    check(wait_until(is_not_held, lock, 5000));
    expect_outcome(hl_lock_acquire(lock, &err), HL_ELOST);
    check_msg(
        sscanf(err.text,
               "acquire 'stock': the hold ended before its release (its lease ran out %lf s ago)",
               &ago_s) == 1 &&
            ago_s >= 0,
        "%s", err.text);
    check(strstr(err.text, ": release it once for each level, then acquire again"));
}

static bool has_no_names(void *arg)
{
    hl_client *client = arg;
    pthread_mutex_lock(&client->names_mutex);
    bool has_none = client->names.count == 0;
    pthread_mutex_unlock(&client->names_mutex);
    return has_none;
}

static void lose_and_leave(void *arg)
{
    hl_lock *lock = arg;
    check_int(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(20)), NULL), HL_OK);
    check(wait_until(is_not_held, lock, 5000));
}

/* Neither by its thread, which has ended, nor by its owner, which is freed. */
Law(lease, that_has_ended_is_forgotten_when_no_owner_is_left_to_release_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *other = new_lock(client, "other");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    actor_do(actor, lose_and_leave, lock);
    actor_stop(actor);
    expect_ok(hl_lock_acquire_with(other, ACQUIRE(.lease_ms = slow_ms(20), .owner = owner), NULL));
    wait_stat(client, losses, 2);
    free_owner(owner);
    free_lock(lock);
    free_lock(other);
    check(wait_until(has_no_names, client, 10000));
}

Law(lease, that_ends_frees_the_lock_and_the_holder_knows_it_before)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(200)), NULL));
    check(wait_until(is_not_held, lock, 5000));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    expect_free(lock);
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    check_msg(
        strstr(err.text, "release 'stock': the hold ended before its release (its lease ran out "),
        "%s", err.text);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    wait_stat(client, losses, 1);
    check_int(stats_of(client).releases, 0);
}

Law(lease, that_ended_is_not_released_on_behalf_of_the_next_holder)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    hl_client *next = open_client(NULL);
    hl_lock *its = new_lock(next, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    expect_ok(hl_lock_acquire(its, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_held_by(next, its, 1);
    check(hl_lock_is_held(its, NULL));
}

Law(lease, is_never_renewed_for_a_hold_with_a_lease_time)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *leased = new_lock(client, "leased"), *renewed = new_lock(client, "renewed");
    expect_ok(hl_lock_acquire_with(leased, ACQUIRE(.lease_ms = slow_ms(300)), NULL));
    expect_ok(hl_lock_acquire(renewed, NULL));
    wait_stat(client, renewals, 4); /* for longer than that */
    check(!hl_lock_is_held(leased, NULL));
    check(hl_lock_is_held(renewed, NULL));
    check_int(redis_int(server, "EXISTS leased"), 0);
}

Law(watchdog, renews_every_third_of_the_lease_for_as_long_as_it_is_held)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock");
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 6);
    check(now_ms() - before_ms >= 2 * SHORT_MS - 10);
    check(hl_lock_is_held(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
}

/* They go out together, those of a slot in a cluster, when the link is new. */
Law(watchdog, renews_locks_beside_read_locks_many_at_once)
{
    enum { PAIRS = 200 };
    static const char *const slots[] = {"area", "bay", "cask"}; /* one at each node */
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(60000)));
    for (int i = 0; i < PAIRS; i++) {
        char name[32];
        hl_lock *reader = NULL, *writer = NULL;
        snprintf(name, sizeof name, "lock:%d{%s}", i, slots[i % 3]);
        expect_ok(hl_lock_acquire(new_lock(client, name), NULL));
        snprintf(name, sizeof name, "read:%d{%s}", i, slots[i % 3]);
        expect_ok(rw_lock_new(client, name, NULL, &reader, &writer, NULL));
        expect_ok(hl_lock_acquire(keep_lock(reader), NULL));
        keep_lock(writer);
    }
    uint64_t before = stats_of(client).commands;
    check(redis_kill_clients(server, REDIS_NORMAL) > 0);
    wait_stat(client, renewals, 2 * PAIRS);
    uint64_t requests = stats_of(client).commands - before; /* greetings, too */
    check_msg(requests <= PAIRS, "%d holds were renewed by %d requests", 2 * PAIRS, (int)requests);
}

Law(watchdog, stops_with_the_release)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock"), *other = new_lock(client, "other");
    char field[128];
    expect_ok(hl_lock_acquire(lock, NULL));
    snprintf(field, sizeof(field), "%s", field_of(lock));
    expect_ok(hl_lock_release(lock, NULL));
    /* As a late command would, the field comes back; nothing may keep it alive. */
    redis_do(server, "HSET stock %s 1", field);
    redis_do(server, "PEXPIRE stock %d", SHORT_MS);
    expect_ok(hl_lock_acquire(other, NULL));
    wait_stat(client, renewals, 3);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
}

Law(watchdog, does_not_bring_a_lost_lock_back)
{
    struct recorder events = RECORDER_INIT;
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "DEL stock");
    expect_story(&events, "LOST gone");
    check(!hl_lock_is_held(lock, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    close_client(client);
    expect_story(&events, "LOST gone");
}

Law(watchdog, gives_an_expiry_back_that_a_stranger_took_away)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 60000), NULL));
    redis_do(server, "PERSIST stock");
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    check_int(info.lease_left_ms, -1);
    expect_ok(hl_lock_acquire(lock, NULL)); /* watched from now on */
    wait_stat(client, renewals, 2);
    check(pttl_of(lock) > 0);
}

static void hold_and_die(struct process *self, void *url)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    expect_ok(hl_client_open(url, CLIENT(.watchdog_timeout_ms = slow_ms(3000)), &client, NULL));
    expect_ok(hl_lock_new(client, "stock", &lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    process_tell(self, 0);
    process_await(self, 1, 1, 60000);
}

Law(lease, of_a_killed_holder_runs_out)
{
    struct process *holder =
        process_start(hold_and_die, (void *)(uintptr_t)redis_server_url(server));
    check(process_await(holder, 0, 1, 20000));
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    process_kill(holder);
    int64_t left_ms = pttl_of(lock), before_ms = now_ms();
    expect_ok(hl_lock_acquire_for(lock, slow_ms(10000), NULL));
    check(now_ms() - before_ms <= left_ms + slow_ms(5000)); /* by its expiry, not by the poll */
    process_finish(holder, 1000);
}

Law(max_hold, ends_a_renewed_hold)
{
    struct recorder events = RECORDER_INIT;
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(3000), .on_event = record_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.max_hold_ms = slow_ms(3000)), NULL));
    expect_story(&events, "LOST max_hold");
    check(now_ms() - before_ms >= slow_ms(3000) - 1);
    check(!hl_lock_is_held(lock, NULL));
    check(stats_of(client).renewals > 0);
    expect_free(lock); /* nothing renews it */
    hl_error err;
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    check_has(err.text, "(its max_hold_ms was over ");
}

Law(max_hold, is_set_by_the_outermost_acquire)
{
    struct recorder events = RECORDER_INIT;
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = record_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.max_hold_ms = 1), NULL));
    wait_stat(client, renewals, 4);
    check(hl_lock_is_held(lock, NULL));
    check(!recorder_says(&events, "LOST"));
}

Law(min_hold, lets_the_key_rest_after_an_early_release)
{
    hl_client *a = open_client(CLIENT(.poll_ms = 10000)),
              *b = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(a, "cron"), *its = new_lock(b, "cron");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    const int64_t min_ms = slow_ms(3000);
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = min_ms), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_hold_count(lock, NULL), 0);
    expect_held_by(a, lock, 0);
    check(pttl_of(lock) <= min_ms + 1);
    expect_outcome(hl_lock_try_acquire(its, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY); /* its own client too */
    expect_ok(hl_lock_inspect(its, &info, NULL));
    check(info.locked && !info.mine && info.hold_count == 0);
    expect_ok(hl_lock_acquire_for(its, slow_ms(20000), NULL));
    check(now_ms() - before_ms >= min_ms - 1);
    check(now_ms() - before_ms < slow_ms(9000)); /* by its expiry, not by the poll */
    expect_held_by(b, its, 1);
}

Law(min_hold, is_no_matter_for_a_late_release)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "cron");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 50), NULL));
    wait_stat(client, renewals, 2);
    expect_ok(hl_lock_release(lock, NULL));
    check(redis_wait_int(server, 0, 5000, "EXISTS cron")); /* long before the lease is over */
}

Law(min_hold, is_set_by_the_outermost_acquire_and_counts_from_its_beginning)
{
    hl_lock *lock = new_lock(open_client(NULL), "cron");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check(redis_wait_int(server, 0, slow_ms(2000), "EXISTS cron"));
}

Law(min_hold, can_be_ended_by_force)
{
    hl_lock *lock = new_lock(open_client(NULL), "cron");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = 60000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_ok(hl_lock_try_acquire(lock, NULL));
}

/* Redis is asked for an hour, and answers when the call is over. */
SingleLaw(lease, of_a_nested_call_that_failed_does_not_outlive_the_hold)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(3000)), NULL));
    redis_server_freeze(server);
    int rc = hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 3600000, .wait_ms = 50), NULL);
    check_msg(rc == HL_ETIMEDOUT || rc == HL_ECONN, "%s", hl_err_name(rc));
    redis_server_thaw(server);
    expect_ok(hl_client_ping(client, -1, NULL));
    expect_ok(hl_lock_acquire_for(rivals, slow_ms(10000), NULL));
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(hl_lock_is_held(rivals, NULL));
}

Law(lease, of_a_write_hold_ends_though_its_owner_reads_on)
{
    hl_client *client = open_client(NULL);
    hl_lock *read = NULL, *write = NULL, *other = NULL, *unused = NULL;
    expect_ok(rw_lock_new(client, "both", NULL, &read, &write, NULL));
    expect_ok(rw_lock_new(open_client(NULL), "both", NULL, &other, &unused, NULL));
    keep_lock(read), keep_lock(write), keep_lock(other), keep_lock(unused);
    expect_ok(hl_lock_acquire_with(write, ACQUIRE(.lease_ms = slow_ms(200)), NULL));
    expect_ok(hl_lock_acquire(read, NULL));
    expect_ok(hl_lock_acquire_for(other, slow_ms(10000), NULL));
    check(!hl_lock_is_held(write, NULL));
    check(hl_lock_is_held(read, NULL));
    expect_outcome(hl_lock_release(write, NULL), HL_ELOST);
    expect_ok(hl_lock_release(read, NULL));
    expect_ok(hl_lock_release(other, NULL));
}

/* The second member's key is gone when its turn comes; the first had its lease made longer. */
Law(lease, of_a_hold_is_as_it_was_when_a_multi_lock_fails_around_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *first = new_lock(client, "a"), *second = new_lock(client, "c"), *both = NULL;
    hl_lock *members[] = {first, second};
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    keep_lock(both);
    expect_ok(hl_lock_acquire_with(first, ACQUIRE(.lease_ms = slow_ms(2000)), NULL));
    expect_ok(hl_lock_acquire_with(second, ACQUIRE(.lease_ms = slow_ms(60000)), NULL));
    redis_do(server, "DEL c");
    expect_outcome(hl_lock_acquire(both, NULL), HL_ELOST);
    check_int(hl_lock_hold_count(first, NULL), 1);
    check(hl_lock_validity_ms(first, NULL) <= slow_ms(2000));
    expect_ok(hl_lock_acquire_for(new_lock(open_client(NULL), "a"), slow_ms(20000), NULL));
    check(!hl_lock_is_held(first, NULL));
}
