/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Option and result structs across versions: each begins with its size, and new fields come last.
 */
#ifndef HLI_BASE_VERSIONED_H
#define HLI_BASE_VERSIONED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies what the caller passed over `ret`, which holds the defaults. A shorter struct is an older
 * caller's: the rest keeps its default. A longer one is a newer caller's, and fine if all that we
 * do not know is zero. False if it is not, or if the size is absurd.
 */
bool hli_versioned_read(void *ret, size_t known, const void *passed);

#endif
