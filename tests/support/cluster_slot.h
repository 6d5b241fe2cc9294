/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The slot of a name, as Redis' cluster specification has it; not taken from the library, which the
 * tests judge by it. */
#ifndef HL_TEST_CLUSTER_SLOT_H
#define HL_TEST_CLUSTER_SLOT_H

#include <stddef.h>

enum { CLUSTER_SLOTS = 16384 };

/* Of what stands between the first '{' and the next '}', if anything stands there. */
int cluster_slot(const char *name, size_t length);

/* "prefix{tag}" in that slot; another prefix gives another name in it. Borrowed: this thread's 8th
 * next call overwrites it. */
const char *cluster_name_in_slot(int slot, const char *prefix);

#endif
