/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* C and Redisson at a master that sentinels watch over: its failovers. */
#include "failover.h"
#include "redisson.h"

const enum servers servers_kind = SENTINELS;

static void kill_master(void)
{
    struct redis_server *old = server;
    redis_server_kill(old);
    trio_await_switch(trio, old);
}

BreakingLaw(failover, of_a_killed_master_lets_both_sides_go_on)
{
    law_new_master(kill_master, HEARS_BEHIND_IT);
}

static void replace_master(void)
{
    struct redis_server *old = server;
    trio_start_failover(trio);
    trio_await_switch(trio, old);
}

BreakingLaw(failover, on_command_lets_both_sides_go_on)
{
    law_new_master(replace_master, HEARS_BEHIND_IT);
}
