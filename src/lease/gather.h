/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A gather: one call that takes several names, all or none. What is free is taken by one request;
 * in front of the first busy name the call waits as any other, while it holds what precedes that,
 * and goes on behind it. All gathers take names in the same order, so none waits for one that waits
 * for it; and each of its waits is in a queue that serves who came first, so each ends.
 */
#ifndef HLI_LEASE_GATHER_H
#define HLI_LEASE_GATHER_H

#include "lease/bundle.h"
#include "lease/part.h"

enum hli_gather_bundle { HLI_BUNDLE_NONE, HLI_BUNDLE_SENT, HLI_BUNDLE_TELLING, HLI_BUNDLE_TOLD };

enum { HLI_GATHER_LIMIT = 100 }; /* names in one, as in a renewal */

struct hli_gather {
    struct hli_ref ref; /* the call's; one for each part that asks, and for a bundle under way */
    struct hli_wait wait;
    void *arg;                  /* of whoever waits */
    pthread_mutex_t mutex;      /* guards the wait's result */
    hl_acquire_options options; /* immutable */
    int64_t lease_ms;           /* immutable: of each request */

    /* Steps are made by one thread at a time, whichever is told something: it makes those of others
     * that come meanwhile too. */
    atomic_uint kicks;     /* steps to be made */
    atomic_bool is_over;   /* none is, until the call begins anew */
    atomic_size_t current; /* the part that is waited for */
    int stop_code;         /* of the steps, as the next ones: what it fails with, once it does */
    bool alone;            /* a bundle was refused: each name is asked for alone */
    size_t next;           /* the parts before it are held */
    size_t bundle_end;

    _Atomic int bundle_state; /* hli_gather_bundle */
    struct hli_bundle bundle;

    size_t count;
    struct hli_part parts[]; /* in order; those that the owner holds already come last */
};

/* What it takes: names in the order that all clients have, all with the same watch_ms. */
struct hli_gather_item {
    struct hli_name *name; /* borrowed */
    struct hli_acquire_way way;
};
struct hli_gathering {
    const struct hli_gather_item *items;
    size_t count;
    const hl_acquire_options *options;
};

/* Prepares the call; nothing is sent. Errors: HL_EINVAL, HL_ENOMEM. */
int hli_gather_new(const struct hli_gathering *what, struct hli_gather **ret_gather, hl_error *err);

void hli_gather_ref(struct hli_gather *gather);
void hli_gather_unref(struct hli_gather *gather);

/* As hli_acquire_make_way(). */
void hli_gather_make_way(struct hli_gather *gather);

/* Begins; the result comes through the wait. */
void hli_gather_start(struct hli_gather *gather);

/* Once the wait is finished, as hli_acquire_settle(): the code; or 1, and the call goes on. */
int hli_gather_settle(struct hli_gather *gather);

/* Begins, and blocks until the end. */
int hli_gather_block(struct hli_gather *gather);

/* For gather_call.c: makes a step, and those that are wanted meanwhile; with a reference. */
void hli_gather_kick(struct hli_gather *gather);
/* A part's `finished`. */
void hli_gather_part_finished(struct hli_wait *wait);
/* Errors: HL_ENOMEM. */
int hli_gather_init_bundle(struct hli_gather *gather, size_t count);

#endif
