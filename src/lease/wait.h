/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A wait: somebody's call that is under way, with its deadline, its cancel and its one result. A
 * blocking call sleeps on the wait's gate; an async one is looked after by the loop's timer, and
 * its result goes to the callbacks.
 */
#ifndef HLI_LEASE_WAIT_H
#define HLI_LEASE_WAIT_H

#include "base/thread.h"
#include "redis/loop.h"

#include <hirelock/lock.h>

#include <sys/queue.h>

struct hl_cancel {
    atomic_bool is_fired;
};

struct hli_wait {
    hl_client *client; /* borrowed: the call has a reference */
    hli_ns started;
    hli_ns deadline;                   /* of the caller's wait time */
    hl_cancel *cancel;                 /* borrowed, or NULL */
    TAILQ_ENTRY(hli_wait) cancel_link; /* client's waits mutex */

    /* Is it over, by time or by cancel? Ends it if so. True while it goes on, and then look_at says
     * when to look again. */
    bool (*look)(struct hli_wait *wait, hli_ns now);
    bool (*awaits_message)(
        struct hli_wait *wait); /* may what comes by the mailbox end it? NULL: no */
    hli_ns look_at;             /* of whoever looks */
    hli_ns first_look_at;       /* immutable */
    bool has_cancel;            /* immutable once it has begun */

    bool is_finished; /* under the mutex of what is waited for, as the two below */
    int code;
    hl_error *err; /* borrowed from the caller, may be NULL; written on failure only */
    TAILQ_ENTRY(hli_wait) finish_link;

    struct hli_gate gate;                    /* of a blocking call */
    void (*finished)(struct hli_wait *wait); /* of an async call, else NULL */
    void (*looked)(
        struct hli_wait *wait); /* of an async call: its timer is done, and will not be set again */
    struct hli_timer timer;
    atomic_bool is_looked_after; /* the timer is in use */
    atomic_bool has_ended;       /* its completion has run, or is about to */
};

TAILQ_HEAD(hli_waits, hli_wait);

/* Starts the clock. wait_ms as in hl_acquire_options. */
void hli_wait_init(struct hli_wait *wait, hl_client *client, int64_t wait_ms, hl_error *err);

/* Carries a cancel from now on; one that is fired already is seen by the call's first look.
 * Undone by hli_wait_detach. cancel may be NULL. */
void hli_wait_attach(struct hli_wait *wait, hl_cancel *cancel);
void hli_wait_detach(struct hli_wait *wait);

/* Of an async call: the loop looks after it from now on, with a reference that the caller took for
 * it. False: it does already. */
bool hli_wait_look_after(struct hli_wait *wait);

/* The async call has ended. True: the timer will not run, and its reference is the caller's again.
 */
bool hli_wait_end(struct hli_wait *wait);

/* This thread begins a call whose end it will block for, and sends what it asks itself: so it may
 * read the answer. Before the call is begun; hli_wait_block() must follow. */
void hli_wait_will_block(struct hli_wait *wait);

/* Blocks until it is finished; returns its code. */
int hli_wait_block(struct hli_wait *wait);

/* Tells the caller: opens the gate, or hands it to `finished`. With no mutex held; the wait may be
 * gone afterwards. */
void hli_wait_wake(struct hli_wait *wait);

/* A cancel was fired: makes every wait that carries it look around. Loop thread. */
void hli_waits_look(hl_client *client);

static inline bool hli_wait_is_cancelled(const struct hli_wait *wait)
{
    return wait->cancel && atomic_load(&wait->cancel->is_fired);
}

#endif
