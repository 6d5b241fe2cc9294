/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The parts that the files of the permit semaphore share. Each permit of this client is a hold in a
 * name of its own. A permit's id finds the name: it has random bytes, the number of the permit's
 * tenure, the index of the permit among those acquired at once, and how many those are. All but the
 * tenure's number is the name's owner key. A request for several permits belongs to the first one:
 * its tenure stands for all of them until the caller has checked their validity; from then on it
 * stands for itself, and the tenures of the others begin.
 */
#ifndef HLI_SYNC_PERMITS_PERMITS_H
#define HLI_SYNC_PERMITS_PERMITS_H

#include "sync/common/handle.h"

#include <hirelock/permits.h>

struct hl_permits {
    struct hli_handle handle; /* its name has the semaphore's bytes, and no owner */
};

extern const struct hli_kind hli_kind_permit;

enum { HLI_PERMIT_SIZE = 16 };

struct hli_permit_id {
    unsigned char bytes[HLI_PERMIT_SIZE];
};

/* Begins a script's call on the semaphore of this name. */
void hli_permit_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name);

/* The owner key of permit `index` of `count`. */
struct hli_owner_key hli_permit_owner_key(uint64_t random, size_t index, size_t count);

struct hli_permit_id hli_permit_id(struct hli_owner_key owner_key, uint64_t number);
void hli_permit_show(const struct hli_permit_id *id, hl_permit *ret_permit);
/* False if the text is not 32 lower-case hex digits, or permit is NULL. */
bool hli_permit_read(const hl_permit *permit, struct hli_permit_id *ret_id);
/* The same when a call is prepared. Errors: HL_EINVAL. */
int hli_permit_read_for(struct hli_call *call, const hl_permit *permit,
                        struct hli_permit_id *ret_id);

/* This client's tenure that has, or had, the permit, with a reference; NULL if there is none. The
 * semaphore is given by its own name. */
struct hli_tenure *hli_permit_find(const struct hli_name *semaphore,
                                   const struct hli_permit_id *id);

#endif
