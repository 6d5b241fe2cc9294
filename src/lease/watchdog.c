/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The watchdog thread. */
#include "lease/watchdog.h"

#include "base/check.h"
#include "base/thread.h"
#include "lease/loss.h"
#include "lease/renewal.h"

struct hli_watchdog {
    hl_client *client; /* borrowed */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t cond;
    struct hli_heap heap; /* tenures by when they are to be looked at; a reference each */
    TAILQ_HEAD(, hli_tenure)
    ready; /* those to be renewed that wait for a batch; a reference each */
    struct hli_renewals idle;
    hli_ns sleeps_until;
    bool is_stopping, is_reviewing;
    struct hli_renewal batch[HLI_RENEWAL_BATCHES];
};

static void watchdog_take_back(struct hli_renewal *renewal)
{
    struct hli_watchdog *watchdog = renewal->client->watchdog;

    pthread_mutex_lock(&watchdog->mutex);
    TAILQ_INSERT_TAIL(&watchdog->idle, renewal, link);
    if (!TAILQ_EMPTY(&watchdog->ready))
        pthread_cond_signal(&watchdog->cond);
    pthread_mutex_unlock(&watchdog->mutex);
}

void hli_watchdog_wake_by(struct hli_watchdog *watchdog, struct hli_tenure *tenure, hli_ns at)
{
    pthread_mutex_lock(&watchdog->mutex);
    bool is_new = !hli_heap_has(&tenure->due) && !watchdog->is_stopping;
    if (is_new) {
        hli_tenure_ref(tenure); /* the heap's */
        hli_heap_insert(&watchdog->heap, &tenure->due, at);
    } else if (hli_heap_has(&tenure->due) && at < tenure->due.at) {
        hli_heap_remove(&watchdog->heap, &tenure->due);
        hli_heap_insert(&watchdog->heap, &tenure->due, at);
    }
    if (at < watchdog->sleeps_until)
        pthread_cond_signal(&watchdog->cond);
    pthread_mutex_unlock(&watchdog->mutex);
}

void hli_watchdog_remove(struct hli_watchdog *watchdog, struct hli_tenure *tenure)
{
    pthread_mutex_lock(&watchdog->mutex);
    bool was_there = hli_heap_has(&tenure->due);
    if (was_there)
        hli_heap_remove(&watchdog->heap, &tenure->due);
    pthread_mutex_unlock(&watchdog->mutex);
    if (was_there)
        hli_tenure_unref(tenure);
}

void hli_watchdog_review(struct hli_watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->is_reviewing = true;
    pthread_cond_signal(&watchdog->cond);
    pthread_mutex_unlock(&watchdog->mutex);
}

/* Takes a tenure that is due by then out of the heap, with its reference; NULL when none is. With
 * the mutex. */
static struct hli_tenure *watchdog_pop(struct hli_watchdog *watchdog, hli_ns by)
{
    struct hli_heap_node *first = hli_heap_first(&watchdog->heap);

    if (!first || (first->at > by && !watchdog->is_reviewing))
        return NULL;
    hli_heap_remove(&watchdog->heap, first);
    return HLI_OF(first, struct hli_tenure, due);
}

/* Looks at one tenure, puts it back for its next time, and into the queue for a renewal. Consumes
 * the reference. */
static void watchdog_look(struct hli_watchdog *watchdog, struct hli_tenure *tenure)
{
    bool renew;
    hli_ns due = hli_loss_look(tenure, &renew);

    if (due != HLI_NEVER)
        hli_watchdog_wake_by(watchdog, tenure, due);
    if (!renew) {
        hli_tenure_unref(tenure);
        return;
    }
    pthread_mutex_lock(&watchdog->mutex);
    TAILQ_INSERT_TAIL(&watchdog->ready, tenure, ready_link); /* with the reference */
    pthread_mutex_unlock(&watchdog->mutex);
}

/* All that are due now, and soon; the list is taken first, for what is put back would be found
 * again. */
static void watchdog_look_at_due(struct hli_watchdog *watchdog)
{
    hli_ns by = hli_now() + hli_renewal_slack(watchdog->client);
    TAILQ_HEAD(, hli_tenure) due = TAILQ_HEAD_INITIALIZER(due);
    struct hli_tenure *tenure;

    pthread_mutex_lock(&watchdog->mutex);
    while ((tenure = watchdog_pop(watchdog, by)))
        TAILQ_INSERT_TAIL(&due, tenure, look_link); /* it may be in the queue for a batch too */
    watchdog->is_reviewing = false;
    pthread_mutex_unlock(&watchdog->mutex);

    while ((tenure = TAILQ_FIRST(&due))) {
        TAILQ_REMOVE(&due, tenure, look_link);
        watchdog_look(watchdog, tenure);
    }
}

/* Fills an idle batch from the queue; NULL when there is nothing to do, or no batch. */
static struct hli_renewal *watchdog_fill(struct hli_watchdog *watchdog)
{
    struct hli_tenure *tenure;

    pthread_mutex_lock(&watchdog->mutex);
    struct hli_renewal *renewal =
        TAILQ_EMPTY(&watchdog->ready) ? NULL : TAILQ_FIRST(&watchdog->idle);
    if (renewal)
        TAILQ_REMOVE(&watchdog->idle, renewal, link);
    while (renewal && (tenure = TAILQ_FIRST(&watchdog->ready)) && hli_renewal_add(renewal, tenure))
        TAILQ_REMOVE(&watchdog->ready, tenure, ready_link);
    pthread_mutex_unlock(&watchdog->mutex);
    return renewal;
}

/* Sleeps until the earliest deadline, or until there is a batch for what is ready. False when it is
 * to stop. */
static bool watchdog_sleep(struct hli_watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->mutex);
    struct hli_heap_node *first = hli_heap_first(&watchdog->heap);
    bool has_work = !TAILQ_EMPTY(&watchdog->ready) && !TAILQ_EMPTY(&watchdog->idle);
    watchdog->sleeps_until = first ? first->at : HLI_NEVER;
    if (!has_work && !watchdog->is_stopping && !watchdog->is_reviewing &&
        watchdog->sleeps_until > hli_now())
        hli_cond_wait_until(&watchdog->cond, &watchdog->mutex, watchdog->sleeps_until);
    watchdog->sleeps_until = 0; /* awake: nobody needs to signal */
    bool goes_on = !watchdog->is_stopping;
    pthread_mutex_unlock(&watchdog->mutex);
    return goes_on;
}

static void *watchdog_run(void *arg)
{
    struct hli_watchdog *watchdog = arg;
    struct hli_renewal *renewal;

    do {
        watchdog_look_at_due(watchdog);
        while ((renewal = watchdog_fill(watchdog)))
            hli_renewal_post(renewal);
    } while (watchdog_sleep(watchdog));
    return NULL;
}

int hli_watchdog_start(hl_client *client, struct hli_watchdog **ret_watchdog)
{
    struct hli_watchdog *watchdog = calloc(1, sizeof(*watchdog));

    if (!watchdog)
        return HL_ENOMEM;
    watchdog->client = client;
    pthread_mutex_init(&watchdog->mutex, NULL);
    hli_cond_init(&watchdog->cond);
    TAILQ_INIT(&watchdog->ready);
    TAILQ_INIT(&watchdog->idle);
    for (int i = 0; i < HLI_RENEWAL_BATCHES; i++) {
        hli_renewal_init(&watchdog->batch[i], client, watchdog_take_back);
        TAILQ_INSERT_TAIL(&watchdog->idle, &watchdog->batch[i], link);
    }
    if (hli_thread_start(&watchdog->thread, "hirelock-watch", watchdog_run, watchdog) < 0) {
        free(watchdog);
        return HL_ENOMEM;
    }
    *ret_watchdog = watchdog;
    return 0;
}

/* One that nobody looks after any more, with its reference; NULL when there is none. The loop still
 * brings batches back, and takes tenures away. */
static struct hli_tenure *watchdog_take(struct hli_watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->mutex);
    struct hli_tenure *tenure = TAILQ_FIRST(&watchdog->ready);
    if (tenure)
        TAILQ_REMOVE(&watchdog->ready, tenure, ready_link);
    else
        tenure = watchdog_pop(watchdog, HLI_NEVER);
    pthread_mutex_unlock(&watchdog->mutex);
    return tenure;
}

void hli_watchdog_stop(struct hli_watchdog *watchdog)
{
    struct hli_tenure *tenure;

    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->is_stopping = true;
    pthread_cond_signal(&watchdog->cond);
    pthread_mutex_unlock(&watchdog->mutex);
    pthread_join(watchdog->thread, NULL);
    while ((tenure = watchdog_take(watchdog)))
        hli_tenure_unref(tenure);
}

void hli_watchdog_free(struct hli_watchdog *watchdog)
{
    if (!watchdog)
        return;
    HLI_CHECK(!hli_heap_first(&watchdog->heap));
    for (int i = 0; i < HLI_RENEWAL_BATCHES; i++)
        hli_renewal_deinit(&watchdog->batch[i]);
    pthread_cond_destroy(&watchdog->cond);
    pthread_mutex_destroy(&watchdog->mutex);
    free(watchdog);
}
