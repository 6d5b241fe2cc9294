/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A process of a stress run in the manner of Redisson's locks: it knows no queue and no grants, and
 * waits for a message or for the holder's expiry. It shares nothing with the library but the key.
 */
#ifndef HL_STRESS_STRANGER_H
#define HL_STRESS_STRANGER_H

#include "ledger.h"

enum { STRANGER_THREADS = 3, STRANGER_WAIT_MS = 15000 };

struct stranger_job {
    struct ledger *ledger;
    struct ledger_book *book;
    int port;
};

/* Returns when all threads have ended. */
void stranger_run(const struct stranger_job *job);

#endif
