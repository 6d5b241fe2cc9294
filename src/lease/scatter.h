/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A scatter: one call that releases several names, each whatever becomes of the others. Where
 * nobody is known to wait, by one request.
 */
#ifndef HLI_LEASE_SCATTER_H
#define HLI_LEASE_SCATTER_H

#include "lease/bundle.h"
#include "lease/release.h"

struct hli_scatter_part {
    struct hli_scatter *scatter; /* borrowed, immutable */
    struct hli_released released;
    struct hli_release_way way; /* immutable */
    hl_error err;
};

struct hli_scatter {
    struct hli_ref ref; /* the call's; one for each part under way, and for a bundle */
    struct hli_wait wait;
    void *arg;             /* of whoever waits */
    pthread_mutex_t mutex; /* guards the wait's result */
    atomic_size_t pending; /* parts without a result, and one while they are begun */
    struct hli_bundle bundle;
    size_t count;
    struct hli_scatter_part parts[];
};

/* What it releases, and how. */
struct hli_scatter_item {
    struct hli_name *name; /* borrowed */
    struct hli_release_way way;
};

/* Prepares the call; nothing is sent. Errors: HL_ENOMEM. */
int hli_scatter_new(const struct hli_scatter_item *items, size_t count, hl_error *err,
                    struct hli_scatter **ret_scatter);
void hli_scatter_ref(struct hli_scatter *scatter);
void hli_scatter_unref(struct hli_scatter *scatter);

/* Releases one level of the owner's holds; the result, which is the worst, comes through the wait.
 */
void hli_scatter_start(struct hli_scatter *scatter, struct hl_owner *owner);

/* What became of one, once the wait is finished. */
int hli_scatter_code(const struct hli_scatter *scatter, size_t index);

/* Of two results of releases, the one that matters more. */
int hli_scatter_worse(int code, int other);

#endif
