/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A write: a fenced write of data, checked and copied, because its request may outlive the call. */
#ifndef HLI_LEASE_HOLD_WRITE_H
#define HLI_LEASE_HOLD_WRITE_H

#include "base/ref.h"
#include "lease/state/name.h"

#include <hirelock/fence.h>

enum { HLI_WRITE_TEXT = 224 };

struct hli_write { /* immutable once it is formatted */
    struct hli_ref ref;
    struct hli_bytes key, value; /* in bytes */
    uint64_t token;              /* 0: none of its own; then it gets the hold's */
    int64_t expire_ms, remember_ms;
    char bytes[];
};

/* The key of data, by its length or as a C string. Errors: HL_EINVAL. */
int hli_write_key(const void *key, size_t length, struct hli_bytes *ret_key, hl_error *err);

/* Errors: HL_EINVAL, HL_ENOMEM. */
int hli_write_new(const hl_fenced_write *passed, struct hli_write **ret_write, hl_error *err);
void hli_write_ref(struct hli_write *write);
void hli_write_unref(struct hli_write *write); /* NULL is fine */

/* The next words of a command: two keys of a script, and the four words of fence_write. */
void hli_write_keys(const struct hli_write *write, struct hli_args *args);
void hli_write_words(const struct hli_write *write, struct hli_args *args);

/* Why a value was not written, by the script's word: an error, or a larger token. Returns the code.
 */
int hli_write_refused(const struct hli_write *write, const struct hli_reply *wrote,
                      char text[HLI_WRITE_TEXT]);

#endif
