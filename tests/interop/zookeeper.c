/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The stories of docs/stories.md about ZooKeeper: its lock, a queue of ephemeral sequential nodes
 * in the form of Curator's InterProcessMutex, beside our fair lock.
 */
#include "java.h"
#include "zookeeper_server.h"

#include "support/actor.h"
#include "support/kit.h"
#include "support/process.h"
#include "support/proxy.h"

#include <signal.h>
#include <time.h>

/* A session, and a lease, that end soon; and those that do not end while requests are counted, so
 * that no sign of life is counted. */
#define BRIEF_MS slow_ms(2000)
enum { LONG_MS = 300000, WAITERS = 5, CLIENTS = 1 + WAITERS };

static struct zookeeper_server *zookeeper;

static void up(void)
{
    const char *lack = java_lacks();
    if (!lack)
        lack = zookeeper_server_lacks();
    if (lack)
        skip("%s", lack);
    zookeeper = zookeeper_server_start();
    server_up_tcp();
}

static void down(void)
{
    server_down();
    zookeeper_server_stop(zookeeper);
}

#define ZooKeeperTest(suite, name) Test(suite, name, .init = up, .fini = down)

/* ---- Orders to Queues.java ---- */

/* What it logs about sessions that ended is no news here; it would log more while it ends. */
static void leave(void *java)
{
    worker_kill(java);
    worker_log(java);
    worker_leave(java);
}

static struct worker *start_java(void)
{
    return stop_at_end(java_start("Queues"), leave);
}

static int begin(struct worker *java, const char *who, const char *words)
{
    char line[128];
    snprintf(line, sizeof line, "%s %s", who, words);
    return worker_ask(java, line);
}

static const struct worker_answer *end(struct worker *java, int number)
{
    const struct worker_answer *answer = worker_answer(java, number, 60000);
    check_msg(answer->ended_ns != 0, "Java does not answer; it has logged: %s", worker_log(java));
    check_msg(!answer->threw, "Java threw %s", answer->text);
    return answer;
}

static const char *order(struct worker *java, const char *who, const char *words)
{
    return end(java, begin(java, who, words))->text;
}

static void open_session(struct worker *java, const char *who, int port, int64_t session_ms)
{
    char words[96];
    snprintf(words, sizeof words, "open 127.0.0.1:%d %jd /job", port, (intmax_t)session_ms);
    order(java, who, words);
}

static bool watches_are(void *number)
{
    return zookeeper_server_watches(zookeeper) == *(int *)number;
}

static void expect_queued(int waiters)
{
    check(wait_until(watches_are, &waiters, 20000)); /* each watches the one before it */
}

static hl_lock *new_fair(hl_client *client)
{
    return new_lock_with(client, "job",
                         &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = HL_LOCK_FAIR});
}

/* ---- What a hand-over costs ---- */

struct costs { /* of a waiter */
    double ask, hand_over, woken;
};

static struct costs costs_of(const struct zookeeper_counts count[3])
{
    return (struct costs){(double)(count[1].requests - count[0].requests) / WAITERS,
                          (double)(count[2].requests - count[1].requests) / WAITERS,
                          (double)(count[2].woken - count[1].woken) / WAITERS};
}

static struct costs costs_of_zookeeper(struct worker *java)
{
    static const char *const who[CLIENTS] = {"a", "b", "c", "d", "e", "f"};
    struct zookeeper_counts count[3];
    int asks[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        open_session(java, who[i], zookeeper_server_port(zookeeper), LONG_MS);
    order(java, who[0], "acquire");
    count[0] = zookeeper_server_counts(zookeeper);
    for (int i = 1; i < CLIENTS; i++) {
        asks[i] = begin(java, who[i], "acquire");
        expect_queued(i);
    }
    count[1] = zookeeper_server_counts(zookeeper);
    for (int i = 1; i < CLIENTS; i++) {
        order(java, who[i - 1], "release");
        end(java, asks[i]);
    }
    count[2] = zookeeper_server_counts(zookeeper);
    order(java, who[WAITERS], "release");
    return costs_of(count);
}

static struct zookeeper_counts counts_of_redis(void)
{
    return (struct zookeeper_counts){redis_requests(server), redis_calls(server, "publish")};
}

static bool requests_are(void *number)
{
    return redis_requests(server) >= *(int64_t *)number;
}

/* A client asks, subscribes, and asks again, for it may have missed a message meanwhile. Then it
 * stands in the queue. */
static void expect_asked(int clients, int64_t since)
{
    int64_t requests = since + 3 * clients;
    check(wait_until(requests_are, &requests, 20000));
    check_int(redis_int(server, "LLEN redisson_lock_queue:{job}"), clients);
}

static bool nobody_listens(void *unused)
{
    (void)unused;
    return strcmp(redis_str(server, "PUBSUB CHANNELS redisson_lock*"), "") == 0;
}

static struct costs costs_of_ours(void)
{
    hl_client *client[CLIENTS];
    hl_lock *lock[CLIENTS];
    struct actor *actor[CLIENTS];
    struct zookeeper_counts count[3];

    for (int i = 0; i < CLIENTS; i++) {
        client[i] = open_client(CLIENT(.poll_ms = LONG_MS / 10, .watchdog_timeout_ms = LONG_MS));
        lock[i] = new_fair(client[i]);
        actor[i] = actor_start();
    }
    for (int i = 0; i < 2; i++) { /* the second time the server knows the scripts */
        expect_ok(actor_acquire(actor[0], lock[0], ACQUIRE(.wait_ms = HL_NO_WAIT)));
        if (i == 0)
            expect_ok(actor_release(actor[0], lock[0], NULL));
    }
    count[0] = counts_of_redis();
    for (int i = 1; i < CLIENTS; i++) {
        actor_begin_acquire(actor[i], lock[i], ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
        expect_asked(i, count[0].requests);
    }
    count[1] = counts_of_redis();
    for (int i = 1; i < CLIENTS; i++) {
        expect_ok(actor_release(actor[i - 1], lock[i - 1], NULL));
        expect_ok(actor_end(actor[i]));
    }
    check(wait_until(nobody_listens, NULL, 20000));
    count[2] = counts_of_redis();
    expect_ok(actor_release(actor[WAITERS], lock[WAITERS], NULL));
    return costs_of(count);
}

/* ---- What a holder costs that is dead or stands still ---- */

enum { GO, HOLDS, GO_ON, ANSWERED };

static void hold(struct process *self, void *arg)
{
    bool *believes = process_shared(self);
    (void)arg;
    check(process_await(self, GO, 1, 60000));
    hl_lock *lock = new_fair(open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS)));
    expect_ok(hl_lock_acquire(lock, ERR));
    process_tell(self, HOLDS);
    process_await(self, GO_ON, 1, 60000);
    *believes = hl_lock_is_held(lock, NULL);
    process_tell(self, ANSWERED);
    process_await(self, GO, 2, 60000); /* it is killed */
}

struct holders {
    struct worker *java;
    struct process *process;
};

struct price { /* ms until the next one has the lock */
    int64_t zookeeper_ms, ours_ms;
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void begin_to_hold(struct holders *holders)
{
    holders->java = start_java();
    open_session(holders->java, "a", zookeeper_server_port(zookeeper), BRIEF_MS);
    order(holders->java, "a", "acquire");
    process_tell(holders->process, GO);
    check(process_await(holders->process, HOLDS, 1, 20000));
}

/* The next in ZooKeeper's queue is client "b" of this JVM. */
static struct price price_of(struct holders *holders, struct worker *next,
                             void (*strike)(struct holders *holders))
{
    begin_to_hold(holders);
    hl_lock *lock = new_fair(open_client(NULL));
    int asks = begin(next, "b", "acquire");
    struct actor *actor = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_queued(1);
    check(redis_wait_int(server, 1, 20000, "LLEN redisson_lock_queue:{job}"));

    int64_t struck_ns = monotonic_ns(), ours_ns = now_ns();
    strike(holders);
    int64_t ended_ns = end(next, asks)->ended_ns;
    expect_ok(actor_end(actor));
    struct price price = {(ended_ns - struck_ns) / 1000000,
                          (actor_ended_ns(actor) - ours_ns) / 1000000};
    order(next, "b", "release");
    expect_ok(actor_release(actor, lock, NULL));
    return price;
}

static void kill_both(struct holders *holders)
{
    worker_kill(holders->java);
    process_kill(holders->process);
}

static void stop_both(struct holders *holders)
{
    check(kill(worker_pid(holders->java), SIGSTOP) == 0);
    process_stop(holders->process);
}

static const char *yes(bool is)
{
    return is ? "yes" : "no";
}

static void let_both_go_on(struct holders *holders)
{
    const bool *ours = process_shared(holders->process);
    check(kill(worker_pid(holders->java), SIGCONT) == 0);
    process_tell(holders->process, GO_ON);
    process_continue(holders->process);
    const char *zookeeper_says = order(holders->java, "a", "holds");
    check(process_await(holders->process, ANSWERED, 1, 20000));
    tell_figure("| ... and believes, when it runs again, that it holds | %s | %s |",
                yes(strcmp(zookeeper_says, "true") == 0), yes(*ours));
    check_str(zookeeper_says, "true");
    check(!*ours);
}

static void tell_price(const char *what, struct price price)
{
    tell_figure("| %s | %jd ms | %jd ms |", what, (intmax_t)price.zookeeper_ms,
                (intmax_t)price.ours_ms);
}

ZooKeeperTest(zookeeper, queue_beside_our_fair_lock)
{
    struct holders killed = {.process = process_start(hold, NULL)};
    struct holders paused = {.process = process_start(hold, NULL)};
    struct worker *java = start_java();
    struct costs theirs = costs_of_zookeeper(java), ours = costs_of_ours();

    check_msg(theirs.woken == 1 && ours.woken == 1, "woken by a release: %.1f and %.1f",
              theirs.woken, ours.woken);
    tell_figure("| | ZooKeeper | hirelock |");
    tell_figure("|---|---|---|");
    tell_figure("| clients that a release wakes, of %d that wait | %.0f | %.0f |", WAITERS,
                theirs.woken, ours.woken);
    tell_figure("| requests until a client stands in the queue | %.1f | %.1f |", theirs.ask,
                ours.ask);
    tell_figure("| requests of a hand-over | %.1f | %.1f |", theirs.hand_over, ours.hand_over);

    tell_price("the holder's session, or its lease", (struct price){BRIEF_MS, BRIEF_MS});
    tell_price("a holder that is killed costs the next one", price_of(&killed, java, kill_both));
    tell_price("a holder that stands still costs the next one", price_of(&paused, java, stop_both));
    let_both_go_on(&paused);
    process_kill(paused.process);
}

/* ---- The story ---- */

ZooKeeperTest(naive, zookeeper_client_that_loses_its_session_believes_that_it_holds)
{
    struct proxy *proxy =
        proxy_start(&(struct proxy_options){.server_port = zookeeper_server_port(zookeeper)});
    struct worker *java = start_java();

    open_session(java, "a", proxy_port(proxy), BRIEF_MS);
    open_session(java, "b", zookeeper_server_port(zookeeper), LONG_MS);
    order(java, "a", "acquire");
    int asks = begin(java, "b", "acquire");
    expect_queued(1);
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP); /* A works; its network is gone */
    end(java, asks);                          /* so its session ends, and its node with it */
    check_str(order(java, "a", "holds"), "true");
    check_str(order(java, "b", "holds"), "true");
    tell_figure("naive: A and B both hold '/job', for A has lost its session and does not look");
    proxy_pass(proxy);
    check_str(order(java, "a", "release"), "-"); /* this does not tell it either */
    proxy_stop(proxy);
}

TcpLaw(ours, client_that_loses_its_server_knows_when_its_lease_is_over)
{
    struct proxy *proxy = new_proxy();
    hl_lock *a =
        new_lock(open_client_at(proxy_url(proxy), CLIENT(.watchdog_timeout_ms = SHORT_MS)), "job");
    hl_lock *b = new_lock(open_client(NULL), "job");

    expect_ok(hl_lock_acquire(a, ERR));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP); /* A works; its network is gone */
    expect_ok(hl_lock_acquire(b, ERR));
    check(!hl_lock_is_held(a, NULL));
    expect_outcome(hl_lock_release(a, ERR), HL_ELOST);
    tell_figure("ours: B holds 'job', and A knows that it has lost it");
}
