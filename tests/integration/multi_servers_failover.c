/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock over several servers, with failover_grace_ms and min_replicas: each member has
 * those of its own client. */

#include "multi_servers_kit.h"
#include "replicas_kit.h"
#include "support/grace.h"

/* As in grace.c: a holder must come back within the rest of its lease. */
#define LEASE_MS slow_ms(2500)
#define GRACE_MS (LEASE_MS + slow_ms(500))
#define GRACEFUL(...)                                                                              \
    CLIENT(.failover_grace_ms = GRACE_MS, .watchdog_timeout_ms = LEASE_MS, .backoff_max_ms = 100,  \
           .outage_timeout_ms = slow_ms(60000), .request_timeout_ms = slow_ms(20000), __VA_ARGS__)

static void restart_empty(int number)
{
    redis_server_kill(site[number].server);
    redis_server_wipe(site[number].server);
    redis_server_restart(site[number].server);
}

static uint64_t reclaims_at(int number)
{
    return stats_of(site[number].client).reclaims;
}

SingleLaw(multi_servers_failover, wait_for_the_grace_of_one_server_and_give_back_at_the_other)
{
    site_open(1, NULL);
    site_open(2, GRACEFUL());
    hl_lock *multi = new_multi_at("a1 b2 c1");
    hl_error err = HL_ERROR_INIT;

    wait_stat(site[2].client, graces, 1);
    expect_outcome(hl_lock_try_acquire(multi, &err), HL_EBUSY);
    check_has(err.text, "acquire 'b'");
    check_has(err.text, "nobody acquires for ");
    expect_keys_at("a1 b2 c1", 0);
    struct actor *waiter = actor_start_acquire(multi, WAITING);
    expect_keys_at("a1", 1); /* what precedes it */
    expect_ok(actor_end(waiter));
    expect_keys_at("a1 b2 c1", 1);
    expect_ok(actor_release(waiter, multi, NULL));
    expect_keys_at("a1 b2 c1", 0);
}

/* The terms of two servers have nothing to do with each other: a request has that of its own. */
SingleLaw(multi_servers_failover, outlive_the_restart_of_one_server)
{
    site_open(1, GRACEFUL());
    site_open(2, GRACEFUL());
    hl_lock *multi = new_multi_at("a1 b2 c1 d2");

    expect_ok(hl_lock_acquire(multi, ERR));
    restart_empty(2);
    wait_stat(site[2].client, reclaims, 2);
    check(hl_lock_is_held(multi, NULL));
    expect_keys_at("a1 b2 c1 d2", 1);
    expect_ok(hl_lock_release(multi, ERR));
    expect_keys_at("a1 b2 c1 d2", 0);
    expect_ok(hl_lock_acquire(multi, ERR)); /* in another term at the second server alone */
    wait_stat(site[1].client, renewals, stats_of(site[1].client).renewals + 4);
    wait_stat(site[2].client, renewals, stats_of(site[2].client).renewals + 4);
    check_int(reclaims_at(1), 0);
    check_int(reclaims_at(2), 2);
    expect_ok(hl_lock_release(multi, ERR));
    expect_keys_at("a1 b2 c1 d2", 0);
}

SingleLaw(multi_servers_failover, refuse_times_that_one_client_would_not_outlast)
{
    site_open(1, NULL);
    site_open(2, GRACEFUL());
    hl_lock *multi[] = {new_multi_at("a1 b2"), new_multi_at("a2 b1")};
    hl_error err = HL_ERROR_INIT;

    grace_serve(site[2].server, false);
    for (int i = 0; i < 2; i++) {
        expect_outcome(hl_lock_acquire_with(multi[i], ACQUIRE(.lease_ms = GRACE_MS + 1), &err),
                       HL_EINVAL);
        check_has(err.text, "lease_ms is longer than ");
        expect_outcome(hl_lock_acquire_with(multi[i], ACQUIRE(.min_hold_ms = GRACE_MS + 1), &err),
                       HL_EINVAL);
        check_has(err.text, "min_hold_ms is longer than ");
        expect_keys_at("a1 b1 a2 b2", 0);
        expect_ok(
            hl_lock_acquire_with(multi[i], ACQUIRE(.lease_ms = GRACE_MS, .wait_ms = -1), &err));
        expect_ok(hl_lock_release(multi[i], ERR));
    }
}

ReplicaLaw(multi_servers_failover, give_back_everywhere_what_one_client_s_replicas_lack)
{
    site_open(1, IMPATIENT());
    site_open(2, NULL);
    hl_lock *multi = new_multi_at("a2 b1 c2 d1");

    replica_cut(0);
    expect_outcome(hl_lock_acquire(multi, ERR), HL_EREPLICAS);
    expect_keys_at("a2 b1 c2 d1", 0);
    for (int i = 1; i <= 2; i++)
        check_int(stats_of(site[i].client).holds_now, 0);
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    expect_ok(hl_lock_acquire(multi, ERR));
    check(replica_has(0, "b") && replica_has(0, "d"));
    expect_keys_at("a2 b1 c2 d1", 1);
    check_int(redis_calls(site[2].server, "wait"), 0);
    expect_ok(hl_lock_release(multi, ERR));
    expect_nothing_left_at_all();
}
