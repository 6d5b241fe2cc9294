/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Spans: the clients of one call, entered and left together. */
#include "lease/calls/span.h"

#include "lease/calls/client.h"

#include <stdlib.h>

struct hli_span *hli_span_new(size_t limit)
{
    struct hli_span *span = calloc(1, sizeof(*span) + limit * sizeof(hl_client *));

    if (span)
        hli_ref_init(&span->ref);
    return span;
}

size_t hli_span_place(const struct hli_span *span, const hl_client *client)
{
    size_t at = 0;

    while (at < span->count && span->clients[at] != client)
        at++;
    return at;
}

void hli_span_add(struct hli_span *span, hl_client *client)
{
    if (hli_span_place(span, client) == span->count)
        span->clients[span->count++] = client;
}

void hli_span_ref(struct hli_span *span)
{
    hli_ref_take(&span->ref);
}

void hli_span_unref(struct hli_span *span)
{
    if (span && hli_ref_drop(&span->ref))
        free(span);
}

int hli_span_enter(const struct hli_span *span)
{
    size_t entered = 0;
    int rc = 0;

    while (entered < span->count && (rc = hli_client_enter(span->clients[entered])) == 0)
        entered++;
    while (rc < 0 && entered > 0)
        hli_client_leave(span->clients[--entered]);
    return rc;
}

void hli_span_leave(const struct hli_span *span)
{
    for (size_t i = 0; i < span->count; i++)
        hli_client_leave(span->clients[i]);
}

int hli_span_enter_open(const struct hli_span *span, struct hli_span **ret_open)
{
    struct hli_span *open = hli_span_new(span->count);

    if (!open)
        return HL_ENOMEM;
    for (size_t i = 0; i < span->count; i++)
        if (hli_client_enter(span->clients[i]) == 0)
            hli_span_add(open, span->clients[i]);
    if (open->count == 0) {
        hli_span_unref(open);
        return hli_client_check(span->clients[0]);
    }
    *ret_open = open;
    return 0;
}

/* The thread has entered the client, so this does not check again whether it is open. */
void hli_span_keep(const struct hli_span *span)
{
    for (size_t i = 0; i < span->count; i++) {
        hli_client_ref(span->clients[i]);
        atomic_fetch_add(&span->clients[i]->inside, 1);
    }
}

void hli_span_drop(const struct hli_span *span)
{
    for (size_t i = 0; i < span->count; i++) {
        hli_cancelability_enter(); /* which the leave undoes */
        hli_client_leave(span->clients[i]);
    }
}

bool hli_span_is_closing(const struct hli_span *span)
{
    for (size_t i = 0; i < span->count; i++)
        if (atomic_load(&span->clients[i]->is_closed))
            return true;
    return false;
}
