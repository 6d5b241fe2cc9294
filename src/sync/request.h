/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A request to acquire, of whatever kind: its options, and its two ways of waiting for the end. */
#ifndef HLI_SYNC_REQUEST_H
#define HLI_SYNC_REQUEST_H

#include "lease/acquire.h"

/* The options of a call, NULL for the defaults. Errors: HL_EINVAL; those of the client and the
 * owner. */
int hli_request_read_options(const hl_client *client, const hl_acquire_options *passed,
                             hl_acquire_options *ret, hl_error *err);

/* The same for a call that holds nothing afterwards: what speaks of a hold is refused. */
int hli_request_read_wait(const hl_client *client, const hl_acquire_options *passed,
                          hl_acquire_options *ret, hl_error *err);

/* NULL is the calling thread. Errors: HL_EINVAL: it is another client's. */
int hli_request_check_owner(const hl_client *client, const hl_owner *owner, hl_error *err);

/* What is acquired, and how. */
struct hli_request {
    struct hli_name *name; /* borrowed */
    const struct hli_acquire_way *way;
    const hl_acquire_options *options; /* read */
};

/* Blocks until the end; returns its code. The client has been entered. */
int hli_request_block(const struct hli_request *request, hl_error *err);

/* Returns at once; 0: done runs exactly once. Errors: HL_EINVAL, HL_ENOMEM. The client has been
 * entered. */
int hli_request_post(const struct hli_request *request, hl_done_cb done, void *arg);

#endif
