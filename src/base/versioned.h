/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Option and result structs across versions: each begins with its size, and new fields come last.
 */
#ifndef HLI_BASE_VERSIONED_H
#define HLI_BASE_VERSIONED_H

#include <hirelock/error.h>

#include <stddef.h>

/*
 * Copies the caller's struct over `ret`, which has the defaults. A shorter struct comes from an
 * older caller: the rest keeps its defaults. A longer struct comes from a newer caller, and is
 * valid if all unknown bytes are zero. NULL means the defaults. Errors: HL_EINVAL: an unknown byte
 * is not zero, or the size is absurd; the text names the struct by `what`.
 */
int hli_versioned_read(void *ret, size_t known, const void *passed, const char *what,
                       hl_error *err);

/* Copies a result to the caller's struct, as many bytes as its size says; the size is kept. */
void hli_versioned_write(void *to, size_t known, const void *result);

#endif
