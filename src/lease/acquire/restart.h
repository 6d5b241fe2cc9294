/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Restarts: when a server may be asked that may have forgotten a holder (redis.io, "Distributed
 * Locks with Redis", delayed restarts). It began a short time ago, and may have less than it had
 * written; or its data did, as its marker says (redlock_acquire.lua): then what it keeps over a
 * restart does not matter, for they were lost another way. Of the name's first waiter, which has a
 * restart_ms; a lock on several servers asks that of each of them. Name mutex.
 */
#ifndef HLI_LEASE_ACQUIRE_RESTART_H
#define HLI_LEASE_ACQUIRE_RESTART_H

#include "lease/state/turn.h"

/* Is the server to be left alone yet? Then tries fail, and other calls wait. No wait helps where it
 * does not tell since when it runs (ACL): all calls fail. */
bool hli_restart_forbids(struct hli_turn *turn);

/* A server that began a short time ago is asked once all the same: for the age of its data, which
 * get their marker then if they have none, so that both delays begin together. It gives nothing. */
bool hli_restart_looks_first(const struct hli_turn *turn);

/* How old the server's data must be to give the lock; 0: that does not matter. */
int64_t hli_restart_young_ms(const struct hli_turn *turn);

/* The answer gives nothing but the age of the data. False: it does not tell that, or was not asked.
 */
bool hli_restart_told_age(struct hli_turn *turn, const struct hli_answer *answer);

/* Any thread: is it known that a name with this restart_ms may be asked only later? */
bool hli_restart_delays(const struct hli_name *name, int64_t restart_ms);

#endif
