/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The callback queue and its thread. */
#include "lease/calls/callbacks.h"

#include "base/thread.h"

#include <hirelock/error.h>

/* A callback that this thread is inside. They nest: a callback of one client may dispatch another
 * client's. */
struct callbacks_frame {
    const struct hli_callbacks *of;
    const struct callbacks_frame *outer;
};

static _Thread_local const struct callbacks_frame *callbacks_inside;

int hli_callbacks_init(struct hli_callbacks *callbacks, bool by_dispatch)
{
    *callbacks = (struct hli_callbacks){.by_dispatch = by_dispatch};
    hli_mutex_init(&callbacks->mutex);
    hli_cond_init(&callbacks->cond);
    STAILQ_INIT(&callbacks->queue);
    hli_wakefd_init(&callbacks->wakefd);
    return by_dispatch ? hli_wakefd_open(&callbacks->wakefd) : 0;
}

void hli_callbacks_deinit(struct hli_callbacks *callbacks)
{
    hli_wakefd_close(&callbacks->wakefd);
    hli_cond_deinit(&callbacks->cond);
    hli_mutex_deinit(&callbacks->mutex);
}

void hli_callbacks_abandon(struct hli_callbacks *callbacks)
{
    hli_wakefd_abandon(&callbacks->wakefd);
}

bool hli_callbacks_are_running_here(const struct hli_callbacks *callbacks)
{
    const struct callbacks_frame *frame = callbacks_inside;

    while (frame && callbacks && frame->of != callbacks)
        frame = frame->outer;
    return frame != NULL;
}

void hli_callbacks_forget_all(void)
{
    callbacks_inside = NULL;
}

static void callbacks_run(struct hli_callbacks *callbacks, struct hli_callback *callback)
{
    const struct callbacks_frame frame = {callbacks, callbacks_inside};

    callbacks_inside = &frame;
    callback->run(callback);
    callbacks_inside = frame.outer;
}

/* Takes the next callback out of the queue, and blocks for one. NULL: it is empty and stopping. */
static struct hli_callback *callbacks_next(struct hli_callbacks *callbacks)
{
    hli_mutex_lock(&callbacks->mutex);
    while (STAILQ_EMPTY(&callbacks->queue) && !callbacks->is_stopping)
        hli_cond_wait(&callbacks->cond, &callbacks->mutex);
    struct hli_callback *callback = STAILQ_FIRST(&callbacks->queue);
    if (callback)
        STAILQ_REMOVE_HEAD(&callbacks->queue, link);
    hli_mutex_unlock(&callbacks->mutex);
    return callback;
}

static void *callbacks_thread(void *arg)
{
    struct hli_callbacks *callbacks = arg;
    struct hli_callback *callback;

    while ((callback = callbacks_next(callbacks)))
        callbacks_run(callbacks, callback);
    return NULL;
}

int hli_callbacks_want(struct hli_callbacks *callbacks)
{
    int rc = 0;

    hli_mutex_lock(&callbacks->mutex);
    if (!callbacks->by_dispatch && !callbacks->has_thread && !callbacks->is_stopping) {
        rc = hli_thread_start(&callbacks->thread, "hirelock-call", callbacks_thread, callbacks);
        callbacks->has_thread = rc == 0;
    }
    hli_mutex_unlock(&callbacks->mutex);
    return rc;
}

void hli_callbacks_post(struct hli_callbacks *callbacks, struct hli_callback *callback)
{
    hli_mutex_lock(&callbacks->mutex);
    bool was_empty = STAILQ_EMPTY(&callbacks->queue);
    STAILQ_INSERT_TAIL(&callbacks->queue, callback, link);
    hli_cond_signal(&callbacks->cond);
    hli_mutex_unlock(&callbacks->mutex);
    if (was_empty && callbacks->by_dispatch)
        hli_wakefd_wake(&callbacks->wakefd);
}

STAILQ_HEAD(callbacks_batch, hli_callback);

static void callbacks_take_all(struct hli_callbacks *callbacks, struct callbacks_batch *batch)
{
    struct hli_callback *callback;

    hli_mutex_lock(&callbacks->mutex);
    while ((callback = STAILQ_FIRST(&callbacks->queue))) {
        STAILQ_REMOVE_HEAD(&callbacks->queue, link);
        STAILQ_INSERT_TAIL(batch, callback, link);
    }
    hli_mutex_unlock(&callbacks->mutex);
}

/* Runs only the callbacks that are queued when it begins, so that a callback that posts another
 * does not keep the caller here for ever. */
int hli_callbacks_dispatch(struct hli_callbacks *callbacks)
{
    struct callbacks_batch batch = STAILQ_HEAD_INITIALIZER(batch);
    struct hli_callback *callback;
    int ran = 0;

    if (callbacks->by_dispatch)
        hli_wakefd_clear(&callbacks->wakefd);
    callbacks_take_all(callbacks, &batch);
    while ((callback = STAILQ_FIRST(&batch))) {
        STAILQ_REMOVE_HEAD(&batch, link);
        callbacks_run(callbacks, callback);
        ran++;
    }
    return ran;
}

void hli_callbacks_stop(struct hli_callbacks *callbacks)
{
    hli_mutex_lock(&callbacks->mutex);
    callbacks->is_stopping = true;
    bool has_thread = callbacks->has_thread;
    callbacks->has_thread = false;
    hli_cond_signal(&callbacks->cond);
    hli_mutex_unlock(&callbacks->mutex);
    if (has_thread)
        hli_thread_join(callbacks->thread);
    while (hli_callbacks_dispatch(callbacks) > 0)
        ;
    hli_wakefd_close(&callbacks->wakefd);
}
