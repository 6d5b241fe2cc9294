/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The members of a multi-lock: in order, each once. */
#ifndef HLI_SYNC_KINDS_MULTI_H
#define HLI_SYNC_KINDS_MULTI_H

#include "base/ref.h"
#include "lease/calls/span.h"
#include "lease/several/batch.h"
#include "sync/lock/lock.h"

struct hli_multi {      /* immutable but for `ref` */
    struct hli_ref ref; /* the handle has one, and each async call */
    size_t count;       /* different members; `members` has the order of the acquires */
    size_t given;       /* locks that the caller gave, with repeats; each one's member is below */
    unsigned char member_of[HLI_SEVERAL_LIMIT];
    struct hli_span *span; /* the members' clients, in the order given; NULL: there is one */
    char *name;
    size_t name_length;
    struct hl_lock members[];
};

/* Sorts the members. Errors: HL_ENOMEM; HL_EINVAL if a name is given as two kinds of locks. */
int hli_multi_new(hl_lock *const *members, size_t count, struct hli_multi **ret_multi,
                  hl_error *err);
void hli_multi_unref(struct hli_multi *multi); /* NULL is fine */

/* These verbs on the members of a multi-lock, one after the other. */
int hli_multi_inspect(const hl_lock *lock, struct hli_multi *multi,
                      const struct hli_completion *completion);
int hli_multi_force_release(const hl_lock *lock, struct hli_multi *multi,
                            const struct hli_completion *completion);

#endif
