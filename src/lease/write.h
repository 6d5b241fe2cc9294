/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A write: data behind a fence, checked and copied, for its request may outlive the call. */
#ifndef HLI_LEASE_WRITE_H
#define HLI_LEASE_WRITE_H

#include "base/ref.h"
#include "lease/command.h"

#include <hirelock/fence.h>

enum { HLI_WRITE_WORDS = 4 };

struct hli_write { /* immutable once it is formatted */
    struct hli_ref ref;
    struct hli_bytes key, value; /* in bytes */
    char token[HLI_NUMBER_SIZE], expire[HLI_NUMBER_SIZE], remember[HLI_NUMBER_SIZE];
    size_t fence_length;
    char fence[HLI_CHANNEL_SIZE];
    char bytes[];
};

/* The key of data, by its length or as a C string. Errors: HL_EINVAL. */
int hli_write_key(const void *key, size_t length, struct hli_bytes *ret_key, hl_error *err);

/* Errors: HL_EINVAL, HL_ENOMEM. */
int hli_write_new(const hl_write *passed, struct hli_write **ret_write, hl_error *err);
/* Without a token of its own it has the hold's that writes. */
void hli_write_by(struct hli_write *write, uint64_t token);
bool hli_write_has_token(const struct hli_write *write);
void hli_write_ref(struct hli_write *write);
void hli_write_unref(struct hli_write *write); /* NULL is fine */

/* The two keys of a script, and the four words of fence_write. Borrowed from the write. */
void hli_write_keys(const struct hli_write *write, struct hli_bytes keys[2]);
void hli_write_words(const struct hli_write *write, struct hli_bytes words[HLI_WRITE_WORDS]);

#endif
