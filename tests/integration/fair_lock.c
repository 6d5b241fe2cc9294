/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fair lock serves its waiters in the order of arrival. The laws of every lock are tested with
 * fair handles too, beside the other kinds. */

#include "fair_kit.h"
#include "support/kinds.h"
#include "support/recorder.h"

enum { LINE = 6 };

FairLaw(fair_lock, is_a_lock_as_any_other_when_no_client_waits)
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

FairLaw(fair_lock, nests_without_queueing_behind_waiters)
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

FairLaw(fair_lock, refuses_a_nested_acquire_if_its_options_say_so)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *flat = NULL;
    begin();
    options.flags = HL_LOCK_NON_REENTRANT;
    expect_ok(fair_lock_new(holder, "stock", &options, &flat, NULL));
    expect_outcome(hl_lock_acquire(flat, NULL), HL_EDEADLK);
    expect_held_by(holder, held, 1);
    hl_lock_free(flat);
}

FairLaw(fair_lock, is_not_retained)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *none = NULL;
    hl_error err = HL_ERROR_INIT;
    begin();
    options.retain_ms = 10;
    expect_outcome(fair_lock_new(holder, "stock", &options, &none, &err), HL_EINVAL);
    check(none == NULL && strstr(err.text, "retained") != NULL);
    expect_outcome(fair_lock_new(NULL, "stock", NULL, &none, NULL), HL_EINVAL);
    expect_outcome(fair_lock_new(holder, NULL, NULL, &none, NULL), HL_EINVAL);
    expect_outcome(fair_lock_new(holder, "stock", NULL, NULL, NULL), HL_EINVAL);
    expect_outcome(fair_lock_new(holder, "hirelock_fair:{stock}", NULL, &none, NULL), HL_EINVAL);
}

FairLaw(fair_lock, posts_its_release_to_the_next)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *posted = NULL;
    begin();
    options.flags = HL_LOCK_ASYNC_RELEASE;
    expect_ok(fair_lock_new(holder, "stock", &options, &posted, NULL));
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

FairLaw(fair_try, gets_nothing_while_it_is_another_waiters_turn)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    begin();
    static const char head[] = "0a1b2c3d-0000-4000-8000-1234567890ab:71"; /* takes its time */
    redisContext *ear = fair_listens(head);
    redis_do(server, "ZADD " FAIR_ENDS " 9e12 %s", head);
    redis_do(server, "RPUSH " FAIR_QUEUE " %s", head);
    expect_ok(hl_lock_release(held, NULL));
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    info = err.busy;
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
    struct deadline deadline =
        deadline_of_wait(5000); /* hirelock:<uuid> of each client, and one more */
    while (strstr(redis_str(server, "PUBSUB CHANNELS " FAIR_CHANNEL "*"), " ") != NULL) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
    expect_ok(actor_release(first, lock, NULL));
    expect_turn(second, lock);
    deadline = deadline_of_wait(5000);
    while (strcmp(redis_str(server, "PUBSUB CHANNELS " FAIR_CHANNEL "*"), "") != 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
}

/* As the pages on locks and on fair locks have it. */
static void least_up(void)
{
    setenv("HL_TEST_HANDLE", "fair", 1);
    server_up_with(&(struct redis_options){
        .config =
            "user locker on >pw resetkeys ~lock:* ~redisson_lock_queue:{lock:* "
            "~redisson_lock_timeout:{lock:* ~hirelock_fair:{lock:* "
            "resetchannels &redisson_lock__channel:{lock:* &hirelock:* "
            "-@all +evalsha +script|load +hget +hset +hincrby +hrandfield +del +pttl +pexpire "
            "+time +zadd +zrem +publish +subscribe +unsubscribe +pubsub|numsub "
            "+exists +lindex +lrange +lrem +rpush +zscore +zrangebyscore +hmget +hdel "
            "+ping +info +role +select +client|setname +client|id +client|kill +pexpireat"});
}

/* Dead heads and all. */
FairLawWith(fair_lock, needs_to_be_allowed_no_more_than_its_page_says, least_up, fair_check_gone)
{
    const hl_client_options *options =
        CLIENT(.username = "locker", .password = "pw", .watchdog_timeout_ms = slow_ms(6000));
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
    wait_stat(one, renewals, 1);
    check(
        redis_wait_int(server, 3, 10000, "LLEN %s", queue)); /* the dead one is passed over then */
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
            check_msg(!waits_long && (code == HL_ETIMEDOUT || code == HL_EBUSY), "%s",
                      hl_err_name(code));
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
FairLaw(fair_queue, is_empty_when_many_waiters_have_come_and_gone)
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

/* It finds a field of its own client's that its name does not know. */
FairLaw(fair_lock, is_left_alone_by_a_plain_handle_of_its_own_client)
{
    hl_client *client = open_client(NULL);
    hl_lock *fair = new_lock(client, "stock"), *plain = NULL;
    struct actor *other = actor_start();
    check_int(hl_lock_new(client, "stock", &plain, NULL), 0);
    expect_ok(hl_lock_acquire(fair, NULL));
    for (int i = 0; i < 20; i++) {
        expect_outcome(actor_acquire(other, plain, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
        expect_ok(hl_client_ping(client, -1, NULL));
        check_int(redis_int(server, "EXISTS stock"), 1);
    }
    check(hl_lock_is_held(fair, NULL));
    expect_ok(hl_lock_release(fair, NULL));
    actor_stop(other);
    hl_lock_free(plain);
}
