/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* failover_grace_ms: after a failover or a restart of the server nobody takes what is free for a
 * while, and holders bring what they hold into the new data set. */

#include "grace_kit.h"
#include "support/actor.h"
#include "support/deadline.h"
#include "support/events.h"
#include "support/proxy.h"
#include "support/recorder.h"

#include <hirelock/fence.h>
#include <hirelock/multi_lock.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

static _Atomic int64_t passed_s; /* for this process only: a law makes long times pass */

/* In place of the C library's, for the library too. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);

    if (clock == CLOCK_BOOTTIME)
        ret_time->tv_sec += atomic_load(&passed_s);
    return result;
}

static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR, HL_LOCK_FENCED,
                                     HL_LOCK_SPIN,      HL_LOCK_READ, HL_LOCK_WRITE};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

#define GraceLaw(...) Test(grace, __VA_ARGS__, .init = graceful_up, .fini = server_down)

GraceLaw(begins_with_the_first_client_of_a_server_and_is_told_once)
{
    static struct events events;
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;

    check(events_wait(&events, HL_EVENT_GRACE, 1, 20000));
    check_has(events.reason[HL_EVENT_GRACE], " are of a new term");
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    check_has(err.text, "nobody acquires for ");
    expect_outcome(hl_lock_acquire_for(lock, 50, &err), HL_ETIMEDOUT);
    check_has(err.text, "nobody acquires for ");
    check_int(redis_int(server, "EXISTS stock"), 0);
    hl_client *second = open_client(GRACEFUL());
    check_int(stats_of(second).graces, 1);
    redis_kill_links(server, "hirelock"); /* the grace goes on */
    wait_stat(client, reconnects, 1);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    hl_client *third = open_client(GRACEFUL());
    check_int(stats_of(third).graces, 0);
    check_int(stats_of(client).graces, 1);
    check_int(events_told(&events, HL_EVENT_GRACE), 1);
}

GraceLaw(lets_each_kind_of_hold_outlive_a_restart_without_data)
{
    static struct events events;
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));
    hl_client *other = open_client(GRACEFUL());
    struct actor *waiter[KINDS];
    hl_lock *lock[KINDS], *others[KINDS];
    char name[32];

    await_grace(client);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        lock[i] = new_kind(client, name, kinds[i]);
        others[i] = new_kind(other, name, kinds[i] == HL_LOCK_READ ? HL_LOCK_WRITE : kinds[i]);
        expect_ok(hl_lock_acquire(lock[i], ERR));
        expect_ok(hl_lock_acquire(lock[i], ERR));
        while (strstr(redis_str(server, "HGETALL %s", name), " 2") == NULL)
            deadline_nap();
    }
    restart_empty();
    for (int i = 0; i < KINDS; i++)
        waiter[i] = actor_start_acquire(others[i], WAITING);
    wait_stat(client, reclaims, KINDS);
    for (int i = 0; i < KINDS; i++) {
        check(hl_lock_is_held(lock[i], NULL));
        expect_there(client, lock[i], 2);
    }
    wait_stat(client, renewals, stats_of(client).renewals + 2 * KINDS); /* longer than the grace */
    await_grace(other);
    for (int i = 0; i < KINDS; i++) {
        check(!actor_is_done(waiter[i]));
        expect_ok(hl_lock_release(lock[i], ERR));
        check(!actor_is_done(waiter[i]));
        expect_ok(hl_lock_release(lock[i], ERR));
        expect_ok(actor_end(waiter[i]));
        expect_ok(actor_release(waiter[i], others[i], NULL));
    }
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(events_told(&events, HL_EVENT_GRACE), 2);
}

/* The old data set names a holder that has released since, and nobody that has come since. */
GraceLaw(lets_holds_outlive_a_restart_with_old_data)
{
    static struct events events;
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));
    hl_client *before = open_client(GRACEFUL());
    hl_lock *lock[KINDS], *old[KINDS];
    char name[32];

    await_grace(client);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        old[i] = new_kind(before, name, kinds[i] == HL_LOCK_READ ? HL_LOCK_WRITE : kinds[i]);
        lock[i] = new_kind(client, name, kinds[i]);
        expect_ok(hl_lock_acquire(old[i], ERR));
    }
    redis_do(server, "SAVE");
    for (int i = 0; i < KINDS; i++) {
        expect_ok(hl_lock_release(old[i], ERR));
        expect_ok(hl_lock_acquire(lock[i], ERR));
    }
    redis_server_restart(server);
    wait_stat(client, reclaims, KINDS);
    for (int i = 0; i < KINDS; i++) {
        check(hl_lock_is_held(lock[i], NULL));
        expect_there(client, lock[i], 1);
        expect_ok(hl_lock_release(lock[i], ERR));
        expect_free(lock[i]);
    }
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

GraceLaw(lets_a_writer_that_reads_and_other_readers_keep_their_holds)
{
    hl_client *client = open_client(GRACEFUL()), *other = open_client(GRACEFUL());
    hl_lock *writer = new_kind(client, "page", HL_LOCK_WRITE);
    hl_lock *reader = new_kind(client, "page", HL_LOCK_READ);
    hl_lock *one = new_kind(client, "list", HL_LOCK_READ),
            *two = new_kind(other, "list", HL_LOCK_READ);

    await_grace(client);
    expect_ok(hl_lock_acquire(writer, ERR));
    expect_ok(hl_lock_acquire(reader, ERR));
    expect_ok(hl_lock_acquire(one, ERR));
    expect_ok(hl_lock_acquire(two, ERR));
    restart_empty();
    wait_stat(client, reclaims, 3);
    wait_stat(other, reclaims, 1);
    check_str(redis_str(server, "HGET page mode"), "write");
    check_int(redis_int(server, "HLEN page"), 3);
    check_str(redis_str(server, "HGET list mode"), "read");
    check_int(redis_int(server, "HLEN list"), 3);
    expect_ok(hl_lock_release(writer, ERR));
    expect_ok(hl_lock_release(reader, ERR));
    expect_ok(hl_lock_release(one, ERR));
    expect_ok(hl_lock_release(two, ERR));
    check(redis_wait_int(server, 0, 20000, "EXISTS page list"));
}

GraceLaw(lets_permits_outlive_a_restart_with_old_data_but_not_without_their_number)
{
    static struct events events;
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));
    hl_permits *permits = NULL;
    hl_permit permit[3];
    int64_t count = 0;

    expect_ok(hl_permits_new(client, "slots", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire(permits, &permit[0], ERR));
    redis_do(server, "SAVE");
    expect_ok(hl_permits_acquire_many(permits, 2, NULL, &permit[1], ERR));
    redis_server_restart(server);
    wait_stat(client, reclaims, 3);
    expect_ok(hl_permits_available(permits, &count, ERR));
    check_int(count, 0);
    for (int i = 0; i < 3; i++)
        check(hl_permits_is_held(permits, &permit[i]));
    expect_ok(hl_permits_release_many(permits, permit, 2, ERR));
    expect_ok(hl_permits_available(permits, &count, ERR));
    check_int(count, 2);
    restart_empty();
    check(events_wait(&events, HL_EVENT_LOST, 1, 20000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check_int(redis_int(server, "EXISTS slots {slots}:timeout"), 0);
}

/* A lease of its own is not renewed, but its hold is brought into the new term. */
GraceLaw(brings_a_hold_with_a_lease_time_into_the_new_term_without_making_it_longer)
{
    hl_client *client = open_client(GRACEFUL());
    hl_lock *lock = new_lock(client, "stock");

    await_grace(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = LEASE_MS), ERR));
    restart_empty();
    wait_stat(client, reclaims, 1);
    expect_held_by(client, lock, 1);
    check(pttl_of(lock) <= LEASE_MS);
    check(hl_lock_validity_ms(lock, NULL) < LEASE_MS);
    expect_ok(hl_lock_release(lock, ERR));
}

GraceLaw(gives_larger_tokens_though_the_counter_is_lost)
{
    hl_client *client = open_client(GRACEFUL()), *other = open_client(GRACEFUL());
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_FENCED);
    hl_lock *others = new_kind(other, "stock", HL_LOCK_FENCED);
    uint64_t tokens[4];

    await_grace(client);
    for (int i = 0; i < 2; i++) {
        expect_ok(acquire_token(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER), &tokens[i]));
        if (i == 0)
            expect_ok(hl_lock_release(lock, ERR));
    }
    check(tokens[1] > tokens[0]);
    struct actor *call = actor_start_acquire(others, WAITING);
    restart_empty();
    wait_stat(client, reclaims, 1);
    check_int(hl_lock_token(lock, NULL), tokens[1]);
    await_grace(other);
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(call));
    check(actor_token(call) > tokens[1]);
    expect_ok(actor_release(call, others, NULL));
    check(redis_int(server, "GET redisson_lock_token:{stock}") >= (int64_t)tokens[1]);
}

/* Less is left of the hold than an old master may go on: there another client may get the lock
 * meanwhile. */
GraceLaw(lets_a_hold_end_of_which_less_is_left_than_an_old_master_may_go_on)
{
    static struct events events;
    const int64_t lease_ms = 3600000; /* its rest is enough for any restart */
    grace_serve(server, false);
    hl_client *client = open_client(
        CLIENT(.failover_grace_ms = 2 * lease_ms, .old_master_ms = lease_ms, .backoff_max_ms = 100,
               .watchdog_timeout_ms = lease_ms, .outage_timeout_ms = slow_ms(60000),
               .on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    restart_empty();
    check(events_wait(&events, HL_EVENT_GRACE, 1, 20000));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = lease_ms), &err), HL_ESERVER);
    check_has(err.text, "less than old_master_ms was left");
    expect_outcome(hl_lock_update_lease(lock, NULL, lease_ms, &err), HL_ESERVER);
    expect_ok(hl_lock_acquire(lock, ERR)); /* a level more of what is left */
    expect_ok(hl_lock_release(lock, ERR));
    atomic_store(&passed_s, lease_ms / 1000);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check_int(stats_of(client).reclaims, 0);
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
}

/* A nested call that came before the failover was noticed. */
GraceLaw(ends_a_wait_for_a_longer_lease_of_a_hold_that_gets_none)
{
    const int64_t lease_ms = 3600000;
    grace_serve(server, false);
    hl_client *client =
        open_client(CLIENT(.failover_grace_ms = 2 * lease_ms, .old_master_ms = lease_ms,
                           .backoff_max_ms = 100, .watchdog_timeout_ms = lease_ms));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    struct recorder told = RECORDER_INIT;

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), ERR));
    redis_server_kill(server);
    expect_ok(hl_lock_acquire_async(
        lock, ACQUIRE(.owner = owner, .wait_ms = HL_WAIT_FOREVER, .lease_ms = lease_ms),
        record_done, &told));
    redis_server_wipe(server);
    redis_server_restart(server);
    check(recorder_wait(&told, 1));
    check_int(recorder_entry(&told, 0).code, HL_ESERVER);
    check_has(recorder_entry(&told, 0).said, "less than old_master_ms was left");
    check(hl_lock_is_held(lock, owner));
    expect_ok(hl_lock_release_as(lock, owner, ERR));
}

GraceLaw(refuses_leases_that_it_would_not_outlast)
{
    hl_client *client = open_client(GRACEFUL(.old_master_ms = 100));
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = GRACE_MS - 99), &err), HL_EINVAL);
    check_has(err.text, "lease_ms is longer than ");
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.min_hold_ms = GRACE_MS - 99), &err),
                   HL_EINVAL);
    check_has(err.text, "min_hold_ms is longer than ");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = GRACE_MS - 100, .wait_ms = -1), &err));
    expect_outcome(hl_lock_update_lease(lock, NULL, GRACE_MS - 99, &err), HL_EINVAL);
    hl_lock *members[] = {new_lock(client, "a"), new_lock(client, "b")}, *both = NULL;
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, ERR));
    keep_lock(both);
    expect_outcome(hl_lock_acquire_with(both, ACQUIRE(.min_hold_ms = GRACE_MS - 99), &err),
                   HL_EINVAL);
    expect_ok(hl_lock_update_lease(lock, NULL, GRACE_MS - 100, &err));
    expect_ok(hl_lock_release(lock, ERR));
}

static atomic_int warnings;

static void note_warning(hl_log_level level, const char *text, void *arg)
{
    (void)arg;
    if (level == HL_LOG_WARN && strstr(text, "another client has failover_grace_ms "))
        atomic_fetch_add(&warnings, 1);
}

/* The waiters of a whole fleet would ask at one moment. */
GraceLaw(ends_with_waiters_that_ask_one_after_the_other)
{
    enum { WAITERS = 16 };
    const int64_t poll_ms = GRACE_MS / 2;
    hl_client *client = open_client(GRACEFUL(.poll_ms = poll_ms));
    struct actor *waiter[WAITERS];
    int64_t first = INT64_MAX, last = 0;
    char name[32];

    for (int i = 0; i < WAITERS; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        waiter[i] = actor_start_acquire(new_lock(client, name), WAITING);
    }
    for (int i = 0; i < WAITERS; i++) {
        expect_ok(actor_end(waiter[i]));
        int64_t at = actor_ended_ns(waiter[i]);
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    check(last - first > poll_ms * 1000000 / 30); /* a tenth of the time over which they spread */
}

/* Who changes the options of a running fleet is told until all clients have the new ones. */
GraceLaw(warns_of_clients_with_another_grace)
{
    warnings = 0;
    hl_client *client = open_client(GRACEFUL(.on_log = note_warning));
    await_grace(client);
    close_client(open_client(GRACEFUL(.on_log = note_warning)));
    check_int(warnings, 0);
    close_client(open_client(GRACEFUL(.on_log = note_warning, .old_master_ms = 1)));
    check_int(warnings, 1);
    close_client(open_client(GRACEFUL(.on_log = note_warning, .old_master_ms = 1)));
    check_int(warnings, 1);
    redis_kill_links(server, "hirelock");
    wait_stat(client, reconnects, 1);
    close_client(client); /* its log has been written */
    check_int(warnings, 2);
}

/* A grant lasts for two polls at least, so that its waiter finds it by its next poll. */
GraceLaw(refuses_a_poll_whose_grants_it_would_not_outlast)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(redis_server_url(server), GRACEFUL(.poll_ms = GRACE_MS / 2 + 1),
                                  &client, &err),
                   HL_EINVAL);
    check_has(err.text, "the lease of a grant");
    close_client(open_client(GRACEFUL(.poll_ms = GRACE_MS / 2)));
}

static int64_t listened_calls; /* of scripts, when the waiter has asked, listens, and asked again */

static bool has_listened(void *arg)
{
    (void)arg;
    return redis_evalsha_calls(server) >= listened_calls;
}

/* The owner gets the lock by a grant of the other client; not by a request that crossed it. */
static void acquire_by_grant(hl_client *client, hl_lock *lock, hl_owner *owner, hl_lock *others)
{
    while (true) {
        expect_ok(hl_lock_acquire(others, ERR));
        listened_calls = redis_evalsha_calls(server) + 2;
        struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1, .owner = owner));
        check(wait_until(has_listened, NULL, 20000));
        expect_ok(hl_client_ping(client, -1, NULL)); /* what was run is answered, too */
        expect_ok(hl_lock_release(others, ERR));
        expect_ok(actor_end(call));
        if (stats_of(client).grants == 1)
            return;
        expect_ok(hl_lock_release_as(lock, owner, ERR));
    }
}

/* The releaser has another grace, and grants for longer. */
GraceLaw(relies_on_no_grant_for_longer_than_its_own_grace)
{
    hl_client *client = open_client(GRACEFUL(.poll_ms = GRACE_MS / 2));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);

    await_grace(client);
    hl_client *other =
        open_client(CLIENT(.poll_ms = 4 * GRACE_MS, .failover_grace_ms = 8 * GRACE_MS,
                           .watchdog_timeout_ms = LEASE_MS));
    acquire_by_grant(client, lock, owner, new_lock(other, "stock"));
    check(hl_lock_validity_ms(lock, owner) <= GRACE_MS);
    check(pttl_of(lock) > GRACE_MS);
    expect_ok(hl_lock_release_as(lock, owner, ERR));
}

/* A hold by a grant lasts for longer than the watchdog's lease at first. */
GraceLaw(reclaims_a_hold_for_as_long_as_it_is_believed_in)
{
    const hl_client_options *options =
        CLIENT(.failover_grace_ms = 6 * LEASE_MS, .watchdog_timeout_ms = LEASE_MS,
               .poll_ms = 3 * LEASE_MS, .backoff_max_ms = 100, .outage_timeout_ms = slow_ms(60000),
               .request_timeout_ms = slow_ms(20000));

    grace_serve(server, false);
    hl_client *client = open_client(options), *other = open_client(options);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    acquire_by_grant(client, lock, owner, new_lock(other, "stock"));
    restart_empty();
    wait_stat(client, reclaims, 1);
    int64_t validity_ms = hl_lock_validity_ms(lock, owner);
    check(validity_ms > LEASE_MS);
    check(pttl_of(lock) > LEASE_MS);
    expect_ok(hl_lock_release_as(lock, owner, ERR));
}

GraceLaw(lets_readers_of_two_clients_outlive_a_writer_in_old_data)
{
    static struct events events;
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));
    hl_client *other = open_client_at(proxy_url(proxy), GRACEFUL());
    hl_lock *writer = new_kind(client, "page", HL_LOCK_WRITE);
    hl_lock *reader = new_kind(client, "page", HL_LOCK_READ);
    hl_lock *second = new_kind(other, "page", HL_LOCK_READ);

    await_grace(client);
    expect_ok(hl_lock_acquire(writer, ERR));
    redis_do(server, "SAVE");
    expect_ok(hl_lock_release(writer, ERR));
    expect_ok(hl_lock_acquire(reader, ERR));
    expect_ok(hl_lock_acquire(second, ERR));
    proxy_refuse(proxy, true);
    redis_server_restart(server);
    wait_stat(client, reclaims, 1);
    proxy_refuse(proxy, false);
    wait_stat(other, reclaims, 1);
    wait_stat(client, renewals, stats_of(client).renewals + 2);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(second, ERR));
    expect_ok(hl_lock_release(reader, ERR));
}

/* Nobody else can be in. */
GraceLaw(lets_an_owner_that_writes_read)
{
    hl_client *client = open_client(GRACEFUL());
    hl_lock *writer = new_kind(client, "page", HL_LOCK_WRITE);
    hl_lock *reader = new_kind(client, "page", HL_LOCK_READ);
    hl_owner *owner = new_owner(client);
    hl_error err = HL_ERROR_INIT;

    await_grace(client);
    expect_ok(hl_lock_acquire(writer, ERR));
    restart_empty();
    wait_stat(client, reclaims, 1);
    expect_outcome(hl_lock_acquire_with(reader, ACQUIRE(.owner = owner), &err), HL_EBUSY);
    check_has(err.text, "nobody acquires for ");
    expect_ok(hl_lock_try_acquire(reader, ERR));
    check_str(redis_str(server, "HGET page mode"), "write");
    check_int(redis_int(server, "HLEN page"), 3);
    expect_ok(hl_lock_release(writer, ERR));
    expect_ok(hl_lock_release(reader, ERR));
}

/* The old data name a writer of the client that reads now. */
GraceLaw(lets_a_reader_outlive_another_writer_of_its_client_in_old_data)
{
    hl_client *client = open_client(GRACEFUL());
    hl_lock *writer = new_kind(client, "page", HL_LOCK_WRITE);
    hl_lock *reader = new_kind(client, "page", HL_LOCK_READ);
    hl_owner *owner = new_owner(client);

    await_grace(client);
    expect_ok(hl_lock_acquire(writer, ERR));
    redis_do(server, "SAVE");
    expect_ok(hl_lock_release(writer, ERR));
    expect_ok(hl_lock_acquire_with(reader, ACQUIRE(.owner = owner), ERR));
    redis_server_restart(server);
    wait_stat(client, reclaims, 1);
    check_str(redis_str(server, "HGET page mode"), "read");
    check_int(redis_int(server, "HLEN page"), 2);
    expect_ok(hl_lock_release_as(reader, owner, ERR));
}

/* The reclaim is on its way until the hold is over; the grace lasts for longer. */
GraceLaw(reclaims_no_hold_whose_time_is_over)
{
    struct proxy *proxy = new_proxy();
    const hl_client_options *options =
        CLIENT(.failover_grace_ms = 40 * LEASE_MS, .watchdog_timeout_ms = LEASE_MS,
               .backoff_max_ms = 100, .outage_timeout_ms = slow_ms(60000),
               .request_timeout_ms = slow_ms(20000));

    grace_serve(server, false);
    hl_client *client = open_client_at(proxy_url(proxy), options);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), ERR));
    proxy_refuse(proxy, true);
    restart_empty();
    redis_do(server, "ACL SETUSER default -hset"); /* no reclaim runs at first */
    proxy_refuse(proxy, false);
    wait_stat(client, graces, 1);
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP); /* the next one is on its way */
    wait_stat(client, losses, 1);
    int64_t lost_ms = now_ms();
    while (now_ms() < lost_ms + LEASE_MS / 10) /* the margin for clocks that drift is over, too */
        deadline_nap();
    redis_do(server, "ACL SETUSER default +hset");
    proxy_pass(proxy);
    expect_ok(hl_client_ping(client, -1, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    check_int(stats_of(client).reclaims, 0);
}

/* A term that begins on a live link, as on a server that was a replica for a moment, is noticed. */
GraceLaw(is_noticed_on_a_connection_that_lives)
{
    static struct events events;
    hl_client *client = open_client(GRACEFUL(.on_event = count_event, .arg = &events));

    await_grace(client);
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    redis_do(server, "REPLICAOF NO ONE");
    check(events_wait(&events, HL_EVENT_GRACE, 2, 30000));
}

/* The log counts those of one command; Redis 6.2 has no other count of what a script was denied. */
static bool was_refused(void *arg)
{
    redisReply *log = redis_command(server, "ACL LOG"); /* count n reason r ... object o ... */
    long long refusals = 0;

    (void)arg;
    check(log && log->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++)
        if (strcmp(log->element[i]->element[7]->str, "hset") == 0)
            refusals += log->element[i]->element[1]->integer;
    freeReplyObject(log);
    return refusals >= 2;
}

/* The server refuses the reclaim of the write lock for a while. */
GraceLaw(lets_no_owner_read_before_its_write_lock_is_reclaimed)
{
    struct proxy *proxy = new_proxy();
    const hl_client_options *options =
        CLIENT(.failover_grace_ms = slow_ms(20000), .watchdog_timeout_ms = slow_ms(20000),
               .backoff_max_ms = 100, .outage_timeout_ms = slow_ms(60000));

    grace_serve(server, false);
    hl_client *client = open_client_at(proxy_url(proxy), options);
    hl_lock *writer = new_kind(client, "page", HL_LOCK_WRITE);
    hl_lock *reader = new_kind(client, "page", HL_LOCK_READ);
    expect_ok(hl_lock_acquire(writer, ERR));
    proxy_refuse(proxy, true);
    restart_empty();
    redis_do(server, "ACL SETUSER default -hset");
    proxy_refuse(proxy, false);
    wait_stat(client, graces, 1);
    check(wait_until(was_refused, NULL, 20000));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(reader, &err), HL_EBUSY);
    check_has(err.text, "nobody acquires for ");
    redis_do(server, "ACL SETUSER default +hset");
    wait_stat(client, reclaims, 1);
    expect_ok(hl_lock_try_acquire(reader, ERR));
    expect_ok(hl_lock_release(reader, ERR));
    expect_ok(hl_lock_release(writer, ERR));
}

/* The server refuses the reclaim for a while. */
GraceLaw(lets_nested_calls_wait_until_the_hold_is_in_the_new_term)
{
    struct proxy *proxy = new_proxy();
    const hl_client_options *options =
        CLIENT(.failover_grace_ms = slow_ms(20000), .watchdog_timeout_ms = slow_ms(20000),
               .backoff_max_ms = 100, .outage_timeout_ms = slow_ms(60000));

    grace_serve(server, false);
    hl_client *other = open_client(options);
    hl_client *client = open_client_at(proxy_url(proxy), options);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *holder = actor_start();

    expect_ok(actor_acquire(holder, lock, ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(15000))));
    proxy_refuse(proxy, true);
    restart_empty();
    wait_stat(other, graces, 1);
    redis_do(server, "ACL SETUSER default -hset");
    proxy_refuse(proxy, false);
    wait_stat(client, graces, 1);
    actor_begin_acquire(holder, lock, ACQUIRE());
    check(wait_until(was_refused, NULL, 20000));
    check(!actor_is_done(holder));
    redis_do(server, "ACL SETUSER default +hset");
    expect_ok(actor_end(holder));
    check_int(stats_of(client).reclaims, 1);
    check_int(stats_of(client).losses, 0);
    expect_ok(actor_release(holder, lock, NULL));
    expect_ok(actor_release(holder, lock, NULL));
}
