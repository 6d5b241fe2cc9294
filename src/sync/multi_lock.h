/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The multi-lock's verbs: what those of the lock do when the handle is several locks. The client
 * has been entered, and the owner is its. */
#ifndef HLI_SYNC_MULTI_LOCK_H
#define HLI_SYNC_MULTI_LOCK_H

#include <hirelock/multi_lock.h>

#include "sync/lock.h"

struct hli_multi {      /* immutable but for the count of references */
    struct hli_ref ref; /* the handle's, and one for each async call */
    size_t count;       /* members, in the order in which they are taken, each once */
    size_t given;       /* members as the caller gave them, and which of those each is */
    size_t *member_of;
    char *name;
    size_t name_length;
    struct hl_lock members[];
};

/* A handle of the lock, with its members. */
struct hli_multi_lock {
    struct hl_lock lock;     /* of the first member's name, for its client */
    struct hli_multi *multi; /* counted */
};

extern const struct hli_lock_type hli_multi_type;

/* The members of a handle that is several locks; else NULL. */
static inline struct hli_multi *hli_multi_of(const hl_lock *lock)
{
    return lock->type == &hli_multi_type ? ((const struct hli_multi_lock *)lock)->multi : NULL;
}

void hli_multi_ref(struct hli_multi *multi);
void hli_multi_unref(struct hli_multi *multi); /* NULL is fine */

const char *hli_multi_name(const struct hli_multi *multi, size_t *ret_length);

/* As the lock's; ret_codes may be NULL. */
int hli_multi_acquire(hl_lock *lock, const hl_acquire_options *passed, hl_error *err);
int hli_multi_acquire_async(hl_lock *lock, const hl_acquire_options *passed, hl_done_cb done,
                            void *arg);
int hli_multi_release(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_error *err);
int hli_multi_release_async(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_done_cb done,
                            void *arg);
int hli_multi_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err);
int hli_multi_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg);
int hli_multi_force_release(hl_lock *lock, hl_error *err);
int hli_multi_force_release_async(hl_lock *lock, hl_done_cb done, void *arg);

/* The ends of a call: what becomes of the members, told of in the caller's order. */
struct hli_gather;
struct hli_scatter;
int hli_multi_gather_new(const hl_lock *lock, const hl_acquire_options *passed,
                         struct hli_gather **ret_gather, hl_error *err);
int hli_multi_scatter_new(const hl_lock *lock, const hl_owner *owner,
                          struct hli_scatter **ret_scatter, hl_error *err);
void hli_multi_write_codes(const struct hli_multi *multi, const struct hli_scatter *scatter,
                           int *ret_codes);

#endif
