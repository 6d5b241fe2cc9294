/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* HLI_CHECK: an invariant of our own code, checked in release builds too. Never for resources or
 * for what a caller passed. */
#ifndef HLI_BASE_CHECK_H
#define HLI_BASE_CHECK_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HLI_CHECK(condition)                                                                       \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            fprintf(stderr, "hirelock: broken invariant: %s, %s:%d\n", #condition, __FILE__,       \
                    __LINE__);                                                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The object that embeds `member`, as the only kind of object that embeds such a thing where this
 * pointer comes from. The pointer has the member's type, or the compiler says so. */
#define HLI_OF(pointer, type, member)                                                              \
    ((type *)(void *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

/*
 * Parts: requests, waits, calls' ends and callbacks are embedded in objects of many kinds, which
 * come through the same lists. HLI_PART_IS() notes at the beginning of a part what it is part of,
 * and HLI_PART_OF() is HLI_OF() of a part: the tests' build checks there that the part is of this
 * kind.
 */
#ifdef HL_TESTING
#define HLI_PART const char *part_of; /* in the struct of a part: "struct hli_tenure.ask" */
#define HLI_PART_IS(part, type, member) ((void)((part)->part_of = #type "." #member))
#define HLI_PART_OF(pointer, type, member)                                                         \
    (hli_part_check((pointer)->part_of, #type "." #member), HLI_OF(pointer, type, member))

static inline void hli_part_check(const char *is, const char *wanted)
{
    if (is && strcmp(is, wanted) == 0)
        return;
    fprintf(stderr, "hirelock: a part of %s is taken for one of %s\n", is ? is : "nothing", wanted);
    abort();
}
#else
#define HLI_PART
#define HLI_PART_IS(part, type, member) ((void)0)
#define HLI_PART_OF HLI_OF
#endif

#endif
