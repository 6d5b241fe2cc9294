/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The loop: one thread that owns libevent's base. It connects, reads, and runs every timer of a
 * client. Other threads reach it by tasks and timers only. No user code runs on it but the
 * address_map (route/address_map.h).
 */
#ifndef HLI_REDIS_LOOP_H
#define HLI_REDIS_LOOP_H

#include "base/clock.h"
#include "base/heap.h"

#include <stdbool.h>
#include <sys/queue.h>

struct event_base;
struct hli_loop;

/* A task runs once on the loop thread after it was posted. Posting a task that is queued already
 * changes nothing. */
struct hli_task {
    STAILQ_ENTRY(hli_task) link; /* loop mutex */
    bool queued;                 /* loop mutex */
    void (*run)(void *arg);      /* immutable after init */
    void *arg;
};

/* A timer runs on the loop thread when its time has come. Zero-initialise it, then set the
 * functions and `arg`. */
struct hli_timer {
    struct hli_heap_node node;   /* loop mutex */
    void (*run)(void *arg);      /* immutable after init */
    void (*orphaned)(void *arg); /* instead of run, when the loop has stopped; may be NULL */
    void *arg;
};

/* on_fired runs on the loop thread after hli_wakefd_fire_all(). Errors: HL_ENOMEM, and errno has
 * the reason. */
int hli_loop_start(struct hli_loop **ret_loop, void (*on_fired)(void *arg), void *arg);

/* Joins the thread. Queued tasks run first; `orphaned` runs for timers that are set; later timers
 * are not set. Not from the loop thread. NULL is fine, for all three. */
void hli_loop_stop(struct hli_loop *loop);
void hli_loop_close(struct hli_loop *loop); /* after the stop, when no thread posts any more */
void hli_loop_free(struct hli_loop *loop);  /* after the stop */

bool hli_loop_is_current(const struct hli_loop *loop);
struct event_base *hli_loop_base(struct hli_loop *loop); /* loop thread */

/* False when the loop has stopped: the task will not run. */
bool hli_loop_post(struct hli_loop *loop, struct hli_task *task);

/* Sets the timer, or moves it. True when it was not set before: a caller that counts a reference
 * for a set timer takes the reference then. */
bool hli_timer_set(struct hli_loop *loop, struct hli_timer *timer, hli_ns at);

/* The same, but never moves it to a later time. */
bool hli_timer_set_earlier(struct hli_loop *loop, struct hli_timer *timer, hli_ns at);

/* Loop thread: makes a timer that is set run as soon as possible; does nothing if it is not set. */
void hli_timer_fire_soon(struct hli_loop *loop, struct hli_timer *timer);

/* True when it was set and will not run; false when it was not set, or is running now. */
bool hli_timer_clear(struct hli_loop *loop, struct hli_timer *timer);

#endif
