/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Schedules that once broke something. A stopped server, a foreign client, and looks into internal
 * state force each of them, so that no test depends on luck.
 */

#include "lease/calls/client.h"
#include "lease/hold/hold.h"
#include "lease/hold/release_call.h"
#include "lease/hold/watchdog.h"
#include "support/actor.h"
#include "support/kit.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"

#include <poll.h>

enum { MANY = 1000 }; /* more holds than the batches of renewals take at once */

static struct recorder told = RECORDER_INIT;
static atomic_int told_of[HL_EVENT_RELEASE_FAILED + 1];
static hl_lock *many[MANY];

static void count_event(const hl_event *event, void *arg)
{
    (void)arg;
    told_of[event->kind]++;
}

struct told_wish {
    hl_event_kind kind;
    int count;
};

static bool was_told(void *arg)
{
    const struct told_wish *wish = arg;
    return told_of[wish->kind] >= wish->count;
}

static void expect_told(hl_event_kind kind, int count)
{
    wait_until(was_told, &(struct told_wish){kind, count}, 10000);
    check_int(told_of[kind], count);
}

static hl_client *open_many(int64_t watchdog_ms)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = watchdog_ms,
                                           .request_timeout_ms = 60000, .on_event = count_event));
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "many:%d", i);
        many[i] = new_lock(client, name);
        expect_ok(hl_lock_acquire(many[i], NULL));
    }
    return client;
}

/* However long it took to acquire them all, they were renewed at one time. */
static void renew_many(hl_client *client)
{
    uint64_t renewals = stats_of(client).renewals;
    check(redis_kill_clients(server, REDIS_NORMAL) > 0);
    wait_stat(client, renewals, renewals + MANY);
}

static void release_many(void)
{
    for (int i = 0; i < MANY; i++)
        expect_ok(hl_lock_release(many[i], NULL));
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

Law(schedules, a_hold_that_waits_for_a_batch_may_come_due_again)
{
    hl_client *client = open_many(slow_ms(9000));
    renew_many(client);
    redis_server_freeze(server);
    expect_told(HL_EVENT_JEOPARDY, MANY); /* the renewals wait, in flight or for a batch */
    redis_server_thaw(server);
    expect_told(HL_EVENT_SAFE, MANY);
    check_int(stats_of(client).holds_now, MANY);
    release_many();
    check_int(told_of[HL_EVENT_LOST], 0);
}

/* Every hold has its renewal in flight, or waits for a batch. */
static bool all_are_renewing(void *arg)
{
    bool all = true;
    (void)arg;
    for (int i = 0; i < MANY && all; i++) {
        pthread_mutex_lock(&many[i]->handle.name->mutex);
        all = many[i]->handle.name->current && many[i]->handle.name->current->is_renewing;
        pthread_mutex_unlock(&many[i]->handle.name->mutex);
    }
    return all;
}

Law(schedules, a_hold_that_waits_for_a_batch_may_be_reviewed)
{
    hl_client *client = open_many(slow_ms(9000));
    hl_lock *other = new_lock(client, "abandoned");
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, other, ACQUIRE(.lease_ms = 60000)));
    renew_many(client);
    redis_server_freeze(server);
    check(wait_until(all_are_renewing, NULL, 10000));
    actor_stop(actor); /* all holds are looked at now */
    expect_told(HL_EVENT_LOST, 1);
    uint64_t renewals = stats_of(client).renewals;
    redis_server_thaw(server);
    wait_stat(client, renewals, renewals + MANY);
    check_int(stats_of(client).holds_now, MANY);
    for (int i = 0; i < MANY; i++)
        expect_ok(hl_lock_release(many[i], NULL));
    check_int(told_of[HL_EVENT_LOST], 1);
}

Law(schedules, the_count_of_a_leased_hold_never_shortens_what_stands)
{
    hl_client *client = open_client(NULL), *stranger = open_client(NULL);
    hl_lock *lock = new_lock(client, "leased"), *others = new_lock(stranger, "leased");
    const hl_acquire_options *options = ACQUIRE(.lease_ms = 60000);
    expect_ok(hl_lock_acquire_with(lock, options, NULL));
    expect_ok(hl_lock_acquire_with(lock, options, NULL));
    expect_held_by(client, lock, 2);
    redis_do(server, "PERSIST leased");
    expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 1);
    check(pttl_of(lock) > 30000);
    redis_do(server, "PERSIST leased");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(100)), NULL));
    expect_held_by(client, lock, 2);
    check(hl_lock_is_held(lock, NULL));
    check(redis_int(server, "PTTL leased") == -1 || pttl_of(lock) > 30000);
    expect_outcome(hl_lock_try_acquire(others, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
}

static bool is_gone_here(void *arg)
{
    return !hl_lock_is_held(arg, NULL);
}

static void expect_lost_by_force(const hl_acquire_options *options, bool is_async)
{
    static struct recorder done = RECORDER_INIT;
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "forced");
    int before = recorder_count(&done);
    told.text[0] = '\0';
    expect_ok(hl_lock_acquire_with(lock, options, NULL));
    if (is_async) {
        expect_ok(hl_lock_force_release_async(lock, record_done, &done));
        check(recorder_wait(&done, before + 1));
        check_int(recorder_entry(&done, before).code, HL_OK);
    } else {
        expect_ok(hl_lock_force_release(lock, NULL));
    }
    check(wait_until(is_gone_here, lock, 2000));
    expect_story(&told, "LOST gone");
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    close_client(client);
}

Law(schedules, a_forced_release_of_an_own_hold_is_told_at_once_leased_or_watched)
{
    expect_lost_by_force(ACQUIRE(.lease_ms = 60000), false);
    expect_lost_by_force(ACQUIRE(.lease_ms = 60000), true);
    expect_lost_by_force(ACQUIRE(.lease_ms = 0), false);
    expect_lost_by_force(ACQUIRE(.lease_ms = 0), true);
}

/* A nested call waits for the server's word on a longer lease. */
static bool is_deepening(void *lock)
{
    struct hli_name *name = ((hl_lock *)lock)->handle.name;
    pthread_mutex_lock(&name->mutex);
    bool is = name->current && name->current->reentry;
    pthread_mutex_unlock(&name->mutex);
    return is;
}

Law(schedules, a_release_beside_its_owners_nested_call_is_a_misuse_and_no_crash)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "nested");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = 30000), NULL));
    redis_server_freeze(server);
    actor_begin_acquire(actor, lock, ACQUIRE(.owner = owner, .lease_ms = 60000, .wait_ms = -1));
    check(wait_until(is_deepening, lock, 5000));
    expect_outcome(hl_lock_release_as(lock, owner, &err), HL_EINVAL);
    check(strstr(err.text, "another call under way") != NULL);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = 90000), NULL),
                   HL_EINVAL);
    redis_server_thaw(server);
    expect_ok(actor_end(actor));
    expect_held_by(client, lock, 2);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
}

Law(schedules, a_close_ends_a_nested_call_under_way)
{
    hl_client *client = open_client(
        CLIENT(.request_timeout_ms = slow_ms(300), .flags = HL_CLIENT_RELEASE_ON_CLOSE));
    hl_lock *lock = new_lock(client, "nested");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = 30000), NULL));
    redis_server_freeze(server);
    actor_begin_acquire(actor, lock, ACQUIRE(.owner = owner, .lease_ms = 60000, .wait_ms = -1));
    check(wait_until(is_deepening, lock, 5000));
    close_client(client);
    expect_outcome(actor_end(actor), HL_ECANCELED);
    redis_server_thaw(server);
}

Law(schedules, an_answer_to_a_waiter_that_gave_up_credits_no_other_waiter)
{
    hl_client *client =
        open_client(CLIENT(.request_timeout_ms = 60000, .watchdog_timeout_ms = 90000));
    hl_lock *lock = new_lock(client, "nested");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = 30000), NULL));
    redis_server_freeze(server);
    expect_outcome(
        hl_lock_acquire_with(
            lock, ACQUIRE(.owner = owner, .lease_ms = 45000, .wait_ms = slow_ms(20)), NULL),
        HL_ETIMEDOUT);
    actor_begin_acquire(actor, lock, ACQUIRE(.owner = owner, .wait_ms = -1));
    check(wait_until(is_deepening, lock, 5000));
    redis_server_thaw(server);
    expect_ok(actor_end(actor));
    check_msg(hl_lock_validity_ms(lock, owner) > 60000, "valid for %d ms",
              (int)hl_lock_validity_ms(lock, owner));
    check(pttl_of(lock) > 60000);
    expect_held_by(client, lock, 2);
}

static void expect_silence_after_release(bool is_answered)
{
    told.text[0] = '\0';
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .watchdog_timeout_ms = slow_ms(6000),
                           .request_timeout_ms = 60000, .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "warned of");
    struct pollfd bell = {.fd = hl_client_fd(client), .events = POLLIN};
    expect_ok(
        hl_lock_acquire_with(lock, ACQUIRE(.on_event = record_event, .event_arg = &told), NULL));
    redis_server_freeze(server);
    check_int(poll(&bell, 1, (int)slow_ms(10000)), 1);
    uint64_t renewals = stats_of(client).renewals;
    redis_server_thaw(server);
    if (is_answered)
        wait_stat(client, renewals, renewals + 1); /* SAFE is the word now */
    expect_ok(hl_lock_release(lock, NULL));
    while (hl_client_dispatch(client) > 0)
        ;
    expect_story(&told, "");
    close_client(client);
    expect_story(&told, "");
}

Law(schedules, no_warning_is_told_after_the_release)
{
    expect_silence_after_release(false);
    expect_silence_after_release(true);
}

static bool is_in_jeopardy(void *lock)
{
    struct hli_name *name = ((hl_lock *)lock)->handle.name;
    pthread_mutex_lock(&name->mutex);
    bool is = name->current && hli_now() >= hli_hold_jeopardy_at(name->current);
    pthread_mutex_unlock(&name->mutex);
    return is;
}

Law(schedules, a_hold_that_is_in_jeopardy_when_its_call_ends_is_warned_of_then)
{
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .watchdog_timeout_ms = slow_ms(6000),
                           .request_timeout_ms = 60000, .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "warned of");
    hl_owner *owner = new_owner(client);
    struct pollfd bell = {.fd = hl_client_fd(client), .events = POLLIN};
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told));
    check_int(poll(&bell, 1, (int)slow_ms(10000)), 1);
    redis_server_freeze(server);
    check(wait_until(is_in_jeopardy, lock, 10000));
    check_int(hl_client_dispatch(client), 1); /* until now the owner was not told of it */
    expect_story(&told, "done HL_OK");
    check_int(poll(&bell, 1, (int)slow_ms(10000)), 1);
    check_int(hl_client_dispatch(client), 1);
    expect_story(&told, "done HL_OK, JEOPARDY");
    redis_server_thaw(server);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
}

static struct hli_name *name_of_calls;
static unsigned name_refs;

static bool has_same_refs(void *arg)
{
    (void)arg;
    return atomic_load(&name_of_calls->ref.count) == name_refs;
}

Law(schedules, an_async_call_that_ends_at_once_leaves_nothing_behind)
{
    enum { CALLS = 1000 };
    hl_client *client = open_client(CLIENT(.outage_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "held");
    hl_owner *owner = new_owner(client), *other = new_owner(client);
    static struct recorder done[CALLS / 200];
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    name_of_calls = lock->handle.name;
    name_refs = atomic_load(&lock->handle.name->ref.count);
    for (int i = 0; i < CALLS; i++) {
        struct recorder *to = &done[i / 200];
        if (i % 200 == 0)
            pthread_mutex_init(&to->mutex, NULL);
        if (i % 2 == 0)
            expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = other), record_done, to));
        else
            expect_ok(hl_lock_release_async(lock, other, record_done, to));
        check(recorder_wait(to, i % 200 + 1));
    }
    check(wait_until(has_same_refs, NULL, 1000));
}

/* Once it is refused for now, nothing repeats it: as if the loop got no processor. */
static bool refused_release_is_held_up(void *lock)
{
    struct hli_name *name = ((hl_lock *)lock)->handle.name;
    pthread_mutex_lock(&name->mutex);
    struct hli_tenure *past = TAILQ_FIRST(&name->past);
    bool is = past && past->state == HLI_TENURE_RELEASING && !past->is_releasing && past->retry_at;
    if (is)
        past->retry_at = HLI_NEVER;
    pthread_mutex_unlock(&name->mutex);
    return is;
}

/* The next turn of the name repeats it. */
static void make_release_due(hl_lock *lock)
{
    struct hli_name *name = lock->handle.name;
    pthread_mutex_lock(&name->mutex);
    check(!TAILQ_EMPTY(&name->past));
    TAILQ_FIRST(&name->past)->retry_at = 0;
    pthread_mutex_unlock(&name->mutex);
}

static void job_release(void *lock)
{
    expect_ok(hl_lock_release(lock, NULL));
}

/* The lock's owner, another thread, has released it, and the server has refused that for now. */
static struct actor *begin_refused_release(hl_lock *lock)
{
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER)));
    redis_do(server, "CONFIG SET min-replicas-to-write 1"); /* NOREPLICAS */
    actor_begin(actor, job_release, lock);
    check(wait_until(refused_release_is_held_up, lock, 10000));
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    return actor;
}

static void expect_multi_behind_a_release(hl_client *client, unsigned flags)
{
    hl_lock *b = new_lock(client, "b"), *c = new_lock(client, "c"), *multi = NULL;
    hl_lock *lock = new_lock_with(
        client, "a", &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = flags});
    expect_ok(hl_multi_lock_new((hl_lock *[]){lock, b, c}, 3, NULL, &multi, NULL));
    struct actor *actor = begin_refused_release(lock);
    make_release_due(lock);
    expect_ok(hl_lock_acquire_for(keep_lock(multi), 60000, ERR));
    actor_await(actor);
    expect_held_by(client, lock, 1);
    expect_held_by(client, c, 1);
    expect_ok(hl_lock_release(multi, ERR));
    expect_free(lock);
    expect_free(b);
}

/* The repeated release stands before the acquire's own request in the same turn. */
Law(schedules, a_multi_lock_behind_a_due_release_takes_its_own_request)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
    expect_multi_behind_a_release(client, 0);
    expect_multi_behind_a_release(client, HL_LOCK_ASYNC_RELEASE);
}

Law(schedules, a_release_for_a_batch_is_its_own_and_not_an_earlier_one)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock_with(
        client, "a",
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_ASYNC_RELEASE});
    struct hli_name *name = lock->handle.name;
    const struct hli_release_mode mode = {.is_posted = true};
    struct hli_release_wait released;
    struct hli_op *op = NULL;
    struct actor *actor = begin_refused_release(lock);
    actor_await(actor);
    redis_do(server, "DEL a"); /* so the next hold need not wait for it */
    expect_ok(hl_lock_acquire_for(lock, 60000, ERR));
    struct hli_op *own = &name->current->release;
    make_release_due(lock);
    hli_release_wait_init(&released, name, ERR);
    hli_release_start(name, hli_owner_of_thread(), &mode, &released.wait, &op);
    check(op == own);
    hli_link_send(hli_name_link(name), op);
    expect_free(lock);
}
