/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A release-all: one call that releases several names, each independently of the others. Names
 * without known waiters are released by one request for each client.
 */
#ifndef HLI_LEASE_SEVERAL_RELEASE_ALL_H
#define HLI_LEASE_SEVERAL_RELEASE_ALL_H

#include "lease/hold/release_call.h"
#include "lease/several/batch.h"

struct hli_release_all_item {
    struct hli_name *name; /* borrowed */
    bool is_closed;        /* its client is: nothing is done */
    struct hli_release_mode mode;
};

/* The caller's array of codes, and the item of each code; ret NULL: the caller wants no codes. */
struct hli_release_all_codes {
    int *ret;
    size_t count;
    unsigned char item[HLI_SEVERAL_LIMIT];
};

/* The arguments of a release-all. */
struct hli_release_all_spec {
    hl_client *client;     /* whose timers and callbacks the call uses */
    struct hli_span *span; /* borrowed, and entered: those that are open; NULL: only `client` */
    struct hl_owner *owner;
    const struct hli_release_all_item *items;
    size_t count;
    struct hli_release_all_codes codes;
};

/* Releases one level of each of the owner's holds. Returns the worst code; else as
 * hli_release_run(). */
int hli_release_all_run(const struct hli_release_all_spec *what,
                        const struct hli_completion *completion);

/* The worse of two results of releases. */
int hli_release_all_worse(int code, int other);

#endif
