/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the files of the lock share: its handle, and the checks at the public edge. A fair lock, a
 * read lock, a fenced lock are handles like this one, and the verbs of lock.h are theirs too; what
 * they differ in is their type and their two ways.
 */
#ifndef HLI_SYNC_LOCK_H
#define HLI_SYNC_LOCK_H

#include "lease/acquire.h"
#include "lease/release.h"

struct hli_lock_type { /* immutable */
    const struct hli_kind *kind;
    unsigned flags; /* HL_LOCK_... that it knows beside those of all locks */

    /* May this owner acquire, and what does the kind add to the way? NULL: nothing. Errors: those
     * of an acquire. */
    int (*prepare)(const hl_lock *lock, struct hl_owner *owner, struct hli_acquire_way *way,
                   hl_error *err);

    /* Format the requests of hl_lock_inspect and hl_lock_force_release, whose answers are those of
     * lock_inspect.lua and lock_force_release.lua. Errors: HL_ENOMEM. */
    int (*inspect)(const struct hli_name *name, struct hli_op *op);
    int (*force)(const struct hli_name *name, struct hli_op *op);
};

extern const struct hli_lock_type hli_lock_type; /* of hl_lock_new */

struct hl_lock {
    const struct hli_lock_type *type;
    struct hli_name *name; /* counted; where each owner has a name of his own, nobody's */
    /* Immutable, and small, for a program may have very many of them: what the two ways are made
     * of. */
    bool is_posted : 1;
    bool is_silent : 1;
    bool is_flat : 1;
    bool is_fenced : 1;
    bool listens : 1;
    bool goes_first : 1;
    uint16_t linger_ms, backoff_min_ms, backoff_max_ms;
};

/* How what is acquired through it is acquired, and let go of. */
struct hli_acquire_way hli_lock_acquire_way(const hl_lock *lock);
struct hli_release_way hli_lock_release_way(const hl_lock *lock);

/* A handle of that type; its ways may be changed before anybody else sees it. Errors: HL_EINVAL,
 * HL_ENOMEM, HL_ECLOSED, HL_EFORKED. */
struct hli_lock_said {
    const struct hli_lock_type *type;
    const void *name;
    const hl_lock_options *options; /* as passed */
};
int hli_lock_new(hl_client *client, const struct hli_lock_said *said, hl_lock **ret_lock,
                 hl_error *err);

/* The options of a handle of this type, checked; and noted in it. Errors: HL_EINVAL. */
int hli_lock_read_options(const struct hli_lock_type *type, const hl_lock_options *passed,
                          hl_lock_options *ret, hl_error *err);
void hli_lock_set_options(hl_lock *lock, const hl_lock_options *options);

/* May this handle be used? Errors: HL_EINVAL (NULL), HL_EFORKED, HL_ECLOSED. */
int hli_lock_check(const hl_lock *lock, hl_error *err);

/* The same for a call that a close has to wait for; a 0 is followed by leave. */
int hli_lock_enter(hl_lock *lock, hl_error *err);
void hli_lock_leave(hl_lock *lock);

/* The name in which this owner asks and holds, with a reference. Errors: HL_ENOMEM. */
int hli_lock_name_for(const hl_lock *lock, const struct hl_owner *owner,
                      struct hli_name **ret_name);
/* The same if there is one already; else NULL. */
struct hli_name *hli_lock_find_name(const hl_lock *lock, const struct hl_owner *owner);

/* An acquire of this handle: checked, and with its name (a reference). Errors: HL_EINVAL,
 * HL_ENOMEM, and what the kind refuses. */
struct hli_lock_acquire {
    hl_acquire_options options;
    struct hli_acquire_way way;
    struct hli_name *name;
};
int hli_lock_prepare(const hl_lock *lock, const hl_acquire_options *passed,
                     struct hli_lock_acquire *ret, hl_error *err);

/* Release in this way, as hl_lock_release_as and hl_lock_release_async do in the handle's. Between
 * enter and leave. */
int hli_lock_release(hl_lock *lock, hl_owner *owner, const struct hli_release_way *way,
                     hl_error *err);
int hli_lock_release_begin(hl_lock *lock, const struct hli_release_way *way, hl_owner *owner,
                           hl_done_cb done, void *arg);

#endif
