/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The heap, counted: what this program and the library, which is linked into it, have allocated, by
 * malloc_usable_size. Allocations inside of other libraries do not count. */
#ifndef HL_BENCH_HEAP_H
#define HL_BENCH_HEAP_H

#include <stdint.h>

/* From now on. Blocks that are older must not be freed meanwhile, or the count is too small. */
void heap_count_begin(void);
int64_t heap_count(void); /* bytes since, less what was freed again */
void heap_count_end(void);

#endif
