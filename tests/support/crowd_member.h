/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One process of a crowd, and the memory that it shares with the test. */
#ifndef HL_TEST_CROWD_MEMBER_H
#define HL_TEST_CROWD_MEMBER_H

#include "crowd.h"
#include "history.h"
#include "process.h"

enum { CROWD_RECORDS = 1 << 18 };
enum { CROWD_GO, CROWD_READY, CROWD_DONE }; /* events */

struct crowd_seat { /* one thread's */
    _Atomic uint64_t served;
    atomic_bool has_left;
};

struct crowd_desk { /* one process's */
    int number;
    struct crowd_page *page;
    char url[128], book[256];
    char id[40]; /* the client's, from CROWD_READY on */
    atomic_int order;
    _Atomic uint64_t passes, grants, retained, updates, losses;
    struct crowd_seat seat[CROWD_THREADS];
};

struct crowd_page {
    int threads, also_code;
    atomic_bool is_over;
    /* Beliefs of different ages are not compared. An excuse makes the age odd, and beliefs of an
     * odd age are not recorded. */
    _Atomic uint32_t age;
    _Atomic uint64_t counter; /* read and written by the holder of the lock */
    struct crowd_desk desk[CROWD_PROCESSES];
};

void crowd_member_run(struct process *self, void *desk);

#endif
