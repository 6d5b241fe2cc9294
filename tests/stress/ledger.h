/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The ledger: what every process of a stress run says it did, in pages shared with the test, so
 * that a killed process leaves its records behind. One book for each incarnation of a process, one
 * record for each acquire. Times are CLOCK_REALTIME in ns, for the server's clock is that.
 */
#ifndef HL_STRESS_LEDGER_H
#define HL_STRESS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    LEDGER_BOOKS = 200,
    LEDGER_RECORDS = 60000, /* of a book */
    LEDGER_DISTURBANCES = 4000,
    STRESS_NAMES = 5,
    STRESS_LEASE_MS = 1500, /* the watchdog's, and the one of every hold with a lease time */
    STRESS_POLL_MS = 300,
};

struct ledger_record {
    uint32_t name;
    bool is_watched, is_plain; /* plain: no nested call asked for a longer lease */
    int64_t invoke_ns, return_ns;
    int code;                           /* of the acquire, when return_ns is set */
    uint64_t number;                    /* of the owner field, second half */
    _Atomic int64_t first_ns, seen_ns;  /* is_held said yes at the first, and at the last time */
    _Atomic int64_t leave_ns, freed_ns; /* the last release was called, and said that it is done */
};

struct ledger_book {
    char uuid[40];       /* the first half of its owner fields */
    atomic_uint strange; /* answers that no caller should see */
    char strange_text[200];
    _Atomic uint32_t used;
    struct ledger_record record[LEDGER_RECORDS];
};

/* A time in which a process was not able to do what it should: stopped, or dying. */
struct ledger_disturbance {
    uint32_t book;
    int64_t from_ns, to_ns; /* INT64_MAX: killed */
};

struct ledger {
    atomic_bool stops;
    uint32_t books;
    uint32_t disturbances;
    struct ledger_disturbance disturbance[LEDGER_DISTURBANCES];
    struct ledger_book book[LEDGER_BOOKS];
};

int64_t ledger_now_ns(void);

#endif
