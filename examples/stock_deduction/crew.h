/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The selling processes, as their parent sees them. */
#ifndef STOCK_DEDUCTION_CREW_H
#define STOCK_DEDUCTION_CREW_H

#include "options.h"
#include "sale.h"

enum crew_verdict { CREW_DONE, CREW_FAILED, CREW_INTERRUPTED };

/* Forks them, lets them begin together, and waits for all of them, while `watch` is called several
 * times a second. The caller must have no threads. What went wrong has been said on stderr. */
enum crew_verdict crew_run(const struct options *options, struct sale *sale,
                           void (*watch)(const struct sale *sale));

/* From now on SIGINT and SIGTERM end a sale in good order. */
void crew_catch_signals(void);

#endif
