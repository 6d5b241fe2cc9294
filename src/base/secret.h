/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Secrets: texts with pages of their own, which the kernel leaves out of core dumps
 * (MADV_DONTDUMP), and which are wiped before they are given back.
 */
#ifndef HLI_BASE_SECRET_H
#define HLI_BASE_SECRET_H

#include <stddef.h>

/* Room for so many bytes and a NUL, all zero; NULL when memory is out. */
char *hli_secret_new(size_t length);

char *hli_secret_copy(const char *text); /* the same, of this text */

/* Wipes it, whatever length it had. NULL is fine. */
void hli_secret_free(char *secret);

#endif
