/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The slots of a cluster (redis.io, "Redis cluster specification", "Key distribution model"). Pure.
 */
#ifndef HLI_ROUTE_SLOTS_H
#define HLI_ROUTE_SLOTS_H

#include <stddef.h>

enum { HLI_SLOTS = 16384 };

/* The slot of a key: by the bytes between its first { and the next }, if there are any; else by all
 * of them. */
unsigned hli_slot_of(const void *key, size_t length);

#endif
