/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The loop: one thread that owns libevent's base, and with it connecting, reading and every timer
 * of a client. Other threads reach it by tasks and timers; nothing else of it is shared. User code
 * never runs on it.
 */
#ifndef HLI_REDIS_LOOP_H
#define HLI_REDIS_LOOP_H

#include "base/clock.h"
#include "base/heap.h"

#include <stdbool.h>
#include <sys/queue.h>

struct event_base;
struct hli_loop;

/* Runs once on the loop thread for each time it was posted and had run before; a task that waits is
 * not queued twice. */
struct hli_task {
    STAILQ_ENTRY(hli_task) link; /* loop mutex */
    bool queued;                 /* loop mutex */
    void (*run)(void *arg);      /* immutable after init */
    void *arg;
};

/* Runs on the loop thread once its time has come. Zero-initialised, then the functions and `arg`
 * set. */
struct hli_timer {
    struct hli_heap_node node;   /* loop mutex */
    void (*run)(void *arg);      /* immutable after init */
    void (*orphaned)(void *arg); /* instead of run, when the loop has stopped; may be NULL */
    void *arg;
};

/* on_bell runs on the loop thread after a bell was rung (base/bell.h). Errors: HL_ENOMEM, and errno
 * says what ran out. */
int hli_loop_start(struct hli_loop **ret_loop, void (*on_bell)(void *arg), void *arg);

/* Joins the thread; tasks that wait run before, timers that are set are orphaned, and later ones
 * are not set at all. Not from the loop thread. NULL is fine, for all three. */
void hli_loop_stop(struct hli_loop *loop);
void hli_loop_close(struct hli_loop *loop); /* stopped, and nobody posts any more */
void hli_loop_free(struct hli_loop *loop);  /* stopped */

bool hli_loop_is_current(const struct hli_loop *loop);
struct event_base *hli_loop_base(struct hli_loop *loop); /* loop thread */

/* False when the loop has stopped: it will not run. */
bool hli_loop_post(struct hli_loop *loop, struct hli_task *task);

/* Sets the timer, or moves it. Returns true when it was not set before: whoever keeps a reference
 * for a set timer takes it then. */
bool hli_timer_set(struct hli_loop *loop, struct hli_timer *timer, hli_ns at);

/* The same, but an earlier time stays. */
bool hli_timer_set_earlier(struct hli_loop *loop, struct hli_timer *timer, hli_ns at);

/* Loop thread: a timer that is set runs now; one that is not stays so. */
void hli_timer_hurry(struct hli_loop *loop, struct hli_timer *timer);

/* True when it was set and will not run; false when it was not set, or is running now. */
bool hli_timer_clear(struct hli_loop *loop, struct hli_timer *timer);

/* In a forked child: closes the descriptors without telling epoll, whose interest list is the
 * parent's. */
void hli_loop_abandon(struct hli_loop *loop);

#endif
