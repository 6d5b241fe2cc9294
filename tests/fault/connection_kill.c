/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* CLIENT KILL, by which a server ends connections at any moment: under load, and while waiting. */

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "connection_fixture.h"
#include "support/census.h"
#include "support/history.h"
#include "support/process.h"

enum {
    STORM_CLIENTS = 2,
    STORM_THREADS = 6,
    STORM_NAMES = 3,
    STORM_MS = 1200,
    STORM_EVERY_MS = 50
};

struct storm {
    struct redis_server *server;
    struct history *history;
    hl_client *client[STORM_CLIENTS];
    atomic_bool is_over;
    atomic_int held, next_thread;
};

/* One round of one thread. The belief is stamped inside of the hold. */
static void storm_round(struct storm *storm, hl_lock *lock, uint32_t name, uint64_t owner)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_acquire_for(lock, slow_ms(500), &err);

    check_msg(code == HL_OK || code == HL_ETIMEDOUT || code == HL_ECONN, "acquire: %s: %s",
              hl_err_name(code), err.text);
    if (code != HL_OK)
        return;
    struct history_record *record = history_enter(storm->history, name, owner);
    atomic_fetch_add(&storm->held, 1);
    check_int(hl_lock_hold_count(lock, NULL), 1);
    sched_yield();
    history_leave(record);
    code = hl_lock_release(lock, &err);
    check_msg(code == HL_OK || code == HL_EUNKNOWN, "release: %s: %s", hl_err_name(code), err.text);
}

static void *storm_thread(void *arg)
{
    struct storm *storm = arg;
    int number = atomic_fetch_add(&storm->next_thread, 1);
    hl_lock *lock[STORM_NAMES];
    char name[16];

    for (int i = 0; i < STORM_NAMES; i++) {
        snprintf(name, sizeof name, "storm-%d", i);
        lock[i] = connection_lock(storm->client[number % STORM_CLIENTS], name);
    }
    for (uint32_t i = (uint32_t)number; !atomic_load(&storm->is_over); i++)
        storm_round(storm, lock[i % STORM_NAMES], i % STORM_NAMES, (uint64_t)number + 1);
    for (int i = 0; i < STORM_NAMES; i++)
        hl_lock_free(lock[i]);
    return NULL;
}

/* Nothing is left in Redis well within a lease, and everything works. */
static void storm_check_end(struct storm *storm)
{
    struct history_overlap overlap;
    char name[16];

    check_msg(history_check(&storm->history, 1, &overlap) == 0, "lock %u: %llu inside of %llu",
              overlap.lock, (unsigned long long)overlap.second_owner,
              (unsigned long long)overlap.first_owner);
    check_msg(atomic_load(&storm->held) > STORM_THREADS, "%d holds", atomic_load(&storm->held));
    for (int i = 0; i < STORM_NAMES; i++) {
        snprintf(name, sizeof name, "storm-%d", i);
        check(redis_wait_int(storm->server, 0, 3000, "EXISTS %s", name));
        for (int j = 0; j < STORM_CLIENTS; j++) {
            hl_lock *lock = connection_lock(storm->client[j], name);
            expect_code(hl_lock_acquire_for(lock, slow_ms(3000), err), HL_OK);
            expect_code(hl_lock_release(lock, err), HL_OK);
            hl_lock_free(lock);
        }
    }
}

static void storm_kill(struct redis_server *server, int round, int kinds)
{
    if (kinds == 2 ? round % 3 != 1 : kinds == REDIS_NORMAL)
        redis_kill_clients(server, REDIS_NORMAL);
    if (kinds == 2 ? round % 3 != 0 : kinds == REDIS_PUBSUB)
        redis_kill_clients(server, REDIS_PUBSUB);
}

/* kinds: a redis_kind, or 2 for both kinds, in turn and together. */
static void storm_run(int kinds)
{
    struct storm storm = {.server = redis_server_start(NULL)};
    hl_client_options options = connection_options();
    pthread_t thread[STORM_THREADS];
    char path[256];

    check_int(redis_int(storm.server, "EXISTS storm-0"),
              0); /* the tests' own connection is there */
    int files = census_files(), threads = census_threads_named("hirelock");
    snprintf(path, sizeof path, "%s/history", redis_server_dir(storm.server));
    storm.history = history_open(path, 1 << 18);
    for (int i = 0; i < STORM_CLIENTS; i++)
        storm.client[i] = connection_open(redis_server_url(storm.server), &options);
    for (int i = 0; i < STORM_THREADS; i++)
        check_int(pthread_create(&thread[i], NULL, storm_thread, &storm), 0);
    int64_t end_ms = now_ms() + slow_ms(STORM_MS);
    for (int round = 0; now_ms() < end_ms; round++) {
        storm_kill(storm.server, round, kinds);
        poll(NULL, 0, STORM_EVERY_MS);
    }
    atomic_store(&storm.is_over, true);
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(thread[i], NULL);
    check(connection_count(storm.client[0], connection_reconnects) > 2);
    storm_check_end(&storm);
    for (int i = 0; i < STORM_CLIENTS; i++)
        check_int(hl_client_close(storm.client[i]), HL_OK);
    history_close(storm.history);
    check_int(census_files(), files);
    check_int(census_threads_named("hirelock"), threads);
    redis_server_stop(storm.server);
}

Test(connection_kill, of_the_command_links_under_load_leaks_and_overlaps_nothing)
{
    storm_run(REDIS_NORMAL);
}

Test(connection_kill, of_the_pubsub_links_under_load_leaks_and_overlaps_nothing)
{
    storm_run(REDIS_PUBSUB);
}

Test(connection_kill, of_both_links_under_load_leaks_and_overlaps_nothing)
{
    storm_run(2);
}

enum { WAITERS = 20 };
static const char channel[] = "redisson_lock__channel:{wanted}";

/* Waiters that neither a poll nor an expiry wakes. */
struct queue {
    struct redis_server *server;
    hl_client *holder, *waiter;
    hl_lock *held, *wanted;
    struct connection_call call[WAITERS];
};

static void queue_start(struct queue *queue, const char *waiters_url, struct redis_server *server)
{
    hl_client_options options = connection_options();
    queue->server = server;
    queue->holder = connection_open(redis_server_url(server), &options);
    options.client_name = "waiter";
    queue->waiter = connection_open(waiters_url, &options);
    queue->held = connection_lock(queue->holder, "wanted");
    queue->wanted = connection_lock(queue->waiter, "wanted");
    expect_code(hl_lock_acquire(queue->held, err), HL_OK);
    for (int i = 0; i < WAITERS; i++)
        connection_call_start(&queue->call[i], queue->wanted, slow_ms(15000));
    check(connection_wait_for(queue->waiter, connection_waiters, WAITERS, 5000));
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check_int(hl_client_ping(queue->waiter, -1, NULL), HL_OK); /* nothing more is under way */
}

static void queue_finish(struct queue *queue)
{
    for (int i = 0; i < WAITERS; i++) {
        connection_join(&queue->call[i]);
        check_msg(queue->call[i].code == HL_OK, "waiter %d: %s", i, queue->call[i].err.text);
        check_int(queue->call[i].release_code, HL_OK);
        check(queue->call[i].lasted_ms < slow_ms(10000));
    }
    hl_lock_free(queue->held);
    hl_lock_free(queue->wanted);
    check_int(hl_client_close(queue->holder), HL_OK);
    check_int(hl_client_close(queue->waiter), HL_OK);
}

Test(connection_kill, of_a_waiting_pubsub_link_subscribes_again_and_asks_but_twice)
{
    struct redis_server *server = redis_server_start(NULL);
    struct queue queue;
    queue_start(&queue, redis_server_url(server), server);
    int64_t before = redis_evalsha_calls(server);

    check_int(redis_kill_named(server, REDIS_PUBSUB, "waiter"), 1);
    check(connection_wait_for(queue.waiter, connection_reconnects, 1, 5000));
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check_int(hl_client_ping(queue.waiter, -1, NULL), HL_OK);
    int64_t asked = redis_evalsha_calls(server) - before;
    check_msg(asked >= 1 && asked <= 2, "%d waiters asked %lld times", WAITERS, (long long)asked);

    expect_code(hl_lock_release(queue.held, err), HL_OK);
    queue_finish(&queue);
    redis_server_stop(server);
}

Test(connection_kill, a_release_during_the_outage_is_noticed_when_the_link_is_back)
{
    struct connection c = connection_start(NULL);
    struct queue queue;
    queue_start(&queue, proxy_url(c.proxy), c.server);

    proxy_refuse(c.proxy, true);
    proxy_kill_all(c.proxy);
    check(redis_wait_subscribers(c.server, channel, 0, 5000));
    expect_code(hl_lock_release(queue.held, err), HL_OK); /* nobody hears it */
    proxy_refuse(c.proxy, false);
    queue_finish(&queue);
    connection_stop(&c);
}

/* In the child: waits, and says when it got it. */
enum { WAITER_GOT_IT, WAITER_MAY_WAIT };

static void overrun_waiter(struct process *self, void *arg)
{
    hl_client_options options = connection_options();
    check(process_await(self, WAITER_MAY_WAIT, 1, 5000));
    hl_client *client = connection_open(arg, &options);
    hl_lock *lock = connection_lock(client, "wanted");
    expect_code(hl_lock_acquire_for(lock, slow_ms(15000), err), HL_OK);
    process_tell(self, WAITER_GOT_IT);
    expect_code(hl_lock_release(lock, err), HL_OK);
    hl_lock_free(lock);
    check_int(hl_client_close(client), HL_OK);
}

/* A stopped subscriber does not read, and the server cuts it at its output buffer limit. */
Test(connection_kill, a_subscriber_cut_for_its_output_buffer_subscribes_again)
{
    struct redis_server *server = redis_server_start(
        &(struct redis_options){.config = "client-output-buffer-limit pubsub 256kb 0 0"});
    struct process *waiter = process_start(overrun_waiter, (void *)redis_server_url(server));
    hl_client_options options = connection_options();
    hl_client *client = connection_open(redis_server_url(server), &options);
    hl_lock *lock = connection_lock(client, "wanted");
    char *noise = calloc(1, 32 * 1024);

    memset(noise, 'n', 32 * 1024 - 1);
    expect_code(hl_lock_acquire(lock, err), HL_OK);
    process_tell(waiter, WAITER_MAY_WAIT);
    check(redis_wait_subscribers(server, channel, 1, 5000));
    process_stop(waiter);
    struct deadline deadline = deadline_in(10000);
    while (redis_subscribers(server, channel) == 1 && !deadline_is_over(deadline))
        redis_do(server, "PUBLISH %s %s", channel, noise);
    check_int(redis_subscribers(server, channel), 0);
    expect_code(hl_lock_release(lock, err), HL_OK); /* the stopped process cannot hear it */
    process_continue(waiter);
    check(process_await(waiter, WAITER_GOT_IT, 1, 10000));
    check_int(process_finish(waiter, 5000), 0);
    free(noise);
    hl_lock_free(lock);
    check_int(hl_client_close(client), HL_OK);
    redis_server_stop(server);
}
