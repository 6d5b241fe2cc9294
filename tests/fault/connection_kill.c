/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* CLIENT KILL, by which a server ends connections at any moment: under load, and while waiting. */

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "connection_fixture.h"
#include "integration/settled.h"
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
    check_msg(code == HL_OK || code == HL_EINDOUBT, "release: %s: %s", hl_err_name(code), err.text);
}

static void *storm_thread(void *arg)
{
    struct storm *storm = arg;
    int number = atomic_fetch_add(&storm->next_thread, 1);
    hl_lock *lock[STORM_NAMES];
    char name[16];

    for (int i = 0; i < STORM_NAMES; i++) {
        snprintf(name, sizeof name, "storm-%d", i);
        lock[i] = new_lock(storm->client[number % STORM_CLIENTS], name);
    }
    for (uint32_t i = (uint32_t)number; !atomic_load(&storm->is_over); i++)
        storm_round(storm, lock[i % STORM_NAMES], i % STORM_NAMES, (uint64_t)number + 1);
    for (int i = 0; i < STORM_NAMES; i++)
        free_lock(lock[i]);
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
        check(redis_wait_int(server, 0, 3000, "EXISTS %s", name));
        for (int j = 0; j < STORM_CLIENTS; j++) {
            hl_lock *lock = new_lock(storm->client[j], name);
            expect_ok(hl_lock_acquire_for(lock, slow_ms(3000), ERR));
            expect_ok(hl_lock_release(lock, ERR));
            free_lock(lock);
        }
    }
}

static void storm_kill(int round, int kinds)
{
    if (kinds == 2 ? round % 3 != 1 : kinds == REDIS_NORMAL)
        redis_kill_clients(server, REDIS_NORMAL);
    if (kinds == 2 ? round % 3 != 0 : kinds == REDIS_PUBSUB)
        redis_kill_clients(server, REDIS_PUBSUB);
}

/* kinds: a redis_kind, or 2 for both kinds, in turn and together. */
static void storm_run(int kinds)
{
    struct storm storm = {0};
    hl_client_options options = connection_options();
    pthread_t thread[STORM_THREADS];
    char path[256];

    server = redis_server_start(NULL);
    check_int(redis_int(server, "EXISTS storm-0"), 0); /* the tests' own connection is there */
    int files = census_files();
    snprintf(path, sizeof path, "%s/history", redis_server_dir(server));
    storm.history = history_open(path, 1 << 18);
    for (int i = 0; i < STORM_CLIENTS; i++)
        storm.client[i] = open_client_at(redis_server_url(server), &options);
    for (int i = 0; i < STORM_THREADS; i++)
        check_int(pthread_create(&thread[i], NULL, storm_thread, &storm), 0);
    int64_t end_ms = now_ms() + slow_ms(STORM_MS);
    for (int round = 0; now_ms() < end_ms; round++) {
        storm_kill(round, kinds);
        poll(NULL, 0, STORM_EVERY_MS);
    }
    atomic_store(&storm.is_over, true);
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(thread[i], NULL);
    check(stats_of(storm.client[0]).reconnects > 2);
    storm_check_end(&storm);
    for (int i = 0; i < STORM_CLIENTS; i++)
        close_client(storm.client[i]);
    history_close(storm.history);
    check_int(census_files(), files);
    check(census_waits_for_no_thread());
    redis_server_stop(server);
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

/* Stretched, but not beyond most_ms: on any machine a retained lock's lease is 5 s, and is renewed
 * every 1.7 s. */
static int64_t within_ms(int64_t ms, int64_t most_ms)
{
    return slow_ms(ms) < most_ms ? slow_ms(ms) : most_ms;
}

static struct deadline quiet_begins(void)
{
    return (struct deadline){.at_ns = now_ns() + within_ms(200, 1000) * 1000000};
}

/* Until no script was called for a while: the waiters have asked what they ask by themselves. */
static void wait_until_quiet(struct redis_server *asked)
{
    int64_t calls = -1;
    for (struct deadline quiet = quiet_begins(); !deadline_is_over(quiet); deadline_nap())
        if (redis_evalsha_calls(asked) != calls) {
            calls = redis_evalsha_calls(asked);
            quiet = quiet_begins();
        }
}

static int64_t asked_before;

static bool have_asked(void *asked)
{
    return redis_evalsha_calls(asked) > asked_before;
}

/* Waiters that neither a poll nor an expiry wakes. */
struct queue {
    hl_client *holder, *waiter;
    hl_lock *held, *wanted;
    struct connection_call call[WAITERS];
};

static void queue_start(struct queue *queue, const char *waiters_url)
{
    hl_client_options options = connection_options();
    hl_lock_options handle = HL_LOCK_OPTIONS_INIT; /* without a retained lock's short lease */
    handle.flags = handle_is_posted() ? HL_LOCK_ASYNC_RELEASE : 0;
    queue->holder = open_client_at(redis_server_url(server), &options);
    options.client_name = "waiter";
    queue->waiter = open_client_at(waiters_url, &options);
    queue->held = new_lock_with(queue->holder, "wanted", &handle);
    queue->wanted = new_lock(queue->waiter, "wanted");
    expect_ok(hl_lock_acquire(queue->held, ERR));
    for (int i = 0; i < WAITERS; i++)
        connection_call_start(&queue->call[i], queue->wanted, slow_ms(15000));
    wait_stat(queue->waiter, waiters_now, WAITERS);
    expect_settled_wait(queue->wanted);
}

static void queue_finish(struct queue *queue)
{
    for (int i = 0; i < WAITERS; i++) {
        connection_join(&queue->call[i]);
        check_msg(queue->call[i].code == HL_OK, "waiter %d: %s", i, queue->call[i].err.text);
        check_int(queue->call[i].release_code, HL_OK);
        check(queue->call[i].lasted_ms < slow_ms(14000));
    }
    free_lock(queue->held);
    free_lock(queue->wanted);
    close_client(queue->holder);
    close_client(queue->waiter);
}

Test(connection_kill, of_a_waiting_pubsub_link_subscribes_again_and_asks_but_twice)
{
    server = redis_server_start(NULL);
    struct queue queue;
    queue_start(&queue, redis_server_url(server));
    asked_before = redis_evalsha_calls(server);

    check_int(redis_kill_named(server, REDIS_PUBSUB, "waiter"), 1);
    wait_stat(queue.waiter, reconnects, 1);
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check(wait_until(have_asked, server, 5000));
    wait_until_quiet(server);
    int64_t asked = redis_evalsha_calls(server) - asked_before;
    check_msg(asked >= 1 && asked <= 2, "%d waiters asked %lld times", WAITERS, (long long)asked);

    expect_ok(hl_lock_release(queue.held, ERR));
    queue_finish(&queue);
    redis_server_stop(server);
}

Test(connection_kill, a_release_during_the_outage_is_noticed_when_the_link_is_back)
{
    struct connection c = connection_start(NULL);
    struct queue queue;
    queue_start(&queue, proxy_url(c.proxy));

    proxy_refuse(c.proxy, true);
    proxy_kill_all(c.proxy);
    check(redis_wait_subscribers(c.server, channel, 0, 5000));
    expect_ok(hl_lock_release(queue.held, ERR)); /* no client hears it */
    proxy_refuse(c.proxy, false);
    queue_finish(&queue);
    connection_stop(&c);
}

/* The place of the first script that ran with this key, among those since the SLOWLOG was reset. */
static int64_t kill_place_of(const char *key)
{
    redisReply *log = redis_command(server, "SLOWLOG GET -1");
    int64_t place = -1;

    check(log && log->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++) { /* the latest first: id, time, us, words ... */
        const redisReply *entry = log->element[i], *words = entry->element[3];
        if (words->elements > 3 && strcasecmp(words->element[0]->str, "EVALSHA") == 0 &&
            strcmp(words->element[3]->str, key) == 0)
            place = entry->element[0]->integer;
    }
    freeReplyObject(log);
    check_msg(place >= 0, "no script ran with %s", key);
    return place;
}

static hl_client *kill_client_with_value(const struct connection *c, hl_lock **ret_written)
{
    hl_client_options options = connection_options();
    options.request_timeout_ms = within_ms(1000, 1500);
    hl_client *client = open_client_at(proxy_url(c->proxy), &options);
    *ret_written = new_lock(client, "written");
    expect_ok(hl_lock_acquire(*ret_written, ERR));
    return client;
}

/* The release with a value is sent into a link that is silent, and so repeated over the next one.
 */
Test(connection_kill, a_new_link_begins_with_renewals_and_ends_with_values)
{
    struct connection c = connection_start(NULL);
    hl_lock *written;
    hl_client *client = kill_client_with_value(&c, &written);
    hl_lock *held = new_lock(client, "held"), *wanted = new_lock(client, "wanted");
    struct connection_call call;
    hl_fenced_write write = HL_FENCED_WRITE_INIT;

    expect_ok(hl_lock_acquire(held, ERR));
    redis_do(c.server, "HSET wanted stranger:1 1");
    connection_call_start(&call, wanted, slow_ms(15000));
    expect_settled_wait(wanted);
    redis_do(c.server, "CONFIG SET slowlog-max-len 10000");
    redis_do(c.server, "CONFIG SET slowlog-log-slower-than 0");
    redis_do(c.server, "SLOWLOG RESET");
    proxy_hold(c.proxy, connection_of_commands(&c), PROXY_UP);
    write.key = "data";
    write.value = "value";
    write.value_length = strlen("value");
    expect_outcome(hl_lock_set_and_release(written, NULL, &write, NULL), HL_EINDOUBT);
    check(redis_wait_int(c.server, 0, 5000, "EXISTS written"));
    wait_stat(client, renewals, 1);
    redis_do(c.server, "DEL wanted");
    redis_do(c.server, "PUBLISH %s 0", channel);
    connection_join(&call);
    check_int(call.code, HL_OK);

    int64_t renewed = kill_place_of("held"), asked = kill_place_of("wanted"),
            wrote = kill_place_of("written");
    check_msg(renewed < asked && asked < wrote, "renewed at %d, asked at %d, wrote at %d",
              (int)renewed, (int)asked, (int)wrote);
    free_lock(written);
    free_lock(held);
    free_lock(wanted);
    close_client(client);
    connection_stop(&c);
}

/* In the child: waits, and says when it got it. */
enum { WAITER_GOT_IT, WAITER_MAY_WAIT };

static void overrun_waiter(struct process *self, void *arg)
{
    hl_client_options options = connection_options();
    check(process_await(self, WAITER_MAY_WAIT, 1, 5000));
    hl_client *client = open_client_at(arg, &options);
    hl_lock *lock = new_lock(client, "wanted");
    expect_ok(hl_lock_acquire_for(lock, slow_ms(15000), ERR));
    process_tell(self, WAITER_GOT_IT);
    int code = hl_lock_release(lock, NULL); /* the cut may meet its answer */
    check_msg(code == HL_OK || code == HL_EINDOUBT, "release: %s", hl_err_name(code));
    free_lock(lock);
    close_client(client);
}

/* A stopped subscriber does not read, and the server cuts it at its output buffer limit. */
Test(connection_kill, a_subscriber_cut_for_its_output_buffer_subscribes_again)
{
    server = redis_server_start(
        &(struct redis_options){.config = "client-output-buffer-limit pubsub 256kb 0 0"});
    struct process *waiter = process_start(overrun_waiter, (void *)redis_server_url(server));
    hl_client_options options = connection_options();
    hl_client *client = open_client_at(redis_server_url(server), &options);
    hl_lock *lock = new_lock(client, "wanted");
    char *noise = calloc(1, 32 * 1024);

    memset(noise, 'n', 32 * 1024 - 1);
    expect_ok(hl_lock_acquire(lock, ERR));
    process_tell(waiter, WAITER_MAY_WAIT);
    check(redis_wait_subscribers(server, channel, 1, 5000));
    process_stop(waiter);
    struct deadline deadline = deadline_of_wait(10000);
    while (redis_subscribers(server, channel) == 1 && !deadline_is_over(deadline))
        redis_do(server, "PUBLISH %s %s", channel, noise);
    check_int(redis_subscribers(server, channel), 0);
    expect_ok(hl_lock_release(lock, ERR)); /* the stopped process cannot hear it */
    process_continue(waiter);
    check(process_await(waiter, WAITER_GOT_IT, 1, 10000));
    check_int(process_finish(waiter, 5000), 0);
    free(noise);
    free_lock(lock);
    close_client(client);
    redis_server_stop(server);
}
