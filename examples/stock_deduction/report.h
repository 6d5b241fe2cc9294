/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a person reads, and what a program reads. */
#ifndef STOCK_DEDUCTION_REPORT_H
#define STOCK_DEDUCTION_REPORT_H

#include "options.h"
#include "sale.h"

struct report {
    const struct options *options;
    const struct sale *without, *with; /* lock */
};

void report_intro(const struct options *options, const struct sale *sale);
void report_table(const struct report *report);
void report_json(const struct report *report);

#endif
