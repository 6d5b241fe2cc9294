/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * flows SOCKET: each flow of the library several times, on the server behind this Unix socket. For
 * the cheapest run (in others a timer of the connection may be due, say) it prints
 *   flow NAME
 *   locks COUNT
 *   clocks COUNT
 *   call ADDRESS     of each function that was entered, in order
 * Without HL_FLOWS (bench/CMakeLists.txt) the library does not say what is entered. script/flows
 * makes the table.
 */
#include "must.h"

#include <hiredis/hiredis.h>
#include <hirelock/hirelock.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20, MOST_CALLS = 8192, MEMBERS = 3 };

enum flow {
    ACQUIRE,
    NESTED,
    RELEASE,
    WAIT,
    HAND_OVER,
    RENEWAL,
    LOSS,
    FAIR_ACQUIRE,
    READ_ACQUIRE,
    MULTI_ACQUIRE,
    MULTI_RELEASE,
    SEMAPHORE_ACQUIRE,
    SEMAPHORE_RELEASE,
    FLOWS
};

static const char *const flow_names[FLOWS] = {
    [ACQUIRE] = "acquire, uncontended, blocking",
    [NESTED] = "first nested acquire",
    [RELEASE] = "release, uncontended",
    [WAIT] = "contended: waiter asks, queues, asks again",
    [HAND_OVER] = "contended: release grants, waiter takes it",
    [RENEWAL] = "renewal of one hold",
    [LOSS] = "lost hold: noticed, told, released",
    [FAIR_ACQUIRE] = "fair lock, acquire",
    [READ_ACQUIRE] = "read lock, acquire",
    [MULTI_ACQUIRE] = "multi-lock of 3, acquire",
    [MULTI_RELEASE] = "multi-lock of 3, release",
    [SEMAPHORE_ACQUIRE] = "semaphore, acquire",
    [SEMAPHORE_RELEASE] = "semaphore, release",
};

struct run {
    atomic_size_t calls;
    atomic_int locks, clocks;
    void *entered[MOST_CALLS];
};

static struct run runs[FLOWS][ROUNDS];
static _Atomic(struct run *) recording;

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
    struct run *run = atomic_load(&recording);

    (void)site;
    if (!run)
        return;
    size_t at = atomic_fetch_add(&run->calls, 1);
    if (at < MOST_CALLS)
        run->entered[at] = function;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

/* The linker sends the library's calls here (--wrap). */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct run *run = atomic_load(&recording);

    if (run)
        atomic_fetch_add(&run->locks, 1);
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    struct run *run = atomic_load(&recording);

    if (run)
        atomic_fetch_add(&run->clocks, 1);
    return __real_clock_gettime(clock, ret_time);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Functions that other threads run behind a call belong to its flow. The flow is over when no
 * function was entered for a while. */
static void run_settle(const struct run *run)
{
    size_t before;

    do {
        before = atomic_load(&run->calls);
        pause_ms(40);
    } while (atomic_load(&run->calls) != before);
}

static struct run *record(enum flow flow, int round)
{
    struct run *run = &runs[flow][round];

    run->calls = 0;
    run->locks = 0;
    run->clocks = 0;
    atomic_store(&recording, run);
    return run;
}

static void record_end(void)
{
    atomic_store(&recording, NULL);
}

static void record_settle(const struct run *run)
{
    run_settle(run);
    record_end();
}

static hl_error error;

static void ok(int code)
{
    must(code == 0, "%s: %s", hl_err_name(code), error.text);
}

struct stage {
    redisContext *raw;
    hl_client *client, *holder;
    int rounds;
};

static void stage_free_lock(hl_lock *lock)
{
    pause_ms(40); /* what a release leaves to be done */
    hl_lock_free(lock);
}

static void measure_acquire(hl_lock *lock, enum flow flow, int round)
{
    record(flow, round);
    ok(hl_lock_acquire(lock, &error));
    record_end();
    pause_ms(40);
}

static void measure_release(hl_lock *lock, enum flow flow, int round)
{
    record(flow, round);
    ok(hl_lock_release(lock, &error));
    record_end();
}

static void round_lock(struct stage *stage, int round)
{
    hl_lock *lock;

    ok(hl_lock_new(stage->client, "flow:lock", &lock, &error));
    measure_acquire(lock, ACQUIRE, round);
    measure_acquire(lock, NESTED, round);
    ok(hl_lock_release(lock, &error));
    pause_ms(40);
    measure_release(lock, RELEASE, round);
    stage_free_lock(lock);
}

struct waiter {
    hl_lock *lock;
    sem_t has_it, may_release;
};

static void *waiter_run(void *arg)
{
    struct waiter *waiter = arg;
    hl_error err;

    must(hl_lock_acquire(waiter->lock, &err) == 0, "the waiter: %s", err.text);
    sem_post(&waiter->has_it);
    sem_wait(&waiter->may_release);
    must(hl_lock_release(waiter->lock, &err) == 0, "the waiter: %s", err.text);
    return NULL;
}

/* One client holds, another one waits and is granted the lock. Each round has a name of its own, to
 * whose channel nobody is subscribed yet. */
static void round_contended(struct stage *stage, int round)
{
    struct waiter waiter;
    hl_lock *lock;
    pthread_t thread;
    char name[64];

    sem_init(&waiter.has_it, 0, 0);
    sem_init(&waiter.may_release, 0, 0);
    snprintf(name, sizeof(name), "flow:contended:%d", stage->rounds++);
    ok(hl_lock_new(stage->holder, name, &lock, &error));
    ok(hl_lock_new(stage->client, name, &waiter.lock, &error));
    ok(hl_lock_acquire(lock, &error));
    pause_ms(40);
    struct run *run = record(WAIT, round);
    must(pthread_create(&thread, NULL, waiter_run, &waiter) == 0, "no thread");
    pause_ms(150); /* shorter than the pause before the next poll */
    record_settle(run);
    run = record(HAND_OVER, round);
    ok(hl_lock_release(lock, &error));
    sem_wait(&waiter.has_it);
    record_settle(run);
    sem_post(&waiter.may_release);
    pthread_join(thread, NULL);
    stage_free_lock(lock);
    stage_free_lock(waiter.lock);
}

static long long stage_pttl(struct stage *stage, const char *key)
{
    redisReply *reply = redisCommand(stage->raw, "PTTL %s", key);

    must(reply && reply->type == REDIS_REPLY_INTEGER, "PTTL %s", key);
    long long left = reply->integer;
    freeReplyObject(reply);
    return left;
}

static void stage_on_event(const hl_event *event, void *arg)
{
    if (event->kind == HL_EVENT_LOST)
        sem_post(arg);
}

static void round_watchdog(struct stage *stage, int round)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    const char *name = "flow:watchdog";
    hl_lock *lock;
    sem_t lost;

    sem_init(&lost, 0, 0);
    options.on_event = stage_on_event;
    options.event_arg = &lost;
    ok(hl_lock_new(stage->client, name, &lock, &error));
    ok(hl_lock_acquire_with(lock, &options, &error));
    pause_ms(40);
    struct run *run = record(RENEWAL, round);
    for (long long left = stage_pttl(stage, name), now; (now = stage_pttl(stage, name)) <= left;) {
        left = now;
        pause_ms(5);
    }
    record_settle(run);
    freeReplyObject(redisCommand(stage->raw, "DEL %s", name));
    run = record(LOSS, round);
    sem_wait(&lost);
    run_settle(run);
    must(hl_lock_release(lock, &error) == HL_ELOST, "the release of what was lost");
    record_end();
    stage_free_lock(lock);
}

static hl_lock *lock_of(struct stage *stage, hl_lock_kind kind, const char *name)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *lock;

    options.kind = kind;
    options.name = name;
    ok(hl_lock_new_with(stage->client, &options, &lock, &error));
    return lock;
}

static void round_kinds(struct stage *stage, int round)
{
    hl_lock *fair = lock_of(stage, HL_LOCK_FAIR, "flow:fair");
    hl_lock *read = lock_of(stage, HL_LOCK_READ, "flow:rw");

    measure_acquire(fair, FAIR_ACQUIRE, round);
    ok(hl_lock_release(fair, &error));
    stage_free_lock(fair);
    measure_acquire(read, READ_ACQUIRE, round);
    ok(hl_lock_release(read, &error));
    stage_free_lock(read);
}

static void round_multi(struct stage *stage, int round)
{
    static const char *const names[MEMBERS] = {"flow:1", "flow:2", "flow:3"};
    hl_lock *members[MEMBERS], *multi;

    for (int i = 0; i < MEMBERS; i++)
        ok(hl_lock_new(stage->client, names[i], &members[i], &error));
    ok(hl_multi_lock_new(members, MEMBERS, NULL, &multi, &error));
    measure_acquire(multi, MULTI_ACQUIRE, round);
    measure_release(multi, MULTI_RELEASE, round);
    stage_free_lock(multi);
    for (int i = 0; i < MEMBERS; i++)
        hl_lock_free(members[i]);
}

static void round_semaphore(struct stage *stage, int round)
{
    hl_semaphore *semaphore;

    ok(hl_semaphore_new(stage->client, "flow:semaphore", &semaphore, &error));
    freeReplyObject(redisCommand(stage->raw, "SET flow:semaphore 3"));
    record(SEMAPHORE_ACQUIRE, round);
    ok(hl_semaphore_acquire(semaphore, 1, &error));
    record_end();
    pause_ms(40);
    record(SEMAPHORE_RELEASE, round);
    ok(hl_semaphore_release(semaphore, 1, &error));
    record_end();
    pause_ms(40);
    hl_semaphore_free(semaphore);
}

static int run_compare(const void *a, const void *b)
{
    size_t left = ((const struct run *)a)->calls, right = ((const struct run *)b)->calls;

    return (left > right) - (left < right);
}

static void flow_print(enum flow flow)
{
    qsort(runs[flow], ROUNDS, sizeof(runs[flow][0]), run_compare);
    struct run *run = &runs[flow][0];

    must(run->calls <= MOST_CALLS, "%s: too many calls", flow_names[flow]);
    printf("flow %s\nlocks %d\nclocks %d\n", flow_names[flow], run->locks, run->clocks);
    for (size_t i = 0; i < run->calls; i++)
        printf("call %p\n", run->entered[i]);
}

/* Its own clients, so that nothing else is done meanwhile. The first round loads the scripts. */
static void stage_run(struct stage *stage, const char *url, int64_t watchdog_timeout_ms,
                      void (*run)(struct stage *stage, int round))
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.watchdog_timeout_ms = watchdog_timeout_ms;
    ok(hl_client_open(url, &options, &stage->client, &error));
    ok(hl_client_open(url, &options, &stage->holder, &error));
    run(stage, 0);
    for (int round = 0; round < ROUNDS; round++)
        run(stage, round);
    ok(hl_client_close(stage->holder));
    ok(hl_client_close(stage->client));
}

int main(int argc, char **argv)
{
    struct stage stage = {0};
    char url[256];

    must(argc == 2, "usage: %s SOCKET", argv[0]);
    snprintf(url, sizeof(url), "unix://%s", argv[1]);
    stage.raw = redisConnectUnix(argv[1]);
    must(stage.raw && !stage.raw->err, "%s: no server", argv[1]);
    stage_run(&stage, url, 30000, round_lock);
    stage_run(&stage, url, 30000, round_contended);
    stage_run(&stage, url, 1500, round_watchdog);
    stage_run(&stage, url, 30000, round_kinds);
    stage_run(&stage, url, 30000, round_multi);
    stage_run(&stage, url, 30000, round_semaphore);
    for (int flow = 0; flow < FLOWS; flow++)
        flow_print(flow);
    redisFree(stage.raw);
    return 0;
}
