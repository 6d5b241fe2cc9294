/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Permits: taken, given back, waited for, and counted. */

#include "permits.h"

#include "support/ear.h"
#include "support/recorder.h"

Law(permits, gives_out_no_more_permits_than_there_are)
{
    hl_permits *gate = set_gate(open_client(NULL), 2);
    hl_permits *others = new_gate(open_client(NULL));
    hl_permit one = take_one(gate), two = take_one(others), none = {"untouched"};
    check(strcmp(one.id, two.id) != 0);
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_EBUSY);
    expect_outcome(hl_permits_try_acquire(others, &none, NULL), HL_EBUSY);
    check_str(none.id, "untouched");
    expect_counts(gate, 0, 2);
    expect_ok(give_back(gate, one));
    expect_ok(give_back(others, two));
    expect_counts(gate, 2, 0);
}

/* As Redisson has it: a number, and beside it 16 bytes for each permit with the time of their end.
 */
Law(permits, leaves_in_redis_what_redisson_leaves)
{
    hl_permits *gate = set_gate(open_client(NULL), 3);
    hl_permit permit = take_with(gate, ACQUIRE(.lease_ms = 60000));
    check_str(redis_str(server, "GET gate"), "2");
    check_int(redis_int(server, "ZCARD " IDS), 1);
    check_str(redis_str(server, "EVAL %s 1 gate",
                        "local id = redis.call('ZRANGE', '" IDS "', 0, 0)[1] "
                        "return (string.gsub(id, '.', "
                        "function(c) return string.format('%02x', string.byte(c)) end))"),
              permit.id);
    check_int(redis_int(server, "ZCOUNT " IDS " 1700000000000 9000000000000"), 1);
    expect_ok(give_back(gate, permit));
    check_str(redis_str(server, "KEYS *"), "gate");
}

Law(permits, is_held_until_it_is_given_back)
{
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    hl_permits *gate = set_gate(client, 1), *others = new_gate(other);
    hl_permit permit = take_one(gate);
    check(is_held(gate, permit) && !is_held(others, permit));
    check(hl_permits_validity_ms(gate, &permit) > 20000);
    check_int(stats_of(client).holds_now, 1);
    expect_ok(give_back(gate, permit));
    check(!is_held(gate, permit));
    check_int(hl_permits_validity_ms(gate, &permit), 0);
    expect_outcome(give_back(gate, permit), HL_ENOENT);
    expect_counts(gate, 1, 0);
    hl_stats stats = stats_of(client);
    check(stats.holds_now == 0 && stats.acquires == 1 && stats.releases == 1);
}

Law(permits, gives_one_owner_as_many_as_it_asks_for)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 3);
    hl_permit permit[3];
    for (int i = 0; i < 3; i++)
        permit[i] = take_one(gate);
    expect_ok(give_back(gate, permit[1]));
    check(is_held(gate, permit[0]) && !is_held(gate, permit[1]) && is_held(gate, permit[2]));
    expect_counts(gate, 1, 2);
}

static void release_elsewhere(void *arg)
{
    struct taking *taking = arg;
    taking->code = hl_permits_release(taking->gate, &taking->permits[0], &taking->err);
}

Law(permits, takes_a_permit_back_from_any_thread)
{
    hl_permits *gate = set_gate(open_client(NULL), 1);
    struct taking taking = {.actor = actor_start(), .gate = gate, .permits = {take_one(gate)}};
    actor_do(taking.actor, release_elsewhere, &taking);
    expect_outcome(taking.code, HL_OK);
    check(!is_held(gate, taking.permits[0]));
    expect_counts(gate, 1, 0);
}

Law(permits, wakes_a_waiter_of_another_process_by_a_release)
{
    hl_permits *gate = set_gate(open_client(NULL), 1);
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    struct taking taking;
    hl_permit permit = take_one(gate);
    taking_begin(&taking, new_gate(waiting), 1, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_listening(1);
    expect_waiters(waiting, 1);
    expect_ok(give_back(gate, permit));
    expect_outcome(taking_end(&taking), HL_OK);
    check(actor_took_ms(taking.actor) < slow_ms(10000));
    expect_ok(give_back(gate, taking.permits[0]));
}

enum { ALL_WAITERS = 6 };

static struct taking *find_done(struct taking *taking)
{
    for (int i = 0; i < ALL_WAITERS; i++)
        if (taking[i].gate && actor_is_done(taking[i].actor))
            return &taking[i];
    return NULL;
}

static bool is_one_done(void *taking)
{
    return find_done(taking) != NULL;
}

Law(permits, serves_all_waiters_of_one_process_by_as_many_releases)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(open_client(NULL), 2), *theirs = new_gate(waiting);
    hl_permit first[2] = {take_one(gate), take_one(gate)};
    struct taking taking[ALL_WAITERS];
    for (int i = 0; i < ALL_WAITERS; i++)
        taking_begin(&taking[i], theirs, 1, ACQUIRE(.wait_ms = slow_ms(30000)));
    expect_waiters(waiting, ALL_WAITERS);
    expect_listening(1); /* one subscription, however many wait */
    expect_ok(give_back(gate, first[0]));
    expect_ok(give_back(gate, first[1]));
    for (int left = ALL_WAITERS; left > 0; left--) {
        expect_waiters(waiting, left > 2 ? left - 2 : 0);
        check(wait_until(is_one_done, taking, 5000));
        struct taking *done = find_done(taking);
        expect_outcome(taking_end(done), HL_OK);
        expect_ok(give_back(gate, done->permits[0]));
        done->gate = NULL;
    }
    check(redis_wait_int(server, 2, 5000, "GET gate"));
}

Law(permits, wakes_no_more_waiters_than_there_are_permits_for)
{
    enum { WAITERS = 9 };
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(open_client(NULL), 2), *theirs = new_gate(waiting);
    expect_ok(give_back(gate, take_one(gate))); /* the server knows the scripts */
    hl_permit permit[2] = {take_one(gate), take_one(gate)};
    struct taking taking[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        /* Each has asked a second time, since it listens. */
        int64_t asked = redis_evalsha_calls(server);
        taking_begin(&taking[i], theirs, 1, ACQUIRE(.wait_ms = slow_ms(20000)));
        struct deadline deadline = deadline_of_wait(5000);
        while (redis_evalsha_calls(server) < asked + 2 && !deadline_is_over(deadline))
            deadline_nap();
    }
    expect_waiters(waiting, WAITERS);
    expect_ok(hl_client_ping(waiting, -1, NULL)); /* what was run is answered, too */
    int64_t asked = redis_evalsha_calls(server);
    expect_ok(give_back(gate, permit[0]));
    expect_waiters(waiting, WAITERS - 1);
    check_int(redis_evalsha_calls(server), asked + 2); /* given back, and taken */
    expect_ok(give_back(gate, permit[1]));
    expect_waiters(waiting, WAITERS - 2);
    check_int(redis_evalsha_calls(server), asked + 4);
    expect_ok(hl_permits_add(gate, WAITERS - 2, NULL));
    for (int i = 0; i < WAITERS; i++)
        expect_outcome(taking_end(&taking[i]), HL_OK);
    expect_counts(gate, 0, WAITERS);
}

Law(permits, may_be_waited_for_before_it_is_there)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = new_gate(open_client(NULL));
    struct taking taking;
    expect_counts(gate, 0, 0);
    taking_begin(&taking, new_gate(waiting), 1, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_listening(1);
    expect_waiters(waiting, 1);
    expect_ok(hl_permits_try_set_total(gate, 1, 0, NULL));
    expect_outcome(taking_end(&taking), HL_OK);
    expect_outcome(hl_permits_try_set_total(gate, 5, 0, NULL), HL_EEXIST);
    expect_counts(gate, 0, 1);
}

Law(permits, wakes_waiters_when_permits_are_added)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(open_client(NULL), 0);
    struct taking taking[2];
    for (int i = 0; i < 2; i++)
        taking_begin(&taking[i], new_gate(waiting), 1, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_waiters(waiting, 2);
    expect_listening(1);
    expect_ok(hl_permits_add(gate, 1, NULL));
    expect_waiters(waiting, 1);
    expect_ok(hl_permits_set_total(gate, 2, 0, NULL));
    for (int i = 0; i < 2; i++)
        expect_outcome(taking_end(&taking[i]), HL_OK);
    expect_counts(gate, 0, 2);
}

Law(permits, that_is_made_smaller_than_what_is_out_waits_for_it)
{
    hl_permits *gate = set_gate(open_client(NULL), 3);
    hl_permit permit[3] = {take_one(gate), take_one(gate), take_one(gate)}, none;
    expect_ok(hl_permits_set_total(gate, 1, 0, NULL));
    expect_counts(gate, -2, 3);
    expect_ok(give_back(gate, permit[0]));
    expect_ok(give_back(gate, permit[1]));
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_EBUSY);
    expect_ok(give_back(gate, permit[2]));
    expect_counts(gate, 1, 0);
    expect_ok(hl_permits_add(gate, -1, NULL));
    expect_outcome(hl_permits_try_acquire(gate, &none, NULL), HL_EBUSY);
}

Law(permits, gives_several_at_once_or_none)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 3);
    hl_permit permit[4];
    expect_outcome(hl_permits_acquire_many(gate, 4, ACQUIRE(.wait_ms = HL_NO_WAIT), permit, NULL),
                   HL_EBUSY);
    expect_counts(gate, 3, 0);
    expect_ok(hl_permits_acquire_many(gate, 3, NULL, permit, NULL));
    check_int(stats_of(client).holds_now, 3);
    for (int i = 0; i < 3; i++) {
        check(is_held(gate, permit[i]));
        check(strcmp(permit[i].id, permit[(i + 1) % 3].id) != 0);
    }
    expect_counts(gate, 0, 3);
    expect_ok(give_back(gate, permit[0]));
    check(!is_held(gate, permit[0]) && is_held(gate, permit[1]) && is_held(gate, permit[2]));
    expect_counts(gate, 1, 2);
    expect_ok(give_back(gate, permit[2]));
    expect_ok(give_back(gate, permit[1]));
    expect_counts(gate, 3, 0);
    check_int(stats_of(client).holds_now, 0);
}

Law(permits, gives_a_thousand_at_once)
{
    enum { MANY = HL_PERMITS_MAX_PER_CALL };
    static hl_permit permit[MANY + 1];
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, MANY + 1);
    expect_outcome(hl_permits_acquire_many(gate, MANY + 1, NULL, permit, NULL), HL_EINVAL);
    expect_outcome(hl_permits_acquire_many(gate, 0, NULL, permit, NULL), HL_EINVAL);
    expect_ok(hl_permits_acquire_many(gate, MANY, NULL, permit, NULL));
    expect_counts(gate, 1, MANY);
    check_int(stats_of(client).holds_now, MANY);
    for (int i = 0; i < MANY; i++)
        expect_ok(give_back(gate, permit[i]));
    expect_counts(gate, MANY + 1, 0);
}

Law(permits, several_are_waited_for_until_all_are_there)
{
    hl_client *waiting = open_client(CLIENT(.poll_ms = 20000));
    hl_permits *gate = set_gate(open_client(NULL), 2);
    struct taking taking;
    hl_permit permit[2] = {take_one(gate), take_one(gate)};
    taking_begin(&taking, new_gate(waiting), 2, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_waiters(waiting, 1);
    expect_listening(1);
    expect_ok(give_back(gate, permit[0]));
    expect_counts(gate, 1, 1); /* none is kept for the waiter for two */
    check(!actor_is_done(taking.actor));
    expect_ok(give_back(gate, permit[1]));
    expect_outcome(taking_end(&taking), HL_OK);
    expect_counts(gate, 0, 2);
}

Law(permits, answers_a_wait_that_is_over_and_one_that_is_cancelled)
{
    hl_client *client = open_client(NULL);
    hl_permits *gate = set_gate(client, 1);
    hl_cancel *cancel = new_cancel();
    hl_permit permit = take_one(gate), none = {"untouched"};
    hl_error err = HL_ERROR_INIT;
    struct taking taking;
    expect_outcome(hl_permits_acquire_with(gate, ACQUIRE(.wait_ms = slow_ms(2000)), &none, &err),
                   HL_ETIMEDOUT);
    const hl_lock_info busy = err.busy;
    check(busy.locked && busy.hold_count == 0 && busy.available == 0 && busy.lease_left_ms > 20000);
    check_str(err.text, "acquire 'gate': the wait time is over; too few permits");
    check_str(none.id, "untouched");
    taking_begin(&taking, gate, 1, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_waiters(client, 1);
    hl_cancel_fire(cancel);
    expect_outcome(taking_end(&taking), HL_ECANCELED);
    expect_ok(give_back(gate, permit));
    check(redis_wait_int(server, 1, 5000, "GET gate"));
    expect_counts(gate, 1, 0);
    hl_stats stats = stats_of(client);
    check(stats.timeouts == 1 && stats.cancels == 1 && stats.waiters_now == 0);
}

/* 12 threads of three processes' worth of clients on 3 permits. */
enum { CROWD = 12, CROWD_PERMITS = 3, CROWD_ROUNDS = 60 };
static atomic_int inside, most_inside;

static void crowd_run(void *arg)
{
    struct taking *taking = arg;
    for (int round = 0; round < CROWD_ROUNDS && taking->code == 0; round++) {
        hl_permit permit;
        taking->code = hl_permits_acquire_for(taking->gate, slow_ms(30000), &permit, &taking->err);
        if (taking->code < 0)
            return;
        int now_inside = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
        while (now_inside > most && !atomic_compare_exchange_weak(&most_inside, &most, now_inside))
            ;
        if (round % 3 == 0)
            deadline_nap();
        atomic_fetch_sub(&inside, 1);
        taking->code = hl_permits_release(taking->gate, &permit, &taking->err);
    }
}

Law(permits, is_never_oversubscribed)
{
    struct taking taking[CROWD];
    hl_permits *gate[3];
    for (int i = 0; i < 3; i++)
        gate[i] = set_gate(open_client(CLIENT(.poll_ms = 200)), CROWD_PERMITS);
    for (int i = 0; i < CROWD; i++) {
        taking[i] = (struct taking){.actor = actor_start(), .gate = gate[i % 3]};
        actor_begin(taking[i].actor, crowd_run, &taking[i]);
    }
    for (int i = 0; i < CROWD; i++) {
        actor_await(taking[i].actor);
        check_msg(taking[i].code == 0, "%s", taking[i].err.text);
    }
    check_msg(atomic_load(&most_inside) <= CROWD_PERMITS && atomic_load(&most_inside) > 0, "%d",
              atomic_load(&most_inside));
    check(redis_wait_int(server, CROWD_PERMITS, 5000, "GET gate"));
    check_int(redis_int(server, "EXISTS " IDS), 0);
}

/* Plays a Redisson client: makes an id of its own, adds it, and releases it by its hex text. */
Law(permits, takes_back_a_permit_that_redisson_gave_out)
{
    static const char id[16] = {'\x00', '\xff', ' ', '\n', '\r', 'a', 'b', 'c',
                                '\x80', '\x7f', '0', '1',  '2',  '3', '{', '}'};
    const hl_permit shown = {"00ff200a0d616263807f303132337b7d"};
    hl_permits *gate = set_gate(open_client(NULL), 2);
    int64_t left = 0;
    redis_do(server, "SET gate 1");
    redis_do(server, "ZADD " IDS " 922337203685477 %b", id, sizeof id);
    expect_counts(gate, 1, 1);
    check(!is_held(gate, shown)); /* by this client */
    expect_ok(hl_permits_lease_left(gate, &shown, &left, NULL));
    check_int(left, -1);
    expect_ok(hl_permits_update_lease(gate, &shown, 50000, NULL));
    expect_ok(hl_permits_lease_left(gate, &shown, &left, NULL));
    check(left > 20000 && left <= 50000);
    expect_ok(give_back(gate, shown));
    expect_counts(gate, 2, 0);
    expect_outcome(give_back(gate, shown), HL_ENOENT);
    expect_outcome(hl_permits_update_lease(gate, &shown, 50000, NULL), HL_ENOENT);
    expect_outcome(hl_permits_lease_left(gate, &shown, &left, NULL), HL_ENOENT);
}

Law(permits, takes_back_a_permit_of_another_client_by_its_id)
{
    hl_client *holder = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000)));
    hl_permits *theirs = set_gate(holder, 1), *gate = new_gate(open_client(NULL));
    hl_permit permit = take_one(theirs);
    expect_ok(give_back(gate, permit));
    wait_stat(holder, losses, 1); /* its next renewal tells it */
    check(!is_held(theirs, permit));
    expect_outcome(give_back(theirs, permit), HL_ELOST);
    expect_counts(gate, 1, 0);
}

/* Redisson's waiters let in as many as the message says. */
Law(permits, tells_redisson_how_many_are_available)
{
    hl_permits *gate = set_gate(open_client(NULL), 3);
    hl_permit permit[3];
    expect_ok(hl_permits_acquire_many(gate, 3, NULL, permit, NULL));
    redisContext *ear = ear_open(CHANNEL);
    for (int i = 0; i < 3; i++) {
        char expected[8];
        snprintf(expected, sizeof expected, "%d", i + 1);
        expect_ok(give_back(gate, permit[i]));
        ear_check(ear, CHANNEL, expected);
    }
    redisFree(ear);
}
