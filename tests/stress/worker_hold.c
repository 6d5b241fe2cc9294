/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One acquire of one thread, its hold, its levels and its release. */
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include "lease/state/name.h"
#include "sync/lock/lock.h"
#include "worker.h"

struct worker_hold {
    struct worker_thread *thread;
    struct ledger_record *record;
    hl_lock *lock;
    hl_owner *owner; /* NULL: the thread */
    unsigned levels;
};

static void worker_strange(struct worker_thread *thread, const char *what, int code,
                           const char *text)
{
    struct ledger_book *book = thread->process->job->book;
    if (atomic_fetch_add(&book->strange, 1) == 0)
        snprintf(book->strange_text, sizeof book->strange_text, "%s: %s (%s)", what,
                 hl_err_name(code), text);
}

/* The number in the owner field of the hold: what the server's log is searched for. */
static uint64_t worker_number(hl_lock *lock, hl_owner *owner)
{
    const struct hl_owner *holder = owner ? owner : hli_owner_of_thread();
    pthread_mutex_lock(&lock->handle.name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(lock->handle.name, holder);
    uint64_t number = tenure ? tenure->number : 0;
    pthread_mutex_unlock(&lock->handle.name->mutex);
    return number;
}

/* The stamp is taken before the question, so that a stop in between proves nothing too much. */
static bool worker_believes(struct worker_hold *hold)
{
    int64_t now_ns = ledger_now_ns();
    if (!hl_lock_is_held(hold->lock, hold->owner))
        return false;
    if (atomic_load(&hold->record->first_ns) == 0)
        atomic_store(&hold->record->first_ns, now_ns);
    atomic_store(&hold->record->seen_ns, now_ns);
    return true;
}

static void worker_check_count(struct worker_hold *hold)
{
    uint32_t count = hl_lock_hold_count(hold->lock, hold->owner);
    if (count != hold->levels && worker_believes(hold))
        worker_strange(hold->thread, "hold count", 0, count < hold->levels ? "low" : "high");
}

static void worker_stay(struct worker_hold *hold, int64_t us)
{
    struct timespec nap = {.tv_nsec = us < 1000 ? us * 1000 : 1000000};
    int64_t until_ns = ledger_now_ns() + us * 1000;
    while (worker_believes(hold) && ledger_now_ns() < until_ns)
        nanosleep(&nap, NULL);
}

/* Mostly very short; now and then several renewals long, or past the end of a lease time. */
static int64_t worker_stay_us(struct worker_thread *thread, bool is_watched)
{
    uint64_t kind = worker_roll(thread, 6000);
    if (kind < (is_watched ? 5900 : 5850))
        return (int64_t)worker_roll(thread, 4) == 0 ? (int64_t)worker_roll(thread, 300) : 0;
    if (kind < (is_watched ? 5999 : 5997))
        return (int64_t)worker_roll(thread, 10000);
    return (int64_t)worker_roll(thread, 3 * STRESS_LEASE_MS * INT64_C(1000));
}

struct worker_async {
    sem_t done;
    int code;
};

static void worker_async_done(int code, const hl_error *err, void *arg)
{
    struct worker_async *async = arg;
    (void)err;
    async->code = code;
    sem_post(&async->done);
}

static int worker_async_end(struct worker_async *async, int started)
{
    if (started == 0)
        while (sem_wait(&async->done) != 0)
            continue;
    sem_destroy(&async->done);
    return started < 0 ? started : async->code;
}

static int worker_acquire(struct worker_hold *hold, const hl_acquire_options *options,
                          hl_error *err)
{
    struct worker_async async = {.code = 0};
    if (!hold->owner)
        return hl_lock_acquire_with(hold->lock, options, err);
    sem_init(&async.done, 0, 0);
    return worker_async_end(&async,
                            hl_lock_acquire_async(hold->lock, options, worker_async_done, &async));
}

static int worker_release(struct worker_hold *hold, hl_error *err)
{
    struct worker_async async = {.code = 0};
    if (!hold->owner)
        return hl_lock_release(hold->lock, err);
    sem_init(&async.done, 0, 0);
    return worker_async_end(
        &async, hl_lock_release_async(hold->lock, hold->owner, worker_async_done, &async));
}

static bool worker_code_is_expected(int code)
{
    return code == HL_OK || code == HL_EBUSY || code == HL_ETIMEDOUT || code == HL_ECANCELED ||
           code == HL_ELOST || code == HL_ECONN;
}

/* Deeper by a level, sometimes with a longer lease. */
static void worker_nest(struct worker_hold *hold)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    hl_error err = HL_ERROR_INIT;
    options.owner = hold->owner;
    if (worker_roll(hold->thread, 16) == 0) {
        options.lease_ms = 2 * STRESS_LEASE_MS;
        hold->record->is_plain = false;
    } else if (!hold->record->is_watched) {
        hold->record->is_plain = false; /* renewed from now on */
    }
    atomic_store(&hold->record->deepest, hold->levels + 1);
    int code = worker_acquire(hold, &options, &err);
    if (code == HL_OK) {
        hold->levels++;
        atomic_fetch_add(&hold->thread->process->job->book->held, 1);
    } else if (code != HL_ELOST && code != HL_ECONN && code != HL_ETIMEDOUT) {
        worker_strange(hold->thread, "nested acquire", code, err.text);
    }
    worker_check_count(hold);
}

/* Level by level. */
static void worker_leave(struct worker_hold *hold)
{
    hl_error err = HL_ERROR_INIT;
    for (; hold->levels > 0; hold->levels--) {
        worker_check_count(hold);
        if (hold->levels == 1)
            atomic_store(&hold->record->leave_ns, ledger_now_ns());
        int code = worker_release(hold, &err);
        if (code != HL_OK && code != HL_ELOST && code != HL_EINDOUBT)
            worker_strange(hold->thread, "release", code, err.text);
    }
    if (hl_lock_is_held(hold->lock, hold->owner))
        worker_strange(hold->thread, "held after the last release", 0, "");
}

static void worker_be_inside(struct worker_hold *hold)
{
    hold->levels = 1;
    hold->record->number = worker_number(hold->lock, hold->owner);
    atomic_fetch_add(&hold->thread->process->job->book->held, 1);
    while (hold->levels < 4 && worker_roll(hold->thread, 100) < 20)
        worker_nest(hold);
    worker_stay(hold, worker_stay_us(hold->thread, hold->record->is_watched));
    worker_leave(hold);
}

static void worker_set_cancel(struct worker_thread *thread, hl_cancel *cancel)
{
    struct worker_cancel *slot = &thread->process->cancel[thread->index];
    pthread_mutex_lock(&slot->mutex);
    slot->cancel = cancel;
    pthread_mutex_unlock(&slot->mutex);
}

static void worker_choose(struct worker_thread *thread, hl_acquire_options *options)
{
    uint64_t kind = worker_roll(thread, 100);
    if (kind < 5)
        options->wait_ms = HL_NO_WAIT;
    else if (kind < 20)
        options->wait_ms = (int64_t)worker_roll(thread, 20);
    else
        options->wait_ms = (int64_t)worker_roll(thread, 4 * STRESS_LEASE_MS);
    if (worker_roll(thread, 100) < 8)
        options->lease_ms = STRESS_LEASE_MS;
    if (worker_roll(thread, 100) < 15)
        options->owner = thread->owner;
    if (worker_roll(thread, 100) < 10 && hl_cancel_new(&options->cancel) != 0)
        options->cancel = NULL;
}

void worker_round(struct worker_thread *thread, struct ledger_record *record)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    hl_error err = HL_ERROR_INIT;
    record->name = thread->name;
    worker_choose(thread, &options);
    struct worker_hold hold = {.thread = thread,
                               .record = record,
                               .lock = thread->lock[thread->name][thread->manner],
                               .owner = options.owner};
    record->is_watched = options.lease_ms == 0;
    record->is_plain = true;
    atomic_store(&record->deepest, 1);
    worker_set_cancel(thread, options.cancel);
    record->invoke_ns = ledger_now_ns();
    record->code = worker_acquire(&hold, &options, &err);
    record->return_ns = ledger_now_ns();
    worker_set_cancel(thread, NULL);
    hl_cancel_free(options.cancel);
    if (record->code == HL_OK)
        worker_be_inside(&hold);
    else if (!worker_code_is_expected(record->code))
        worker_strange(thread, "acquire", record->code, err.text);
}
