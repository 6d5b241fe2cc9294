/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The driver's protocol in C: threads that acquire and release, and a log of when they did. */
#include "worker.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORKER_THREADS = 64, WORKER_GRACE_S = 2 };

static const int64_t ns_per_s = 1000000000, ns_per_ms = 1000000, ns_per_us = 1000;

/* One hold, in ns of CLOCK_MONOTONIC; the log is an array of these. */
struct hold {
    int64_t thread, asked, held, let_go, freed;
};

struct flow { /* one thread's; `count` is read by the main thread when time is up */
    pthread_t id;
    int64_t number;
    void *lock;
    struct hold *hold;
    size_t capacity;
    atomic_size_t count;
};

static struct {
    const char *name, *log;
    bool rounds, spread;
    int port, threads;
    int64_t warm_ns, hold_ns, phase_ns, length_ns;
} option;

static const struct peer *the_peer;
static void *the_client;
static int64_t start_ns;
static struct flow flows[WORKER_THREADS];
static atomic_int flows_ended;
static pthread_barrier_t joined, started;

void worker_must(int fact, const char *format, ...)
{
    va_list args;

    if (fact)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

int worker_masters[WORKER_MASTERS], worker_masters_count;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * ns_per_s + now.tv_nsec;
}

static void sleep_until(int64_t due)
{
    struct timespec at = {.tv_sec = due / ns_per_s, .tv_nsec = due % ns_per_s};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static void option_set_masters(const char *list)
{
    for (char *end; *list; list = *end ? end + 1 : end) {
        worker_must(worker_masters_count < WORKER_MASTERS, "too many masters");
        worker_masters[worker_masters_count++] = (int)strtol(list, &end, 10);
    }
}

static void option_set(const char *key, const char *value)
{
    if (strcmp(key, "--port") == 0)
        option.port = atoi(value);
    else if (strcmp(key, "--masters") == 0)
        option_set_masters(value);
    else if (strcmp(key, "--name") == 0)
        option.name = value;
    else if (strcmp(key, "--log") == 0)
        option.log = value;
    else if (strcmp(key, "--scenario") == 0)
        option.rounds = strcmp(value, "rounds") == 0;
    else if (strcmp(key, "--spread") == 0)
        option.spread = atoi(value) != 0;
    else if (strcmp(key, "--threads") == 0)
        option.threads = atoi(value);
    else if (strcmp(key, "--warm-ms") == 0)
        option.warm_ns = atoll(value) * ns_per_ms;
    else if (strcmp(key, "--length-ms") == 0)
        option.length_ns = atoll(value) * ns_per_ms;
    else if (strcmp(key, "--hold-us") == 0)
        option.hold_ns = atoll(value) * ns_per_us;
    else if (strcmp(key, "--phase-us") == 0)
        option.phase_ns = atoll(value) * ns_per_us;
    else
        worker_must(false, "unknown option %s", key);
}

static struct hold *flow_next(struct flow *flow)
{
    size_t count = atomic_load_explicit(&flow->count, memory_order_relaxed);

    worker_must(count < flow->capacity, "thread %d is faster than its log", (int)flow->number);
    return &flow->hold[count];
}

static void flow_hold(struct flow *flow, int64_t hold_ns, bool tell)
{
    struct hold *hold = flow_next(flow);

    hold->thread = flow->number;
    hold->asked = now_ns();
    the_peer->acquire(flow->lock);
    hold->held = now_ns();
    if (tell)
        puts("held");
    if (hold_ns > 0)
        sleep_until(hold->held + hold_ns);
    hold->let_go = now_ns();
    the_peer->release(flow->lock);
    hold->freed = now_ns();
    atomic_fetch_add_explicit(&flow->count, 1, memory_order_release);
}

static void flow_rounds(struct flow *flow)
{
    unsigned short seed[3] = {(unsigned short)getpid(), (unsigned short)now_ns(), 0};
    char line[16];

    puts("rounds");
    while (fgets(line, sizeof(line), stdin)) /* "go" */
        flow_hold(flow, (int64_t)(erand48(seed) * (double)option.phase_ns), true);
}

static void *flow_main(void *arg)
{
    struct flow *flow = arg;
    char name[256];

    snprintf(name, sizeof(name), "%s:%d", option.name, (int)flow->number);
    flow->lock = the_peer->join(the_client, option.spread ? name : option.name);
    pthread_barrier_wait(&joined);
    pthread_barrier_wait(&started);
    sleep_until(start_ns);
    while (now_ns() < start_ns + option.length_ns)
        flow_hold(flow, option.hold_ns, false);
    if (option.rounds)
        flow_rounds(flow);
    atomic_fetch_add(&flows_ended, 1);
    return NULL;
}

static void worker_warm(void)
{
    char name[256];

    snprintf(name, sizeof(name), "%s:warm:%d", option.name, (int)getpid());
    void *lock = the_peer->join(the_client, name);
    for (int64_t end = now_ns() + option.warm_ns; now_ns() < end;) {
        the_peer->acquire(lock);
        the_peer->release(lock);
    }
}

/* Room for a hold each microsecond; the kernel gives only the pages that are written. */
static void worker_start(void)
{
    size_t capacity = (size_t)(option.length_ns / ns_per_us + 10000);

    pthread_barrier_init(&joined, NULL, (unsigned)option.threads + 1);
    pthread_barrier_init(&started, NULL, (unsigned)option.threads + 1);
    for (int i = 0; i < option.threads; i++) {
        flows[i].number = i;
        flows[i].capacity = capacity;
        flows[i].hold = malloc(capacity * sizeof(struct hold));
        worker_must(flows[i].hold != NULL, "out of memory");
        worker_must(pthread_create(&flows[i].id, NULL, flow_main, &flows[i]) == 0, "no thread");
    }
    pthread_barrier_wait(&joined);
}

static void worker_write(void)
{
    FILE *file = fopen(option.log, "we");

    worker_must(file != NULL, "cannot write %s", option.log);
    for (int i = 0; i < option.threads; i++)
        fwrite(flows[i].hold, sizeof(struct hold),
               atomic_load_explicit(&flows[i].count, memory_order_acquire), file);
    worker_must(fclose(file) == 0, "cannot write %s", option.log);
}

/* Someone who is still waiting a while after the end is left behind, and is missing in the log. */
static void worker_wait(void)
{
    int64_t end = start_ns + option.length_ns;

    sleep_until(end);
    while (atomic_load(&flows_ended) < option.threads &&
           (option.rounds || now_ns() < end + WORKER_GRACE_S * ns_per_s))
        sleep_until(now_ns() + 10 * ns_per_ms);
}

int worker_main(char **argv, const struct peer *peer)
{
    char line[32];

    option.threads = 1;
    for (argv++; argv[0] && argv[1]; argv += 2)
        option_set(argv[0], argv[1]);
    worker_must(option.name && option.log && option.threads <= WORKER_THREADS, "bad options");
    setvbuf(stdout, NULL, _IOLBF, 0);
    the_peer = peer;
    the_client = peer->open(option.port);
    worker_warm();
    worker_start();
    puts("ready");
    worker_must(fgets(line, sizeof(line), stdin) != NULL, "the driver is gone");
    start_ns = strtoll(line, NULL, 10);
    pthread_barrier_wait(&started);
    worker_wait();
    worker_write();
    _exit(0);
}
