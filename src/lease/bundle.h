/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A bundle: one request in place of several tenures' own. Each of these is handed its own answer,
 * as if it had been sent alone, so that nothing else has to know of bundles.
 */
#ifndef HLI_LEASE_BUNDLE_H
#define HLI_LEASE_BUNDLE_H

#include "lease/name.h"

struct hli_bundle {
    struct hli_op op;
    struct hli_link *link;
    size_t count;
    struct hli_op **ops; /* `ask` or `release` of tenures, formatted and not sent; borrowed */

    /* It bounced: is it still wanted? Then it is sent again. */
    bool (*is_wanted)(struct hli_bundle *bundle);
    /* Hands an op its answer, by its `done`. A refusal for good may be about another name of the
     * bundle only. kept: this is the busy one, or the first if there is none. */
    void (*tell)(struct hli_bundle *bundle, size_t index, const struct hli_answer *answer,
                 bool kept);
    void (*told)(struct hli_bundle *bundle); /* all have theirs */
};

/* Room for the ops of up to `count` tenures. Errors: HL_ENOMEM. */
int hli_bundle_init(struct hli_bundle *bundle, struct hli_link *link, size_t count);
void hli_bundle_deinit(struct hli_bundle *bundle);

/* Formats the request in place of `count` TAKEs, which want this lease; of a caller that waits, or
 * of one that does not. Errors: HL_ENOMEM. */
int hli_bundle_acquire(struct hli_bundle *bundle, int64_t lease_ms, bool waits);

/* The same in place of releases. */
int hli_bundle_release(struct hli_bundle *bundle);

/* Sends it. All are told in the end. */
void hli_bundle_send(struct hli_bundle *bundle);

#endif
