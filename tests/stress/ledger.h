/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The ledger: the record of every process of a stress run, in a mapped file, so that a killed
 * process leaves its records behind, and another program can judge them. One book for each
 * incarnation of a process, one record for each acquire. Times are CLOCK_REALTIME in ns, for the
 * server's clock is that.
 */
#ifndef HL_STRESS_LEDGER_H
#define HL_STRESS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    LEDGER_BOOKS = 250,
    LEDGER_RECORDS = 250000, /* of a book; the file is sparse */
    LEDGER_DISTURBANCES = 4000,
    STRESS_PROCESSES = 4, /* of ours; one more is in Redisson's manner */
    STRESS_SHARED = 3,    /* names that all processes want all the time; */
    STRESS_NAMES = STRESS_SHARED + STRESS_PROCESSES, /* and one that each has mostly for itself */
    STRESS_LEASE_MS = 1500, /* the watchdog's, and the one of every hold with a lease time */
    STRESS_POLL_MS = 300,
    STRESS_CLAIM_MS = 4 * STRESS_POLL_MS, /* how long a grant stands */
};

struct ledger_record {
    uint32_t name;
    bool is_watched, is_plain; /* plain: no nested call asked for a longer lease */
    _Atomic uint32_t deepest;  /* levels that were asked for */
    int64_t invoke_ns, return_ns;
    int code;                          /* of the acquire, when return_ns is set */
    uint64_t number;                   /* of the owner field, second half */
    _Atomic int64_t first_ns, seen_ns; /* is_held said yes at the first, and at the last time */
    _Atomic int64_t leave_ns;          /* the last release was called */
};

/* What the client says of itself; looked at every few milliseconds. */
struct ledger_tally {
    _Atomic uint64_t passes, grants, retained, losses, reconnects, failed_releases;
};

struct ledger_book {
    char uuid[40];       /* the first half of its owner fields */
    bool is_redisson;    /* in the manner of Redisson: no queue, only messages and expiries wake */
    atomic_uint strange; /* answers that no caller should see */
    char strange_text[200];
    struct ledger_tally tally;
    _Atomic uint32_t held; /* acquires that succeeded, nested ones included */
    _Atomic uint32_t used;
    struct ledger_record record[LEDGER_RECORDS];
};

/* A time in which a process was not able to do what it should: stopped, dying, or without a
 * processor. */
struct ledger_disturbance {
    uint32_t book;
    int64_t from_ns, to_ns; /* INT64_MAX: killed */
};

struct ledger {
    atomic_bool stops;
    uint32_t books;
    _Atomic uint32_t disturbances;
    struct ledger_disturbance disturbance[LEDGER_DISTURBANCES];
    struct ledger_book book[LEDGER_BOOKS];
};

int64_t ledger_now_ns(void);

/* Makes the file when it is not there. NULL when that is not possible. */
struct ledger *ledger_open(const char *path);
void ledger_close(struct ledger *ledger);

/* Any process. False when there is no room for it. */
bool ledger_note_disturbance(struct ledger *ledger, const struct ledger_disturbance *disturbance);

static inline uint32_t ledger_disturbances(const struct ledger *ledger)
{
    uint32_t count = atomic_load(&ledger->disturbances);
    return count < LEDGER_DISTURBANCES ? count : LEDGER_DISTURBANCES;
}

static inline uint32_t ledger_used(const struct ledger_book *book)
{
    uint32_t used = atomic_load(&book->used);
    return used < LEDGER_RECORDS ? used : LEDGER_RECORDS;
}

#endif
