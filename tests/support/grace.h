/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Terms and graces (failover_grace_ms): a server whose grace is over, and a replica that has heard
 * of nothing. */
#ifndef HL_TEST_GRACE_H
#define HL_TEST_GRACE_H

#include "redis/script.h"
#include "support/deadline.h"
#include "support/kit.h"

#include <stdlib.h>
#include <string.h>

/* The present term of the server has begun, and its grace is over: so the first client of a test
 * waits for none. */
static inline void grace_serve(struct redis_server *node, bool is_cluster)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_TERM);

    while (strncmp(redis_str(node, "EVAL %b 0 1 0 %d", (const char *)script->text, script->length,
                             is_cluster),
                   "1 0 ", 4) != 0)
        deadline_nap();
}

/* The server keeps its data, and they are of another term, as after a failover to a replica that
 * has heard of all. Clients of the usual name are cut off. */
static inline void grace_new_term(struct redis_server *node)
{
    redis_do(node, "REPLICAOF 127.0.0.1 1");
    redis_do(node, "REPLICAOF NO ONE");
    redis_kill_links(node, "hirelock");
}

/* The replica forgets all that it has heard until now. */
static inline void grace_forget(struct redis_server *replica)
{
    redis_do(replica, "CONFIG SET replica-read-only no");
    redis_do(replica, "FLUSHALL");
    check_int(redis_int(replica, "DBSIZE"), 0);
    redis_do(replica, "CONFIG SET replica-read-only yes");
}

#endif
