/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Callbacks: the queue of all user code to be run: completions, events, log lines. Its own thread
 * runs them, or hl_client_dispatch() does; so a slow callback delays later callbacks and nothing
 * else.
 */
#ifndef HLI_LEASE_CALLS_CALLBACKS_H
#define HLI_LEASE_CALLS_CALLBACKS_H

#include "base/check.h"
#include "base/thread.h"
#include "base/wakefd.h"

#include <stdbool.h>
#include <sys/queue.h>

/* One entry of the queue, embedded in another object. The queue removes it before it calls `run`;
 * from then on `run` owns it. */
struct hli_callback {
    HLI_PART
    STAILQ_ENTRY(hli_callback) link;
    void (*run)(struct hli_callback *callback);
};

struct hli_callbacks {
    hli_mutex mutex; /* guards the next group */
    hli_cond cond;
    STAILQ_HEAD(, hli_callback) queue;
    bool has_thread, is_stopping;
    hli_thread thread;

    bool by_dispatch;         /* immutable after init */
    struct hli_wakefd wakefd; /* open with by_dispatch: readable while something is queued */
};

/* Errors: HL_ENOMEM. */
int hli_callbacks_init(struct hli_callbacks *callbacks, bool by_dispatch);
void hli_callbacks_deinit(struct hli_callbacks *callbacks);

/* Starts the thread, unless the user dispatches; to be called before the first post. Errors:
 * HL_ENOMEM. */
int hli_callbacks_want(struct hli_callbacks *callbacks);

void hli_callbacks_post(struct hli_callbacks *callbacks, struct hli_callback *callback);

/* Runs the callbacks that are queued now; returns their number. */
int hli_callbacks_dispatch(struct hli_callbacks *callbacks);

/* Runs the callbacks that are still queued (in the thread, or in the caller with by_dispatch) and
 * joins the thread. */
void hli_callbacks_stop(struct hli_callbacks *callbacks);

/* Is the calling thread inside one of these callbacks? NULL: inside any client's? */
bool hli_callbacks_are_running_here(const struct hli_callbacks *callbacks);

/* Both for a forked child: the first for each client; after the second the calling thread is inside
 * no callback. */
void hli_callbacks_abandon(struct hli_callbacks *callbacks);
void hli_callbacks_forget_all(void);

#endif
