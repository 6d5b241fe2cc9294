/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A wording: how a client's requests are written for the servers that it has. In a cluster a
 * request declares all keys that its script touches, behind those that the script reads: while a
 * slot moves, the server then refuses the request before it runs. And there each name has mailboxes
 * of its own, in its slot. At a single server neither is done.
 */
#ifndef HLI_LEASE_CALLS_WORDING_H
#define HLI_LEASE_CALLS_WORDING_H

#include <stdbool.h>

struct hli_wording { /* immutable */
    bool is_for_cluster;
    const char *publish, *numsub; /* by which scripts publish, and count a channel's subscribers */
};

/* Of a single server; of a cluster; of a cluster whose servers have sharded pub/sub, as Redis 7. */
extern const struct hli_wording hli_wording_plain, hli_wording_cluster, hli_wording_sharded;

#endif
