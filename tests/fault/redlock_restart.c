/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A story that every team with a Redlock learns (redis.io, "Distributed Locks with Redis", and the
 * crash recovery there): a master restarts empty, and with it a second majority forms. Here a
 * restarted master has no vote until each lease that it may have forgotten is over.
 */
#include "redis/link.h"
#include "support/events.h"
#include "support/masters.h"

bool __real_hli_link_is_up(const struct hli_link *link);
bool __wrap_hli_link_is_up(const struct hli_link *link);

/* Each look at the links finds them down (LINKER:--wrap=hli_link_is_up). */
static atomic_bool seem_down;

bool __wrap_hli_link_is_up(const struct hli_link *link)
{
    return !seem_down && __real_hli_link_is_up(link);
}

static void three_up_with(const char *config)
{
    masters_up_with(3, &(struct redis_options){.tcp = true, .config = config});
    masters_use_proxies();
}

static void three_up(void)
{
    three_up_with(NULL);
}

static void three_durable_up(void)
{
    three_up_with("appendonly yes\nappendfsync always");
}

static void three_almost_durable_up(void)
{
    three_up_with("appendonly yes\nappendfsync always\nno-appendfsync-on-rewrite yes");
}

/* One owner cannot reach the last master, and the other cannot reach the first. */
struct story {
    hl_client **holders, **others;
    hl_lock *held, *wanted;
};

static hl_client *open_direct(int i, int64_t lease_ms)
{
    return open_client_at(redis_server_url(masters.server[i]),
                          CLIENT(.watchdog_timeout_ms = lease_ms));
}

/* The holder has the first and the second master; the second restarts without its key. */
static struct story begin_story(int64_t lease_ms, unsigned flags)
{
    static hl_client *others[3];
    const hl_redlock_options options = {
        .size = sizeof options, .flags = flags, .vote_timeout_ms = slow_ms(2000)};
    struct story story = {.others = others};
    hl_error err = HL_ERROR_INIT;
    story.holders = open_masters(CLIENT(.watchdog_timeout_ms = lease_ms));
    proxy_refuse(masters.proxy[2], true);
    proxy_kill_all(masters.proxy[2]);
    for (int i = 0; i < 3; i++)
        others[i] = open_direct(i, lease_ms);
    story.held = new_redlock_of(story.holders, 3, "stock", &options);
    story.wanted = new_redlock_of(others, 3, "stock", &options);
    check_int(hl_lock_acquire_with(story.held, ACQUIRE(.wait_ms = slow_ms(60000)), &err), HL_OK);
    check_int(masters_with("stock"), 2);
    proxy_refuse(masters.proxy[1], true); /* the holder is cut off, and learns of nothing */
    proxy_kill_all(masters.proxy[1]);
    redis_server_kill(masters.server[0]); /* the other owner cannot reach it */
    redis_server_restart(masters.server[1]);
    return story;
}

/* As with other libraries: both believe that they have the lock. */
Test(redlock_restart, forms_two_majorities_without_the_delay, .init = three_up, .fini = server_down)
{
    struct story story = begin_story(slow_ms(20000), HL_REDLOCK_NO_RESTART_DELAY);
    expect_ok(hl_lock_acquire_for(story.wanted, slow_ms(10000), ERR));
    check(hl_lock_is_held(story.held, NULL) && hl_lock_is_held(story.wanted, NULL));
}

Test(redlock_restart, forms_no_second_majority_while_the_first_may_believe, .init = three_up,
     .fini = server_down)
{
    struct story story = begin_story(slow_ms(2000), 0);
    int code;
    do {
        code = hl_lock_acquire_for(story.wanted, 10, NULL);
        check(code < 0 || !hl_lock_is_held(story.held, NULL));
    } while (code < 0);
    check(!hl_lock_is_held(story.held, NULL));
    check(hl_lock_is_held(story.wanted, NULL));
    expect_ok(hl_lock_release(story.wanted, ERR));
}

/* Nothing of what it has written can be missing. */
Test(redlock_restart, gives_a_vote_at_once_to_a_master_that_has_all_on_its_disk,
     .init = three_durable_up, .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *lock = new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(clients[0], votes, 3);
    for (int i = 0; i < 3; i++)
        redis_server_restart(masters.server[i]);
    check(hl_lock_is_held(lock, NULL));
    check_int(masters_with("stock"), 3);
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* While such a master saves, an answer may be ahead of its disk. */
Test(redlock_restart, gives_no_vote_to_a_master_that_has_not_always_all_on_its_disk,
     .init = three_almost_durable_up, .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *lock = new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ESERVER);
    check_int(masters_with("stock"), 0);
}

Test(redlock_restart, makes_a_try_say_when_the_master_has_a_vote, .init = three_up,
     .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *several =
        new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    hl_lock *single = new_redlock_of(clients, 1, "stock", REDLOCK(.flags = 0));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(several, &err), HL_ESERVER);
    check_has(err.text, "only 0 of 3 masters voted (127.0.0.1:");
    check_has(err.text, " restarted, and may have forgotten a holder: it is asked in ");
    expect_outcome(hl_lock_try_acquire(single, &err), HL_ESERVER);
    check_has(err.text, " restarted, and may have forgotten a holder: it is asked in ");
    expect_outcome(hl_lock_acquire_for(single, 10, &err), HL_ESERVER);
    check_int(masters_with("stock"), 0);
}

Test(redlock_restart, refuses_a_lease_for_which_restarted_masters_are_not_kept_away,
     .init = three_up, .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 1000));
    hl_lock *lock = new_redlock_of(clients, 3, "stock", REDLOCK(.max_lease_ms = 2000));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .lease_ms = 2001), &err),
                   HL_EINVAL);
    check_has(err.text, "lease_ms is more than max_lease_ms");
}

/* Also when that takes longer than a server may be out of reach: it answers. */
Test(redlock_restart, keeps_waiters_waiting_until_the_masters_have_a_vote, .init = three_up,
     .fini = server_down)
{
    hl_client **clients =
        open_masters(CLIENT(.watchdog_timeout_ms = 3000, .outage_timeout_ms = 500));
    hl_lock *several =
        new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    hl_lock *single = new_redlock_of(clients, 1, "single", REDLOCK(.flags = 0));
    expect_ok(hl_lock_acquire_for(several, slow_ms(60000), ERR));
    expect_ok(hl_lock_release(several, ERR));
    expect_ok(hl_lock_acquire_for(single, slow_ms(60000), ERR));
}

/* The request was decided before the link was up, and the link breaks before the answer is judged:
 * two moments that are too short to be met by a test, so the link only seems to be down in both. */
Test(redlock_restart, gives_no_vote_by_a_link_that_has_come_and_gone, .init = three_up,
     .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *single = new_redlock_of(clients, 1, "stock", REDLOCK(.flags = 0));
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_client_ping(clients[0], -1, ERR));
    seem_down = true;
    expect_outcome(hl_lock_try_acquire(single, &err), HL_ESERVER);
    check_has(err.text, " restarted, and may have forgotten a holder: it is asked in ");
    seem_down = false;
    expect_masters_with("stock", 0);
}
