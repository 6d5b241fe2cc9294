/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The first member of the handles of all kinds: the engine's name for the caller's. Also the checks
 * that each public call makes first: may the handle be used, and is there a completion function?
 */
#ifndef HLI_SYNC_COMMON_HANDLE_H
#define HLI_SYNC_COMMON_HANDLE_H

#include "base/error.h"
#include "lease/calls/call.h"
#include "lease/state/name.h"

struct hli_handle {
    struct hli_name *name; /* counted; if each owner has a name of its own, no owner's */
};

/* From a handle that embeds it first; NULL gives NULL. */
#define HLI_HANDLE(handle_) ((handle_) ? &(handle_)->handle : NULL)

/* The name in Redis is the client's prefix and then these bytes, or a C string if their length is
 * 0. Errors: HL_EINVAL, HL_ENOMEM, HL_ECLOSED, HL_EFORKED. */
int hli_handle_init(struct hli_handle *handle, hl_client *client, const struct hli_kind *kind,
                    struct hli_bytes name, hl_error *err);
/* In a forked child the name is not touched: it is the parent's, and its mutex may be locked for
 * ever. */
void hli_handle_deinit(struct hli_handle *handle);

/* A handle without further members; the name is a C string. ret_handle may be NULL: HL_EINVAL. */
int hli_handle_new(hl_client *client, const struct hli_kind *kind, const char *name,
                   struct hli_handle **ret_handle, hl_error *err);
void hli_handle_free(struct hli_handle *handle); /* NULL is fine */

/* The name as it is in Redis; NULL gives NULL. */
const char *hli_handle_name(const struct hli_handle *handle, size_t *ret_length);

/* As hli_client_enter_call(), of a handle. Inline, so that the analyzer sees that NULL is refused.
 */
static inline int hli_handle_enter(const struct hli_handle *handle,
                                   const struct hli_completion *completion)
{
    if (!handle)
        return hli_fail(completion->err, HL_EINVAL, "the handle (lock, semaphore, latch) is NULL");
    return hli_client_enter_call(handle->name->client, completion);
}

/* A whole public call about the handle's name, which may be NULL; as hli_client_run(). */
int hli_handle_run(const struct hli_handle *handle, const struct hli_call_kind *kind,
                   const void *what, const struct hli_completion *completion);

#endif
