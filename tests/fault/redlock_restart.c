/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A story that every team with a Redlock learns (redis.io, "Distributed Locks with Redis", and the
 * crash recovery there): a master restarts empty, and with it a second majority forms. Here a
 * master that has restarted, or lost its data, has no vote until each lease that it may have
 * forgotten is over.
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

/* The operator says that they have never been masters of a lock. */
static void mark_data(void)
{
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SET hirelock_data 0");
}

static void three_durable_up(void)
{
    three_up_with("appendonly yes\nappendfsync always");
    mark_data();
}

/* What they have now they find again after a restart, and nothing newer. */
static void three_saved_up(void)
{
    three_up();
    mark_data();
    for (int i = 0; i < 3; i++)
        redis_do(masters.server[i], "SAVE");
}

static void three_almost_durable_up(void)
{
    three_up_with("appendonly yes\nappendfsync always\nno-appendfsync-on-rewrite yes");
}

/* One owner cannot reach the last master, and the other cannot reach the first. The second, which
 * both reach, forgets the first owner. */
struct story {
    hl_client **holders, **others;
    hl_lock *held, *wanted;
};

static hl_client *open_direct(int i, int64_t lease_ms)
{
    return open_client_at(redis_server_url(masters.server[i]),
                          CLIENT(.watchdog_timeout_ms = lease_ms));
}

/* Nothing of it is lost but what was written. */
static void restart_on_an_empty_disk(struct redis_server *second)
{
    static const char *const files[] = {"appendonlydir", "appendonly.aof"}; /* Redis 7, 6 */
    char path[256], away[300];
    int moved = 0;

    redis_server_kill(second);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", redis_server_dir(second), files[i]);
        snprintf(away, sizeof away, "%s.away", path);
        moved += rename(path, away) == 0;
    }
    check_int(moved, 1);
    redis_server_restart(second);
}

static void flush(struct redis_server *second)
{
    redis_do(second, "FLUSHALL");
}

/* The holder has the first and the second master, and is cut off from both. */
static struct story begin_story(int64_t lease_ms, unsigned flags,
                                void (*forget)(struct redis_server *second))
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
    forget(masters.server[1]);
    return story;
}

/* As with other libraries: both believe that they have the lock. */
Test(redlock_restart, forms_two_majorities_without_the_delay, .init = three_up, .fini = server_down)
{
    struct story story =
        begin_story(slow_ms(20000), HL_REDLOCK_NO_RESTART_DELAY, redis_server_restart);
    expect_ok(hl_lock_acquire_for(story.wanted, slow_ms(10000), ERR));
    check(hl_lock_is_held(story.held, NULL) && hl_lock_is_held(story.wanted, NULL));
}

static void expect_one_majority(int64_t lease_ms, void (*forget)(struct redis_server *second))
{
    struct story story = begin_story(lease_ms, 0, forget);
    int code;
    do {
        code = hl_lock_acquire_for(story.wanted, 10, NULL);
        check(code < 0 || !hl_lock_is_held(story.held, NULL));
    } while (code < 0);
    check(!hl_lock_is_held(story.held, NULL));
    check(hl_lock_is_held(story.wanted, NULL));
    expect_ok(hl_lock_release(story.wanted, ERR));
}

Test(redlock_restart, forms_no_second_majority_while_the_first_may_believe, .init = three_up,
     .fini = server_down)
{
    expect_one_majority(slow_ms(2000), redis_server_restart);
}

/* It has its marker, and all but its last writes. */
Test(redlock_restart, forms_none_by_a_master_that_has_forgotten_its_last_writes,
     .init = three_saved_up, .fini = server_down)
{
    expect_one_majority(slow_ms(4000), redis_server_restart);
}

/* Its configuration says that it keeps all, and so it did: on another disk. */
Test(redlock_restart, forms_none_by_a_master_whose_disk_is_new, .init = three_durable_up,
     .fini = server_down)
{
    expect_one_majority(slow_ms(4000), restart_on_an_empty_disk);
}

/* It has not restarted. */
Test(redlock_restart, forms_none_by_a_master_whose_data_were_deleted, .init = three_durable_up,
     .fini = server_down)
{
    expect_one_majority(slow_ms(4000), flush);
}

/* A new master has no marker, and is new itself: both delays begin with the first ask. */
Test(redlock_restart, marks_the_data_of_a_new_master_at_the_first_ask, .init = three_up,
     .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *lock = new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ESERVER);
    expect_masters_with("hirelock_data", 3);
    const char *since = redis_str(masters.server[1], "GET hirelock_data");
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ESERVER);
    check_str(redis_str(masters.server[1], "GET hirelock_data"), since);
    check_int(masters_with("stock"), 0);
}

/* As it began, none of its leases was longer than the time since the marker was set; a clock that
 * is stepped back tells nothing of that. */
Test(redlock_restart, marks_the_data_anew_that_are_from_the_future, .init = three_durable_up,
     .fini = server_down)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = 600000));
    hl_lock *lock = new_redlock_of(clients, 3, "stock", REDLOCK(.vote_timeout_ms = slow_ms(2000)));
    for (int i = 0; i < 2; i++)
        redis_do(masters.server[i], "SET hirelock_data 9000000000000");
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ESERVER);
    check(redis_int(masters.server[0], "GET hirelock_data") < INT64_C(9000000000000));
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
    check_has(err.text,
              " restarted or lost its data, and may have forgotten a holder: it is asked in ");
    expect_outcome(hl_lock_try_acquire(single, &err), HL_ESERVER);
    check_has(err.text,
              " restarted or lost its data, and may have forgotten a holder: it is asked in ");
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
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .min_hold_ms = 2001), &err),
                   HL_EINVAL);
    check_has(err.text, "min_hold_ms is more than max_lease_ms");
    check_int(masters_with("stock"), 0);
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
    mark_data(); /* they are older than the server */
    expect_outcome(hl_lock_try_acquire(single, &err), HL_ESERVER);
    seem_down = true;
    expect_outcome(hl_lock_try_acquire(single, &err), HL_ESERVER);
    check_has(err.text,
              " restarted or lost its data, and may have forgotten a holder: it is asked in ");
    seem_down = false;
    expect_masters_with("stock", 0);
}
