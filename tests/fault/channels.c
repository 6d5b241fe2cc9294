/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Users without channels, as Redis 7 makes them unless told otherwise, and servers without
 * SUBSCRIBE: no message comes. Waiters take turns by their polls all the same, or are told that
 * there is no order. */

#include "acl_kit.h"
#include "support/kinds.h"
#include "support/semaphore_support.h"
#include "support/topologies.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POLL_MS = 60, TURNS_EACH = 4, CLIENTS_MOST = 10 };

static void up(void)
{
    acl_up("user locker on >pw ~* +@all resetchannels");
}

#define DeafTest(name) Test(channels, name, .init = up, .fini = server_down)

static hl_client *deaf_client_that_polls(int64_t poll_ms)
{
    hl_client_options options = acl_options(NULL);
    options.poll_ms = poll_ms;
    hl_client *client = open_client(&options);
    wait_stat(client, channels_denied, 1); /* of grants, for the client as a whole */
    return client;
}

static hl_client *deaf_client(void)
{
    return deaf_client_that_polls(slow_ms(POLL_MS));
}

static hl_lock *lock_of(hl_client *client, hl_lock_kind kind)
{
    hl_lock *lock = NULL;
    expect_ok(lock_new_of(client, LOCK_NAMED(kind, "stock"), NULL, &lock, NULL));
    return lock;
}

/* --- turns --- */

static struct turns {
    pthread_mutex_t mutex;
    int wanted, done;          /* in all */
    int last[CLIENTS_MOST];    /* the turn before its next one; -1: none */
    int longest[CLIENTS_MOST]; /* turns of others between two of its own */
} turns;

/* Inside. True while turns are left. */
static bool turns_take(int number)
{
    pthread_mutex_lock(&turns.mutex);
    int others = turns.done - turns.last[number] - 1;
    if (others > turns.longest[number])
        turns.longest[number] = others;
    turns.last[number] = turns.done++;
    bool goes_on = turns.done < turns.wanted;
    pthread_mutex_unlock(&turns.mutex);
    return goes_on;
}

/* What is taken in turns, and how: one of the handles. */
struct taker {
    hl_lock *lock;
    hl_permits *permits;
    hl_semaphore *semaphore;
    hl_permit permit;
    int number;
};

typedef void (*taker_open)(struct taker *taker, hl_client *client);

static void taker_take(struct taker *taker, int64_t wait_ms, int code)
{
    if (taker->lock)
        expect_outcome(hl_lock_acquire_for(taker->lock, wait_ms, NULL), code);
    else if (taker->permits)
        expect_outcome(hl_permits_acquire_for(taker->permits, wait_ms, &taker->permit, NULL), code);
    else
        expect_outcome(hl_semaphore_acquire_for(taker->semaphore, 1, wait_ms, NULL), code);
}

static void taker_give(struct taker *taker)
{
    if (taker->lock)
        expect_ok(hl_lock_release(taker->lock, NULL));
    else if (taker->permits)
        expect_ok(hl_permits_release(taker->permits, &taker->permit, NULL));
    else
        expect_ok(hl_semaphore_release(taker->semaphore, 1, NULL));
}

static void taker_close(struct taker *taker)
{
    hl_lock_free(taker->lock);
    hl_permits_free(taker->permits);
    hl_semaphore_free(taker->semaphore);
    *taker = (struct taker){0};
}

static void open_plain(struct taker *taker, hl_client *client)
{
    taker->lock = lock_of(client, HL_LOCK_REENTRANT);
}

static void open_fenced(struct taker *taker, hl_client *client)
{
    taker->lock = lock_of(client, HL_LOCK_FENCED);
}

static void open_write(struct taker *taker, hl_client *client)
{
    taker->lock = lock_of(client, HL_LOCK_WRITE);
}

static void open_multi(struct taker *taker, hl_client *client)
{
    hl_lock *members[2] = {lock_of(client, HL_LOCK_REENTRANT), NULL};
    expect_ok(lock_new_with(client, "yard", NULL, &members[1], NULL));
    expect_ok(hl_multi_lock_new(members, 2, NULL, &taker->lock, NULL));
    hl_lock_free(members[0]);
    hl_lock_free(members[1]);
}

static void open_permits(struct taker *taker, hl_client *client)
{
    expect_ok(hl_permits_new(client, "stock", &taker->permits, NULL));
    redis_do(server, "SET stock 1 NX");
}

static void open_semaphore(struct taker *taker, hl_client *client)
{
    expect_ok(hl_semaphore_new(client, "stock", &taker->semaphore, NULL));
    redis_do(server, "SET stock 1 NX");
}

static void take_turns(void *arg)
{
    struct taker *taker = arg;
    bool goes_on = true;
    while (goes_on) {
        taker_take(taker, slow_ms(60000), HL_OK);
        goes_on = turns_take(taker->number);
        taker_give(taker);
    }
}

static bool queue_has(int waiters)
{
    return redis_wait_int(server, waiters, slow_ms(10000), "ZCOUNT hirelock_queue:{stock} 0 4e15");
}

/* The first so many of them hear, but not what the others may not publish. All are in the queue
 * before the first hand-over: from then on the order is the queue's. */
static void check_turns_beside(taker_open open, int clients, int hearing)
{
    static struct taker takers[CLIENTS_MOST], first;
    struct actor *actors[CLIENTS_MOST];
    first = (struct taker){0};
    open(&first, deaf_client());
    turns = (struct turns){.mutex = PTHREAD_MUTEX_INITIALIZER, .wanted = clients * TURNS_EACH};
    taker_take(&first, HL_WAIT_FOREVER, HL_OK);
    for (int i = clients - 1; i >= 0; i--) {
        turns.last[i] = -1;
        takers[i] = (struct taker){.number = i};
        open(&takers[i],
             i < hearing ? open_client(CLIENT(.poll_ms = slow_ms(POLL_MS))) : deaf_client());
        actor_begin(actors[i] = actor_start(), take_turns, &takers[i]);
        check(queue_has(clients - i));
    }
    taker_give(&first);
    for (int i = 0; i < clients; i++)
        actor_await(actors[i]);
    for (int i = 0; i < clients; i++)
        check_msg(turns.longest[i] <= 3 * clients, "%d turns of others", turns.longest[i]);
    for (int i = 0; i < clients; i++)
        taker_close(&takers[i]);
    taker_close(&first);
    check(queue_has(0));
}

static void check_turns(taker_open open, int clients)
{
    check_turns_beside(open, clients, 0);
}

DeafTest(three_clients_take_turns)
{
    check_turns(open_plain, 3);
}

DeafTest(ten_clients_take_turns)
{
    check_turns(open_plain, 10);
}

DeafTest(three_clients_take_turns_with_a_fenced_lock)
{
    check_turns(open_fenced, 3);
}

DeafTest(ten_clients_take_turns_with_a_fenced_lock)
{
    check_turns(open_fenced, 10);
}

DeafTest(three_clients_take_turns_with_a_write_lock)
{
    check_turns(open_write, 3);
}

DeafTest(ten_clients_take_turns_with_a_write_lock)
{
    check_turns(open_write, 10);
}

DeafTest(three_clients_take_turns_with_a_permit)
{
    check_turns(open_permits, 3);
}

DeafTest(ten_clients_take_turns_with_a_permit)
{
    check_turns(open_permits, 10);
}

DeafTest(three_clients_take_turns_with_a_semaphore)
{
    check_turns(open_semaphore, 3);
}

DeafTest(ten_clients_take_turns_with_a_semaphore)
{
    check_turns(open_semaphore, 10);
}

DeafTest(three_clients_take_turns_with_a_multi_lock)
{
    check_turns(open_multi, 3);
}

DeafTest(ten_clients_take_turns_with_a_multi_lock)
{
    check_turns(open_multi, 10);
}

/* Many read at once: all but the first client, while that one asks to write. */
static void open_read_or_write(struct taker *taker, hl_client *client)
{
    taker->lock = lock_of(client, taker->number == 0 ? HL_LOCK_WRITE : HL_LOCK_READ);
}

DeafTest(a_writer_has_its_turn_among_readers)
{
    check_turns(open_read_or_write, 3);
}

DeafTest(who_hears_takes_turns_with_who_does_not_at_a_write_lock)
{
    check_turns_beside(open_write, 3, 2);
}

DeafTest(one_who_hears_takes_turns_with_one_who_does_not)
{
    check_turns_beside(open_write, 2, 1);
}

DeafTest(who_hears_takes_turns_with_who_does_not_at_a_permit)
{
    check_turns_beside(open_permits, 3, 2);
}

DeafTest(who_hears_takes_turns_with_who_does_not_at_a_semaphore)
{
    check_turns_beside(open_semaphore, 3, 2);
}

/* A server without SUBSCRIBE, or a proxy. */
static void up_renamed(void)
{
    server_up_with(&(struct redis_options){.config = "rename-command SUBSCRIBE \"\"\n"
                                                     "user locker on >pw ~* &* +@all"});
}

Test(channels, clients_take_turns_at_a_server_without_subscribe, .init = up_renamed,
     .fini = server_down)
{
    check_turns(open_plain, 3);
}

/* Its sign of life would stand for long. */
static void check_line_is_left(taker_open open)
{
    struct taker held = {0}, taker = {0};
    open(&held, deaf_client());
    open(&taker, deaf_client_that_polls(slow_ms(60000)));
    taker_take(&held, HL_WAIT_FOREVER, HL_OK);
    for (int i = 0; i < 2; i++) {
        taker_take(&taker, slow_ms(200), HL_ETIMEDOUT);
        check(queue_has(0));
    }
    taker_give(&held);
    taker_take(&held, HL_NO_WAIT, HL_OK);
    taker_give(&held);
    taker_close(&held);
    taker_close(&taker);
}

DeafTest(a_wait_that_is_over_leaves_the_line)
{
    check_line_is_left(open_write);
    redis_do(server, "DEL stock");
    check_line_is_left(open_permits);
    redis_do(server, "DEL stock {stock}:timeout");
    check_line_is_left(open_semaphore);
}

DeafTest(all_who_await_a_latch_are_served)
{
    hl_client *opener = open_client(NULL);
    hl_latch *latch = new_latch(opener, "gate");
    static struct wait_call calls[3];
    struct actor *actors[3];
    expect_ok(hl_latch_try_set_count(latch, 1, NULL));
    for (int i = 0; i < 3; i++) {
        hl_client *client = deaf_client();
        begin_await(actors[i] = actor_start(), &calls[i], new_latch(client, "gate"));
        wait_stat(client, channels_denied, 2);
    }
    expect_ok(hl_latch_count_down(latch, NULL));
    for (int i = 0; i < 3; i++)
        expect_ok(end_call(actors[i], &calls[i]));
}

/* --- beside a client that hears --- */

DeafTest(who_hears_waits_in_one_queue_with_who_does_not)
{
    hl_client *hears = open_client(CLIENT(.poll_ms = 60000)), *deaf = deaf_client();
    hl_lock *held = new_lock(hears, "stock"), *lock = new_lock(deaf, "stock");
    hl_client *other = open_client(CLIENT(.poll_ms = slow_ms(POLL_MS)));
    hl_lock *others = new_lock(other, "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    struct actor *first = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCOUNT hirelock_queue:{stock} 0 4e15"));
    struct actor *second = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 2, 5000, "ZCOUNT hirelock_queue:{stock} 0 4e15"));
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(first));
    check(!actor_is_done(second));
    expect_ok(actor_release(first, lock, NULL));
    expect_ok(actor_end(second)); /* by a poll: the other may publish nothing, either */
    expect_ok(actor_release(second, others, NULL));
}

/* --- the fair lock --- */

DeafTest(a_fair_lock_keeps_no_order_without_its_channel_and_says_so)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *held = lock_of(deaf_client(), HL_LOCK_FAIR);
    hl_lock *lock = lock_of(deaf_client(), HL_LOCK_FAIR);
    expect_ok(hl_lock_acquire(held, NULL)); /* free: no order is needed */
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    for (int i = 0; i < 2; i++) {
        expect_outcome(hl_lock_acquire_for(lock, slow_ms(20000), &err), HL_EDENIED);
        check_has(err.text, "no order");
        check(redis_wait_int(server, 0, 5000, "LLEN redisson_lock_queue:{stock}"));
    }
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    hl_lock_free(held);
    hl_lock_free(lock);
}

/* --- what the program and its operator are told --- */

static atomic_int warnings;

static void hear_line(hl_log_level level, const char *line, void *arg)
{
    (void)arg;
    if (level == HL_LOG_WARN && strstr(line, "refuses a subscription (NOPERM"))
        atomic_fetch_add(&warnings, 1);
}

DeafTest(the_log_and_an_event_tell_once_and_the_statistics_count)
{
    static struct events events;
    hl_client_options options = acl_options(&events);
    options.poll_ms = slow_ms(POLL_MS);
    options.on_log = hear_line;
    hl_client *client = open_client(&options), *other = open_client(NULL);
    wait_stat(client, channels_denied, 1);
    for (int i = 0; i < 2; i++) {
        hl_lock *held = new_lock(other, i == 0 ? "stock" : "bay");
        hl_lock *lock = new_lock(client, i == 0 ? "stock" : "bay");
        expect_ok(hl_lock_acquire(held, NULL));
        struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
        wait_stat(client, channels_denied, (uint64_t)i + 2);
        expect_ok(hl_lock_release(held, NULL));
        expect_ok(actor_end(call));
        expect_ok(actor_release(call, lock, NULL));
    }
    close_client(client); /* the lines have been delivered */
    check_int(atomic_load(&warnings), 1);
    check_int(events_told(&events, HL_EVENT_CHANNELS_DENIED), 1);
    check_has(events.reason[HL_EVENT_CHANNELS_DENIED], "NOPERM");
}

/* New rights count from the next connection on. */
DeafTest(a_client_that_may_listen_again_does)
{
    hl_client *client = deaf_client(), *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *held = new_lock(other, "stock");
    redis_do(server, "ACL SETUSER locker &*");
    redis_kill_clients(server, REDIS_NORMAL);
    wait_stat(client, reconnects, 1);
    expect_ok(hl_lock_acquire(held, NULL));
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "hirelock:{stock}", 1, 5000));
    check_int(redis_int(server, "ZCARD hirelock_queue:{stock}"), 1); /* no sign of life beside it */
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(actor_end(call));
    check_int((int)stats_of(client).grants, 1);
    expect_ok(actor_release(call, lock, NULL));
}

/* --- a cluster, where each name has a mailbox of its own --- */

static void up_cluster(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true});
    for (int i = 0; i < cluster_nodes(cluster); i++)
        redis_do(cluster_node(cluster, i), "ACL SETUSER locker on >pw ~* +@all resetchannels");
}

Test(channels, waiters_of_a_cluster_are_granted_their_turns, .init = up_cluster,
     .fini = server_down)
{
    hl_client_options options = acl_options(NULL);
    options.poll_ms = slow_ms(POLL_MS);
    hl_client *holder = open_client_at(cluster_url(cluster), CLIENT(.poll_ms = 60000)),
              *deaf = open_client_at(cluster_url(cluster), &options);
    hl_lock *held = new_lock(holder, "stock"), *lock = new_lock(deaf, "stock");
    expect_ok(hl_lock_acquire(held, NULL));
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
    wait_stat(deaf, channels_denied, 1);
    check(redis_wait_int(server, 2, 5000, "ZCARD hirelock_queue:{stock}")); /* and its sign */
    expect_ok(hl_lock_release(held, NULL));
    check_int(redis_int(server, "HLEN stock"), 1); /* granted, and never free */
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, lock, NULL));
}
