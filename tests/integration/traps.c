/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Traps: schedules that have broken lock protocols of this shape. Each test plays one.
 */

#include "lease/acquire/ask.h"
#include "lease/hold/hold.h"
#include "lease/hold/release.h"
#include "lease/several/quorum.h"
#include "lease/state/name.h"
#include "redis/script.h"
#include "support/actor.h"
#include "support/kit.h"
#include "support/masters.h"
#include "support/proxy.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"

#include <poll.h>

static struct recorder told = RECORDER_INIT;

/* A hold that a client believes in stands in Redis too, and no other client acquires. */
static void check_belief(hl_client *client, hl_lock *lock, hl_owner *owner, hl_lock *rivals)
{
    check(hl_lock_is_held(lock, owner));
    expect_held_by(client, lock, 1);
    expect_outcome(hl_lock_try_acquire(rivals, NULL), HL_EBUSY);
}

Law(a_bounce, of_a_release_does_not_undo_the_acquire_behind_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *owner[2] = {new_owner(client), new_owner(client)};
    char before[128];
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner[0]), NULL));
    for (int i = 0; i < 50; i++) {
        hl_owner *from = owner[i % 2], *to = owner[(i + 1) % 2];
        snprintf(before, sizeof before, "%s", field_of(lock));
        redis_do(server, "SCRIPT FLUSH");
        expect_ok(hl_lock_release_async(lock, from, record_done, &told));
        expect_ok(
            hl_lock_acquire_async(lock, ACQUIRE(.owner = to, .wait_ms = -1), record_done, &told));
        check(recorder_wait(&told, 2 * (i + 1)));
        expect_ok(recorder_entry(&told, 2 * i).code);
        expect_ok(recorder_entry(&told, 2 * i + 1).code);
        check_belief(client, lock, to, rivals);
        check(strcmp(field_of(lock), before) != 0); /* a fresh field for every tenure */
    }
}

Law(a_bounce, of_a_cancelled_wait_does_not_undo_the_next_one)
{
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *owner = new_owner(client);
    struct actor *actor = actor_start();
    for (int i = 0; i < 50; i++) {
        hl_cancel *cancel = new_cancel();
        redis_do(server, "SCRIPT FLUSH");
        actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel, .owner = owner));
        hl_cancel_fire(cancel);
        if (actor_end(actor) == HL_OK)
            expect_ok(actor_release(actor, lock, owner));
        expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1, .owner = owner), NULL));
        check_belief(client, lock, owner, rivals);
        expect_ok(hl_lock_release_as(lock, owner, NULL));
    }
    expect_free(lock);
}

TcpLaw(a_drop, between_a_release_and_the_next_acquire_undoes_nothing)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.backoff_min_ms = 1));
    hl_lock *lock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *owner = new_owner(client), *next = new_owner(client);
    for (int i = 0; i < 10; i++) {
        expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1, .owner = owner), NULL));
        proxy_hold(proxy, PROXY_EVERY, PROXY_UP); /* what was sent arrives late, or never */
        expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
        expect_ok(
            hl_lock_acquire_async(lock, ACQUIRE(.owner = next, .wait_ms = -1), record_done, &told));
        redis_kill_clients(server, REDIS_PUBSUB); /* the connections live and die together */
        redis_kill_clients(server, REDIS_NORMAL);
        proxy_pass(proxy);
        check(recorder_wait(&told, 2 * (i + 1)));
        expect_ok(recorder_entry(&told, 2 * i + 1).code);
        check_belief(client, lock, next, rivals);
        expect_ok(hl_lock_release_as(lock, next, NULL));
        expect_free(lock);
    }
    close_client(client);
    proxy_stop(proxy);
}

Law(fresh_field, is_written_by_every_tenure)
{
    enum { TENURES = 30 };
    static char field[TENURES][128];
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    for (int i = 0; i < TENURES; i++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        snprintf(field[i], sizeof field[i], "%s", field_of(lock));
        for (int k = 0; k < i; k++)
            check(strcmp(field[i], field[k]) != 0);
        expect_ok(hl_lock_release(lock, NULL));
    }
}

Law(a_renewal, or_a_partial_release_never_shortens_a_longer_lease)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = 3600000), NULL));
    check(pttl_of(lock) > 3500000);
    wait_stat(client, renewals, 2);
    check(pttl_of(lock) > 3500000);
    expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 1);
    check(pttl_of(lock) > 3500000);
    check(hl_lock_validity_ms(lock, NULL) > 3500000);
    wait_stat(client, renewals, 4);
    check(pttl_of(lock) > hl_lock_validity_ms(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
}

static void plant_field(hl_client *client, const char *number)
{
    redis_do(server, "HSET stock %s:%s 1", hl_client_id(client), number);
    redis_do(server, "PEXPIRE stock 60000");
}

Law(an_orphan, of_its_own_uuid_is_released_by_the_client_that_meets_it)
{
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    plant_field(client, "4294967295999");
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), NULL));
    check(now_ms() - before_ms < slow_ms(8000)); /* the poll would take 10 s */
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    plant_field(client, "4294967295998");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_free(lock);
}

/* A turn's requests go out after its mutex is unlocked, so the release of a wait may overtake the
 * wait's request, which would acquire the lock without a call. Here the release is answered, and
 * the tenure ENDED, before the request goes out: it is not sent. */
Law(an_orphan, is_not_made_by_a_request_that_its_release_overtook)
{
    hl_client *client = open_client(CLIENT(.poll_ms = 60000));
    hl_lock *lock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    int64_t calls = redis_evalsha_calls(server);

    struct hli_turn turn;
    const struct hli_acquire_request taking = {.lease_ms = 60000, .count = 1, .queues = true};
    hli_turn_begin(&turn, lock->handle.name);
    struct hli_tenure *tenure = lock->handle.name->current =
        hli_tenure_new(lock->handle.name, hli_tenure_next_number(lock->handle.name));
    hli_tenure_move(tenure, HLI_TENURE_ASK);
    check_int(lock->handle.name->kind->acquire(tenure, &tenure->ask, &taking), 0);
    hli_turn_ask(&turn, tenure, HLI_ASKING_ACQUIRE);
    hli_releasing_end(&turn, tenure);
    hli_turn_end(&turn);

    expect_ok(hl_client_ping(client, -1, NULL)); /* what was sent has run */
    check_int(redis_evalsha_calls(server), calls);
    expect_ok(hl_lock_try_acquire(rivals, NULL));
    expect_ok(hl_lock_release(rivals, NULL));
}

/* It has its own number: a vote that is about to ask keeps the one of its attempt, without which
 * its answer would count for an attempt before. */
MastersLaw(an_orphan, takes_no_number_of_a_vote)
{
    hl_lock *lock = new_redlock(open_masters(NULL), "stock");
    struct hli_name *voter = lock->handle.name->quorum->voters[0];
    const uint64_t number = 77;
    struct hli_turn turn;

    atomic_store(&voter->voter->number, number);
    hli_turn_begin(&turn, voter);
    hli_releasing_orphan(&turn, 5);
    hli_turn_end(&turn);
    check_int(hli_tenure_next_number(voter), number);
    check(hli_tenure_next_number(voter) != number); /* once */
}

Law(an_orphan, is_no_hold_of_a_live_owner)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(actor_acquire(other, lock, ACQUIRE(.wait_ms = 100)), HL_ETIMEDOUT);
    expect_outcome(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    check_belief(client, lock, NULL, new_lock(open_client(NULL), "stock"));
}

Law(an_orphan, is_no_field_that_only_looks_like_its_own)
{
    static const struct {
        const char *number;
        int code; /* HL_ESERVER: no owner's field at all */
    } cases[] = {
        {"007", HL_ETIMEDOUT}, {"-5", HL_ETIMEDOUT}, {"99999999999999999999", HL_ETIMEDOUT},
        {"+5", HL_ESERVER},    {"x", HL_ESERVER},    {"5x", HL_ESERVER},
        {"", HL_ESERVER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hl_client *client = open_client(CLIENT(.poll_ms = 10000));
        plant_field(client, cases[i].number);
        int64_t wait_ms = cases[i].code == HL_ETIMEDOUT ? 50 : slow_ms(20000);
        expect_outcome(hl_lock_acquire_for(new_lock(client, "stock"), wait_ms, NULL),
                       cases[i].code);
        check_msg(stats_of(client).commands < 30, "'%s': %d commands", cases[i].number,
                  (int)stats_of(client).commands);
        check_int(redis_int(server, "DEL stock"), 1);
    }
}

static void replay_acquire(const char *field, int count)
{
    redis_do(server, "EVALSHA %s 1 stock %s 30000 %d hirelock_queue:{stock} 0 hirelock:",
             hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->sha1, field, count);
}

static void replay_release(const char *field, int count)
{
    redis_do(server,
             "EVALSHA %s 1 stock %s %d 30000 0 nobody PUBLISH hirelock_queue:{stock} hirelock: "
             "4000 nobody_else 0 NUMSUB",
             hli_script_get(HLI_SCRIPT_LOCK_RELEASE)->sha1, field, count);
}

Law(a_late_count, changes_nothing_that_the_hold_does_not_put_right)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *lock = new_lock(client, "stock");
    char field[128];
    for (int i = 0; i < 3; i++)
        expect_ok(hl_lock_acquire(lock, NULL));
    expect_held_by(client, lock, 3);
    snprintf(field, sizeof field, "%s", field_of(lock));
    replay_acquire(field, 1);
    replay_acquire(field, 2);
    check_str(redis_str(server, "HGET stock %s", field), "3"); /* an acquire only raises */
    expect_ok(hl_lock_release(lock, NULL));
    expect_held_by(client, lock, 2);
    replay_acquire(field, 3); /* late; the next renewal finds it */
    expect_held_by(client, lock, 2);
    replay_release(field, 1);
    expect_held_by(client, lock, 2);
    check_int(hl_lock_hold_count(lock, NULL), 2);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
    replay_release(field, 0);
    replay_acquire(field, 2); /* the outer hold is gone: refused */
    check_int(redis_int(server, "EXISTS stock"), 0);
}

TcpLaw(a_callers_deadline, lets_go_of_the_caller_and_not_of_the_connection)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    int64_t before_ms = now_ms(), calls = redis_evalsha_calls(server);
    int code = hl_lock_acquire_for(lock, slow_ms(500), NULL);
    check_int(code, HL_ETIMEDOUT);
    check(now_ms() - before_ms >= slow_ms(500) - 1 && now_ms() - before_ms < slow_ms(8000));
    while (redis_evalsha_calls(server) < calls + 2) /* it was got, too late, and is given back */
        deadline_nap();
    proxy_pass(proxy);
    expect_free(lock);
    expect_ok(hl_client_ping(client, -1, NULL));
    check_int(stats_of(client).reconnects, 0);
    check_int(proxy_accepted(proxy), 2);
    close_client(client);
    proxy_stop(proxy);
}

static bool is_over(void *arg)
{
    return pttl_of(arg) < 0;
}

Law(a_grant, that_its_caller_hears_of_too_late_is_no_hold)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_DISPATCH));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    struct pollfd look = {.fd = hl_client_fd(client), .events = POLLIN};
    expect_ok(hl_lock_acquire_async(
        lock, ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(1000), .owner = owner), record_done,
        &told));
    check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
    check(wait_until(is_over, lock, 5000)); /* the caller sleeps for longer than the lease */
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire_with(rivals, ACQUIRE(.lease_ms = slow_ms(20000)), NULL));
    hl_client_dispatch(client);
    expect_story(&told, "");
    check(!hl_lock_is_held(lock, owner));
    check(hl_lock_is_held(rivals, NULL));
    expect_outcome(hl_lock_release(rivals, NULL), HL_OK);
    while (recorder_count(&told) == 0) {
        check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(client);
    }
    expect_story(&told, "done HL_OK"); /* it waited on, and was told in time */
    expect_held_by(client, lock, 1);
}

TcpLaw(a_grant, whose_answer_comes_after_its_lease_is_no_hold)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), NULL);
    hl_lock *lock = new_lock(client, "stock");
    proxy_delay(proxy, PROXY_EVERY, PROXY_DOWN, 120);
    int code = hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 500, .lease_ms = 100), NULL);
    check_int(code, HL_ETIMEDOUT);
    proxy_pass(proxy);
    expect_free(lock);
    expect_ok(
        hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(10000), .lease_ms = 10000), NULL));
    close_client(client);
    proxy_stop(proxy);
}

Law(a_lost_subscription, makes_every_waiter_ask_again)
{
    hl_lock *held = new_lock(open_client(NULL), "stock");
    hl_client *client = open_client(CLIENT(.poll_ms = 60000, .backoff_min_ms = 1));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *waiter = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    int64_t calls = redis_evalsha_calls(server);
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    while (redis_evalsha_calls(server) < calls + 2) /* and once more after subscribing */
        deadline_nap();
    redis_do(server, "DEL stock"); /* a release whose message is lost with the connection */
    check(redis_kill_clients(server, REDIS_PUBSUB) >= 1);
    expect_ok(actor_end(waiter));
    expect_held_by(client, lock, 1);
    check(stats_of(client).reconnects >= 1);
}

Law(a_new_connection, renews_every_hold_at_once)
{
    hl_client *client = /* else in 30 s */
        open_client(CLIENT(.backoff_min_ms = 1, .watchdog_timeout_ms = 90000));
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "stock%d", i);
        expect_ok(hl_lock_acquire(new_lock(client, name), NULL));
    }
    check_int(stats_of(client).renewals, 0);
    redis_kill_clients(server, REDIS_NORMAL);
    wait_stat(client, renewals, 5);
}

Law(a_second_try, is_made_only_when_the_subscription_is_younger_than_the_first)
{
    hl_lock *held = /* no renewal is counted */
        new_lock(open_client(CLIENT(.watchdog_timeout_ms = 3600000)), "stock");
    hl_client *client = open_client(CLIENT(.poll_ms = 3600000));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_release(held, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_acquire(held, NULL));
    int64_t before = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(1500), NULL), HL_ETIMEDOUT);
    expect_ok(hl_client_ping(client, -1, NULL));
    check_int(redis_evalsha_calls(server) - before, 2 + 1); /* and one to leave the queue */
    before = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire_for(lock, 100, NULL), HL_ETIMEDOUT);
    expect_ok(hl_client_ping(client, -1, NULL));
    check_int(redis_evalsha_calls(server) - before, 1 + 1);
}

TcpLaw(a_try, is_never_answered_by_an_answer_from_before_it_began)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "stock"), *held = new_lock(open_client(NULL), "stock");
    struct actor *early = actor_start(), *late = actor_start();
    expect_ok(hl_lock_acquire(held, NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    int64_t calls = redis_evalsha_calls(server);
    actor_begin_acquire(early, lock, ACQUIRE(.wait_ms = 0));
    check(redis_wait_int(server, 1, 5000, "EXISTS stock"));
    while (redis_evalsha_calls(server) == calls) /* it is answered busy, and the answer is held */
        deadline_nap();
    expect_ok(hl_lock_release(held, NULL));
    expect_free(held);
    actor_begin_acquire(late, lock, ACQUIRE(.wait_ms = 0));
    expect_waiters(client, 2);
    proxy_pass(proxy);
    expect_outcome(actor_end(early), HL_EBUSY);
    expect_ok(actor_end(late)); /* free since before it began */
    close_client(client);
    proxy_stop(proxy);
}
