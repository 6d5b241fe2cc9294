/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The list of sentinels: those of the URL, and those that a sentinel told of, so that a client goes
 * on when all sentinels of its URL have been replaced one by one. Pure but for memory and the
 * program's address_map.
 */
#ifndef HLI_ROUTE_SENTINEL_LIST_H
#define HLI_ROUTE_SENTINEL_LIST_H

#include "redis/reply.h"
#include "redis/url.h"

#include <hirelock/client.h>

enum { HLI_SENTINELS_LEARNED = 64, HLI_SENTINELS_MET = 128 };

struct hli_sentinel_list {
    const hl_client_options *settings; /* borrowed, as the next */
    const struct hli_url *url;         /* its addresses come first */
    struct hli_address learned[HLI_SENTINELS_LEARNED];
    size_t learned_count;
    size_t current; /* index, over both */
    /* The sentinels of this service: those that were believed, and those that they told of. The
     * newest, in a ring. */
    struct hli_id met[HLI_SENTINELS_MET];
    size_t met_count;
};

void hli_sentinel_list_deinit(struct hli_sentinel_list *list);
size_t hli_sentinel_list_count(const struct hli_sentinel_list *list);
const struct hli_address *hli_sentinel_list_current(const struct hli_sentinel_list *list);
void hli_sentinel_list_next(struct hli_sentinel_list *list);
bool hli_sentinel_list_is_given(const struct hli_sentinel_list *list); /* the current, by the URL */

/* The current one's answer to SENTINEL SENTINELS: all others, but those that it cannot reach. They
 * replace what was learned before; the current one stays in the list. One that was started a moment
 * ago knows no others, which says nothing. Without memory, or for another reply, the list keeps
 * what it can. *ret_err: why the last address that is left out is of no use; unchanged if none is.
 */
void hli_sentinel_list_learn(struct hli_sentinel_list *list, const struct hli_reply *peers,
                             hl_error *ret_err);

/* Was this sentinel met, or one of the peers that it tells of? Also true as long as none was met,
 * and of one that tells no id at all. peers may be NULL, and anything. */
bool hli_sentinel_list_has_met(const struct hli_sentinel_list *list, const struct hli_id *self,
                               const struct hli_reply *peers);
void hli_sentinel_list_meet(struct hli_sentinel_list *list, const struct hli_id *self,
                            const struct hli_reply *peers);

#endif
