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
void scenario_tls(struct bench *bench);      /* the same through TLS */
void scenario_kinds(struct bench *bench);    /* the same, of other kinds */
void scenario_local(struct bench *bench);    /* calls that send nothing: reentry, retained locks */
void scenario_threads(struct bench *bench);  /* threads with a name each */
void scenario_pass(struct bench *bench);     /* 8 threads of one process, one name */
void scenario_waiters(struct bench *bench);  /* 1,000 threads wait for one name */
void scenario_holds(struct bench *bench);    /* 100,000 locks held and renewed */
void scenario_killed(struct bench *bench);   /* holders that die */
void scenario_unheard(struct bench *bench);  /* messages that are lost */
void scenario_handover(struct bench *bench); /* processes that take turns */
void scenario_readers(struct bench *bench);  /* a reader leaves others behind */
void scenario_fair(struct bench *bench);     /* a turn beside many waiters */
void scenario_bytes(struct bench *bench);    /* memory of a handle, a hold, a waiter */
void scenario_cluster(struct bench *bench);  /* one, two and three masters of a cluster */
void scenario_redlock(struct bench *bench);  /* a lock on five masters */

/* Calls that the scenarios share; a failure ends the program. */
hl_client *scenario_client(const struct bench *bench, const hl_client_options *options);
hl_client *scenario_client_at(const char *url, const hl_client_options *options);
hl_lock *scenario_lock(hl_client *client, const char *format, int number);
hl_lock *scenario_lock_with(hl_client *client, const char *name, const hl_lock_options *options);
hl_lock *scenario_lock_of(hl_client *client, hl_lock_kind kind, const char *name);
hl_stats scenario_stats(hl_client *client);
void scenario_acquire(hl_lock *lock);
void scenario_release(hl_lock *lock);
uint64_t scenario_pairs(void *lock, int64_t until); /* both, again and again (rounds.h) */

#endif
