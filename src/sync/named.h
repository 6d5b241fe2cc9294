/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the handles of all kinds share: how a caller's name becomes a name of the engine. */
#ifndef HLI_SYNC_NAMED_H
#define HLI_SYNC_NAMED_H

#include "lease/name.h"

/* `length` bytes, or a C string when it is 0, behind the client's prefix. The caller owns the
 * reference. Errors: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED. */
struct hli_named {
    const struct hli_kind *kind;
    const void *bytes;
    size_t length;
};
int hli_named_get(hl_client *client, const struct hli_named *named, struct hli_name **ret_name,
                  hl_error *err);

/* A handle that is nothing but its name. */
struct hli_handle {
    struct hli_name *name; /* counted */
};

/* Errors: those of hli_named_get; HL_EINVAL too for a NULL. */
int hli_handle_new(hl_client *client, const struct hli_named *named, struct hli_handle **ret_handle,
                   hl_error *err);
void hli_handle_free(struct hli_handle *handle);

/* May it be used by a call that a close has to wait for? A 0 is followed by leave. Errors:
 * HL_EINVAL (NULL), HL_EFORKED, HL_ECLOSED. */
int hli_handle_enter(const struct hli_handle *handle, hl_error *err);
void hli_handle_leave(const struct hli_handle *handle);

/* Drops a handle's reference; in a forked child the rest is the parent's, and its mutexes may be
 * locked for ever. */
void hli_named_put(struct hli_name *name);

#endif
