/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The scripts of the semaphore "n" whose permits have ids, called raw: the words that each test
 * varies are given, the names that follow from "n" are filled in.
 */
#ifndef HL_TEST_SCRIPT_PERMITS_H
#define HL_TEST_SCRIPT_PERMITS_H

#include "script_raw.h"

#define PERMIT_IDS "{n}:timeout"
#define PERMIT_CHANNEL "redisson_sc:{n}"
#define PERMIT_NEVER "922337203685477"
#define A "aaaaaaaaaaaaaaaa" /* ids */
#define B "bbbbbbbbbbbbbbbb"
#define C "cccccccccccccccc"

/* The words that each test varies, then those that follow from "n". */
static inline const char *run(hli_script_id id, const char *words)
{
    return raw_run(id, words, PERMIT_CHANNEL " PUBLISH");
}

/* ids lease */
static inline const char *take(const char *words)
{
    return run(HLI_SCRIPT_PERMIT_ACQUIRE, words);
}

static inline const char *give(const char *ids)
{
    return run(HLI_SCRIPT_PERMIT_RELEASE, ids);
}

/* All of them or none. */
static inline const char *give_whole(const char *ids)
{
    return raw_run(HLI_SCRIPT_PERMIT_RELEASE, ids, PERMIT_CHANNEL " PUBLISH 1");
}

static inline const char *renew_permits(const char *words)
{
    return run_script(HLI_SCRIPT_PERMIT_RENEW, "n", words);
}

/* "1 available acquired" */
static inline const char *inspect(void)
{
    return run(HLI_SCRIPT_PERMIT_INSPECT, "");
}

static inline int64_t left_of(const char *id)
{
    return redis_int(server, "ZSCORE " PERMIT_IDS " %s", id) - server_now_ms();
}

/* As a client leaves it whose clock is the server's. */
static inline void put(const char *id, int64_t ms)
{
    redis_do(server, "ZADD " PERMIT_IDS " %lld %s", (long long)(server_now_ms() + ms), id);
}

static inline void check_lasts(const char *id, int64_t ms)
{
    int64_t left = left_of(id);
    check_msg(left > ms - slow_ms(2000) && left <= ms, "%s lasts %d ms", id, (int)left);
}

/* "0 pttl s us  available" */
static inline void check_busy(const char *said, int64_t from_ms, int64_t to_ms, int64_t available)
{
    long long pttl = 0, seconds = 0, us = 0, count = -9;
    check_msg(sscanf(said, "0 %lld %lld %lld  %lld", &pttl, &seconds, &us, &count) == 4, "%s",
              said);
    check_msg(pttl >= from_ms && pttl <= to_ms, "%s", said);
    check(seconds > 1600000000 && us < 1000000);
    check_int(count, available);
}

#endif
