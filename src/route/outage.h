/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The outages of one node, in the log: one line when it begins, one a minute while it goes on, and
 * one when it is over. Each node has its own, whatever becomes of the others. Loop thread. */
#ifndef HLI_ROUTE_OUTAGE_H
#define HLI_ROUTE_OUTAGE_H

#include "route/topology.h"

struct hli_outage {    /* all zero: there is none */
    hli_ns since;      /* 0: there is none */
    hli_ns warned_at;  /* the last line about an attempt in vain */
    unsigned attempts; /* in vain */
};

/* The link was lost: nothing, if another lane of the node was lost before. */
void hli_outage_begin(struct hli_outage *outage, const struct hli_topology_listener *listener,
                      const struct hli_link *link, const hl_error *err);
/* An attempt to connect has failed. */
void hli_outage_go_on(struct hli_outage *outage, const struct hli_topology_listener *listener,
                      const hl_error *err);
/* The link is up: the end, if all lanes of the node are. */
void hli_outage_end(struct hli_outage *outage, const struct hli_topology_listener *listener,
                    struct hli_link *link);

#endif
