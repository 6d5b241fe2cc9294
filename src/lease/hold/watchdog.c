/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The watchdog thread. */
#include "lease/hold/watchdog.h"

#include "base/check.h"
#include "base/thread.h"
#include "lease/hold/loss.h"
#include "lease/hold/renewal_queue.h"

struct hli_watchdog {
    hl_client *client; /* borrowed */
    hli_thread thread;

    hli_mutex mutex; /* guards all below */
    hli_cond cond;
    struct hli_heap heap;    /* tenures by the time of their next visit; a reference each */
    struct hli_task *behind; /* to be posted behind the renewals that are due, or NULL */
    hli_ns sleeps_until;
    bool is_stopping, is_reviewing;
    SLIST_HEAD(, hli_renewal_queue) queues; /* one for each link; `first` is the last */
    struct hli_renewal_queue first;         /* of a single server the only one */
};

static void watchdog_take_back(struct hli_renewal *renewal);

static bool watchdog_may_send(const struct hli_watchdog *watchdog)
{
    const struct hli_renewal_queue *queue;

    SLIST_FOREACH(queue, &watchdog->queues, next)
    if (hli_renewal_queue_may_send(queue))
        return true;
    return false;
}

/* The queue of this link; without memory for one it is that of the first link. With the mutex. */
static struct hli_renewal_queue *watchdog_queue_of(struct hli_watchdog *watchdog,
                                                   const struct hli_link *link)
{
    struct hli_renewal_queue *queue;

    const bool is_for_cluster = watchdog->client->wording->is_for_cluster;

    if (!watchdog->first.link)
        hli_renewal_queue_set_link(&watchdog->first, link, is_for_cluster);
    SLIST_FOREACH(queue, &watchdog->queues, next)
    if (queue->link == link)
        return queue;
    queue = malloc(sizeof(*queue));
    if (!queue)
        return &watchdog->first;
    hli_renewal_queue_init(queue, watchdog->client, watchdog_take_back);
    hli_renewal_queue_set_link(queue, link, is_for_cluster);
    SLIST_INSERT_HEAD(&watchdog->queues, queue, next);
    return queue;
}

/* Puts a tenure into the queue for a batch, with its reference. */
static void watchdog_queue(struct hli_watchdog *watchdog, struct hli_tenure *tenure)
{
    const struct hli_link *link = hli_name_link(tenure->name);

    hli_mutex_lock(&watchdog->mutex);
    bool is_late = watchdog->is_stopping;
    if (!is_late)
        hli_renewal_queue_add(watchdog_queue_of(watchdog, link), tenure);
    hli_mutex_unlock(&watchdog->mutex);
    if (is_late)
        hli_tenure_unref(tenure);
}

static void watchdog_take_back(struct hli_renewal *renewal)
{
    struct hli_watchdog *watchdog = renewal->client->watchdog;
    struct hli_tenure *tenure;

    while ((tenure = hli_renewal_pop(renewal)))
        watchdog_queue(watchdog, tenure);
    hli_mutex_lock(&watchdog->mutex);
    hli_renewal_queue_take_back(renewal);
    if (watchdog_may_send(watchdog))
        hli_cond_signal(&watchdog->cond);
    hli_mutex_unlock(&watchdog->mutex);
}

void hli_watchdog_wake_by(struct hli_tenure *tenure, hli_ns at)
{
    struct hli_watchdog *watchdog = tenure->name->client->watchdog;

    hli_mutex_lock(&watchdog->mutex);
    bool was_there = hli_heap_has(&tenure->due), is_late = watchdog->is_stopping && !was_there;
    if (was_there && at < tenure->due.at)
        hli_heap_remove(&watchdog->heap, &tenure->due);
    if (!is_late && (!was_there || !hli_heap_has(&tenure->due)))
        hli_heap_insert(&watchdog->heap, &tenure->due, at); /* with the reference, if it was new */
    if (at < watchdog->sleeps_until)
        hli_cond_signal(&watchdog->cond);
    hli_mutex_unlock(&watchdog->mutex);
    if (was_there || is_late)
        hli_tenure_unref(tenure);
}

void hli_watchdog_remove(struct hli_tenure *tenure)
{
    struct hli_watchdog *watchdog = tenure->name->client->watchdog;

    hli_mutex_lock(&watchdog->mutex);
    bool was_there = hli_heap_has(&tenure->due);
    if (was_there)
        hli_heap_remove(&watchdog->heap, &tenure->due);
    hli_mutex_unlock(&watchdog->mutex);
    if (was_there)
        hli_tenure_unref(tenure);
}

void hli_watchdog_review(struct hli_watchdog *watchdog)
{
    hli_mutex_lock(&watchdog->mutex);
    watchdog->is_reviewing = true;
    hli_cond_signal(&watchdog->cond);
    hli_mutex_unlock(&watchdog->mutex);
}

void hli_watchdog_post_behind(struct hli_watchdog *watchdog, struct hli_task *task)
{
    hli_mutex_lock(&watchdog->mutex);
    watchdog->behind = task;
    hli_cond_signal(&watchdog->cond);
    hli_mutex_unlock(&watchdog->mutex);
}

/* Takes a tenure that is due by `by` out of the heap, with its reference; NULL when none is due.
 * With the mutex. */
static struct hli_tenure *watchdog_pop(struct hli_watchdog *watchdog, hli_ns by)
{
    struct hli_heap_node *first = hli_heap_first(&watchdog->heap);

    if (!first || (first->at > by && !watchdog->is_reviewing))
        return NULL;
    hli_heap_remove(&watchdog->heap, first);
    return HLI_OF(first, struct hli_tenure, due);
}

/* Visits the tenures that are due now or soon, and queues those that are due for a renewal; each
 * tenure's turn tells the watchdog the next time. The list is taken first, because a tenure that is
 * put back would be found again. Returns the task to be posted behind them, or NULL. */
static struct hli_task *watchdog_look_at_due(struct hli_watchdog *watchdog)
{
    hli_ns by = hli_now() + hli_lease_slack(watchdog->client->settings.watchdog_timeout_ms);
    STAILQ_HEAD(, hli_tenure) due = STAILQ_HEAD_INITIALIZER(due);
    struct hli_tenure *tenure;

    hli_mutex_lock(&watchdog->mutex);
    while ((tenure = watchdog_pop(watchdog, by)))
        STAILQ_INSERT_TAIL(&due, tenure, visit_link); /* it may be in the queue for a batch too */
    watchdog->is_reviewing = false;
    struct hli_task *behind = watchdog->behind;
    watchdog->behind = NULL;
    hli_mutex_unlock(&watchdog->mutex);

    while ((tenure = STAILQ_FIRST(&due))) {
        STAILQ_REMOVE_HEAD(&due, visit_link);
        if (hli_loss_check(tenure))
            watchdog_queue(watchdog, tenure);
        else
            hli_tenure_unref(tenure); /* the heap's */
    }
    return behind;
}

/* Fills an idle batch from a queue; NULL when there is nothing to do, or no batch. */
static struct hli_renewal *watchdog_fill(struct hli_watchdog *watchdog)
{
    struct hli_renewal *renewal = NULL;
    struct hli_renewal_queue *queue;

    hli_mutex_lock(&watchdog->mutex);
    SLIST_FOREACH(queue, &watchdog->queues, next)
    if (!renewal)
        renewal = hli_renewal_queue_fill(queue);
    hli_mutex_unlock(&watchdog->mutex);
    return renewal;
}

/* Sleeps until the earliest deadline, or until a batch can be sent. False when the thread is to
 * stop. */
static bool watchdog_sleep(struct hli_watchdog *watchdog)
{
    hli_mutex_lock(&watchdog->mutex);
    struct hli_heap_node *first = hli_heap_first(&watchdog->heap);
    bool has_work = watchdog_may_send(watchdog) || watchdog->behind;
    watchdog->sleeps_until = first ? first->at : HLI_NEVER;
    if (!has_work && !watchdog->is_stopping && !watchdog->is_reviewing &&
        watchdog->sleeps_until > hli_now())
        hli_cond_wait_until(&watchdog->cond, &watchdog->mutex, watchdog->sleeps_until);
    watchdog->sleeps_until = 0; /* awake: no thread needs to signal */
    bool goes_on = !watchdog->is_stopping;
    hli_mutex_unlock(&watchdog->mutex);
    return goes_on;
}

static void *watchdog_run(void *arg)
{
    struct hli_watchdog *watchdog = arg;
    struct hli_renewal *renewal;
    struct hli_task *behind;

    do {
        behind = watchdog_look_at_due(watchdog);
        while ((renewal = watchdog_fill(watchdog)))
            hli_loop_post(watchdog->client->loop, &renewal->task);
        if (behind)
            hli_loop_post(watchdog->client->loop, behind);
    } while (watchdog_sleep(watchdog));
    return NULL;
}

int hli_watchdog_start(hl_client *client, struct hli_watchdog **ret_watchdog)
{
    struct hli_watchdog *watchdog = calloc(1, sizeof(*watchdog));

    if (!watchdog)
        return HL_ENOMEM;
    watchdog->client = client;
    hli_mutex_init(&watchdog->mutex);
    hli_cond_init(&watchdog->cond);
    hli_renewal_queue_init(&watchdog->first, client, watchdog_take_back);
    SLIST_INSERT_HEAD(&watchdog->queues, &watchdog->first, next);
    if (hli_thread_start(&watchdog->thread, "hirelock-watch", watchdog_run, watchdog) < 0) {
        free(watchdog);
        return HL_ENOMEM;
    }
    *ret_watchdog = watchdog;
    return 0;
}

/* Takes one of the tenures left after the thread's end, with its reference; NULL when there is
 * none. The loop still returns batches, and removes tenures. */
static struct hli_tenure *watchdog_take(struct hli_watchdog *watchdog)
{
    struct hli_renewal_queue *queue;

    hli_mutex_lock(&watchdog->mutex);
    struct hli_tenure *tenure = watchdog_pop(watchdog, HLI_NEVER);
    SLIST_FOREACH(queue, &watchdog->queues, next)
    if (!tenure)
        tenure = hli_renewal_queue_pop(queue);
    hli_mutex_unlock(&watchdog->mutex);
    return tenure;
}

void hli_watchdog_stop(struct hli_watchdog *watchdog)
{
    struct hli_tenure *tenure;

    if (!watchdog)
        return;
    hli_mutex_lock(&watchdog->mutex);
    watchdog->is_stopping = true;
    hli_cond_signal(&watchdog->cond);
    hli_mutex_unlock(&watchdog->mutex);
    hli_thread_join(watchdog->thread);
    while ((tenure = watchdog_take(watchdog)))
        hli_tenure_unref(tenure);
}

void hli_watchdog_free(struct hli_watchdog *watchdog)
{
    struct hli_renewal_queue *queue;

    if (!watchdog)
        return;
    HLI_CHECK(!hli_heap_first(&watchdog->heap));
    while ((queue = SLIST_FIRST(&watchdog->queues))) {
        SLIST_REMOVE_HEAD(&watchdog->queues, next);
        hli_renewal_queue_deinit(queue);
        if (queue != &watchdog->first)
            free(queue);
    }
    hli_cond_deinit(&watchdog->cond);
    hli_mutex_deinit(&watchdog->mutex);
    free(watchdog);
}
