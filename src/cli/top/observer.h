/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The observer looks at the server's locks and puts what it sees into the store. A thread of its
 * own makes surveys (survey.h) of all locks, one after the other, with pauses between them; beside
 * that it glances (glance.h) at those locks that it is told of, many times a second.
 */
#ifndef CLI_TOP_OBSERVER_H
#define CLI_TOP_OBSERVER_H

#include "cli/glance.h"
#include "cli/top/store.h"

#include <pthread.h>

struct top_observer {
    hl_client *client; /* immutable, as all to the next blank line */
    struct top_store *store;
    const char *pattern; /* with the prefix before it */
    size_t prefix;
    bool has_values; /* strings, too */

    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    char *sha; /* owned; of the look's script; NULL: not loaded */
    bool is_stopped, is_paused;
    bool has_missed;    /* it was paused since this survey began */
    bool has_surveyed;  /* one survey has gone through all */
    unsigned under_way; /* glances */
    time_t away_since;  /* by the calendar; 0: each node was there when that was last asked */
    int64_t failed_ms;  /* the last failure; 0: none */
    hl_error failure;
};

/* What the server is to us, or each node of a cluster. */
struct top_state {
    bool is_away, has_surveyed, has_failed;
    time_t away_since;
    char why[sizeof(((hl_error *)0)->text)]; /* it is away, or has failed */
};

void top_observer_init(struct top_observer *observer, struct top_store *store);

/* Starts the surveys. False: there is no thread to be had. */
bool top_observer_start(struct top_observer *observer);

/* Ends them; waits for the request that is under way. */
void top_observer_stop(struct top_observer *observer);

/* When the client is closed. */
void top_observer_deinit(struct top_observer *observer);

/* Begins a glance at each of the records, unless the last ones are still under way. Screen's
 * thread, since no other takes records away. */
void top_observer_glance(struct top_observer *observer, const struct top_record *const *records,
                         size_t count);

/* While it is paused nothing is seen. */
void top_observer_pause(struct top_observer *observer, bool is_paused);

/* Screen's thread. */
void top_observer_state(struct top_observer *observer, struct top_state *ret_state);

#endif
