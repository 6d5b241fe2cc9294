/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Terms and graces (failover_grace_ms): a server whose grace is over, and a replica that has heard
 * of nothing. */
#ifndef HL_TEST_GRACE_H
#define HL_TEST_GRACE_H

#include "redis/script.h"
#include "support/kit.h"

/* The present term of the server has begun, with a grace that is over at once: so the first client
 * of a test waits for none. */
static inline void grace_serve(struct redis_server *node, bool is_cluster)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_TERM);

    redis_do(node, "EVAL %b 0 1 %d", (const char *)script->text, script->length, is_cluster);
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
