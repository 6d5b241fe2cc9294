/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The scripts of the read-write lock "n", called raw: the words that each test varies are given,
 * the names that follow from "n" are filled in.
 */
#ifndef HL_TEST_SCRIPT_RW_H
#define HL_TEST_SCRIPT_RW_H

#include "script_raw.h"

#define RW_CHANNEL "redisson_rwlock:{n}"
#define RW_WRITER "hirelock_rw_writer:{n}"
#define RW_HOLD(field, level) "{n}:" field ":rwlock_timeout:" #level

enum { RW_PREFER_MS = 3000 }; /* as written below */

/* field lease count */
static inline const char *read_acquire(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_READ_ACQUIRE, words, RW_WRITER " none");
}

/* The same by the writer A:1:write. */
static inline const char *read_acquire_under(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_READ_ACQUIRE, words, RW_WRITER " A:1:write");
}

/* field count lease rest */
static inline const char *read_release(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_READ_RELEASE, words, RW_CHANNEL " PUBLISH");
}

/* lease field */
static inline const char *read_renew(const char *words)
{
    return run_script(HLI_SCRIPT_RW_READ_RENEW, "n", words);
}

/* field lease count */
static inline const char *write_acquire(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_WRITE_ACQUIRE, words, RW_WRITER " 0");
}

/* The same; and new readers are to stay away until it has got it. */
static inline const char *write_acquire_first(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_WRITE_ACQUIRE, words, RW_WRITER " 3000");
}

/* field count lease rest */
static inline const char *write_release(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_WRITE_RELEASE, words, RW_CHANNEL " PUBLISH " RW_WRITER);
}

/* read, or write */
static inline const char *force_release(const char *mode)
{
    return raw_run(HLI_SCRIPT_RW_FORCE_RELEASE, mode, RW_CHANNEL " PUBLISH hirelock:");
}

/* mode field */
static inline const char *inspect(const char *words)
{
    return run_script(HLI_SCRIPT_RW_INSPECT, "n", words);
}

/* Redisson's sleepers by the first, and one of it that is about to sleep by the second. */
static inline void check_all_woken(redisContext *ear)
{
    ear_check(ear, RW_CHANNEL, "1");
    ear_check(ear, RW_CHANNEL, "0");
}

/* "0 pttl 0 0 holder count" */
static inline void check_busy(const char *said, int64_t from_ms, int64_t to_ms, const char *holder)
{
    long long pttl = 0;
    int rest = 0;
    check_msg(sscanf(said, "0 %lld%n", &pttl, &rest) == 1 && rest > 0, "not busy: %s", said);
    check_msg(pttl > from_ms && pttl <= to_ms, "%s", said);
    check_msg(strncmp(said + rest, " 0 0 ", 5) == 0, "%s", said);
    check_str(said + rest + 5, holder);
}

static inline void check_left(const char *key, int64_t from_ms, int64_t to_ms)
{
    int64_t left = redis_int(server, "PTTL %s", key);
    check_msg(left > from_ms && left <= to_ms, "%s has %d ms", key, (int)left);
}

#endif
