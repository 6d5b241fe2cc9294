/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The parts that the files of the lock share: its handle, and the checks of the public calls. Fair,
 * read, write, fenced and spin locks use the same handle and the public calls of hirelock/lock.h;
 * they differ in their type and in their acquire and release modes.
 */
#ifndef HLI_SYNC_LOCK_LOCK_H
#define HLI_SYNC_LOCK_LOCK_H

#include "lease/acquire/acquire.h"
#include "lease/hold/release_call.h"
#include "sync/common/handle.h"

/* The state of a hold that is valid now; all zero when there is none. */
struct hli_lock_view {
    bool is_held;
    int64_t validity_ms;
    uint32_t count;
    uint64_t token;
};

/* The verbs of lock.h for a multi-lock. For an acquire the caller has entered the handle's client,
 * and found out the owner; a release does both itself. */
struct hli_lock_verbs { /* immutable */
    bool is_span;       /* the members are of several clients: an acquire's owner may be of any */
    int (*acquire)(const hl_lock *lock, const hl_acquire_options *options,
                   const struct hli_completion *completion);
    int (*release)(const hl_lock *lock, hl_owner *owner, const struct hli_completion *completion);
    int (*inspect)(const hl_lock *lock, const struct hli_completion *completion);
    int (*force_release)(const hl_lock *lock, const struct hli_completion *completion);
    struct hli_lock_view (*view)(const hl_lock *lock, const hl_owner *owner);
    const char *(*name)(const hl_lock *lock, size_t *ret_length);
    void (*drop)(hl_lock *lock); /* frees the members when the handle is freed */
};

struct hli_lock_type { /* immutable */
    const struct hli_kind *kind;
    unsigned flags; /* HL_LOCK_... that it accepts beside those of all locks */
    bool is_fenced; /* each hold has a token */
    bool is_silent; /* a release publishes no message */

    /* Checks the backoff, and sets its defaults. NULL: the type has none. Errors: HL_EINVAL. */
    int (*read_backoff)(hl_lock_options *options, hl_error *err);

    /* Checks that this owner may acquire, and completes the mode. NULL: nothing to do. Errors:
     * those of an acquire. */
    int (*prepare)(const hl_lock *lock, struct hl_owner *owner, struct hli_acquire_mode *mode,
                   hl_error *err);

    const struct hli_lock_verbs *several; /* of a multi-lock; else NULL */

    /* Of a Redlock; else NULL, or false. longest_lease: 0: any. stands_alone: its handles are no
     * members of a multi-lock. */
    int64_t (*longest_lease)(const hl_lock *lock);
    int (*inspect)(const hl_lock *lock, const struct hli_completion *completion);
    int (*force_release)(const hl_lock *lock, const struct hli_completion *completion);
    bool stands_alone;
};

extern const struct hli_lock_type hli_lock_type; /* of HL_LOCK_REENTRANT */

/* What fits into the fields of a handle. */
enum { HLI_LOCK_FLAGS = 0x1f, HLI_LOCK_RETAIN_MS = 0x3ff, HLI_LOCK_REPLICAS = 0x1ffff };

struct hl_lock {
    struct hli_handle handle;
    const struct hli_lock_type *type;
    /* Immutable, and small, because a program may have very many locks. */
    unsigned flags : 5;      /* HL_LOCK_... */
    unsigned retain_ms : 10; /* at most 1,000 */
    unsigned replicas : 17;  /* as in hli_op */
    uint16_t backoff_min_ms, backoff_max_ms;
};

/* The modes in which this handle acquires and releases. */
struct hli_acquire_mode hli_lock_acquire_mode(const hl_lock *lock);
struct hli_release_mode hli_lock_release_mode(const hl_lock *lock);

/* A handle of that type. Errors: HL_EINVAL, HL_ENOMEM. */
int hli_lock_make(hl_client *client, const struct hli_lock_type *type, hl_lock_options *options,
                  hl_lock **ret_lock, hl_error *err);

/* The options as passed, NULL for the defaults. Errors: HL_EINVAL. */
int hli_lock_read_options(const hl_lock_options *passed, hl_lock_options *ret, hl_error *err);
/* Checks that a handle of this type may have these options. Errors: HL_EINVAL. */
int hli_lock_check_options(const struct hli_lock_type *type, hl_lock_options *options,
                           hl_error *err);

/* The name that this owner acquires and holds, with a reference. `look_up` is hli_name_get() or
 * hli_name_find(), for a kind with is_per_owner; NULL if that finds nothing. */
struct hli_name *hli_lock_look_up(const hl_lock *lock, const struct hl_owner *owner,
                                  struct hli_name *(*look_up)(hl_client *client,
                                                              const struct hli_name_key *key));

/* Fills in an acquire of this handle by the options' owner; ret->name is a reference. Errors:
 * HL_EINVAL, HL_ENOMEM, and those of the type's `prepare`. */
int hli_lock_prepare(const hl_lock *lock, const hl_acquire_options *options,
                     struct hli_acquire_spec *ret, hl_error *err);

/* Inspect and force-release, each in one request, that take so long at most; -1: the outage
 * timeout.
 */
int hli_lock_inspect_within(const hl_lock *lock, int64_t timeout_ms,
                            const struct hli_completion *completion);
int hli_lock_force_within(const hl_lock *lock, int64_t timeout_ms,
                          const struct hli_completion *completion);

/* The hold of this owner on the handle's lock; owner NULL: the calling thread. */
struct hli_lock_view hli_lock_view(const hl_lock *lock, const hl_owner *owner);

/* The whole call of a release; `owner` as passed. mode NULL: the handle's own. */
int hli_lock_release(const hl_lock *lock, hl_owner *owner, const struct hli_release_mode *mode,
                     const struct hli_completion *completion);

#endif
