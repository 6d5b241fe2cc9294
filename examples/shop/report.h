/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the page shows, and whether the shop is ready: made by a thread of its own, several times a
 * second, so that neither the loop nor a worker waits for it. */
#ifndef SHOP_REPORT_H
#define SHOP_REPORT_H

#include "bell.h"
#include "sale.h"

#include <json-c/json.h>

struct report;

/* Rings the bell for each new text. NULL: there is no memory, or no thread. */
struct report *report_start(struct sale *sale, const char *address, const struct bell *bell);
void report_stop(struct report *report);

/* The newest text, JSON in one line, and its number; the caller frees it. NULL: none is newer than
 * `after`. Threads: any. */
char *report_text(struct report *report, unsigned long after, unsigned long *ret_number);

/* NULL if both servers answered a moment ago; else which did not. Threads: any. */
const char *report_problem(struct report *report);

#endif
