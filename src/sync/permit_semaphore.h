/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the files of the permit semaphore share. Each permit of this client is a hold in a name of
 * its own, found by the permit's id: which is random bytes, the number of the tenure that it was
 * got by, and which of how many permits it is that were acquired at once. All but the number is the
 * name's lane. A request for several is the first one's: its tenure stands for all of them until
 * its caller has looked at the clock, and for itself from then on, when the others begin.
 */
#ifndef HLI_SYNC_PERMIT_SEMAPHORE_H
#define HLI_SYNC_PERMIT_SEMAPHORE_H

#include "sync/query.h"

#include <hirelock/permit_semaphore.h>

struct hl_permit_semaphore {
    struct hli_name *name; /* counted; nobody's: the semaphore's bytes */
};

extern const struct hli_kind hli_kind_permit;

enum { HLI_PERMIT_SIZE = 16 };

struct hli_permit_id {
    unsigned char bytes[HLI_PERMIT_SIZE];
};

/* The lane of the permit that is number `index` of `count`. */
struct hli_lane hli_permit_lane(uint64_t random, size_t index, size_t count);

struct hli_permit_id hli_permit_id(struct hli_lane lane, uint64_t number);
void hli_permit_show(const struct hli_permit_id *id, hl_permit *ret_permit);
/* False when it is not 32 lower-case hex digits, or NULL. */
bool hli_permit_read(const hl_permit *permit, struct hli_permit_id *ret_id);

/* The name in which this client may hold it, with a reference; NULL when there is none. */
struct hli_name *hli_permit_find_name(const hl_permit_semaphore *semaphore,
                                      const struct hli_permit_id *id);
/* The tenure of that name that has, or had, the permit; NULL when there is none. Name mutex. */
struct hli_tenure *hli_permit_tenure(const struct hli_name *name, const struct hli_permit_id *id);

/* May the handle be used? A 0 is followed by leave. Errors: HL_EINVAL (NULL), HL_EFORKED,
 * HL_ECLOSED. */
int hli_permits_enter(const hl_permit_semaphore *semaphore, hl_error *err);
void hli_permits_leave(const hl_permit_semaphore *semaphore);

/* The same, and reads an id; without an error text when err is NULL. */
int hli_permits_enter_with(const hl_permit_semaphore *semaphore, const hl_permit *permit,
                           struct hli_permit_id *ret_id, hl_error *err);

/* A query's request: `args`, at most two, and behind them the channel and the command to publish
 * with. Has the query, and returns it; or drops it, and NULL, when memory is out; NULL is fine. */
struct hli_query *hli_permit_query(struct hli_query *query, hli_script_id script,
                                   const struct hli_bytes *args, size_t arg_count);

/* The request that gives a permit back by its id alone. NULL when memory is out. */
struct hli_query *hli_permit_release_query(const hl_permit_semaphore *semaphore,
                                           const struct hli_permit_id *id);

#endif
