/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The beliefs of processes: "owner o held lock l from enter to leave". Each process writes a mapped
 * file of its own, which survives its SIGKILL; a check over all files finds two owners of one lock
 * at the same time. Stamp enter after acquire has returned and leave before release is called: a
 * belief is then a little too short, and never raises a false alarm. Clock: CLOCK_BOOTTIME.
 */
#ifndef HL_TEST_HISTORY_H
#define HL_TEST_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct history_record {
    uint32_t lock;
    bool is_shared; /* a reader's: readers may overlap */
    uint64_t owner;
    _Atomic int64_t enter_ns; /* 0: never entered */
    _Atomic int64_t leave_ns; /* 0: not left */
    _Atomic int64_t until_ns; /* the belief's own end (validity, lost event); 0: none */
};

struct history;

/* Makes or opens the file; it holds at most `capacity` records. Any thread may record. */
struct history *history_open(const char *path, uint64_t capacity);
void history_close(struct history *history);

/* Returns the record, for leave and until. */
struct history_record *history_enter(struct history *history, uint32_t lock, uint64_t owner);
struct history_record *history_enter_shared(struct history *history, uint32_t lock, uint64_t owner);
void history_leave(struct history_record *record);
void history_until(struct history_record *record, int64_t until_ns); /* set anew when renewed */

/* The writer was killed or stopped believing at end_ns: ends its open beliefs. */
void history_end(struct history *history, int64_t end_ns);
uint64_t history_count(const struct history *history);

struct history_overlap {
    uint32_t lock;
    uint64_t first_owner, second_owner;
    int64_t second_enter_ns, first_end_ns;
    int64_t longest_ns; /* of all overlaps: for how long two believed */
};

/* The number of beliefs that begin inside another owner's, unless both are readers'; *ret_first,
 * which may be NULL, receives the first. Beliefs without any end last for ever. */
uint64_t history_check(struct history *const *histories, size_t count,
                       struct history_overlap *ret_first);

#endif
