/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What one process of a stress run does until the ledger says stop: threads that acquire, nest,
 * wait, give up, are cancelled, hold and release at random, and write down what they believe. */
#ifndef HL_STRESS_WORKER_H
#define HL_STRESS_WORKER_H

#include "ledger.h"

enum { WORKER_THREADS = 8 };

struct worker_job {
    struct ledger *ledger;
    struct ledger_book *book;
    const char *url;
};

/* Returns when all threads have ended. */
void worker_run(const struct worker_job *job);

#endif
