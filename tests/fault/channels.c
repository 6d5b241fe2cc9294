/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Users without channels, as Redis 7 makes them unless told otherwise, and servers without
 * SUBSCRIBE: no message comes. Waiters take turns by their polls all the same, or are told that
 * there is no order. */

#include "acl_kit.h"
#include "support/kinds.h"
#include "support/topologies.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POLL_MS = 200, TURNS_EACH = 8, CLIENTS_MOST = 10 };

static void up(void)
{
    acl_up("user locker on >pw ~* +@all resetchannels");
}

#define DeafTest(name) Test(channels, name, .init = up, .fini = server_down)

static hl_client *deaf_client(struct events *events)
{
    hl_client_options options = acl_options(events);
    options.poll_ms = slow_ms(POLL_MS);
    hl_client *client = open_client(&options);
    wait_stat(client, channels_denied, 1); /* of grants, for the client as a whole */
    return client;
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
    atomic_int inside;
} turns;

struct taker {
    hl_lock *lock;
    int number;
};

/* Inside. True while turns are left. */
static bool turns_take(int number)
{
    pthread_mutex_lock(&turns.mutex);
    check_int(atomic_fetch_add(&turns.inside, 1), 0);
    int others = turns.done - turns.last[number] - 1;
    if (others > turns.longest[number])
        turns.longest[number] = others;
    turns.last[number] = turns.done++;
    bool goes_on = turns.done < turns.wanted;
    atomic_fetch_sub(&turns.inside, 1);
    pthread_mutex_unlock(&turns.mutex);
    return goes_on;
}

static void take_turns(void *arg)
{
    const struct taker *taker = arg;
    bool goes_on = true;
    while (goes_on) {
        expect_ok(hl_lock_acquire(taker->lock, NULL));
        goes_on = turns_take(taker->number);
        expect_ok(hl_lock_release(taker->lock, NULL));
    }
}

/* All are in the queue before the first hand-over: from then on the order is the queue's. */
static void check_turns(hl_lock_kind kind, int clients)
{
    static struct taker takers[CLIENTS_MOST];
    struct actor *actors[CLIENTS_MOST];
    hl_client *first = deaf_client(NULL);
    hl_lock *held = lock_of(first, kind);
    turns = (struct turns){.mutex = PTHREAD_MUTEX_INITIALIZER, .wanted = clients * TURNS_EACH};
    expect_ok(hl_lock_acquire(held, NULL));
    for (int i = 0; i < clients; i++) {
        turns.last[i] = -1;
        takers[i].number = i;
        takers[i].lock = lock_of(deaf_client(NULL), kind);
        actor_begin(actors[i] = actor_start(), take_turns, &takers[i]);
    }
    check(redis_wait_int(server, clients, 20000, "ZCOUNT hirelock_queue:{stock} 0 4e15"));
    expect_ok(hl_lock_release(held, NULL));
    for (int i = 0; i < clients; i++)
        actor_await(actors[i]);
    for (int i = 0; i < clients; i++)
        check_msg(turns.longest[i] <= 3 * clients, "%d turns of others", turns.longest[i]);
    for (int i = 0; i < clients; i++)
        hl_lock_free(takers[i].lock);
    hl_lock_free(held);
}

DeafTest(three_clients_take_turns)
{
    check_turns(HL_LOCK_REENTRANT, 3);
}

DeafTest(ten_clients_take_turns)
{
    check_turns(HL_LOCK_REENTRANT, 10);
}

DeafTest(three_clients_take_turns_with_a_fenced_lock)
{
    check_turns(HL_LOCK_FENCED, 3);
}

DeafTest(ten_clients_take_turns_with_a_fenced_lock)
{
    check_turns(HL_LOCK_FENCED, 10);
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
    check_turns(HL_LOCK_REENTRANT, 3);
}

/* --- beside a client that hears --- */

DeafTest(who_hears_waits_in_one_queue_with_who_does_not)
{
    hl_client *hears = open_client(CLIENT(.poll_ms = 60000)), *deaf = deaf_client(NULL);
    hl_lock *held = new_lock(hears, "stock"), *lock = new_lock(deaf, "stock");
    hl_client *other = open_client(CLIENT(.poll_ms = 60000));
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
    expect_ok(actor_end(second)); /* by a message: it does not poll */
    expect_ok(actor_release(second, others, NULL));
}

/* --- the fair lock --- */

DeafTest(a_fair_lock_keeps_no_order_without_its_channel_and_says_so)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *held = lock_of(deaf_client(NULL), HL_LOCK_FAIR);
    hl_lock *lock = lock_of(deaf_client(NULL), HL_LOCK_FAIR);
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

DeafTest(the_log_tells_once_and_the_statistics_count)
{
    hl_client_options options = acl_options(NULL);
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
}

/* New rights count from the next connection on. */
DeafTest(a_client_that_may_listen_again_does)
{
    hl_client *client = deaf_client(NULL), *other = open_client(NULL);
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
