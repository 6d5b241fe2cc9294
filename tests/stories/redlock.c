/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Five masters without replicas, and a lock is held by who has it at three of them. One that keeps
 * nothing on disk restarts, and has forgotten. */
#include "naive.h"

#include "support/masters.h"

enum { MASTERS = 5, MAJORITY = 3, LEASE_MS = 60000 };

/* Asks the masters from `first` to `last`, which are those that the machine reaches. */
static bool take_majority(const char *who, int first, int last)
{
    int votes = 0;
    for (int i = first; i <= last; i++)
        votes += naive_take(naive_at(masters.server[i], who), "job", LEASE_MS);
    return votes >= MAJORITY;
}

static void restart_empty(struct redis_server *master)
{
    redis_server_kill(master);
    redis_server_wipe(master);
    redis_server_restart(master);
}

MastersLaw(naive, master_that_restarts_empty_votes_twice)
{
    check(take_majority("A", 0, 2)); /* A does not reach the last two */
    restart_empty(masters.server[2]);
    check(take_majority("B", 2, 4)); /* and B not the first two */
    tell_figure("naive: A and B both hold 'job', each by three votes of five");
}

struct machine {
    struct proxy *way[MASTERS]; /* to each master */
    hl_client **clients;
    hl_lock *lock;
};

static struct machine new_machine(int64_t lease_ms)
{
    struct machine machine;

    masters_use_proxies();
    memcpy(machine.way, masters.proxy, sizeof machine.way);
    machine.clients =
        open_masters(CLIENT(.watchdog_timeout_ms = lease_ms, .request_timeout_ms = slow_ms(500)));
    machine.lock =
        new_redlock_of(machine.clients, MASTERS, "job", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    return machine;
}

static void cut_off(const struct machine *machine, int first, int last)
{
    for (int i = first; i <= last; i++) {
        proxy_refuse(machine->way[i], true);
        proxy_kill_all(machine->way[i]);
    }
}

static void join(const struct machine *machine, int first, int last)
{
    for (int i = first; i <= last; i++)
        proxy_refuse(machine->way[i], false);
}

/* The masters have run for an hour, with the data that they have, so that each has a vote. */
static void up(void)
{
    if (!redis_server_has_clock_shim())
        skip("this build has no clock shim");
    masters_up_with(MASTERS, &(struct redis_options){.tcp = true, .clock_shim = true});
    for (int i = 0; i < MASTERS; i++) {
        redis_do(masters.server[i], "SET hirelock_data 0");
        redis_server_step_clock(masters.server[i], 3600000);
    }
}

#define FiveMasters(suite, name) Test(suite, name, .init = up, .fini = server_down)

/* A has three votes of five, of which the third is forgotten, and B could have it. */
static void take_and_restart(const struct machine *a, const struct machine *b)
{
    cut_off(a, 3, 4);
    cut_off(b, 0, 1);
    expect_ok(hl_lock_acquire(a->lock, ERR));
    cut_off(a, 2, 2); /* else A would learn of the restart */
    restart_empty(masters.server[2]);
    wait_stat(b->clients[2], reconnects, 1);
}

FiveMasters(ours, master_that_restarts_empty_has_no_vote_and_the_second_is_told)
{
    struct machine a = new_machine(LEASE_MS), b = new_machine(LEASE_MS);
    hl_error err = HL_ERROR_INIT;

    take_and_restart(&a, &b);
    expect_outcome(hl_lock_try_acquire(b.lock, &err), HL_ECONN);
    check(hl_lock_is_held(a.lock, NULL));
    tell_figure("ours: A holds 'job', and B does not get it: %s", err.text);
    check_has(err.text,
              " restarted or lost its data, and may have forgotten a holder: it is asked in ");

    /* A is still cut off from the third master, so no majority confirms its release. */
    expect_outcome(hl_lock_release(a.lock, ERR), HL_EINDOUBT);
    join(&b, 0, 1);
    expect_ok(hl_lock_acquire_for(b.lock, slow_ms(20000), ERR));
    tell_figure("ours: A has released 'job', and B has it without the vote of that master");
}

FiveMasters(ours, master_that_restarts_empty_votes_again_when_what_it_forgot_is_over)
{
    struct machine a = new_machine(slow_ms(3000)), b = new_machine(slow_ms(3000));

    take_and_restart(&a, &b);
    expect_ok(hl_lock_acquire_for(b.lock, slow_ms(60000), ERR));
    check(!hl_lock_is_held(a.lock, NULL));
    tell_figure("ours: B has 'job' when A's lease is surely over");
}
