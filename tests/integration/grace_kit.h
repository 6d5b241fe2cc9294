/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Graces of a server that is killed and started anew. */
#ifndef HL_TEST_GRACE_KIT_H
#define HL_TEST_GRACE_KIT_H

#include "support/grace.h"

#include <stdio.h>

/* A holder must come back within the rest of its lease, on a slow machine, too. */
#define LEASE_MS slow_ms(2500)
#define GRACE_MS (LEASE_MS + slow_ms(500))
#define GRACEFUL(...)                                                                              \
    CLIENT(.failover_grace_ms = GRACE_MS, .watchdog_timeout_ms = LEASE_MS, .backoff_max_ms = 100,  \
           .outage_timeout_ms = slow_ms(60000), .request_timeout_ms = slow_ms(20000), __VA_ARGS__)
#define WAITING ACQUIRE(.wait_ms = HL_WAIT_FOREVER)

/* A server of its own that is killed and started anew. */
static inline void graceful_up(void)
{
    server_up_with(&(struct redis_options){0});
}

/* The grace of the present term is over: whatever is free can be acquired. */
static inline void await_grace(hl_client *client)
{
    hl_lock *lock = new_lock(client, "any");

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* The lock's key in Redis names a hold of this client, of each kind, with this count. */
static inline void expect_there(hl_client *client, hl_lock *lock, int count)
{
    char ending[16];
    const char *text = redis_str(server, "HGETALL %s", hl_lock_name(lock, NULL));

    snprintf(ending, sizeof ending, " %d", count);
    check_has(text, hl_client_id(client));
    check_has(text, ending);
    check(pttl_of(lock) > 0);
}

static inline void restart_empty(void)
{
    redis_server_kill(server);
    redis_server_wipe(server);
    redis_server_restart(server);
}

#endif
