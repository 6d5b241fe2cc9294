/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* HLI_CHECK: an invariant of our own code, checked in release builds too. Never for resources or
 * for what a caller passed. */
#ifndef HLI_BASE_CHECK_H
#define HLI_BASE_CHECK_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define HLI_CHECK(condition)                                                                       \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            fprintf(stderr, "hirelock: broken invariant: %s, %s:%d\n", #condition, __FILE__,       \
                    __LINE__);                                                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The object that embeds `member`. */
#define HLI_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
