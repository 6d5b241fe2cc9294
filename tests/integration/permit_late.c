/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Permits whose caller learns late of its permits, or of a lease that was set anew. */

#include "permits.h"

#include "lease/calls/client.h"
#include "lease/state/name.h"
#include "support/recorder.h"
#include "sync/permits/permits.h"
#include "timer_block.h"

static struct recorder told = RECORDER_INIT;

/* A callback that takes its time, with others behind it. */
struct slow_callback {
    sem_t entered, may_go;
};

static void slow_callback_run(int code, int64_t count, const hl_error *err, void *arg)
{
    struct slow_callback *slow = arg;
    (void)code, (void)count, (void)err;
    sem_post(&slow->entered);
    while (sem_wait(&slow->may_go) != 0)
        ;
}

static void slow_callback_begin(struct slow_callback *slow, hl_permits *gate)
{
    sem_init(&slow->entered, 0, 0);
    sem_init(&slow->may_go, 0, 0);
    expect_ok(hl_permits_available_async(gate, slow_callback_run, slow));
    while (sem_wait(&slow->entered) != 0)
        ;
}

/* Two permits by an async call. */
struct pair {
    hl_permits *gate;
    atomic_int calls;
    int code;
    bool are_held; /* both, inside the completion */
    hl_permit permit[2];
    hl_error err;
};

static void pair_done(int code, const hl_permit *permits, size_t count, const hl_error *err,
                      void *arg)
{
    struct pair *pair = arg;
    check((permits != NULL) == (code == 0) && (err != NULL) == (code < 0));
    check_int((int)count, code == 0 ? 2 : 0);
    for (size_t i = 0; i < count; i++)
        pair->permit[i] = permits[i];
    if (err)
        pair->err = *err;
    pair->code = code;
    pair->are_held = is_held(pair->gate, pair->permit[0]) && is_held(pair->gate, pair->permit[1]);
    atomic_fetch_add(&pair->calls, 1);
}

static bool pair_is_done(void *pair)
{
    return atomic_load(&((struct pair *)pair)->calls) == 1;
}

static void pair_begin(struct pair *pair, hl_permits *gate, const hl_acquire_options *options)
{
    *pair = (struct pair){.gate = gate};
    expect_ok(hl_permits_acquire_many_async(gate, 2, options, pair_done, pair));
    check(redis_wait_int(server, 2, 5000, "ZCARD " IDS));
}

/* Their lease ends before the completion runs, and another client takes one of them: the call goes
 * on, and ends when it has two again. */
Law(permit_late, permits_that_another_client_has_by_now_are_not_told_as_got)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000), .poll_ms = 100));
    hl_permits *direct = set_gate(open_client(NULL), 2), *gate = new_gate(client);
    struct slow_callback slow;
    struct pair pair;
    hl_permit theirs = {""};
    slow_callback_begin(&slow, gate);
    pair_begin(&pair, gate, ACQUIRE(.owner = new_owner(client), .wait_ms = HL_WAIT_FOREVER));
    expect_ok(hl_permits_acquire_for(direct, slow_ms(20000), &theirs, NULL));
    sem_post(&slow.may_go);
    check(!wait_until(pair_is_done, &pair, 100));
    expect_ok(give_back(direct, theirs));
    check(wait_until(pair_is_done, &pair, 5000));
    expect_outcome(pair.code, HL_OK);
    check(pair.are_held);
    expect_counts(direct, 0, 2);
}

static bool is_reached(void *at_ms)
{
    return now_ms() >= *(int64_t *)at_ms;
}

/* When the first renewal would have been, had they been told at once. */
Law(permit_late, permits_that_are_told_late_are_renewed_from_then_on)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(3000)));
    hl_permits *gate = set_gate(client, 2);
    struct slow_callback slow;
    struct pair pair;
    slow_callback_begin(&slow, gate);
    pair_begin(&pair, gate, ACQUIRE(.owner = new_owner(client)));
    int64_t late_ms = now_ms() + slow_ms(1200);
    check(wait_until(is_reached, &late_ms, 5000));
    check_int(stats_of(client).renewals, 0);
    sem_post(&slow.may_go);
    check(wait_until(pair_is_done, &pair, 5000));
    expect_outcome(pair.code, HL_OK);
    wait_stat(client, renewals, 6); /* longer than a lease */
    check(is_held(gate, pair.permit[0]) && is_held(gate, pair.permit[1]));
    check_int(stats_of(client).losses, 0);
}

/* The only permit that is out, by its id. */
static hl_permit permit_on_server(void)
{
    hl_permit permit = {""};
    snprintf(permit.id, sizeof permit.id, "%s",
             redis_str(server, "EVAL %s 1 gate",
                       "local id = redis.call('ZRANGE', '" IDS "', 0, 0)[1] "
                       "return (string.gsub(id, '.', "
                       "function(c) return string.format('%02x', string.byte(c)) end))"));
    return permit;
}

/* A permit that was acquired a moment ago is gone, and a lease time later it is forgotten. */
static void forget(hl_client *client, hl_permits *gate, hl_permit permit)
{
    struct deadline deadline = deadline_in(10000);
    redis_do(server, "DEL " IDS);
    wait_stat(client, losses, 1);
    while (hl_permits_update_lease(gate, &permit, 60000, NULL) == HL_ELOST) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
}

/* Its thread has looked at the clock, and goes on much later: there is no hold to tell of. */
Law(permit_late, a_permit_forgotten_before_its_call_returns_is_told_as_lost)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_permits *direct = set_gate(open_client(NULL), 1), *gate = new_gate(client);
    hl_permit theirs = take_one(direct);
    struct taking taking;
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = new_cancel()));
    expect_waiters(client, 1);
    pthread_mutex_lock(&client->waits_mutex); /* taken between that look and the return */
    expect_ok(give_back(direct, theirs));
    wait_stat(client, acquires, 1);
    forget(client, gate, permit_on_server());
    pthread_mutex_unlock(&client->waits_mutex);
    expect_outcome(taking_end(&taking), HL_ELOST);
    check(strstr(taking.err.text, "gate") != NULL);
    check_int(stats_of(client).holds_now, 0);
}

static bool nothing_is_held(void *client)
{
    return atomic_load(&((hl_client *)client)->counters.holds_now) == 0;
}

Law(permit_late, permits_forgotten_before_their_completion_are_told_as_lost)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000)));
    hl_permits *direct = set_gate(open_client(NULL), 2), *gate = new_gate(client);
    struct slow_callback slow;
    struct pair pair;
    slow_callback_begin(&slow, gate);
    pair_begin(&pair, gate, ACQUIRE(.owner = new_owner(client), .cancel = new_cancel()));
    pthread_mutex_lock(&client->waits_mutex);
    sem_post(&slow.may_go);
    wait_stat(client, acquires, 1);
    redis_do(server, "DEL " IDS);
    check(wait_until(nothing_is_held, client, 10000));
    pthread_mutex_unlock(&client->waits_mutex);
    check(wait_until(pair_is_done, &pair, 5000));
    expect_outcome(pair.code, HL_ELOST);
    expect_outcome(pair.err.code, HL_ELOST);
    expect_counts(direct, 0, 0);
}

static void close_run(void *client)
{
    close_client(client);
}

/* The thread that acquires has looked at the clock, and goes on after the client was closed: until
 * each permit has a record of its own, the first one's release is that of all. */
Law(permit_late, permits_that_a_close_overtakes_are_all_given_back)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_permits *direct = set_gate(open_client(NULL), 3), *gate = new_gate(client);
    struct actor *closer = actor_start();
    struct taking taking;
    hl_permit theirs = take_one(direct);
    taking_begin(&taking, gate, 3, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = new_cancel()));
    expect_waiters(client, 1);
    pthread_mutex_lock(&client->waits_mutex); /* taken between that look and the return */
    expect_ok(give_back(direct, theirs));
    wait_stat(client, acquires, 1);
    actor_begin(closer, close_run, client);
    check(wait_until(nothing_is_held, client, 10000));
    pthread_mutex_unlock(&client->waits_mutex);
    actor_await(closer);
    expect_outcome(taking_end(&taking), HL_ELOST);
    expect_counts(direct, 3, 0);
}

/* A new lease, set in an actor's thread. */
struct updating {
    hl_permits *gate, *direct;
    hl_permit permit;
    int64_t lease_ms;
    int code;
};

static void updating_run(void *arg)
{
    struct updating *updating = arg;
    updating->code =
        hl_permits_update_lease(updating->gate, &updating->permit, updating->lease_ms, NULL);
}

static bool updating_is_renewing(void *arg)
{
    const struct updating *updating = arg;
    struct hli_permit_id id;
    check(hli_permit_read(&updating->permit, &id));
    struct hli_tenure *tenure = hli_permit_find(updating->gate->handle.name, &id);
    pthread_mutex_lock(&tenure->name->mutex);
    bool is_renewing = tenure->is_renewing;
    pthread_mutex_unlock(&tenure->name->mutex);
    hli_tenure_unref(tenure);
    return is_renewing;
}

static bool updating_is_renewed(void *updating)
{
    return !updating_is_renewing(updating);
}

static int64_t left_on_server(const struct updating *updating)
{
    int64_t left_ms = 0;
    int rc = hl_permits_lease_left(updating->direct, &updating->permit, &left_ms, NULL);
    return rc == 0 ? left_ms : 0;
}

static bool updating_is_there(void *arg)
{
    const struct updating *updating = arg;
    return left_on_server(updating) <= updating->lease_ms;
}

/* The watchdog has decided to renew, and the loop has not sent it yet. */
Law(permit_late, a_renewal_under_way_does_not_undo_a_shorter_lease)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(3000)));
    hl_permits *gate = new_gate(client);
    struct updating updating = {.gate = gate,
                                .direct = set_gate(open_client(NULL), 1),
                                .permit = take_one(gate),
                                .lease_ms = slow_ms(600)};
    struct actor *actor = actor_start();
    struct timer_block block;
    expect_ok(hl_permits_update_lease(updating.direct, &updating.permit, slow_ms(3000), NULL));
    timer_block_begin(&block, client);
    check(wait_until(updating_is_renewing, &updating, 5000));
    actor_begin(actor, updating_run, &updating);
    wait_until(updating_is_there, &updating, 100); /* if it goes first, it does so by then */
    check(!actor_is_done(actor));
    sem_post(&block.may_go);
    actor_await(actor);
    expect_outcome(updating.code, HL_OK);
    check(wait_until(updating_is_renewed, &updating, 5000));
    check(left_on_server(&updating) <= updating.lease_ms);
    check(hl_permits_validity_ms(gate, &updating.permit) <= updating.lease_ms);
    check(redis_wait_int(server, 0, 5000, "EVAL %s 1 gate",
                         "local time = redis.call('TIME') return redis.call('ZCOUNT', '" IDS
                         "', time[1] * 1000 + time[2] / 1000, 'inf')"));
    expect_counts(updating.direct, 1, 0);
}

struct validity {
    hl_permits *gate;
    hl_permit permit;
    int64_t least_ms;
};

static bool validity_is_reached(void *arg)
{
    const struct validity *validity = arg;
    return hl_permits_validity_ms(validity->gate, &validity->permit) >= validity->least_ms;
}

/* The completion is queued a moment after the lease counts. */
static bool has_dispatched_one(void *client)
{
    return hl_client_dispatch(client) == 1;
}

/* No thread dispatches: the caller hears of it later, and the watchdog knows it now. */
Law(permit_late, a_new_lease_counts_before_its_completion_runs)
{
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .watchdog_timeout_ms = slow_ms(3000)));
    hl_permits *gate = set_gate(client, 1);
    struct validity validity = {gate, take_one(gate), slow_ms(30000)};
    expect_ok(
        hl_permits_update_lease_async(gate, &validity.permit, slow_ms(60000), record_done, &told));
    check(wait_until(validity_is_reached, &validity, 5000));
    check_int(recorder_count(&told), 0);
    check(wait_until(has_dispatched_one, client, 5000));
    expect_story(&told, "done HL_OK");
    check(is_held(gate, validity.permit));
}
