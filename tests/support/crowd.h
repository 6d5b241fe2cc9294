/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A crowd: a few processes with a few threads each, which all want the lock "crowd" again and
 * again, so that grants, passes, keep words, wants, posted releases and retained tenures are under
 * way at any moment. Its threads wait long, briefly or not at all, with lease times and without,
 * nest, and release through handles of every kind. Each process works in bursts, sometimes alone
 * and sometimes beside others, because a process passes and retains only while no other waits.
 *
 * Two checks that share nothing with the library find two holders at one time: each process records
 * when it believed that it held the lock (history.h), and the holder increments a counter in shared
 * memory by a separate read and write.
 *
 * The processes are forked by crowd_start(), before the test has other threads (a proxy's).
 */
#ifndef HL_TEST_CROWD_H
#define HL_TEST_CROWD_H

#include <hirelock/hirelock.h>

#include "redis_server.h"

enum { CROWD_PROCESSES = 3, CROWD_THREADS = 4 /* at most */ };

/* The times of its clients, before slow_ms(): the watchdog's lease; the poll, with its jitter; and
 * how long a claim of a process that does not ask again stays in the queue. */
enum { CROWD_LEASE_MS = 900, CROWD_POLL_MS = 130, CROWD_CLAIM_MS = 400 };

/* What the test orders a process to do beside its work. */
enum crowd_order {
    CROWD_LEAVES = 1, /* one of its threads ends while that thread holds the lock */
    CROWD_CLOSES,     /* it closes its client, with its threads inside of calls; and ends */
    CROWD_FORKS       /* it forks a child that lives on and may not use the client */
};

struct crowd;

/* Calls may also end with `code` (0: no other code), beside the codes that any fault can cause. */
struct crowd *crowd_start(int threads, int code);

/* Sets the URL that a process uses. Call it before crowd_begin(); NULL: crowd_begin()'s server. */
void crowd_send_to(struct crowd *crowd, int process, const char *url);

/* Returns when each thread was served, and passes, grants and retained locks were seen. */
void crowd_begin(struct crowd *crowd, struct redis_server *server);

/* Fails the test unless each thread is served twice within slow_ms(ms) from now: the threads of all
 * running processes, or those of one process. */
void crowd_expect_served(struct crowd *crowd, int64_t ms);
void crowd_expect_process_served(struct crowd *crowd, int process, int64_t ms);

/* Lets the processes work for slow_ms(ms). */
void crowd_go_on(int64_t ms);

/* Call it before the server loses its data. A lock on one server cannot exclude then: a process
 * that acquires from now on may meet a holder that has not noticed the loss. Overlaps are not
 * reported until crowd_excuse_no_more(). */
void crowd_excuse(struct crowd *crowd);
void crowd_excuse_no_more(struct crowd *crowd);

/* Stops a process that holds the lock in Redis (it may not have read the grant yet), or a process
 * that stands in the queue. Returns its number. */
int crowd_stop_holder(struct crowd *crowd);
int crowd_stop_queued(struct crowd *crowd);

/* For a stopped process. */
void crowd_wait_granted(struct crowd *crowd, int process); /* until Redis shows it as the holder */
void crowd_continue(struct crowd *crowd, int process);
void crowd_kill(struct crowd *crowd, int process); /* running or stopped; it leaves the crowd */

/* Returns when the process has done it. A process that closes its client leaves the crowd. */
void crowd_order(struct crowd *crowd, int process, enum crowd_order order);

/* The number of calls, releases included, that have ended with HL_ELOST so far. */
int crowd_losses(struct crowd *crowd);

/* Ends the remaining processes, and checks: no process leaves a thread or a descriptor behind, no
 * two held the lock at one time, and Redis is empty within a lease. may_lose_updates: a fault may
 * have stopped a holder between its check of the hold and its write to the counter; only a fencing
 * token could refuse that write. */
void crowd_end(struct crowd *crowd, bool may_lose_updates);

#endif
