/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A stock: a number in Redis that C and another language count up by reading it and writing one
 * more, with nothing but a lock to keep the others away meanwhile. Beside it stands its last
 * writer.
 */
#ifndef HL_INTEROP_STOCK_H
#define HL_INTEROP_STOCK_H

#include <hirelock/hirelock.h>
#include <stdbool.h>
#include <stdint.h>

#define STOCK_NUMBER "units:{stock}"
#define STOCK_WRITER "writer:{stock}"

/* The work of one thread, or of several; a hand-over is a turn after a turn of the other side. */
struct stock_tally {
    int64_t turns, handovers, longest_wait_ms;
};

/* A thread of C acquires the lock, counts and releases, until then. Between its turns it rests for
 * a millisecond if the other side is not woken but asks now and then. */
struct stock_shift {
    hl_lock *lock;
    int64_t until_ms;
    bool rests;
    struct stock_tally tally;
};

void stock_fill(void); /* nothing was counted yet */
int64_t stock_number(void);

void stock_add(struct stock_tally *all, const struct stock_tally *one);
void stock_add_text(struct stock_tally *all, const char *text); /* the other side's answer */

/* A job for an actor; the argument is a shift. */
void stock_serve(void *shift);

/* Of both sides together nothing was lost; the figures are told. */
void stock_expect_whole(const struct stock_tally *c, const char *other,
                        const struct stock_tally *others);

/* ---- Beside Java ---- */

/* A Java worker's order, and its answer. */
int stock_begin_java(const char *who, const char *kind, const char *lock, int64_t ms);
void stock_end_java(int number, struct stock_tally *tally);

/* For so long: an actor for each lock, and as many workers of Java's as there are locks. Nothing
 * may be lost; the figures are told. */
struct stock_team {
    const char *kind, *javas_lock; /* as stock_begin_java has them */
    hl_lock *locks[4];             /* NULL: no more of them */
    int64_t ms;
};
struct stock_result {
    struct stock_tally c, java;
};
struct stock_result stock_run(const struct stock_team *team);

#endif
