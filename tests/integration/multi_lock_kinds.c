/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock with members of all kinds. */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/kinds.h"

enum { FAIR, READ, WRITE, FENCED, SPIN, PLAIN, KINDS };

/* It is acquired before "plain", by the order of names, and by that of a cluster's slots. */
#define FAIR_NAME "fair{area}"

/* One client's handles of the locks FAIR_NAME, "read", "write", "fenced", "spin" and "plain", and
 * of all of them. */
struct crew {
    hl_client *client;
    hl_lock *member[KINDS], *unused[2], *all;
};

static struct crew crews[3];
static int crew_count;

static struct crew *new_crew(void)
{
    struct crew *crew = &crews[crew_count++];
    crew->client = open_client(CLIENT(.poll_ms = 200));
    expect_ok(fair_lock_new(crew->client, FAIR_NAME, NULL, &crew->member[FAIR], NULL));
    expect_ok(rw_lock_new(crew->client, "read", NULL, &crew->member[READ], &crew->unused[0], NULL));
    expect_ok(
        rw_lock_new(crew->client, "write", NULL, &crew->unused[1], &crew->member[WRITE], NULL));
    expect_ok(fenced_lock_new(crew->client, "fenced", NULL, &crew->member[FENCED], NULL));
    expect_ok(spin_lock_new(crew->client, "spin", NULL, &crew->member[SPIN], NULL));
    expect_ok(hl_lock_new(crew->client, "plain", &crew->member[PLAIN], NULL));
    for (int k = 0; k < KINDS; k++)
        keep_lock(crew->member[k]);
    keep_lock(crew->unused[0]), keep_lock(crew->unused[1]);
    crew->all = new_multi_of(crew->member, KINDS);
    return crew;
}

static void expect_free_of_all(void)
{
    expect_all_free(FAIR_NAME " read write fenced spin plain");
}

Law(multi_kinds, are_taken_together_and_given_back)
{
    struct crew *crew = new_crew();
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire(crew->all, NULL));
        check(hl_lock_is_held(crew->all, NULL));
        for (int k = 0; k < KINDS; k++)
            check(hl_lock_is_held(crew->member[k], NULL));
        check(hl_lock_token(crew->member[FENCED], NULL) > 0);
        expect_ok(hl_lock_release(crew->all, NULL));
        expect_free_of_all();
    }
}

Law(multi_kinds, nest)
{
    struct crew *crew = new_crew();
    expect_ok(hl_lock_acquire(crew->member[FAIR], NULL));
    expect_ok(hl_lock_acquire(crew->member[WRITE], NULL));
    expect_ok(hl_lock_acquire(crew->all, NULL));
    expect_ok(hl_lock_acquire(crew->all, NULL));
    check_int(hl_lock_hold_count(crew->all, NULL), 2);
    check_int(hl_lock_hold_count(crew->member[FAIR], NULL), 3);
    expect_ok(hl_lock_release(crew->all, NULL));
    expect_ok(hl_lock_release(crew->all, NULL));
    check_int(hl_lock_hold_count(crew->member[FAIR], NULL), 1);
    check_int(hl_lock_hold_count(crew->member[WRITE], NULL), 1);
    expect_all_free("read fenced spin plain");
    expect_ok(hl_lock_release(crew->member[FAIR], NULL));
    expect_ok(hl_lock_release(crew->member[WRITE], NULL));
    expect_free_of_all();
}

/* Whichever of them is busy, nothing is kept of the others. */
Law(multi_kinds, are_all_given_back_when_one_is_busy)
{
    struct crew *crew = new_crew(), *rival = new_crew();
    for (int k = 0; k < KINDS; k++) {
        hl_lock *busy = k == READ ? rival->unused[0] : rival->member[k]; /* a writer */
        expect_ok(hl_lock_acquire(busy, NULL));
        expect_outcome(hl_lock_try_acquire(crew->all, NULL), HL_EBUSY);
        expect_outcome(hl_lock_acquire_for(crew->all, 30, NULL), HL_ETIMEDOUT);
        check_int(stats_of(crew->client).holds_now, 0);
        expect_ok(hl_lock_release(busy, NULL));
        expect_free_of_all();
    }
}

Law(multi_kinds, are_waited_for_each_in_its_own_way)
{
    struct crew *crew = new_crew(), *rival = new_crew();
    for (int k = 0; k < KINDS; k++) {
        struct actor *waiter = actor_start();
        hl_lock *busy = k == READ ? rival->unused[0] : rival->member[k];
        expect_ok(hl_lock_acquire(busy, NULL));
        actor_begin_acquire(waiter, crew->all, ACQUIRE(.wait_ms = slow_ms(10000)));
        expect_waiters(crew->client, 1);
        expect_ok(hl_lock_release(busy, NULL));
        expect_ok(actor_end(waiter));
        check(actor_holds(waiter, crew->all, NULL));
        expect_ok(actor_release(waiter, crew->all, NULL));
        actor_stop(waiter);
        expect_free_of_all();
    }
}

Law(multi_kinds, of_read_locks_share_them)
{
    struct crew *one = new_crew(), *other = new_crew();
    hl_lock *mine[] = {one->member[READ], one->member[PLAIN]};
    hl_lock *yours[] = {other->member[READ], other->member[FAIR]};
    hl_lock *first = new_multi_of(mine, 2), *second = new_multi_of(yours, 2);
    expect_ok(hl_lock_try_acquire(first, NULL));
    expect_ok(hl_lock_try_acquire(second, NULL));
    check(hl_lock_is_held(first, NULL) && hl_lock_is_held(second, NULL));
    expect_outcome(hl_lock_try_acquire(new_multi_of(&other->unused[0], 1), NULL), HL_EDEADLK);
    expect_ok(hl_lock_release(first, NULL));
    expect_ok(hl_lock_release(second, NULL));
    expect_free_of_all();
}

static uint64_t holds_before;

static bool holds_one_less(void *crew)
{
    return stats_of(((struct crew *)crew)->client).holds_now == holds_before - 1;
}

Law(multi_kinds, begin_anew_when_a_fair_lock_is_lost_meanwhile)
{
    struct crew *crew = new_crew();
    struct actor *waiter = actor_start();
    stranger_takes("plain", 60000);
    actor_begin_acquire(waiter, crew->all, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{plain}"));
    holds_before = stats_of(crew->client).holds_now;
    expect_ok(hl_lock_force_release(crew->member[FAIR], NULL));
    check(wait_until(holds_one_less, crew, 5000)); /* the loss is known */
    stranger_leaves("plain");
    expect_ok(actor_end(waiter));
    check(actor_holds(waiter, crew->all, NULL));
    expect_ok(actor_release(waiter, crew->all, NULL));
    expect_free_of_all();
}

Law(multi_kinds, of_one_name_are_refused)
{
    struct crew *crew = new_crew();
    hl_lock *lock = NULL, *halves[] = {crew->member[READ], crew->unused[0]};
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_multi_lock_new(halves, 2, NULL, &lock, &err), HL_EINVAL);
    check_str(err.text, "a name is given as two kinds of locks");
}

Law(multi_kinds, have_one_lease_time_when_they_are_waited_for)
{
    struct crew *crew = new_crew(), *rival = new_crew();
    struct actor *waiter = actor_start();
    expect_ok(hl_lock_acquire(rival->member[WRITE], NULL)); /* the last in the order of names */
    actor_begin_acquire(waiter, crew->all, ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(900)));
    wait_stat(crew->client, renewals, 20); /* of the five that precede it */
    check(!actor_is_done(waiter));
    expect_ok(hl_lock_release(rival->member[WRITE], NULL));
    expect_ok(actor_end(waiter));
    wait_stat(crew->client, losses, KINDS); /* its lease begins with the return, and is over */
    expect_outcome(actor_release(waiter, crew->all, NULL), HL_ELOST);
    expect_free_of_all();
}
