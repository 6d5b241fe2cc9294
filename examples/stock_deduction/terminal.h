/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the terminal can show: colours, and a line that changes. Where stdout is none, neither. */
#ifndef STOCK_DEDUCTION_TERMINAL_H
#define STOCK_DEDUCTION_TERMINAL_H

#include "sale.h"

enum terminal_style { TERMINAL_PLAIN, TERMINAL_BOLD, TERMINAL_DIM, TERMINAL_GOOD, TERMINAL_BAD };

/* The escape sequences around a text, or empty strings. */
const char *terminal_style(enum terminal_style style);
const char *terminal_end(void);

/* How far a sale is, on one line. */
void terminal_progress(const struct sale *sale);
void terminal_clear_progress(void);

#endif
