/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The callback queue and its thread. */
#include "lease/callbacks.h"

#include "base/thread.h"

#include <hirelock/error.h>

#include <sys/eventfd.h>
#include <unistd.h>

static _Thread_local const struct hli_callbacks *callbacks_current;

int hli_callbacks_init(struct hli_callbacks *callbacks, bool by_dispatch)
{
    *callbacks = (struct hli_callbacks){.by_dispatch = by_dispatch};
    pthread_mutex_init(&callbacks->mutex, NULL);
    hli_cond_init(&callbacks->cond);
    STAILQ_INIT(&callbacks->queue);
    atomic_init(&callbacks->fd, by_dispatch ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
    return by_dispatch && callbacks->fd < 0 ? HL_ENOMEM : 0;
}

void hli_callbacks_deinit(struct hli_callbacks *callbacks)
{
    hli_callbacks_abandon(callbacks);
    pthread_cond_destroy(&callbacks->cond);
    pthread_mutex_destroy(&callbacks->mutex);
}

void hli_callbacks_abandon(struct hli_callbacks *callbacks)
{
    int fd = atomic_exchange(&callbacks->fd, -1);

    if (fd >= 0)
        close(fd);
}

bool hli_callbacks_are_running_here(const struct hli_callbacks *callbacks)
{
    return callbacks_current == callbacks;
}

static void callbacks_run(struct hli_callbacks *callbacks, struct hli_callback *callback)
{
    const struct hli_callbacks *before = callbacks_current;

    callbacks_current = callbacks;
    callback->run(callback);
    callbacks_current = before;
}

/* The next one; waits for it if asked to, and gives NULL once the queue is empty and nothing more
 * is to come. */
static struct hli_callback *callbacks_next(struct hli_callbacks *callbacks, bool wait)
{
    pthread_mutex_lock(&callbacks->mutex);
    while (wait && STAILQ_EMPTY(&callbacks->queue) && !callbacks->is_stopping)
        pthread_cond_wait(&callbacks->cond, &callbacks->mutex);
    struct hli_callback *callback = STAILQ_FIRST(&callbacks->queue);
    if (callback)
        STAILQ_REMOVE_HEAD(&callbacks->queue, link);
    pthread_mutex_unlock(&callbacks->mutex);
    return callback;
}

static void *callbacks_thread(void *arg)
{
    struct hli_callbacks *callbacks = arg;
    struct hli_callback *callback;

    while ((callback = callbacks_next(callbacks, true)))
        callbacks_run(callbacks, callback);
    return NULL;
}

int hli_callbacks_want(struct hli_callbacks *callbacks)
{
    int rc = 0;

    pthread_mutex_lock(&callbacks->mutex);
    if (!callbacks->by_dispatch && !callbacks->has_thread && !callbacks->is_stopping) {
        rc = hli_thread_start(&callbacks->thread, "hirelock-call", callbacks_thread, callbacks);
        callbacks->has_thread = rc == 0;
    }
    pthread_mutex_unlock(&callbacks->mutex);
    return rc;
}

void hli_callbacks_post(struct hli_callbacks *callbacks, struct hli_callback *callback)
{
    pthread_mutex_lock(&callbacks->mutex);
    bool was_empty = STAILQ_EMPTY(&callbacks->queue);
    STAILQ_INSERT_TAIL(&callbacks->queue, callback, link);
    pthread_cond_signal(&callbacks->cond);
    pthread_mutex_unlock(&callbacks->mutex);
    if (was_empty && callbacks->by_dispatch)
        eventfd_write(callbacks->fd, 1);
}

STAILQ_HEAD(callbacks_batch, hli_callback);

static void callbacks_take_all(struct hli_callbacks *callbacks, struct callbacks_batch *batch)
{
    struct hli_callback *callback;

    pthread_mutex_lock(&callbacks->mutex);
    while ((callback = STAILQ_FIRST(&callbacks->queue))) {
        STAILQ_REMOVE_HEAD(&callbacks->queue, link);
        STAILQ_INSERT_TAIL(batch, callback, link);
    }
    pthread_mutex_unlock(&callbacks->mutex);
}

/* Only what is queued when it begins: a callback that posts another does not keep the caller here
 * for ever. */
int hli_callbacks_dispatch(struct hli_callbacks *callbacks)
{
    struct callbacks_batch batch = STAILQ_HEAD_INITIALIZER(batch);
    struct hli_callback *callback;
    eventfd_t count;
    int ran = 0;

    if (callbacks->by_dispatch)
        eventfd_read(callbacks->fd, &count);
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
    pthread_mutex_lock(&callbacks->mutex);
    callbacks->is_stopping = true;
    bool has_thread = callbacks->has_thread;
    callbacks->has_thread = false;
    pthread_cond_signal(&callbacks->cond);
    pthread_mutex_unlock(&callbacks->mutex);
    if (has_thread)
        pthread_join(callbacks->thread, NULL);
    while (hli_callbacks_dispatch(callbacks) > 0)
        ;
    hli_callbacks_abandon(callbacks);
}
