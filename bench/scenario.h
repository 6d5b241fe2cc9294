/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The scenarios of lock_bench. Each opens what it needs, measures, adds its figures to the report,
 * and leaves neither threads nor keys behind. */
#ifndef HL_BENCH_SCENARIO_H
#define HL_BENCH_SCENARIO_H

#include "report.h"
#include "server.h"

#include <hirelock/hirelock.h>

struct bench {
    struct server server;
    struct report report;
    bool is_quick;
};

void scenario_pair(struct bench *bench);     /* one thread, acquire and release */
void scenario_threads(struct bench *bench);  /* 64 threads, a name each */
void scenario_waiters(struct bench *bench);  /* 1,000 threads wait for one name */
void scenario_holds(struct bench *bench);    /* 100,000 locks held and renewed */
void scenario_killed(struct bench *bench);   /* holders that die */
void scenario_unheard(struct bench *bench);  /* messages that are lost */
void scenario_handover(struct bench *bench); /* processes that take turns */

/* Calls that the scenarios share; what fails ends the program. */
hl_client *scenario_client(const struct bench *bench, const hl_client_options *options);
hl_lock *scenario_lock(hl_client *client, const char *format, int number);
void scenario_acquire(hl_lock *lock);
void scenario_release(hl_lock *lock);

#endif
