/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A count of references. A comment names each reference where it is taken. */
#ifndef HLI_BASE_REF_H
#define HLI_BASE_REF_H

#include "base/check.h"

#include <stdatomic.h>
#include <stdbool.h>

struct hli_ref {
    atomic_uint count;
};

static inline void hli_ref_init(struct hli_ref *ref)
{
    atomic_init(&ref->count, 1);
}

/* Relaxed: a caller that takes a further reference has one already, so the object is not freed
 * meanwhile. */
static inline void hli_ref_take(struct hli_ref *ref)
{
    HLI_CHECK(atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed) > 0);
}

/* True for the last reference. Release orders this holder's writes before the drop; acquire makes
 * the writes of all holders visible to the last one. */
static inline bool hli_ref_drop(struct hli_ref *ref)
{
    unsigned before = atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel);

    HLI_CHECK(before > 0);
    return before == 1;
}

#endif
