/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Busy: what it means when somebody else holds the lock, and how long to sleep then. Name mutex,
 * all of it. */
#ifndef HLI_LEASE_BUSY_H
#define HLI_LEASE_BUSY_H

#include "lease/acquire.h"

/* A TAKE was answered so. */
void hli_busy_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer);

/* The server's time in it, in microseconds. */
uint64_t hli_busy_stamp(const struct hli_answer *answer);

/* The number in the holder's field if it is one of this client's, as we write them (":007" is not);
 * else 0. */
uint64_t hli_busy_own_number(const struct hli_name *name);

/* Tries are answered by a request that was sent after they began: an older answer may be from
 * before a release that the caller knows of. True when there are some left. */
bool hli_busy_finish_tries(struct hli_turn *turn, hli_ns sent_at);

/* When to ask again unless something wakes us before: with jitter, so that a thousand processes do
 * not ask together. */
hli_ns hli_busy_poll_at(const struct hli_turn *turn);

#endif
