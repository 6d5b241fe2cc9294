/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The loop thread: libevent's base with two events of its own, the wake-up eventfd and the next
 * timer. */
#include "redis/loop.h"

#include "base/check.h"
#include "base/thread.h"
#include "base/wakefd.h"

#include <hirelock/error.h>

#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>

enum { LOOP_BASE_FILES = 3 }; /* an epoll instance, and both ends of the signal pipe */

struct hli_loop {
    hli_thread thread;         /* immutable after start */
    struct hli_wakefd *wakefd; /* listed */
    void (*on_fired)(void *arg);
    void *arg;

    hli_mutex mutex; /* guards tasks, timers, stopping, sleeps_until */
    STAILQ_HEAD(, hli_task) tasks;
    struct hli_heap timers;
    bool stopping, stopped;
    hli_ns sleeps_until; /* when the timer event is due */

    atomic_bool woken; /* a wake is on its way to the loop; more would change nothing */

    struct event_base *base; /* loop thread */
    struct event *wake_event, *timer_event;
};

static _Thread_local const struct hli_loop *loop_current;

bool hli_loop_is_current(const struct hli_loop *loop)
{
    return loop_current == loop;
}

struct event_base *hli_loop_base(struct hli_loop *loop)
{
    return loop->base;
}

static void loop_wake(struct hli_loop *loop)
{
    if (!atomic_exchange(&loop->woken, true))
        hli_wakefd_wake(loop->wakefd);
}

/* Makes the timer event due at the earliest timer, or before. */
static void loop_schedule(struct hli_loop *loop)
{
    hli_mutex_lock(&loop->mutex);
    struct hli_heap_node *first = hli_heap_first(&loop->timers);
    hli_ns at = first ? first->at : HLI_NEVER;
    bool changed = at != loop->sleeps_until;
    loop->sleeps_until = at;
    hli_mutex_unlock(&loop->mutex);

    if (!changed)
        return;
    if (at == HLI_NEVER) {
        event_del(loop->timer_event);
        return;
    }
    hli_ns left = hli_nap(at);
    struct timeval tv = {.tv_sec = left / 1000000000, .tv_usec = left % 1000000000 / 1000};
    event_add(loop->timer_event, &tv);
}

static struct hli_task *loop_next_task(struct hli_loop *loop)
{
    hli_mutex_lock(&loop->mutex);
    struct hli_task *task = STAILQ_FIRST(&loop->tasks);
    if (task) {
        STAILQ_REMOVE_HEAD(&loop->tasks, link);
        task->queued = false;
    }
    hli_mutex_unlock(&loop->mutex);
    return task;
}

static struct hli_timer *loop_next_timer(struct hli_loop *loop, hli_ns now)
{
    hli_mutex_lock(&loop->mutex);
    struct hli_heap_node *first = hli_heap_first(&loop->timers);
    bool due = first && first->at <= now;
    if (due)
        hli_heap_remove(&loop->timers, first);
    hli_mutex_unlock(&loop->mutex);
    return due ? HLI_OF(first, struct hli_timer, node) : NULL;
}

static void loop_run_tasks(struct hli_loop *loop)
{
    struct hli_task *task;

    while ((task = loop_next_task(loop)))
        task->run(task->arg);
}

static bool loop_is_stopping(struct hli_loop *loop)
{
    hli_mutex_lock(&loop->mutex);
    bool stopping = loop->stopping;
    hli_mutex_unlock(&loop->mutex);
    return stopping;
}

static void loop_on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct hli_loop *loop = arg;

    (void)fd, (void)what;
    hli_wakefd_clear(loop->wakefd);
    /* Cleared before the queue is read, so that a later post wakes the loop again. */
    atomic_store(&loop->woken, false);
    if (hli_wakefd_was_fired(loop->wakefd))
        loop->on_fired(loop->arg);
    loop_run_tasks(loop);
    if (loop_is_stopping(loop))
        event_base_loopbreak(loop->base);
    loop_schedule(loop);
}

static void loop_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct hli_loop *loop = arg;
    struct hli_timer *timer;

    (void)fd, (void)what;
    while ((timer = loop_next_timer(loop, hli_now())))
        timer->run(timer->arg);
    hli_mutex_lock(&loop->mutex);
    loop->sleeps_until = HLI_NEVER; /* the event has fired: later timers need it anew */
    hli_mutex_unlock(&loop->mutex);
    loop_schedule(loop);
}

static void *loop_run(void *arg)
{
    struct hli_loop *loop = arg;

    loop_current = loop;
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

/* Runs what libevent has deferred, such as the ends of dropped lookups: one iteration reports them,
 * and the next frees them. */
static void loop_drain(struct hli_loop *loop)
{
    enum { TURNS = 3 };

    for (int i = 0; i < TURNS; i++)
        event_base_loop(loop->base, EVLOOP_NONBLOCK);
}

/* Frees the events and descriptors. */
static void loop_give_back(struct hli_loop *loop)
{
    if (loop->wake_event)
        event_free(loop->wake_event);
    if (loop->timer_event)
        event_free(loop->timer_event);
    if (loop->base) {
        loop_drain(loop);
        event_base_free(loop->base);
    }
    loop->wake_event = loop->timer_event = NULL;
    loop->base = NULL;
    hli_wakefd_close_listed(loop->wakefd);
    loop->wakefd = NULL;
}

void hli_loop_free(struct hli_loop *loop)
{
    if (!loop)
        return;
    loop_give_back(loop);
    hli_mutex_deinit(&loop->mutex);
    free(loop);
}

/* event_base_new() ends the program when there are no descriptors for its signal pipe, so this
 * function opens some first. (Another thread can still take them in between.) */
static bool loop_has_files_for_base(void)
{
    struct hli_wakefd tried[LOOP_BASE_FILES];
    bool has = true;

    for (int i = 0; i < LOOP_BASE_FILES; i++) {
        hli_wakefd_init(&tried[i]);
        has = has && hli_wakefd_open(&tried[i]) == 0;
    }
    int reason = errno;
    for (int i = 0; i < LOOP_BASE_FILES; i++)
        hli_wakefd_close(&tried[i]);
    errno = reason;
    return has;
}

static int loop_prepare(struct hli_loop *loop)
{
    loop->wakefd = hli_wakefd_open_listed();
    if (!loop->wakefd || !loop_has_files_for_base())
        return HL_ENOMEM;
    loop->base = event_base_new();
    if (!loop->base)
        return HL_ENOMEM;
    loop->wake_event =
        event_new(loop->base, loop->wakefd->fd, EV_READ | EV_PERSIST, loop_on_wake, loop);
    loop->timer_event = evtimer_new(loop->base, loop_on_timer, loop);
    if (!loop->wake_event || !loop->timer_event || event_add(loop->wake_event, NULL) < 0 ||
        event_add(loop->timer_event, &(struct timeval){.tv_sec = 3600}) < 0)
        return HL_ENOMEM; /* the event now has its memory: adding it again cannot fail */
    return hli_thread_start(&loop->thread, "hirelock-loop", loop_run, loop);
}

int hli_loop_start(struct hli_loop **ret_loop, void (*on_fired)(void *arg), void *arg)
{
    struct hli_loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return HL_ENOMEM;
    hli_mutex_init(&loop->mutex);
    STAILQ_INIT(&loop->tasks);
    loop->sleeps_until = HLI_NEVER;
    loop->on_fired = on_fired;
    loop->arg = arg;
    int rc = loop_prepare(loop);
    if (rc < 0) {
        int reason = errno;
        hli_loop_free(loop);
        errno = reason;
    } else {
        *ret_loop = loop;
    }
    return rc;
}

void hli_loop_stop(struct hli_loop *loop)
{
    struct hli_timer *timer;

    if (!loop)
        return;
    hli_mutex_lock(&loop->mutex);
    loop->stopping = true;
    hli_mutex_unlock(&loop->mutex);
    loop_wake(loop);
    hli_thread_join(loop->thread);
    hli_mutex_lock(&loop->mutex);
    loop->stopped = true;
    hli_mutex_unlock(&loop->mutex);
    loop_run_tasks(loop); /* posted between its last look and the end */
    while ((timer = loop_next_timer(loop, HLI_NEVER)))
        if (timer->orphaned)
            timer->orphaned(timer->arg);
}

void hli_loop_close(struct hli_loop *loop)
{
    if (loop)
        loop_give_back(loop);
}

bool hli_loop_post(struct hli_loop *loop, struct hli_task *task)
{
    hli_mutex_lock(&loop->mutex);
    bool is_in_time = !loop->stopped, fresh = is_in_time && !task->queued;
    if (fresh) {
        task->queued = true;
        STAILQ_INSERT_TAIL(&loop->tasks, task, link);
    }
    hli_mutex_unlock(&loop->mutex);
    if (fresh)
        loop_wake(loop);
    return is_in_time;
}

enum timer_when { TIMER_ALWAYS, TIMER_IF_EARLIER, TIMER_IF_SET };

static bool timer_move(struct hli_loop *loop, struct hli_timer *timer, hli_ns at,
                       enum timer_when when)
{
    hli_mutex_lock(&loop->mutex);
    bool was_set = hli_heap_has(&timer->node);
    if (loop->stopped || (when == TIMER_IF_SET && !was_set)) {
        hli_mutex_unlock(&loop->mutex);
        return false;
    }
    if (!was_set || when != TIMER_IF_EARLIER || at < timer->node.at) {
        if (was_set)
            hli_heap_remove(&loop->timers, &timer->node);
        hli_heap_insert(&loop->timers, &timer->node, at);
    }
    bool oversleeps = at < loop->sleeps_until;
    hli_mutex_unlock(&loop->mutex);

    if (oversleeps && hli_loop_is_current(loop))
        loop_schedule(loop);
    else if (oversleeps)
        loop_wake(loop);
    return !was_set;
}

bool hli_timer_set(struct hli_loop *loop, struct hli_timer *timer, hli_ns at)
{
    return timer_move(loop, timer, at, TIMER_ALWAYS);
}

bool hli_timer_set_earlier(struct hli_loop *loop, struct hli_timer *timer, hli_ns at)
{
    return timer_move(loop, timer, at, TIMER_IF_EARLIER);
}

void hli_timer_fire_soon(struct hli_loop *loop, struct hli_timer *timer)
{
    timer_move(loop, timer, 0, TIMER_IF_SET);
}

bool hli_timer_clear(struct hli_loop *loop, struct hli_timer *timer)
{
    hli_mutex_lock(&loop->mutex);
    bool was_set = hli_heap_has(&timer->node);
    if (was_set)
        hli_heap_remove(&loop->timers, &timer->node);
    hli_mutex_unlock(&loop->mutex);
    return was_set;
}
