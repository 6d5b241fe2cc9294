/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Busy: the answer that another owner holds the lock, and how long to sleep then. Name mutex, all
 * of it. */
#ifndef HLI_LEASE_ACQUIRE_BUSY_H
#define HLI_LEASE_ACQUIRE_BUSY_H

#include "lease/acquire/acquire.h"

/* Handles a busy answer to an ACQUIRE. */
void hli_busy_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer);

/* The server's time in a busy answer, in microseconds. */
uint64_t hli_busy_stamp(const struct hli_answer *answer);

/* The number in the holder's field if it is one of this client's, as we write them (":007" is not);
 * else 0. */
uint64_t hli_busy_own_number(const struct hli_name *name);

/* Ends the tries that began before the request was sent: for a later try the answer may be from
 * before a release that its caller knows of. True when tries are left, for which the name is to be
 * asked for again. */
bool hli_busy_finish_tries(struct hli_turn *turn, hli_ns sent_at);

/* When to ask again without an earlier wake-up: with jitter, so that a thousand processes do not
 * ask together. */
hli_ns hli_busy_poll_at(const struct hli_turn *turn);

#endif
