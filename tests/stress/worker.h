/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One process of a stress run, until the ledger says stop: its threads acquire, nest, wait, give
 * up, are cancelled, hold and release at random, by handles that release in each manner, and record
 * their beliefs. */
#ifndef HL_STRESS_WORKER_H
#define HL_STRESS_WORKER_H

#include <hirelock/hirelock.h>
#include <pthread.h>

#include "ledger.h"

enum { WORKER_THREADS = 8 };

struct worker_job {
    struct ledger *ledger;
    struct ledger_book *book;
    const char *url;
    uint32_t home; /* the name that it has mostly for itself */
};

/* Returns when all threads have ended. */
void worker_run(const struct worker_job *job);

/* A cancel that the canceller may fire; the mutex keeps it alive meanwhile. */
struct worker_cancel {
    pthread_mutex_t mutex;
    hl_cancel *cancel;
};

struct worker_process {
    const struct worker_job *job;
    hl_client *client;
    struct worker_cancel cancel[WORKER_THREADS];
};

/* Handles of each manner. */
enum { WORKER_PLAIN, WORKER_POSTED, WORKER_RETAIN, WORKER_BOTH, WORKER_MANNERS };

struct worker_thread {
    struct worker_process *process;
    int index;
    uint64_t dice;
    uint32_t name, manner, rounds; /* what it does now, and for how many rounds more */
    hl_lock *lock[STRESS_NAMES][WORKER_MANNERS];
    hl_owner *owner; /* of async calls */
    pthread_t thread;
};

uint64_t worker_roll(struct worker_thread *thread, uint64_t sides);

/* One acquire, and what follows when it succeeds; worker_hold.c. */
void worker_round(struct worker_thread *thread, struct ledger_record *record);

#endif
