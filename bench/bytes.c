/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Memory, over 10,000 of each: an idle handle, a hold, and a waiter, with names of 16 bytes. The
 * figure with a target is that of a thread that waits, which keeps the rest on its stack; beside it
 * are asynchronous waiters, which have all of it on the heap, with one name and with one each.
 * Their owners are objects of the user's, as the handles are.
 */
#include "heap.h"
#include "instant.h"
#include "must.h"
#include "raw.h"
#include "scenario.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES_COUNT = 10000, BYTES_PATIENCE_MS = 30000, BYTES_STACK = 64 * 1024 };

struct things {
    hl_client *client;
    hl_lock *lock[BYTES_COUNT];
    hl_owner *owner[BYTES_COUNT];
    atomic_int ended; /* waits */
    hl_cancel *cancel;
    pthread_t thread[BYTES_COUNT];
};

/* Spent replies and the like are gone when the figure rests. */
static double bytes_each(void)
{
    int64_t last, bytes = heap_count();

    do {
        last = bytes;
        instant_sleep_ms(20);
        bytes = heap_count();
    } while (bytes != last);
    return (double)bytes / BYTES_COUNT;
}

static void bytes_handles(struct bench *bench, struct things *things)
{
    heap_count_begin();
    for (int i = 0; i < BYTES_COUNT; i++)
        things->lock[i] = scenario_lock(things->client, "bench:bytes%05d", i);
    report_at_most(&bench->report, "bytes_per_handle", bytes_each(), "bytes", 256);
    heap_count_end();
}

static void bytes_holds(struct bench *bench, struct things *things)
{
    heap_count_begin();
    for (int i = 0; i < BYTES_COUNT; i++)
        scenario_acquire(things->lock[i]);
    report_at_most(&bench->report, "bytes_per_hold", bytes_each(), "bytes", 768);
    heap_count_end();
    for (int i = 0; i < BYTES_COUNT; i++)
        scenario_release(things->lock[i]);
}

static void wait_ended(int code, const hl_error *err, void *arg)
{
    struct things *things = arg;

    (void)code;
    (void)err;
    atomic_fetch_add(&things->ended, 1);
}

/* `stride` 1: a name for each; 0: one for all. */
static void bytes_wait(struct things *things, size_t stride, hl_cancel *cancel)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    int64_t deadline = instant_after_ms(BYTES_PATIENCE_MS);

    options.wait_ms = HL_WAIT_FOREVER;
    options.cancel = cancel;
    for (size_t i = 0; i < BYTES_COUNT; i++) {
        options.owner = things->owner[i];
        must(hl_lock_acquire_async(things->lock[i * stride], &options, wait_ended, things) == 0,
             "no acquire");
    }
    while (scenario_stats(things->client).waiters_now < BYTES_COUNT) {
        must(instant_now() < deadline, "the waiters do not come together");
        instant_sleep_ms(1);
    }
}

static void bytes_wait_ends(struct things *things, hl_cancel *cancel)
{
    int64_t deadline = instant_after_ms(BYTES_PATIENCE_MS);

    hl_cancel_fire(cancel);
    while (atomic_load(&things->ended) < BYTES_COUNT) {
        must(instant_now() < deadline, "the waiters do not end");
        instant_sleep_ms(1);
    }
    atomic_store(&things->ended, 0);
}

static void *bytes_thread(void *arg)
{
    struct things *things = arg;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = HL_WAIT_FOREVER;
    options.cancel = things->cancel;
    must(hl_lock_acquire_with(things->lock[0], &options, NULL) == HL_ECANCELED, "it got the lock");
    return NULL;
}

static void bytes_start_threads(struct things *things)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, BYTES_STACK);
    for (int i = 0; i < BYTES_COUNT; i++)
        must(pthread_create(&things->thread[i], &attr, bytes_thread, things) == 0,
             "no more threads");
    pthread_attr_destroy(&attr);
}

static double bytes_threads(struct things *things)
{
    int64_t deadline = instant_after_ms(BYTES_PATIENCE_MS);

    must(hl_cancel_new(&things->cancel) == 0, "no cancel");
    heap_count_begin();
    bytes_start_threads(things);
    while (scenario_stats(things->client).waiters_now < BYTES_COUNT) {
        must(instant_now() < deadline, "the threads do not come together");
        instant_sleep_ms(1);
    }
    double each = bytes_each();
    heap_count_end();
    hl_cancel_fire(things->cancel);
    for (int i = 0; i < BYTES_COUNT; i++)
        pthread_join(things->thread[i], NULL);
    hl_cancel_free(things->cancel);
    return each;
}

/* All names are held by somebody else. Subscriptions are complete when the server knows them. */
static double bytes_waiters(struct bench *bench, struct things *things, size_t stride)
{
    hl_cancel *cancel = NULL;
    int64_t deadline = instant_after_ms(BYTES_PATIENCE_MS);
    const int channels = stride ? BYTES_COUNT : 1;

    must(hl_cancel_new(&cancel) == 0, "no cancel");
    heap_count_begin();
    bytes_wait(things, stride, cancel);
    while (server_channels(&bench->server, "redisson_lock__channel:{bench:bytes") < channels) {
        must(instant_now() < deadline, "the waiters do not listen");
        instant_sleep_ms(10);
    }
    double each = bytes_each();
    bytes_wait_ends(things, cancel);
    heap_count_end();
    hl_cancel_free(cancel);
    return each;
}

static void bytes_occupy(struct bench *bench)
{
    struct raw holder;
    char name[64];

    raw_open(&holder, &bench->server, "", 0);
    for (int i = 0; i < BYTES_COUNT; i++) {
        snprintf(name, sizeof(name), "bench:bytes%05d", i);
        raw_name(&holder, name);
        snprintf(holder.lease, sizeof(holder.lease), "%d", 10 * BYTES_PATIENCE_MS);
        must(raw_acquire(&holder), "the lock is not free");
    }
    raw_close(&holder);
}

void scenario_bytes(struct bench *bench)
{
    struct things *things = must_alloc(1, sizeof(*things));

    report_heading("memory, over 10,000 of each, names of 16 bytes");
    things->client = scenario_client(bench, NULL);
    for (int i = 0; i < BYTES_COUNT; i++)
        must(hl_owner_new(things->client, &things->owner[i]) == 0, "no owner");
    bytes_handles(bench, things);
    bytes_holds(bench, things);
    bytes_occupy(bench);
    report_at_most(&bench->report, "bytes_per_waiter", bytes_threads(things), "bytes", 512);
    report_figure(&bench->report, "bytes of an async waiter, all for one name",
                  bytes_waiters(bench, things, 0), "bytes");
    report_figure(&bench->report, "bytes of an async waiter, each for a name of its own",
                  bytes_waiters(bench, things, 1), "bytes");
    for (int i = 0; i < BYTES_COUNT; i++) {
        hl_lock_free(things->lock[i]);
        hl_owner_free(things->owner[i]);
    }
    hl_client_close(things->client);
    free(things);
}
