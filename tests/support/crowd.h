/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A crowd: a few processes with a few threads each, which all want the lock "crowd" again and
 * again, so that grants, passes, keep words, wants, posted releases and lingering tenures are under
 * way at any moment. Its threads wait long, briefly or not at all, with lease times and without,
 * nest, and release through handles of every kind. Each process works in bursts, now alone and now
 * beside others, for a process passes and lingers only while no other waits.
 *
 * Two checks that share nothing with the library say whether two were ever inside at once: what
 * each believed, and when (history.h), and a counter in shared memory that the holder reads, and
 * writes one more than it read.
 *
 * The processes are forked by crowd_start(), before the test has other threads (a proxy's).
 */
#ifndef HL_TEST_CROWD_H
#define HL_TEST_CROWD_H

#include <hirelock/hirelock.h>

#include "redis_server.h"

enum { CROWD_PROCESSES = 3, CROWD_THREADS = 4 /* at most */ };

/* The times that its clients have, before slow_ms(): the watchdog's lease; a poll, with its jitter;
 * and how long a grant stands for one who does not come. */
enum { CROWD_LEASE_MS = 900, CROWD_POLL_MS = 130, CROWD_CLAIM_MS = 400 };

/* What a process is told to do beside its work. */
enum crowd_order {
    CROWD_LEAVES = 1, /* a thread of it ends while it holds the lock */
    CROWD_CLOSES,     /* it closes its client, with its threads inside of calls; and ends */
    CROWD_FORKS       /* a child of it lives on, which may do nothing with the client */
};

struct crowd;

/* Calls may also end with `code` (0: none other), beside what any fault can bring. */
struct crowd *crowd_start(int threads, int code);

/* The server that each process shall use, before crowd_begin(); NULL is crowd_begin()'s. */
void crowd_send_to(struct crowd *crowd, int process, const char *url);

/* Returns when everybody was served, and passes, grants and lingering were seen. */
void crowd_begin(struct crowd *crowd, struct redis_server *server);

/* From now on each thread of each process that runs, or of one, is served twice within slow_ms(ms);
 * else the test fails. */
void crowd_expect_served(struct crowd *crowd, int64_t ms);
void crowd_expect_process_served(struct crowd *crowd, int process, int64_t ms);

/* Lets them work for slow_ms(ms). */
void crowd_go_on(int64_t ms);

/* The data are about to be lost, and no lock on one server keeps its promise then: who enters from
 * now on may meet a holder who has not heard of it. Until crowd_excuse_no_more(). */
void crowd_excuse(struct crowd *crowd);
void crowd_excuse_no_more(struct crowd *crowd);

/* Stops a process that holds the lock in Redis (it may not know yet that it was granted), or one
 * that stands in the queue; its number. */
int crowd_stop_holder(struct crowd *crowd);
int crowd_stop_queued(struct crowd *crowd);

/* Of a stopped one. */
void crowd_wait_granted(struct crowd *crowd, int process); /* the lock is written for it */
void crowd_continue(struct crowd *crowd, int process);
void crowd_kill(struct crowd *crowd, int process); /* running or stopped; it is out of the crowd */

/* Returns when it has been carried out; who closes is out of the crowd. */
void crowd_order(struct crowd *crowd, int process, enum crowd_order order);

/* How many calls have ended with HL_ELOST so far, releases included. */
int crowd_losses(struct crowd *crowd);

/* Ends all that are left: each leaves no thread and no descriptor behind, no two were ever inside,
 * and Redis is empty within a lease. With may_lose_updates a fault may have stopped a holder
 * between its look at the hold and its write, which only a fencing token could refuse. */
void crowd_end(struct crowd *crowd, bool may_lose_updates);

#endif
