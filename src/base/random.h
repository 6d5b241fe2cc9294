/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Randomness from the kernel (getrandom): identities and jitter. */
#ifndef HLI_BASE_RANDOM_H
#define HLI_BASE_RANDOM_H

#include <stdint.h>

enum { HLI_UUID_LENGTH = 36 };

uint64_t hli_random_u64(void);

/* From 0 to limit, both included. */
int64_t hli_random_upto(int64_t limit);

/* A random UUID (RFC 9562, version 4) in lower case, as Redisson writes it. */
void hli_random_uuid(char text[HLI_UUID_LENGTH + 1]);

#endif
