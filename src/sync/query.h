/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Queries: calls of one request about a name, blocking or with a completion. */
#ifndef HLI_SYNC_QUERY_H
#define HLI_SYNC_QUERY_H

#include "lease/call.h"
#include "lease/name.h"

struct hli_query;

struct hli_query_kind { /* immutable */
    const char *verb;   /* of the error text, "inspect" */
    bool is_deed;       /* it changes something */
    bool is_repeatable; /* a second copy of it does no harm */

    /* The code that the answer means; what is counted goes to query->count. Call mutex. */
    int (*read)(struct hli_query *query, const struct hli_reply *reply);
    /* It is over, and the caller is told next: of an async one behind other callbacks, in another
     * thread. NULL: nothing is to be done. Without a mutex. */
    void (*settle)(struct hli_query *query, int code);
    /* Runs the user's code; NULL: `done` or `counted`, the one that is there. */
    void (*tell)(struct hli_query *query, int code, const hl_error *err);
};

/* Who is told of an async query's end: one of the two. */
struct hli_told {
    hl_done_cb done;
    hl_count_cb counted;
    void *arg;
};

struct hli_query {
    struct hli_call call;
    const struct hli_query_kind *kind; /* immutable */
    struct hli_name *name;             /* counted, immutable */
    int64_t count;
    struct hli_told told;
};

/* Of `size` bytes, for kinds that embed it as their first member; the rest is zero. Its op,
 * call.op, is to be formatted. Errors: NULL when memory is out. */
struct hli_query *hli_query_new(const struct hli_query_kind *kind, struct hli_name *name,
                                size_t size);
void hli_query_unref(struct hli_query *query);

/* Each has the query from now on; NULL is HL_ENOMEM. The first blocks until the end, and gives its
 * count if that is wanted; with 0, the second tells once. The client has been entered. */
int hli_query_block(struct hli_query *query, int64_t *ret_count, hl_error *err);
int hli_query_post(struct hli_query *query, const struct hli_told *told);

#endif
