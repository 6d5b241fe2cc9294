/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* min_replicas: an acquire returns, and a renewal counts, when replicas have it. The replicas are
 * real, and hear of the master late or not at all as the laws want it. */

#include "replicas_kit.h"

#include "support/proxy.h"

#include <stdio.h>
#include <string.h>

enum { LAG_MS = 60 };

static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR, HL_LOCK_FENCED,
                                     HL_LOCK_SPIN,      HL_LOCK_READ, HL_LOCK_WRITE};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

ReplicaLaw(replicas, have_a_lock_of_each_kind_when_its_acquire_returns)
{
    hl_client *client = open_client(REPLICATED());
    char name[32];

    replica_lag(0, LAG_MS);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        hl_lock *lock = new_kind(client, name, kinds[i]);
        expect_ok(hl_lock_acquire(lock, ERR));
        check(replica_has(0, name));
        expect_ok(hl_lock_release(lock, ERR));
    }
    check_int(stats_of(client).unconfirmed, 0);
    check_int(stats_of(client).reconnects, 0);
}

ReplicaLaw(replicas, that_have_not_heard_undo_the_acquire_and_are_counted)
{
    hl_client *client = open_client(IMPATIENT());
    hl_error err = HL_ERROR_INIT;
    char name[32];

    replica_cut(0);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        hl_lock *lock = new_kind(client, name, kinds[i]);
        expect_outcome(hl_lock_acquire(lock, &err), HL_EREPLICAS);
        check_has(err.text, "0 of 1 replicas have it after ");
        check(!hl_lock_is_held(lock, NULL));
        check(redis_wait_int(server, 0, 20000, "EXISTS %s", name));
        check(hl_err_is_transient(err.code) && !hl_err_is_outcome(err.code));
    }
    check_int(stats_of(client).unconfirmed, KINDS);
    check_int(stats_of(client).holds_now, 0);
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

ReplicaLaw(replicas, that_have_not_heard_are_told_of_when_the_lock_is_kept_anyway)
{
    static struct events events;
    hl_client *client =
        open_client(IMPATIENT(.flags = HL_CLIENT_KEEP_UNCONFIRMED, .watchdog_timeout_ms = SHORT_MS,
                              .on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");

    replica_cut(0);
    expect_ok(hl_lock_acquire(lock, ERR));
    check(events_wait(&events, HL_EVENT_UNCONFIRMED, 1, 20000));
    check_str(events.reason[HL_EVENT_UNCONFIRMED], "too few replicas");
    wait_stat(client, renewals, 2);
    check(hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_UNCONFIRMED), 1);
    replica_join(0);
    uint64_t unconfirmed = stats_of(client).unconfirmed, renewals = stats_of(client).renewals;
    check(unconfirmed >= 2);
    wait_stat(client, renewals, renewals + 3);
    replica_cut(0);
    check(events_wait(&events, HL_EVENT_UNCONFIRMED, 2, 20000));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    replica_join(0);
    expect_ok(hl_lock_release(lock, ERR));
}

ReplicaLaw(replicas, that_have_not_heard_of_renewals_let_the_hold_end)
{
    static struct events events;
    hl_client *client = open_client(
        IMPATIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, renewals, 1);
    replica_cut(0);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check_int(events_told(&events, HL_EVENT_JEOPARDY), 1);
    check(!hl_lock_is_held(lock, NULL));
    check_int(stats_of(client).reconnects, 0);
    replica_join(0);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}

ReplicaLaw(replicas, are_counted_for_a_majority_as_the_master_tells)
{
    replicas_add();
    replicas_add();
    hl_client *client = open_client(IMPATIENT());
    hl_lock *most = new_asking(client, "most", HL_REPLICAS_MAJORITY);
    hl_lock *all = new_asking(client, "all", 3);
    hl_error err = HL_ERROR_INIT;

    expect_ok(hl_lock_acquire(all, ERR));
    expect_ok(hl_lock_release(all, ERR));
    replica_cut(2);
    expect_outcome(hl_lock_acquire(all, &err), HL_EREPLICAS);
    check_has(err.text, "2 of 3 replicas");
    expect_ok(hl_lock_acquire(most, ERR));
    check(replica_has(0, "most") && replica_has(1, "most"));
    expect_ok(hl_lock_release(most, ERR));
    replica_cut(1);
    expect_outcome(hl_lock_acquire(most, &err), HL_EREPLICAS);
    check_has(err.text, "1 of 2 replicas");
}

/* --- group commit --- */

enum { CROWD = 64, ROUNDS = 4 };

struct seat {
    hl_lock *lock;
    int done;
};

static void take_turns(void *arg)
{
    struct seat *seat = arg;

    for (; seat->done < ROUNDS; seat->done++) {
        expect_ok(hl_lock_acquire(seat->lock, ERR));
        expect_ok(hl_lock_release(seat->lock, ERR));
    }
}

ReplicaLaw(replicas, are_waited_for_once_for_all_that_came_meanwhile)
{
    hl_client *client = open_client(REPLICATED());
    struct actor *actor[CROWD];
    static struct seat seat[CROWD];
    char name[32];

    replica_lag(0, slow_ms(LAG_MS));
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "stock:%d", i);
        seat[i] = (struct seat){.lock = new_lock(client, name)};
        actor[i] = actor_start();
    }
    int64_t before = redis_calls(server, "wait"), requests = redis_evalsha_calls(server);
    uint64_t written = stats_of(client).commands;
    for (int i = 0; i < CROWD; i++)
        actor_begin(actor[i], take_turns, &seat[i]);
    for (int i = 0; i < CROWD; i++)
        actor_await(actor[i]);
    int64_t waits = redis_calls(server, "wait") - before;
    check_msg(waits >= ROUNDS && waits <= CROWD * ROUNDS / 3, "%d WAITs for %d acquires",
              (int)waits, CROWD * ROUNDS);
    requests = redis_evalsha_calls(server) - requests;
    check(stats_of(client).commands - written >= (uint64_t)(requests + waits));
}

static bool waits_for_replicas(void *arg)
{
    (void)arg;
    return strstr(redis_str(server, "INFO clients"), "blocked_clients:1") != NULL;
}

ReplicaLaw(replicas, hold_up_no_lock_that_does_not_wait_for_them)
{
    hl_client *client = open_client(
        CLIENT(.min_replicas = HL_REPLICAS_NONE, .replicas_timeout_ms = slow_ms(30000),
               .request_timeout_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000)));
    hl_lock *waits = new_asking(client, "waits", 1), *other = new_lock(client, "other");

    replica_cut(0);
    struct actor *actor = actor_start_acquire(waits, WAITING);
    check(wait_until(waits_for_replicas, NULL, 20000));
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire(other, ERR));
        expect_ok(hl_lock_release(other, ERR));
    }
    check(!actor_is_done(actor));
    check(waits_for_replicas(NULL));
    replica_join(0);
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, waits, NULL));
}

ReplicaLaw(replicas, hold_up_no_lock_that_was_in_one_multi_lock_with_those_that_wait)
{
    hl_client *client = open_client(
        CLIENT(.min_replicas = HL_REPLICAS_NONE, .replicas_timeout_ms = slow_ms(30000),
               .request_timeout_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000)));
    hl_lock *waits = new_asking(client, "area", 1), *other = new_lock(client, "bay");
    hl_lock *parts[] = {waits, other}, *both = NULL;

    expect_ok(hl_multi_lock_new(parts, 2, NULL, &both, ERR));
    keep_lock(both);
    expect_ok(hl_lock_acquire(both, ERR));
    expect_ok(hl_lock_release(both, ERR));
    replica_cut(0);
    struct actor *actor = actor_start_acquire(waits, WAITING);
    check(wait_until(waits_for_replicas, NULL, 20000));
    expect_ok(hl_lock_acquire(other, ERR));
    expect_ok(hl_lock_release(other, ERR));
    check(waits_for_replicas(NULL));
    replica_join(0);
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, waits, NULL));
}

/* --- from owner to owner --- */

ReplicaLaw(replicas, have_what_another_client_granted_when_the_acquire_returns)
{
    hl_client *client = open_client(REPLICATED()), *plain = open_client(NULL);
    hl_lock *theirs = new_lock(plain, "stock"), *ours = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(theirs, ERR));
    replica_lag(0, LAG_MS);
    struct actor *actor = actor_start_acquire(ours, WAITING);
    check(redis_wait_int(server, 1, 20000, "ZCARD hirelock_queue:{stock}"));
    expect_ok(hl_lock_release(theirs, ERR));
    expect_ok(actor_end(actor));
    check_str(redis_str(replica(0), "HKEYS stock"), field_of(ours));
    expect_ok(actor_release(actor, ours, NULL));
}

/* The grant stands for longer than the call's lease: so the request that asks for it extends
 * nothing, and must write all the same. */
ReplicaLaw(replicas, have_a_grant_that_stands_for_longer_than_the_lease)
{
    hl_client *client = open_client(REPLICATED(.poll_ms = 5000)),
              *plain = open_client(CLIENT(.poll_ms = 5000));
    hl_lock *theirs = new_lock(plain, "stock"), *ours = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(theirs, ERR));
    struct actor *actor = actor_start_acquire(ours, ACQUIRE(.wait_ms = -1, .lease_ms = 15000));
    check(redis_wait_int(server, 1, 20000, "ZCARD hirelock_queue:{stock}"));
    check(redis_wait_replicas(server, 1, 20000));
    replica_lag(0, LAG_MS);
    expect_ok(hl_lock_release(theirs, ERR));
    expect_ok(actor_end(actor));
    check_str(redis_str(replica(0), "HKEYS stock"), field_of(ours));
    expect_ok(actor_release(actor, ours, NULL));
}

static void hold_a_moment(void *arg)
{
    expect_ok(hl_lock_acquire(arg, ERR));
    expect_ok(hl_lock_release(arg, ERR));
}

/* A word of the server that gets old is asked for anew (KEEP), and that prolongs the hold. */
ReplicaLaw(replicas, are_not_asked_again_for_a_lock_that_is_passed_on)
{
    hl_client *client = open_client(REPLICATED());
    hl_lock *lock = new_lock(client, "stock");
    struct actor *actor = actor_start();

    expect_ok(hl_lock_acquire(lock, ERR));
    int64_t waits = redis_calls(server, "wait"), requests = redis_evalsha_calls(server);
    actor_begin(actor, hold_a_moment, lock);
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(lock, ERR));
    actor_await(actor);
    waits = redis_calls(server, "wait") - waits;
    requests = redis_evalsha_calls(server) - requests - 1; /* but for the last release */
    if (stats_of(client).passes == 1)                      /* the server's word was young enough */
        check_msg(waits <= requests, "%d WAITs for %d requests", (int)waits, (int)requests);
    else
        check(waits > 0);
}

ReplicaLaw(replicas, are_asked_for_by_a_nested_acquire_that_needs_them)
{
    hl_client *client = open_client(IMPATIENT());
    hl_lock *without = new_asking(client, "stock", HL_REPLICAS_NONE);
    hl_lock *with = new_asking(client, "stock", 1);
    hl_error err = HL_ERROR_INIT;

    replica_cut(0);
    expect_ok(hl_lock_acquire(without, ERR));
    expect_outcome(hl_lock_acquire(with, &err), HL_EREPLICAS);
    check_has(err.text, "0 of 1 replicas");
    check_int(hl_lock_hold_count(with, NULL), 1);
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    expect_ok(hl_lock_acquire(with, ERR));
    check_int(hl_lock_hold_count(with, NULL), 2);
    expect_ok(hl_lock_release(with, ERR));
    expect_ok(hl_lock_release(without, ERR));
    expect_free(without);
}

/* --- faults --- */

ReplicaLaw(replicas, are_asked_anew_when_the_connection_is_lost_meanwhile)
{
    static struct events events;
    hl_client *client = open_client(PATIENT(.on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock");

    replica_cut(0);
    struct actor *actor = actor_start_acquire(lock, WAITING);
    check(wait_until(waits_for_replicas, NULL, 20000));
    redis_kill_clients(server, REDIS_NORMAL);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    check(!actor_is_done(actor));
    replica_join(0);
    expect_ok(actor_end(actor));
    check(replica_has(0, "stock"));
    expect_held_by(client, lock, 1);
    expect_ok(actor_release(actor, lock, NULL));
    expect_free(lock);
}

ReplicaLaw(replicas, that_the_user_may_not_wait_for_are_an_error_that_says_so)
{
    hl_client *client = open_client(REPLICATED());
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;

    redis_deny(server, "default", "wait");
    expect_outcome(hl_lock_acquire(lock, &err), HL_EDENIED);
    check_has(err.text, "WAIT");
    check(redis_wait_int(server, 0, 20000, "EXISTS stock"));
    redis_do(server, "ACL SETUSER default +wait");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

ReplicaLaw(replicas, that_are_waited_for_are_left_by_a_close)
{
    hl_client *client = open_client(PATIENT());
    hl_lock *lock = new_lock(client, "stock");

    replica_cut(0);
    struct actor *actor = actor_start_acquire(lock, WAITING);
    check(wait_until(waits_for_replicas, NULL, 20000));
    close_client(client);
    expect_outcome(actor_end(actor), HL_ECANCELED);
    replica_join(0);
}

/* --- others than locks --- */

ReplicaLaw(replicas, have_permits_fences_and_new_leases_too)
{
    hl_client *client = open_client(IMPATIENT());
    hl_permits *permits = NULL;
    hl_permit permit[2];
    hl_fenced_write write = {
        .size = sizeof write, .key = "data", .value = "v", .value_length = 1, .token = 7};
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;

    expect_ok(hl_permits_new(client, "gate", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_try_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire_many(permits, 2, NULL, permit, ERR));
    expect_ok(hl_permits_release(permits, &permit[0], ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    replica_cut(0);
    expect_outcome(hl_permits_acquire_many(permits, 2, NULL, permit, &err), HL_EREPLICAS);
    check_has(err.text, "0 of 1 replicas");
    check(redis_wait_int(server, 2, 20000, "GET gate"));
    expect_outcome(hl_lock_update_lease(lock, NULL, 60000, &err), HL_EREPLICAS);
    expect_outcome(hl_fence_set(client, &write, &err), HL_EREPLICAS);
    check_has(err.text, "0 of 1 replicas");
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    expect_ok(hl_fence_set(client, &write, ERR));
    expect_ok(hl_lock_update_lease(lock, NULL, 60000, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

ReplicaLaw(replicas, have_all_names_of_a_multi_lock)
{
    hl_client *client = open_client(IMPATIENT());
    hl_lock *parts[] = {new_lock(client, "area"), new_lock(client, "bay")}, *both = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_ok(hl_multi_lock_new(parts, 2, NULL, &both, ERR));
    keep_lock(both);
    expect_ok(hl_lock_acquire(both, ERR)); /* the server gets the script */
    expect_ok(hl_lock_release(both, ERR));
    replica_lag(0, LAG_MS);
    int64_t requests = redis_evalsha_calls(server), waits = redis_calls(server, "wait");
    expect_ok(hl_lock_acquire(both, ERR));
    check(replica_has(0, "area") && replica_has(0, "bay"));
    check_int(redis_evalsha_calls(server) - requests, 1);
    check_int(redis_calls(server, "wait") - waits, 1);
    expect_ok(hl_lock_release(both, ERR));
    replica_cut(0);
    expect_outcome(hl_lock_acquire(both, &err), HL_EREPLICAS);
    check(redis_wait_int(server, 0, 20000, "EXISTS area bay"));
}

/* --- connections --- */

static void note_connected(const hl_node *node, void *arg)
{
    *(bool *)arg = node->is_connected;
}

ReplicaLaw(replicas, can_be_asked_for_as_soon_as_the_client_is_open)
{
    struct proxy *proxy = new_proxy();

    proxy_delay(proxy, 2, PROXY_DOWN, 200); /* behind those for commands and for messages */
    hl_client *client = open_client_at(proxy_url(proxy), REPLICATED());
    bool is_connected = false;
    check_int(hl_client_nodes(client, note_connected, &is_connected), 1);
    check(is_connected);
    check_int(proxy_accepted(proxy), 3);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_try_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* --- options --- */

ReplicaLaw(replicas, are_asked_for_in_numbers_that_make_sense)
{
    hl_client *none = open_client(NULL), *client = open_client(REPLICATED());
    hl_client *never = NULL;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    const hl_lock_options asks = {
        .size = sizeof asks, .name = "stock", .min_replicas = HL_REPLICAS_MAJORITY};
    const hl_lock_options asks_much = {.size = sizeof asks, .name = "stock", .min_replicas = 1001};

    expect_outcome(hl_lock_new_with(none, &asks, &lock, &err), HL_EINVAL);
    check_has(err.text, "HL_REPLICAS_NONE");
    expect_outcome(hl_lock_new_with(client, &asks_much, &lock, &err), HL_EINVAL);
    check_has(err.text, "min_replicas");
    expect_outcome(
        hl_client_open(redis_server_url(server), CLIENT(.min_replicas = -3), &never, &err),
        HL_EINVAL);
    expect_outcome(hl_client_open(redis_server_url(server),
                                  CLIENT(.min_replicas = 1, .replicas_timeout_ms = 1001), &never,
                                  &err),
                   HL_EINVAL);
    check_has(err.text, "replicas_timeout_ms");
    check(never == NULL && lock == NULL);
}
