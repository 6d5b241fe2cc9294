/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The laws of a lock that a program of this library shares with another one, at one master or at
 * five; and of five masters of which some fail. A program stamps those that its library is for:
 *
 *     const struct library library = {"redsync", "go", "set", ...};
 *     LawsOfSharing(one_master, peer_up_one)
 *     LawsOfSharing(five_masters, peer_up_five)
 *     LawsOfMasters(five_masters)
 */
#ifndef HL_INTEROP_REDLOCK_LAWS_H
#define HL_INTEROP_REDLOCK_LAWS_H

#include "peer.h"

/* A lease that ends soon, and one that does not end while a test runs. */
#define BRIEF_MS slow_ms(1000)
enum { LEASE_MS = 60000 };

/* One of who waits for long, for redlock may keep itself out until its end (node_redlock.c). */
#define WAITER_MS slow_ms(20000)

/* They may log what they like about masters that fail. */
#define PeerLaw(suite, up, name) PEER_LAW(suite, up, name, expect_peer_silence)
#define BreakingLaw(suite, name) PEER_LAW(suite, peer_up_five, name, peer_close)
#define PEER_LAW(suite, up, name, close)                                                           \
    Test(suite, name, .init = up, .fini = peer_down)                                               \
    {                                                                                              \
        law_##name();                                                                              \
        close();                                                                                   \
    }

/* At how many masters it is more than half. */
size_t majority(void);

/* Both sides, when neither holds: each takes the lock, and the other is refused. */
void expect_shared(hl_lock *ours, const char *name);

void law_held_by_them_is_refused_to_us(void);
void law_held_by_us_is_refused_to_them(void);
void law_their_release_is_found_by_our_waiter(void);
void law_our_release_is_found_by_their_waiter(void);
void law_renewed_by_our_watchdog_stays_ours(void);
void law_extended_by_them_stays_theirs(void);
void law_let_run_out_by_them_is_ours_and_not_deleted_by_them(void);
void law_let_run_out_by_us_is_theirs_and_not_deleted_by_us(void);
void law_guards_a_stock_that_both_count(void);

/* clang-format off */
#define LawsOfSharing(suite, up)                                                                   \
    PeerLaw(suite, up, held_by_them_is_refused_to_us)                                              \
    PeerLaw(suite, up, held_by_us_is_refused_to_them)                                              \
    PeerLaw(suite, up, their_release_is_found_by_our_waiter)                                       \
    PeerLaw(suite, up, our_release_is_found_by_their_waiter)                                       \
    PeerLaw(suite, up, renewed_by_our_watchdog_stays_ours)                                         \
    PeerLaw(suite, up, extended_by_them_stays_theirs)                                              \
    PeerLaw(suite, up, let_run_out_by_them_is_ours_and_not_deleted_by_them)                        \
    PeerLaw(suite, up, let_run_out_by_us_is_theirs_and_not_deleted_by_us)                          \
    PeerLaw(suite, up, guards_a_stock_that_both_count)
/* clang-format on */

void law_minority_that_is_killed_stops_neither(void);
void law_minority_that_stands_still_stops_neither(void);
void law_majority_that_is_killed_gives_it_to_neither(void);
void law_master_that_restarts_empty_votes_twice_for_them(void);
void law_master_that_restarts_empty_votes_for_them_while_we_hold(void);
void law_master_that_restarts_empty_has_no_vote_for_us(void);

/* clang-format off */
#define LawsOfMasters(suite)                                                                       \
    BreakingLaw(suite, minority_that_is_killed_stops_neither)                                      \
    BreakingLaw(suite, minority_that_stands_still_stops_neither)                                   \
    BreakingLaw(suite, majority_that_is_killed_gives_it_to_neither)                                \
    BreakingLaw(suite, master_that_restarts_empty_votes_twice_for_them)                            \
    BreakingLaw(suite, master_that_restarts_empty_votes_for_them_while_we_hold)                    \
    BreakingLaw(suite, master_that_restarts_empty_has_no_vote_for_us)
/* clang-format on */

#endif
