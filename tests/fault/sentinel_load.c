/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A failover of a master that Sentinels watch, while threads acquire and release without a pause.
 */

#include "failover_holds.h"

static const char *name_itself(const char *prefix)
{
    return prefix;
}

/* No master is replaced because the machine is busy. */
static void calm_trio_up(void)
{
    trio_up_with(&(struct trio_options){.down_after_ms = 5000});
}

static void expect_failover(const struct failure *failure)
{
    struct redis_server *old = trio_master(trio);

    load_begin(trio_url(trio), name_itself);
    holds_open(trio_url(trio));
    holds_begin(old, failure, name_itself);
    server = trio_await_switch(trio, old);
    holds_expect_held_or_lost(failure);
    holds_expect_waiters_served();
    load_expect_served();
    load_end();
    check_int(stats_of(holder).master_changes, 1);
}

#define LoadLaw(name) Test(sentinel_load, name, .init = calm_trio_up, .fini = server_down)

LoadLaw(goes_on_when_the_master_is_killed)
{
    expect_failover(&(const struct failure){.fail = redis_server_kill});
}

static void fail_by_command(struct redis_server *master)
{
    (void)master;
    trio_start_failover(trio);
}

LoadLaw(goes_on_when_a_sentinel_is_told_to_fail_over)
{
    expect_failover(&(const struct failure){.fail = fail_by_command});
}

static struct redis_server *replica;

static void stop_replication(struct redis_server *master)
{
    replica = trio_replica(trio);
    redis_server_freeze(replica);
    redis_do(master, "CLIENT KILL TYPE replica"); /* or it would find more in its socket later */
}

static void fail_ahead_of_replica(struct redis_server *master)
{
    redis_server_kill(master);
    redis_server_thaw(replica);
}

LoadLaw(goes_on_when_the_dead_master_had_told_its_replica_only_a_part)
{
    expect_failover(&(const struct failure){
        .prepare = stop_replication, .fail = fail_ahead_of_replica, .loses = true});
}
