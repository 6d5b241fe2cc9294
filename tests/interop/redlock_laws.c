/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The laws of a lock that both sides take, whichever of them holds it. */
#include "redlock_laws.h"

#include "stock.h"

#include "support/actor.h"

enum { STOCK_MS = 1500, OWNERS = 2, TRIES = 10000 };

size_t majority(void)
{
    return masters.count / 2 + 1;
}

void expect_shared(hl_lock *ours, const char *name)
{
    expect_peer("b", "true", "acquire %s %d 1", name, LEASE_MS);
    expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
    peer_do("b", "release %s", name);
    expect_ok(hl_lock_acquire_for(ours, slow_ms(30000), ERR)); /* a deletion may be on its way */
    expect_peer_says("b", library.busy, "acquire %s %d 1", name, LEASE_MS);
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with(name, 0);
}

void law_held_by_them_is_refused_to_us(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_peer("a", "true", "acquire stock %d 1", LEASE_MS);
    expect_masters_with("stock", masters.count);
    expect_outcome(acquire_past(ours, ACQUIRE(.wait_ms = HL_NO_WAIT), &busy), HL_EBUSY);
    check_int(masters_with_value("stock", busy.owner), masters.count);
    check(busy.lease_left_ms > 0 && busy.lease_left_ms <= LEASE_MS);
    expect_outcome(hl_lock_acquire_for(ours, slow_ms(200), ERR), HL_ETIMEDOUT);
    expect_peer("a", "true", "holds stock");
    check_int(masters_with_value("stock", busy.owner), masters.count);
    peer_do("a", "release stock");
    expect_masters_with("stock", 0);
    expect_shared(ours, "stock");
}

void law_held_by_us_is_refused_to_them(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    expect_ok(hl_lock_acquire(ours, ERR));
    expect_masters_with("stock", masters.count);
    expect_peer_says("a", library.busy, "acquire stock %d 1", LEASE_MS);
    expect_peer_says("a", library.busy, "acquire stock %d 3", LEASE_MS);
    check(hl_lock_is_held(ours, NULL));
    expect_masters_with("stock", masters.count);
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("stock", 0);
    expect_shared(ours, "stock");
}

void law_their_release_is_found_by_our_waiter(void)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *ours = new_redlock(clients, "stock");
    expect_peer("a", "true", "acquire stock %d 1", LEASE_MS);
    struct actor *thread = actor_start_acquire(ours, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(clients[0], 1);
    check(!actor_is_done(thread));
    peer_do("a", "release stock");
    expect_ok(actor_end(thread));
    expect_peer_says("b", library.busy, "acquire stock %d 1", LEASE_MS);
    expect_ok(actor_release(thread, ours, NULL));
    expect_shared(ours, "stock");
}

static bool asks_are(void *number)
{
    return redis_calls(server, library.asks) >= *(int64_t *)number;
}

void law_our_release_is_found_by_their_waiter(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    expect_ok(hl_lock_acquire(ours, ERR));
    expect_masters_with("stock", masters.count);
    int waits = peer_begin("a", "acquire stock %d %d", (int)WAITER_MS, TRIES);
    int64_t asks = redis_calls(server, library.asks) + 3;
    check(wait_until(asks_are, &asks, 20000));
    check(!peer_is_done(waits));
    expect_ok(hl_lock_release(ours, ERR));
    check_str(peer_end(waits), "true");
    expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
    peer_do("a", "release stock");
    expect_masters_with("stock", 0);
}

void law_renewed_by_our_watchdog_stays_ours(void)
{
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_lock *ours = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(ours, ERR));
    int64_t first_lease_ms = now_ms() + BRIEF_MS;
    do {
        expect_peer_says("a", library.busy, "acquire stock %d 1", LEASE_MS);
        check(hl_lock_is_held(ours, NULL));
    } while (now_ms() < first_lease_ms);
    for (size_t i = 0; i < masters.count; i++)
        wait_stat(clients[i], renewals, 3);
    expect_peer_says("a", library.busy, "acquire stock %d 1", LEASE_MS);
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("stock", 0);
}

void law_extended_by_them_stays_theirs(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    expect_peer("a", "true", "acquire stock %d %d", (int)BRIEF_MS, TRIES); /* redsync is hasty */
    int64_t first_lease_ms = now_ms() + BRIEF_MS;
    expect_peer("a", "true", "extend stock %d", LEASE_MS);
    do
        expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
    while (now_ms() < first_lease_ms);
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(ours, ACQUIRE(.wait_ms = HL_NO_WAIT), &busy), HL_EBUSY);
    check(busy.lease_left_ms > 0 && busy.lease_left_ms <= LEASE_MS);
    expect_peer("a", "true", "holds stock");
    peer_do("a", "release stock");
    expect_masters_with("stock", 0);
}

/* Ours asks again for the keys of masters that were too late for its acquire. */
void law_let_run_out_by_them_is_ours_and_not_deleted_by_them(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    expect_peer("a", "true", "acquire stock %d %d", (int)BRIEF_MS, TRIES); /* redsync is hasty */
    expect_ok(hl_lock_acquire(ours, ERR));
    expect_peer("a", "false", "holds stock");
    expect_peer_says("a", library.lost, "release stock");
    check(hl_lock_is_held(ours, NULL));
    check(masters_with("stock") >= majority());
    expect_peer_says("b", library.busy, "acquire stock %d 1", LEASE_MS);
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("stock", 0);
}

void law_let_run_out_by_us_is_theirs_and_not_deleted_by_us(void)
{
    hl_lock *ours = new_redlock(open_masters(NULL), "stock");
    expect_ok(hl_lock_acquire_with(ours, ACQUIRE(.wait_ms = 0, .lease_ms = BRIEF_MS), ERR));
    expect_peer("a", "true", "acquire stock %d %d", (int)WAITER_MS, TRIES);
    check(!hl_lock_is_held(ours, NULL));
    expect_outcome(hl_lock_release(ours, ERR), HL_ELOST);
    check(masters_with("stock") >= majority());
    expect_peer("a", "true", "holds stock");
    expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
    peer_do("a", "release stock");
    expect_masters_with("stock", 0);
}

/* ---- A stock ---- */

void law_guards_a_stock_that_both_count(void)
{
    static const char *const who[OWNERS] = {"a", "b"};
    struct stock_shift shifts[OWNERS];
    struct actor *actors[OWNERS];
    struct stock_tally ours = {0}, theirs = {0};
    int serves[OWNERS];
    stock_fill();
    for (int i = 0; i < OWNERS; i++) {
        serves[i] =
            peer_begin(who[i], "serve stock %s %s %d", STOCK_NUMBER, STOCK_WRITER, STOCK_MS);
        shifts[i] = (struct stock_shift){.lock = new_redlock(open_masters(NULL), "stock"),
                                         .until_ms = now_ms() + STOCK_MS,
                                         .rests = true};
        actors[i] = actor_start();
        actor_begin(actors[i], stock_serve, &shifts[i]);
    }
    for (int i = 0; i < OWNERS; i++) {
        actor_await(actors[i]);
        stock_add(&ours, &shifts[i].tally);
        stock_add_text(&theirs, peer_end(serves[i]));
    }
    stock_expect_whole(&ours, library.word, &theirs);
    check(ours.turns > 0 && theirs.turns > 0 && ours.handovers + theirs.handovers > 0);
    expect_masters_with("stock", 0);
}
