/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A stock: a number in Redis that C and Java count up by reading it and writing one more, with
 * nothing but a lock to keep the others away meanwhile. Beside it stands who has written it last.
 */
#ifndef HL_INTEROP_STOCK_H
#define HL_INTEROP_STOCK_H

#include <stdint.h>

struct redisContext;

/* What one thread has done; a hand-over is a turn after one of the other side's. */
struct stock_tally {
    int64_t turns, handovers, longest_wait_ms;
};

void stock_fill(void); /* nothing was counted yet */
int64_t stock_number(void);

/* One turn, which the caller's lock guards, over a connection of the thread's own. */
void stock_count(struct redisContext *link, struct stock_tally *tally);

/* What a worker of Java's is told, and what it answers. */
int stock_begin_java(const char *who, const char *kind, const char *lock, int64_t ms);
void stock_end_java(int number, struct stock_tally *tally);

void stock_add(struct stock_tally *all, const struct stock_tally *one);

#endif
