/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The process: its client, its threads, and the canceller. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/fatal.h"
#include "support/kinds.h"

enum { WORKER_RETAIN_MS = 10 };

uint64_t worker_roll(struct worker_thread *thread, uint64_t sides)
{
    thread->dice ^= thread->dice << 13;
    thread->dice ^= thread->dice >> 7;
    thread->dice ^= thread->dice << 17;
    return thread->dice % sides;
}

static void worker_make_locks(struct worker_thread *thread)
{
    for (int i = 0; i < STRESS_NAMES; i++)
        for (int manner = 0; manner < WORKER_MANNERS; manner++) {
            hl_lock_options options = HL_LOCK_OPTIONS_INIT;
            char name[8];
            options.flags = manner & WORKER_POSTED ? HL_LOCK_ASYNC_RELEASE : 0;
            options.retain_ms = manner & WORKER_RETAIN ? WORKER_RETAIN_MS : 0;
            snprintf(name, sizeof name, "s%d", i);
            must(lock_new_with(thread->process->client, name, &options, &thread->lock[i][manner],
                               NULL) == 0);
        }
    must(hl_owner_new(thread->process->client, &thread->owner) == 0);
}

static void worker_free_locks(struct worker_thread *thread)
{
    for (int i = 0; i < STRESS_NAMES; i++)
        for (int manner = 0; manner < WORKER_MANNERS; manner++)
            hl_lock_free(thread->lock[i][manner]);
    hl_owner_free(thread->owner);
}

/* Stays with a name and a manner for some rounds: passes and retained locks need other threads. */
static void worker_turn_to(struct worker_thread *thread)
{
    uint64_t kind = worker_roll(thread, 100);
    if (thread->rounds-- > 0)
        return;
    thread->rounds = (uint32_t)worker_roll(thread, 40);
    thread->manner = (uint32_t)worker_roll(thread, WORKER_MANNERS);
    if (kind < 45)
        thread->name = (uint32_t)worker_roll(thread, STRESS_SHARED);
    else if (kind < 98)
        thread->name = thread->process->job->home;
    else
        thread->name = (uint32_t)worker_roll(thread, STRESS_NAMES);
}

static void *worker_thread_run(void *arg)
{
    struct worker_thread *thread = arg;
    const struct worker_job *job = thread->process->job;
    worker_make_locks(thread);
    while (!atomic_load(&job->ledger->stops)) {
        uint32_t index = atomic_fetch_add(&job->book->used, 1);
        if (index >= LEDGER_RECORDS)
            break;
        worker_turn_to(thread);
        worker_round(thread, &job->book->record[index]);
    }
    worker_free_locks(thread);
    return NULL;
}

static void worker_event(const hl_event *event, void *arg)
{
    struct ledger_book *book = arg;
    if (event->kind == HL_EVENT_RELEASE_FAILED)
        atomic_fetch_add(&book->tally.failed_releases, 1);
}

static hl_client *worker_open(const struct worker_job *job)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    options.flags = HL_CLIENT_LAZY; /* its connection may be killed as it comes up */
    options.watchdog_timeout_ms = STRESS_LEASE_MS;
    options.poll_ms = STRESS_POLL_MS;
    options.request_timeout_ms = 400;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    options.on_event = worker_event;
    options.arg = job->book;
    if (hl_client_open(job->url, &options, &client, &err) != 0)
        fatal("open: %s", err.text);
    return client;
}

static void worker_cancel_one(struct worker_process *process, int index)
{
    struct worker_cancel *slot = &process->cancel[index];
    pthread_mutex_lock(&slot->mutex);
    hl_cancel_fire(slot->cancel);
    pthread_mutex_unlock(&slot->mutex);
}

static void worker_tell(const struct worker_process *process)
{
    struct ledger_tally *tally = &process->job->book->tally;
    hl_stats stats = {.size = sizeof stats};
    must(hl_client_stats(process->client, &stats) == 0);
    atomic_store(&tally->passes, stats.passes);
    atomic_store(&tally->grants, stats.grants);
    atomic_store(&tally->retained, stats.retained);
    atomic_store(&tally->losses, stats.losses);
    atomic_store(&tally->reconnects, stats.reconnects);
}

static void worker_begin(struct worker_process *process, struct worker_thread *thread, int index)
{
    pthread_mutex_init(&process->cancel[index].mutex, NULL);
    *thread = (struct worker_thread){.process = process,
                                     .index = index,
                                     .dice = (uint64_t)ledger_now_ns() ^ (uint64_t)getpid() << 40 ^
                                             (uint64_t)(index + 1)};
    must(pthread_create(&thread->thread, NULL, worker_thread_run, thread) == 0);
}

/* A nap that lasts this much longer says that the process had no processor. */
enum { WORKER_NAP_MS = 3, WORKER_LATE_MS = 150 };

static void worker_nap(const struct worker_job *job)
{
    struct timespec nap = {.tv_nsec = WORKER_NAP_MS * 1000000L};
    int64_t from_ns = ledger_now_ns();
    nanosleep(&nap, NULL);
    int64_t to_ns = ledger_now_ns();
    if (to_ns - from_ns > WORKER_LATE_MS * INT64_C(1000000))
        (void)ledger_note_disturbance(
            job->ledger,
            &(struct ledger_disturbance){.book = (uint32_t)(job->book - job->ledger->book),
                                         .from_ns = from_ns,
                                         .to_ns = to_ns});
}

void worker_run(const struct worker_job *job)
{
    struct worker_process process = {.job = job, .client = worker_open(job)};
    struct worker_thread thread[WORKER_THREADS];
    snprintf(job->book->uuid, sizeof job->book->uuid, "%s", hl_client_id(process.client));
    for (int i = 0; i < WORKER_THREADS; i++)
        worker_begin(&process, &thread[i], i);
    for (int i = 0; !atomic_load(&job->ledger->stops); i++) {
        worker_nap(job);
        worker_cancel_one(&process, i % WORKER_THREADS);
        worker_tell(&process);
    }
    for (int i = 0; i < WORKER_THREADS; i++)
        pthread_join(thread[i].thread, NULL);
    worker_tell(&process);
    hl_client_close(process.client);
}
