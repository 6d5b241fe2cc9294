/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 100,000 locks held by one process, "bench:held:0" and so on, and their renewals. */
#ifndef HL_BENCH_HELD_H
#define HL_BENCH_HELD_H

#include "nodes.h"
#include "report.h"

#include <hirelock/hirelock.h>

/* By threads, since each is an owner. */
enum { HELD = 100000, HELD_THREADS = 50, HELD_EACH = HELD / HELD_THREADS };

struct held;

/* Opens a client there, whose watchdog renews with this lease, with a handle for each lock. */
struct held *held_open(struct nodes *nodes, int64_t lease_ms);
void held_acquire(struct held *held);
void held_close(struct held *held); /* releases them all */

hl_client *held_client(struct held *held);

/* What renewals cost: CPU time in microseconds, requests. */
struct held_cost {
    double server_us, script_us, client_us, calls, renewals;
};

/* Waits for the next wave of renewals, and adds what it costs to the sum. At a single server: in a
 * cluster they are spread over the period. */
void held_wave(struct held *held, struct held_cost *sum);

/* What so many renewals cost, from now on. */
struct held_cost held_renew(struct held *held, uint64_t renewals);

/* CPU time of the servers and of this process, and their calls, so far. */
struct held_cost held_cost(struct held *held);

/* After the figures' name: how many were lost and warned of, and how many keys there are. */
void held_tell_losses(struct held *held, struct report *report, const char *name);

#endif
