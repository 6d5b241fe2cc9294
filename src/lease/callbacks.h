/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Callbacks: the queue of everything that runs user code. One thread of its own works it off, or
 * hl_client_dispatch() does, so that a slow callback delays later callbacks and nothing else.
 */
#ifndef HLI_LEASE_CALLBACKS_H
#define HLI_LEASE_CALLBACKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* Embedded in what is to be told. `run` owns it from then on: the queue has let go of it before. */
struct hli_callback {
    STAILQ_ENTRY(hli_callback) link;
    void (*run)(struct hli_callback *callback);
};

struct hli_callbacks {
    pthread_mutex_t mutex; /* guards the next group */
    pthread_cond_t cond;
    STAILQ_HEAD(, hli_callback) queue;
    bool has_thread, is_stopping;
    pthread_t thread;

    bool by_dispatch; /* immutable after init */
    atomic_int fd;    /* with by_dispatch: readable while something is queued; else -1 */
};

/* Errors: HL_ENOMEM. */
int hli_callbacks_init(struct hli_callbacks *callbacks, bool by_dispatch);
void hli_callbacks_deinit(struct hli_callbacks *callbacks);

/* To be called before the first post: starts the thread, unless the user dispatches. Errors:
 * HL_ENOMEM. */
int hli_callbacks_want(struct hli_callbacks *callbacks);

void hli_callbacks_post(struct hli_callbacks *callbacks, struct hli_callback *callback);

/* Runs what is queued now; returns how many. */
int hli_callbacks_dispatch(struct hli_callbacks *callbacks);

/* Runs what is still queued (in the thread, or in the caller with by_dispatch) and joins the
 * thread. */
void hli_callbacks_stop(struct hli_callbacks *callbacks);

/* Is the calling thread inside one of these callbacks? */
bool hli_callbacks_are_running_here(const struct hli_callbacks *callbacks);

/* In a forked child. */
void hli_callbacks_abandon(struct hli_callbacks *callbacks);

#endif
