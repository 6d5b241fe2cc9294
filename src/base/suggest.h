/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Which of the words is meant by a misspelt one. */
#ifndef HLI_BASE_SUGGEST_H
#define HLI_BASE_SUGGEST_H

#include <stddef.h>

/* The word that is the fewest typing errors away, at most two; NULL if none is. */
const char *hli_suggest(const char *typed, const char *const *words, size_t count);

#endif
