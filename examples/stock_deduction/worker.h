/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* One selling process: a client of its own, and threads that serve order after order. */
#ifndef STOCK_DEDUCTION_WORKER_H
#define STOCK_DEDUCTION_WORKER_H

#include "options.h"
#include "sale.h"

/* In the forked process. Waits until `gate` is closed at its other end, and returns the exit code.
 */
int worker_run(const struct options *options, struct sale *sale, int process, int gate);

#endif
