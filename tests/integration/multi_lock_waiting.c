/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock when its caller has to wait: the members that it holds meanwhile, the order of the
 * waiters, and the members that it gives back on each way out. */

#include "multi_kit.h"
#include "settled.h"
#include "support/actor.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

static hl_client *client;
static hl_lock *lock;

/* A client that neither polls nor is polled for in the time of a test, unless it says otherwise. */
static void begin(const char *names)
{
    client = open_client(CLIENT(.poll_ms = 30000, .on_event = record_event, .arg = &told));
    lock = new_multi(client, names);
}

static struct actor *waiter_begins(const hl_acquire_options *options)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, options);
    return actor;
}

/* It waits in front of this one, and knows it. */
static void expect_waiting_for(const char *name)
{
    char channel[64];
    snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{%s}", name));
}

Law(multi_wait, holds_the_members_before_the_busy_one_and_none_behind_it)
{
    begin("area bay cask");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    expect_all_held_by(client, "area");
    expect_all_free("cask");
    check(!actor_is_done(waiter));
    stranger_leaves("bay");
    expect_ok(actor_end(waiter));
    expect_all_held_by(client, "area bay cask");
    expect_ok(actor_release(waiter, lock, NULL));
    expect_all_free("area bay cask");
}

Law(multi_wait, for_a_late_member_holds_all_before_it_and_comes_to_the_next_in_turn)
{
    begin("area bay cask den");
    stranger_takes("bay", 60000);
    stranger_takes("den", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    expect_all_free("cask");
    stranger_leaves("bay");
    expect_waiting_for("den");
    expect_all_held_by(client, "area bay cask");
    stranger_leaves("den");
    expect_ok(actor_end(waiter));
    expect_all_held_by(client, "area bay cask den");
}

/* No locks are held that another client could see the caller have. */
Law(multi_wait, is_not_held_until_it_has_all)
{
    begin("area bay");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    hl_lock *a = new_lock(client, "area");
    check(!hl_lock_is_held(a, NULL));
    expect_outcome(hl_lock_release(a, NULL), HL_ENOTOWNER);
    stranger_leaves("bay");
    expect_ok(actor_end(waiter));
    check(actor_holds(waiter, a, NULL));
}

static bool holds_nothing(void *at)
{
    return stats_of(at).holds_now == 0;
}

static void expect_rolled_back(struct actor *waiter, int code)
{
    expect_outcome(actor_end(waiter), code);
    expect_all_free("area cask");
    check(redis_wait_int(server, 0, 5000, "EXISTS hirelock_queue:{bay}"));
    check_int(stats_of(client).holds_now, 0);
    check_int(stats_of(client).waiters_now, 0);
    expect_story(&told, "");
    check(!actor_holds(waiter, new_lock(client, "area"), NULL));
}

Law(multi_wait, gives_all_back_when_its_time_is_over)
{
    begin("area bay cask");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = slow_ms(1000)));
    expect_rolled_back(waiter, HL_ETIMEDOUT);
    check(actor_took_ms(waiter) >= slow_ms(1000) - 1);
    check_str(actor_error(waiter), "acquire 'bay': the wait time is over; held by "
                                   "0a1b2c3d-0000-4000-8000-1234567890ab:71");
}

Law(multi_wait, has_one_wait_time_for_all_members)
{
    begin("area bay cask");
    stranger_takes("area", 60000);
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = slow_ms(4000)));
    expect_waiting_for("area");
    stranger_leaves("area");
    expect_waiting_for("bay");
    expect_rolled_back(waiter, HL_ETIMEDOUT);
    check(actor_took_ms(waiter) < slow_ms(7900)); /* a time for each would be 8000 ms */
}

Law(multi_wait, gives_all_back_when_it_is_cancelled)
{
    begin("area bay cask");
    hl_cancel *cancel = new_cancel();
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_waiting_for("bay");
    hl_cancel_fire(cancel);
    expect_rolled_back(waiter, HL_ECANCELED);
    expect_outcome(actor_acquire(waiter, lock, ACQUIRE(.cancel = cancel)), HL_ECANCELED);
    expect_all_free("area cask");
}

Law(multi_wait, gives_all_back_when_the_client_is_closed)
{
    begin("area bay cask");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    close_client(client);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    expect_all_free("area cask");
    check(redis_wait_int(server, 0, 5000, "EXISTS hirelock_queue:{bay}"));
    expect_story(&told, "");
}

Law(multi_wait, gives_all_back_when_a_member_turns_out_to_be_no_lock)
{
    begin("area bay cask");
    redis_do(server, "SET cask x");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(lock, &err), HL_ESERVER);
    check_msg(strncmp(err.text, "acquire 'cask': ", 13) == 0 && strstr(err.text, "WRONGTYPE"), "%s",
              err.text);
    expect_all_free("area bay");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ESERVER);
    expect_all_free("area bay");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "EXISTS area"));
    stranger_leaves("bay");
    expect_outcome(actor_end(waiter), HL_ESERVER);
    expect_all_free("area bay");
}

/* A member that was lost while the call waited for others is acquired again before it returns. */
Law(multi_wait, begins_anew_when_a_member_is_lost_meanwhile)
{
    begin("area bay");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    expect_ok(hl_lock_force_release(new_lock(client, "area"), NULL));
    stranger_takes("area", 60000);
    check(wait_until(holds_nothing, client, 5000));
    stranger_leaves("bay");
    expect_waiting_for("area");
    check(!actor_is_done(waiter));
    stranger_leaves("area");
    expect_ok(actor_end(waiter));
    check(actor_holds(waiter, lock, NULL));
    expect_all_held_by(client, "area bay");
    expect_story(&told, ""); /* no callback had been told of the hold */
    expect_ok(actor_release(waiter, lock, NULL));
    expect_all_free("area bay");
}

Law(multi_wait, says_so_when_an_outer_hold_is_lost_meanwhile)
{
    begin("area bay");
    struct actor *waiter = actor_start();
    hl_lock *b = new_lock(client, "bay");
    expect_ok(actor_acquire(waiter, b, ACQUIRE(.wait_ms = 0)));
    stranger_takes("area", 60000);
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = -1));
    expect_waiting_for("area");
    expect_ok(hl_lock_force_release(b, NULL));
    expect_story(&told, "LOST gone");
    stranger_leaves("area");
    expect_outcome(actor_end(waiter), HL_ELOST);
    expect_all_free("area");
    expect_outcome(actor_acquire(waiter, lock, ACQUIRE(.wait_ms = -1)), HL_ELOST); /* and still */
    expect_all_free("area");
    expect_outcome(actor_release(waiter, b, NULL), HL_ELOST);
    expect_ok(actor_acquire(waiter, lock, ACQUIRE(.wait_ms = -1)));
}

/* A lease of a moment would be over long before the wait is. */
Law(multi_wait, does_not_use_up_the_lease_time)
{
    client = open_client(CLIENT(.poll_ms = 50, .on_event = record_event, .arg = &told));
    lock = new_multi(client, "area bay cask");
    stranger_takes("cask", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(1500)));
    wait_stat(client, renewals, 8); /* of what it has already: several leases long */
    check(!actor_is_done(waiter));
    expect_all_held_by(client, "area bay");
    stranger_leaves("cask");
    expect_ok(actor_end(waiter));
    check(actor_holds(waiter, lock, NULL));
    expect_story(&told, "LOST expired, LOST expired, LOST expired"); /* it begins with the return */
    expect_outcome(actor_release(waiter, lock, NULL), HL_ELOST);
    expect_all_free("area bay cask");
}

static void hold_validity(void *arg)
{
    *(int64_t *)arg = hl_lock_validity_ms(lock, NULL);
}

Law(multi_wait, gives_a_long_lease_to_members_acquired_before_the_wait)
{
    client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(2000), .poll_ms = 100));
    lock = new_multi(client, "area bay");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1, .lease_ms = 3600000));
    expect_waiting_for("bay");
    stranger_leaves("bay");
    expect_ok(actor_end(waiter));
    struct deadline deadline = deadline_in(10000);
    int64_t left = 0;
    do {
        actor_do(waiter, hold_validity, &left);
    } while (left < 3000000 && !deadline_is_over(deadline));
    check_msg(left > 3000000 && left <= 3600000, "valid for %lld ms", (long long)left);
    check(redis_int(server, "PTTL area") > 3000000);
    check(redis_int(server, "PTTL bay") > 3000000);
}

Law(multi_wait, counts_max_hold_from_the_return)
{
    begin("area bay");
    stranger_takes("bay", 60000);
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1, .max_hold_ms = slow_ms(500)));
    expect_waiting_for("bay");
    struct deadline longer = deadline_in(750); /* than max_hold */
    while (!deadline_is_over(longer))
        deadline_nap();
    expect_all_held_by(client, "area");
    stranger_leaves("bay");
    expect_ok(actor_end(waiter));
    expect_story(&told, "LOST max_hold, LOST max_hold");
}

Law(multi_wait, is_served_by_a_release_of_its_own_process)
{
    begin("area bay cask");
    hl_lock *b = new_lock(client, "bay");
    expect_ok(hl_lock_acquire(b, NULL));
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    expect_all_free("cask");
    expect_ok(hl_lock_release(b, NULL));
    expect_ok(actor_end(waiter));
    expect_all_held_by(client, "area bay cask");
}

Law(multi_wait, is_served_by_a_grant_of_another_process)
{
    begin("area bay cask");
    hl_lock *b = new_lock(open_client(CLIENT(.poll_ms = 30000)), "bay");
    expect_ok(hl_lock_acquire(b, NULL));
    struct actor *waiter = waiter_begins(ACQUIRE(.wait_ms = -1));
    expect_waiting_for("bay");
    expect_settled_wait(new_lock(client, "bay")); /* else an answer may be faster than the grant */
    expect_ok(hl_lock_release(b, NULL));
    expect_ok(actor_end(waiter));
    check_int(stats_of(client).grants, 1);
    expect_all_held_by(client, "area bay cask");
}

/* Its members are let go of one by one where a waiter is, and by one request where not. */
Law(multi_wait, is_handed_on_member_by_member_to_waiters)
{
    begin("area bay cask");
    hl_client *others = open_client(CLIENT(.poll_ms = 30000));
    struct actor *for_a = actor_start(), *for_c = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    actor_begin_acquire(for_a, new_lock(others, "area"), ACQUIRE(.wait_ms = -1));
    actor_begin_acquire(for_c, new_multi(others, "bay cask"), ACQUIRE(.wait_ms = -1));
    expect_waiting_for("area");
    expect_waiting_for("bay");
    expect_settled_wait(new_lock(others, "area"));
    expect_settled_wait(new_lock(others, "bay"));
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(for_a));
    expect_ok(actor_end(for_c));
    expect_all_held_by(others, "area bay cask");
    check(stats_of(others).grants >=
          2); /* and "cask" too, if it was asked for before it was free */
}

/* Single locks come and go on each of its members without a pause: it waits in each queue in turn,
 * so it is served all the same. */
static atomic_bool enough;

static void take_again_and_again(void *arg)
{
    while (!atomic_load(&enough)) {
        expect_ok(hl_lock_acquire(arg, NULL));
        expect_ok(hl_lock_release(arg, NULL));
    }
}

Law(multi_wait, is_served_however_busy_its_members_are)
{
    begin("area bay cask");
    hl_client *rivals[2] = {open_client(NULL), open_client(NULL)};
    struct actor *rival[6];
    for (int i = 0; i < 6; i++)
        actor_begin(rival[i] = actor_start(), take_again_and_again,
                    new_lock(rivals[i / 3], i % 3 == 0   ? "area"
                                            : i % 3 == 1 ? "bay"
                                                         : "cask"));
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), NULL));
        expect_ok(hl_lock_release(lock, NULL));
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 6; i++)
        actor_await(rival[i]);
    expect_nothing_left();
}

/* Transfers between accounts, each pair in both directions: the giving account is locked first. */
enum { ACCOUNTS = 4, TELLERS = 8, TRANSFERS = 60, START = 1000 };

static volatile long balance[ACCOUNTS]; /* guarded by the locks under test alone */

struct teller {
    hl_lock *pair[ACCOUNTS][ACCOUNTS];
    int number;
};

static void transfer(struct teller *teller, int from, int to)
{
    hl_lock *both = teller->pair[from][to];
    expect_ok(hl_lock_acquire(both, NULL));
    long left = balance[from], right = balance[to];
    balance[from] = left - 1;
    balance[to] = right + 1;
    check(hl_lock_is_held(both, NULL));
    expect_ok(hl_lock_release(both, NULL));
}

static void transfer_often(void *arg)
{
    struct teller *teller = arg;
    for (int i = 0; i < TRANSFERS; i++) {
        int from = (teller->number + i) % ACCOUNTS;
        transfer(teller, from, (from + 1 + i % (ACCOUNTS - 1)) % ACCOUNTS);
    }
}

static void teller_open(struct teller *teller, hl_client *at)
{
    static const char *const accounts[ACCOUNTS] = {"area", "bay", "cask", "den"};
    for (int from = 0; from < ACCOUNTS; from++)
        for (int to = 0; to < ACCOUNTS; to++)
            if (from != to) {
                char names[16];
                snprintf(names, sizeof names, "%s %s", accounts[from], accounts[to]);
                teller->pair[from][to] = new_multi(at, names);
            }
}

static void transfers_add_up(int clients)
{
    struct teller bank[TELLERS];
    struct actor *actor[TELLERS];
    hl_client *at[TELLERS];
    long sum = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        balance[i] = START;
    for (int i = 0; i < TELLERS; i++) {
        bank[i].number = i;
        if (i < clients)
            teller_open(&bank[i], at[i] = open_client(NULL));
        else
            memcpy(bank[i].pair, bank[i % clients].pair, sizeof bank[i].pair);
        actor_begin(actor[i] = actor_start(), transfer_often, &bank[i]);
    }
    for (int i = 0; i < TELLERS; i++)
        actor_await(actor[i]);
    for (int i = 0; i < ACCOUNTS; i++)
        sum += balance[i];
    check_int(sum, (long)ACCOUNTS * START);
    for (int i = 0; i < clients; i++)
        check_int(stats_of(at[i]).holds_now + stats_of(at[i]).waiters_now, 0);
    expect_nothing_left();
}

Law(multi_lock, never_deadlocks_threads_that_name_its_members_in_any_order)
{
    transfers_add_up(1);
}

Law(multi_lock, never_deadlocks_clients_that_name_its_members_in_any_order)
{
    transfers_add_up(4);
}
