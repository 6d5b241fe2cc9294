/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A client whose owners stand in line for the lock "stock", so that each release of one of them may
 * be a pass to the next.
 */
#ifndef HL_TEST_PASSING_LINE_H
#define HL_TEST_PASSING_LINE_H

#include "lease/state/name.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"
#include "two_links.h"

#include <stdatomic.h>

enum { LINE = 3 };

extern hl_client *client;
extern hl_lock *stock;
extern hl_owner *holding, *line[LINE];
extern atomic_int told[LINE]; /* how often it was one's turn */
extern const hl_acquire_options plain;

/* Opens all that. The server knows the scripts. */
void begin(const hl_client_options *options);
void begin_at(const char *url, const hl_client_options *options);

void take(hl_owner *owner_, const hl_acquire_options *options);
void give(hl_owner *owner_);

/* The i-th of the line waits, behind those before it. */
void line_up(int i, const hl_acquire_options *options);
void expect_turn(int i, int n); /* soon */

/* Has the i-th had its turn so often? For wait_until(). */
struct line_turn {
    int i, n;
};
bool has_come(void *turn);

uint64_t passes(void);

/* Takes it and gives it to the first of the line; was that a pass? */
bool gives_by_pass(const hl_acquire_options *options, const hl_acquire_options *next_options);

/* One that was given by a pass, and is held now by the first of the line. */
void begin_passed(const hl_acquire_options *options);

struct hli_tenure *current(void);

/* Changes something of the tenure, as time or others would. */
#define tamper(what)                                                                               \
    do {                                                                                           \
        pthread_mutex_lock(&stock->handle.name->mutex);                                            \
        what;                                                                                      \
        pthread_mutex_unlock(&stock->handle.name->mutex);                                          \
    } while (0)

#endif
