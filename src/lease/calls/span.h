/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A span: the clients of one call about names of several clients. The close of any of them cancels
 * the call, and waits until the call has ended: so each thread that makes a step of the call may
 * use all of its names. A call of one client has no span (NULL): the thread that makes it has
 * entered that client, and the close ends it by its name.
 */
#ifndef HLI_LEASE_CALLS_SPAN_H
#define HLI_LEASE_CALLS_SPAN_H

#include "base/ref.h"

#include <hirelock/client.h>

#include <stdbool.h>

struct hli_span { /* immutable but for `ref` */
    struct hli_ref ref;
    size_t count;
    hl_client *clients[]; /* each once; borrowed: who has the span has names of all */
};

/* A span with room for so many clients, without any. NULL when memory is out. */
struct hli_span *hli_span_new(size_t limit);
void hli_span_add(struct hli_span *span, hl_client *client); /* unless it is there */
void hli_span_ref(struct hli_span *span);
void hli_span_unref(struct hli_span *span); /* NULL is fine */

/* The place of a client among those of the span; `count` if it is not there. */
size_t hli_span_place(const struct hli_span *span, const hl_client *client);

/* As hli_client_enter() and hli_client_leave(), of all. Errors: those of the first client that
 * cannot be entered; then none is. */
int hli_span_enter(const struct hli_span *span);
void hli_span_leave(const struct hli_span *span);

/* Enters those that can be: *ret_open is a span of them. Errors: HL_ENOMEM; those of the first
 * client when none can be. */
int hli_span_enter_open(const struct hli_span *span, struct hli_span **ret_open);

/* For a call that goes on without the thread that began it, and which has entered all: until
 * hli_span_drop(), a close waits. */
void hli_span_keep(const struct hli_span *span);
void hli_span_drop(const struct hli_span *span);

/* Is one of the clients closed, or about to be? */
bool hli_span_is_closing(const struct hli_span *span);

#endif
