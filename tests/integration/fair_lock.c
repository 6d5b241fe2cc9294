/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock: who waits is served in the order of arrival, and leaves no gap when it goes. What
 * is true of any lock is tested with fair handles where it is tested with others. */

#include <poll.h>

#include "fair_kit.h"
#include "support/recorder.h"

enum { LINE = 6 };

FairLaw(fair_lock, is_a_lock_as_any_other_when_nobody_waits)
{
    begin();
    check_int(redis_int(server, "DBSIZE"), 1);
    expect_held_by(holder, held, 1);
    expect_ok(hl_lock_release(held, NULL));
    check_int(redis_int(server, "DBSIZE"), 0);
}

FairLaw(fair_lock, serves_the_waiters_of_a_process_in_the_order_of_arrival)
{
    begin();
    struct actor *actor[LINE];
    for (int i = 0; i < LINE; i++)
        actor[i] = wait_as(i + 1, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < LINE; i++) {
        expect_ok(actor_end(actor[i]));
        expect_queued(LINE - 1 - i);
        for (int later = i + 1; later < LINE; later++)
            check(!actor_is_done(actor[later]));
        expect_ok(actor_release(actor[i], lock, NULL));
    }
}

FairLaw(fair_lock, serves_waiters_of_several_processes_in_the_order_of_their_arrival)
{
    struct fair_waiter one, two;
    fair_waiter_start(&one, 10000);
    fair_waiter_start(&two, 10000);
    begin();
    fair_waiter_queue(&one, 1);
    struct actor *ours = wait_as(2, lock, -1);
    fair_waiter_queue(&two, 3);
    struct actor *last = wait_as(4, held, -1);
    expect_ok(hl_lock_release(held, NULL));
    fair_waiter_expect_turn(&one);
    check(!actor_is_done(ours) && !actor_is_done(last));
    expect_queued(3);
    fair_waiter_end(&one);
    expect_ok(actor_end(ours));
    check(!actor_is_done(last));
    expect_queued(2);
    expect_ok(actor_release(ours, lock, NULL));
    fair_waiter_expect_turn(&two);
    check(!actor_is_done(last));
    expect_queued(1);
    fair_waiter_end(&two);
    expect_turn(last, held);
}

FairLaw(fair_lock, serves_async_waiters_in_the_order_of_their_calls)
{
    begin();
    struct recorder told[LINE];
    hl_owner *owner[LINE];
    for (int i = 0; i < LINE; i++) {
        told[i] = (struct recorder)RECORDER_INIT;
        owner[i] = new_owner(waiter);
        expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = owner[i]),
                                        record_done, &told[i]));
        expect_queued(i + 1);
    }
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < LINE; i++) {
        expect_story(&told[i], "done HL_OK");
        check(hl_lock_is_held(lock, owner[i]));
        expect_ok(hl_lock_release_as(lock, owner[i], NULL));
    }
}

FairLaw(fair_lock, nests_without_queueing_behind_those_who_wait)
{
    begin();
    struct actor *actor = wait_as(1, lock, -1);
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_try_acquire(held, NULL));
    expect_held_by(holder, held, 3);
    for (int i = 0; i < 3; i++)
        expect_ok(hl_lock_release(held, NULL));
    expect_turn(actor, lock);
}

FairLaw(fair_lock, that_does_not_nest_says_so)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *flat = NULL;
    begin();
    options.flags = HL_LOCK_NON_REENTRANT;
    expect_ok(hl_fair_lock_new(holder, "stock", &options, &flat, NULL));
    expect_outcome(hl_lock_acquire(flat, NULL), HL_EDEADLK);
    expect_held_by(holder, held, 1);
    hl_lock_free(flat);
}

FairLaw(fair_lock, does_not_linger)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *none = NULL;
    hl_error err = HL_ERROR_INIT;
    begin();
    options.linger_ms = 10;
    expect_outcome(hl_fair_lock_new(holder, "stock", &options, &none, &err), HL_EINVAL);
    check(none == NULL && strstr(err.text, "linger") != NULL);
    expect_outcome(hl_fair_lock_new(NULL, "stock", NULL, &none, NULL), HL_EINVAL);
    expect_outcome(hl_fair_lock_new(holder, NULL, NULL, &none, NULL), HL_EINVAL);
    expect_outcome(hl_fair_lock_new(holder, "stock", NULL, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_fair_lock_new(holder, "hirelock_fair:{stock}", NULL, &none, NULL), HL_EINVAL);
}

FairLaw(fair_lock, posts_its_release_to_the_next)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *posted = NULL;
    begin();
    options.flags = HL_LOCK_POSTED_RELEASE;
    expect_ok(hl_fair_lock_new(holder, "stock", &options, &posted, NULL));
    struct actor *actor = wait_as(1, lock, -1);
    expect_ok(hl_lock_release(posted, NULL));
    struct actor *behind = actor_start();
    actor_begin_acquire(behind, posted, ACQUIRE(.wait_ms = -1));
    expect_turn(actor, lock);
    expect_ok(actor_end(behind));
    expect_ok(actor_release(behind, posted, NULL));
    expect_free(held);
    hl_lock_free(posted);
}

FairLaw(fair_try, gets_nothing_while_it_is_another_ones_turn)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    begin();
    static const char head[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71"; /* takes its time */
    redisContext *ear = redis_link_connect(redis_server_socket(server));
    freeReplyObject(redisCommand(ear, "SUBSCRIBE " FAIR_CHANNEL "%s", head));
    redis_do(server, "ZADD " FAIR_ENDS " 9e12 %s", head);
    redis_do(server, "RPUSH " FAIR_QUEUE " %s", head);
    expect_ok(hl_lock_release(held, NULL));
    expect_outcome(
        hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = HL_NO_WAIT, .ret_busy = &info), &err),
        HL_EBUSY);
    check_str(info.owner, head);
    check_int(info.hold_count, 0);
    expect_queued(1);
    redisFree(ear);
    redis_do(server, "DEL " FAIR_QUEUE " " FAIR_ENDS " " FAIR_SIGNS);
    expect_ok(hl_lock_try_acquire(lock, NULL));
}

FairLaw(fair_try, does_not_queue)
{
    begin();
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    check_int(redis_int(server, "DBSIZE"), 1);
}

FairLaw(fair_wait, that_is_over_by_time_leaves_no_gap)
{
    begin();
    struct actor *first = wait_as(1, lock, 400), *second = wait_as(2, lock, -1);
    struct actor *third = wait_as(3, lock, 400), *fourth = wait_as(4, lock, -1);
    expect_outcome(actor_end(first), HL_ETIMEDOUT);
    expect_outcome(actor_end(third), HL_ETIMEDOUT);
    expect_queued(2);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(second));
    check(!actor_is_done(fourth));
    expect_ok(actor_release(second, lock, NULL));
    expect_turn(fourth, lock);
}

FairLaw(fair_wait, that_is_cancelled_leaves_no_gap)
{
    begin();
    hl_cancel *cancel = new_cancel();
    struct actor *first = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_queued(1);
    struct actor *second = wait_as(2, lock, -1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(first), HL_ECANCELED);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(second, lock);
}

/* Its place was the head's, and the lock was free for it a moment ago. */
FairLaw(fair_wait, that_is_given_up_when_its_turn_comes_passes_it_on)
{
    begin();
    for (int i = 0; i < 30; i++) {
        hl_cancel *cancel = new_cancel();
        struct actor *first = actor_start();
        actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .cancel = cancel));
        expect_queued(1);
        struct actor *second = wait_as(2, lock, -1);
        expect_ok(hl_lock_release(held, NULL));
        hl_cancel_fire(cancel);
        if (actor_end(first) == HL_OK)
            expect_ok(actor_release(first, lock, NULL));
        expect_turn(second, lock);
        actor_stop(first);
        actor_stop(second);
        expect_ok(hl_lock_acquire(held, NULL));
    }
}

FairLaw(fair_wait, of_a_client_that_is_closed_leaves_the_queue)
{
    begin();
    hl_client *closing = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *its = new_lock(closing, "stock");
    struct actor *first = wait_as(1, its, -1), *second = wait_as(2, lock, -1);
    close_client(closing);
    expect_outcome(actor_end(first), HL_ECANCELED);
    expect_queued(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(second, lock);
}

FairLaw(fair_wait, ends_by_the_poll_when_no_message_comes_and_in_order)
{
    begin();
    hl_client *polling = open_client(CLIENT(.poll_ms = 100));
    hl_lock *polled = new_lock(polling, "stock");
    struct actor *first = wait_as(1, polled, -1), *second = wait_as(2, polled, -1);
    redis_do(server, "DEL stock"); /* nothing is published */
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    redis_do(server, "DEL stock");
    expect_ok(actor_end(second));
    expect_outcome(actor_release(first, polled, NULL), HL_ELOST);
    expect_ok(actor_release(second, polled, NULL));
}

FairLaw(fair_wait, ends_with_the_holders_expiry_which_nobody_announces)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.lease_ms = slow_ms(300)), NULL));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_acquire(lock, NULL));
    check(now_ms() - before_ms < slow_ms(5000)); /* the poll would take 10 s */
}

FairLaw(fair_wait, goes_on_while_a_lock_rests)
{
    begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.min_hold_ms = slow_ms(300)), NULL));
    struct actor *actor = wait_as(1, lock, -1);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(actor, lock);
    check(actor_took_ms(actor) >= 0);
}

FairLaw(fair_wait, ends_with_a_forced_release_for_the_first_alone)
{
    begin();
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, -1);
    expect_ok(hl_lock_force_release(lock, NULL));
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_outcome(hl_lock_release(held, NULL), HL_ELOST);
    expect_ok(actor_release(first, lock, NULL));
    expect_turn(second, lock);
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOTOWNER);
}

/* In a name of its own, for its field is told to all. */
FairLaw(fair_wait, that_is_told_too_late_begins_anew)
{
    struct recorder told = RECORDER_INIT;
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .poll_ms = 100));
    hl_lock *its = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *owner = new_owner(client);
    hl_cancel *cancel = new_cancel();
    struct pollfd look = {.fd = hl_client_fd(client), .events = POLLIN};
    expect_ok(hl_lock_acquire_async(
        its, ACQUIRE(.wait_ms = -1, .lease_ms = 60, .owner = owner, .cancel = cancel), record_done,
        &told));
    check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock")); /* the caller sleeps past the lease */
    expect_ok(hl_lock_acquire(rivals, NULL));
    hl_client_dispatch(client);
    expect_queued(1);
    check_int(recorder_count(&told), 0);
    hl_cancel_fire(cancel); /* the same call still */
    while (recorder_count(&told) == 0) {
        check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(client);
    }
    expect_story(&told, "done HL_ECANCELED");
    expect_queued(0);
}

FairLaw(fair_wait, of_one_owner_waits_once)
{
    begin();
    hl_owner *owner = new_owner(waiter);
    struct actor *first = actor_start(), *second = actor_start();
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = -1, .owner = owner));
    expect_queued(1);
    expect_outcome(actor_acquire(second, lock, ACQUIRE(.wait_ms = -1, .owner = owner)), HL_EINVAL);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
}

FairLaw(fair_wait, is_counted)
{
    begin();
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, 300);
    expect_waiters(waiter, 2);
    expect_outcome(actor_end(second), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_turn(first, lock);
    hl_stats stats = stats_of(waiter);
    check_int(stats.waiters_now, 0);
    check_int(stats.timeouts, 1);
    check_int(stats.acquires, 1);
    check_int(stats.releases, 1);
    check_int(stats.holds_now, 0);
}

FairLaw(fair_queue, of_a_name_with_braces_and_a_prefix_is_where_redisson_looks)
{
    hl_client *client = open_client(CLIENT(.name_prefix = "app:"));
    hl_lock *one = new_lock(client, "{t}:stock"), *two = new_lock(client, "{t}:stock");
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire(one, NULL));
    actor_begin_acquire(actor, two, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "LLEN redisson_lock_queue:app:{t}:stock"));
    check_int(redis_int(server, "ZCARD redisson_lock_timeout:app:{t}:stock"), 1);
    char channel[128];
    snprintf(channel, sizeof channel, "redisson_lock__channel:app:{t}:stock:%s",
             redis_str(server, "LINDEX redisson_lock_queue:app:{t}:stock 0"));
    check(redis_wait_subscribers(server, channel, 1, 5000));
    expect_ok(hl_lock_release(one, NULL));
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, two, NULL));
}

FairLaw(fair_queue, has_one_subscription_for_each_waiter_and_none_for_a_holder)
{
    begin();
    struct actor *first = wait_as(1, lock, -1), *second = wait_as(2, lock, -1);
    check_int(redis_int(server, "PUBSUB NUMPAT"), 0);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    expect_listens(queued(0));
    struct deadline deadline = deadline_in(5000); /* hirelock:<uuid> of each client, and one more */
    while (strstr(redis_str(server, "PUBSUB CHANNELS " FAIR_CHANNEL "*"), " ") != NULL) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    expect_ok(actor_release(first, lock, NULL));
    expect_turn(second, lock);
    deadline = deadline_in(5000);
    while (strcmp(redis_str(server, "PUBSUB CHANNELS " FAIR_CHANNEL "*"), "") != 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
}

/* As the pages on locks and on fair locks have it. */
static void least_up(void)
{
    setenv("HL_TEST_HANDLE", "fair", 1);
    server = redis_server_start(&(struct redis_options){
        .config = "user locker on >pw resetkeys ~lock:* ~redisson_lock_queue:{lock:* "
                  "~redisson_lock_timeout:{lock:* ~hirelock_fair:{lock:* "
                  "resetchannels &redisson_lock__channel:{lock:* &hirelock:* "
                  "-@all +evalsha +script|load +hget +hset +hincrby +hgetall +del +pttl +pexpire "
                  "+time +zadd +zrem +publish +subscribe +unsubscribe +pubsub|numsub "
                  "+exists +lindex +lrange +lrem +rpush +zscore +zrangebyscore +zrevrangebyscore "
                  "+hmget +hdel "
                  "+ping +info +role +select +client|setname +client|id +client|kill +pexpireat"});
}

/* Dead heads and all. */
FairLawWith(fair_lock, needs_to_be_allowed_no_more_than_its_page_says, least_up, fair_check_gone)
{
    const hl_client_options *options =
        CLIENT(.username = "locker", .password = "pw", .poll_ms = 200, .watchdog_timeout_ms = 900);
    hl_client *one = open_client(options), *two = open_client(options);
    hl_lock *mine = new_lock(one, "lock:n"), *others = new_lock(two, "lock:n");
    static const char queue[] = "redisson_lock_queue:{lock:n}";
    struct actor *first = actor_start(), *second = actor_start(), *third = actor_start();
    expect_ok(hl_lock_acquire(mine, NULL));
    redis_do(server, "ZADD redisson_lock_timeout:{lock:n} 9e12 dead:1");
    redis_do(server, "RPUSH %s dead:1", queue);
    actor_begin_acquire(first, others, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 2, 5000, "LLEN %s", queue));
    actor_begin_acquire(second, others, ACQUIRE(.wait_ms = 300));
    actor_begin_acquire(third, mine, ACQUIRE(.wait_ms = -1));
    expect_outcome(actor_end(second), HL_ETIMEDOUT);
    check(redis_wait_int(server, 2, 10000, "LLEN %s", queue)); /* without the dead one */
    expect_ok(hl_lock_release(mine, NULL));
    expect_ok(actor_end(first));
    expect_ok(hl_lock_force_release(mine, NULL));
    expect_outcome(actor_release(first, others, NULL), HL_ELOST);
    expect_ok(actor_end(third));
    expect_ok(actor_release(third, mine, NULL));
    check_str(redis_str(server, "ACL LOG"), "");
}

struct worker {
    hl_lock *lock;
    int *stock, rounds;
};

static void work(void *arg)
{
    const struct worker *worker = arg;
    for (int i = 0; i < worker->rounds; i++) {
        bool waits_long = i % 3 != 0;
        int code = hl_lock_acquire_for(worker->lock, waits_long ? -1 : i % 5, NULL);
        if (code != HL_OK) {
            /* or it was over before there was any answer */
            check_msg(!waits_long && (code == HL_ETIMEDOUT || code == HL_EBUSY || code == HL_ECONN),
                      "%s", hl_err_name(code));
            continue;
        }
        int before = *(volatile int *)worker->stock;
        sched_yield();
        *(volatile int *)worker->stock = before + 1;
        expect_ok(hl_lock_release(worker->lock, NULL));
        if (waits_long)
            continue;
        hl_lock_acquire_for(worker->lock, 1, NULL) == HL_OK
            ? expect_ok(hl_lock_release(worker->lock, NULL))
            : (void)0;
    }
}

/* Waits of all lengths, of which many are given up just then; and the queue is empty at the end. */
FairLaw(fair_queue, is_never_left_by_those_who_come_and_go)
{
    enum { CLIENTS = 3, THREADS = 3, ROUNDS = 60 };
    struct worker worker[CLIENTS];
    struct actor *actor[CLIENTS][THREADS];
    int stock = 0;
    uint64_t acquires = 0;
    hl_client *client[CLIENTS];
    for (int c = 0; c < CLIENTS; c++) {
        client[c] = open_client(CLIENT(.poll_ms = 200));
        worker[c] = (struct worker){new_lock(client[c], "stock"), &stock, ROUNDS};
        for (int t = 0; t < THREADS; t++)
            actor_begin(actor[c][t] = actor_start(), work, &worker[c]);
    }
    for (int c = 0; c < CLIENTS; c++)
        for (int t = 0; t < THREADS; t++)
            actor_await(actor[c][t]);
    for (int c = 0; c < CLIENTS; c++)
        acquires += stats_of(client[c]).acquires;
    check(stock >= CLIENTS * THREADS * ROUNDS * 2 / 3);
    check(acquires >= (uint64_t)stock);
    expect_queued(0);
}
