/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Texts of the locale's letters, measured in columns of a terminal. */
#ifndef CLI_TOP_TEXT_H
#define CLI_TOP_TEXT_H

#include <stddef.h>

/* How many columns it takes. */
int top_text_width(const char *text);

/* How many of its bytes fit into so many columns; no letter is cut. */
size_t top_text_fit(const char *text, int width, int *ret_width);

#endif
