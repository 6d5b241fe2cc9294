/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The laws of every kind of lock that has one owner at a time, whichever side holds it. A program
 * stamps these laws for its kind, and adds its own:
 *
 *     static const struct lock_kind fenced = {"fenced", new_fenced, java_listens};
 *     LawsOfWaking(fenced)
 *     LawsOfLeases(fenced)
 *     LawOfWatchdogs(RedissonLaw, fenced)
 *     LawsOfReentry(fenced)
 */
#ifndef HL_INTEROP_LAWS_H
#define HL_INTEROP_LAWS_H

#include "redisson.h"

struct lock_kind {
    const char *java;                                      /* the kind's word in README.md */
    hl_lock *(*make)(hl_client *client, const char *name); /* freed at the end of the test */
    void (*expect_java_waits)(const char *name, int n);    /* until n threads of Java wait */
};

/* A lease that a loaded machine renews in time. */
#define BRIEF_MS slow_ms(2000)

/* For wait_until: the key has been renewed several times, over three leases. */
struct watch {
    const char *name;
    int64_t last_ms;
    int renewals;
};
bool was_renewed(void *watch);

/* Waits until n threads of Java listen to the channel of a lock. */
void java_listens(const char *name, int n);

/* Of these laws at one name. */
void expect_release_wakes_java(const struct lock_kind *kind, hl_client *client, const char *name);
void expect_unlock_wakes_c(const struct lock_kind *kind, hl_client *client, const char *name);

void law_release_wakes_java(const struct lock_kind *kind);
void law_unlock_wakes_c(const struct lock_kind *kind);
void law_all_are_served(const struct lock_kind *kind);
void law_force_release_wakes_java(const struct lock_kind *kind);
void law_force_unlock_wakes_c(const struct lock_kind *kind);
void law_waits_end_in_vain(const struct lock_kind *kind);
void law_interrupted_waits(const struct lock_kind *kind);
void law_foreign_releases(const struct lock_kind *kind);

#define LawsOfWaking(kind)                                                                         \
    EverywhereLaw(kind, wakes_java_when_c_releases_long_before_the_lease_ends)                     \
    {                                                                                              \
        law_release_wakes_java(&kind);                                                             \
    }                                                                                              \
    EverywhereLaw(kind, wakes_c_when_java_unlocks_long_before_the_lease_ends)                      \
    {                                                                                              \
        law_unlock_wakes_c(&kind);                                                                 \
    }                                                                                              \
    EverywhereLaw(kind, is_given_to_all_waiters_of_two_javas_and_two_cs)                           \
    {                                                                                              \
        law_all_are_served(&kind);                                                                 \
    }                                                                                              \
    EverywhereLaw(kind, wakes_java_when_c_forces_it_from_java)                                     \
    {                                                                                              \
        law_force_release_wakes_java(&kind);                                                       \
    }                                                                                              \
    EverywhereLaw(kind, wakes_c_when_java_forces_it_from_c)                                        \
    {                                                                                              \
        law_force_unlock_wakes_c(&kind);                                                           \
    }                                                                                              \
    EverywhereLaw(kind, refuses_a_waiter_when_its_wait_time_is_over)                               \
    {                                                                                              \
        law_waits_end_in_vain(&kind);                                                              \
    }                                                                                              \
    EverywhereLaw(kind, goes_to_others_when_waiters_of_both_sides_are_interrupted)                 \
    {                                                                                              \
        law_interrupted_waits(&kind);                                                              \
    }                                                                                              \
    EverywhereLaw(kind, is_never_released_by_the_side_that_does_not_hold_it)                       \
    {                                                                                              \
        law_foreign_releases(&kind);                                                               \
    }

void law_watchdogs(const struct lock_kind *kind);
void law_lease_of_c_ends(const struct lock_kind *kind);
void law_new_lease_of_c_ends(const struct lock_kind *kind);
void law_lease_of_java_ends(const struct lock_kind *kind);
void law_killed_java_is_followed(const struct lock_kind *kind);
void law_c_that_leaves_is_followed(const struct lock_kind *kind);

#define LawsOfLeases(kind)                                                                         \
    RedissonLaw(kind, goes_to_java_when_the_lease_of_c_is_over)                                    \
    {                                                                                              \
        law_lease_of_c_ends(&kind);                                                                \
    }                                                                                              \
    RedissonLaw(kind, is_kept_from_java_for_a_new_lease_of_c_and_goes_to_java_behind_it)           \
    {                                                                                              \
        law_new_lease_of_c_ends(&kind);                                                            \
    }                                                                                              \
    RedissonLaw(kind, goes_to_c_when_the_lease_of_java_is_over)                                    \
    {                                                                                              \
        law_lease_of_java_ends(&kind);                                                             \
    }                                                                                              \
    RedissonLaw(kind, goes_to_c_when_java_is_killed)                                               \
    {                                                                                              \
        law_killed_java_is_followed(&kind);                                                        \
    }                                                                                              \
    RedissonLaw(kind, goes_to_java_when_c_leaves)                                                  \
    {                                                                                              \
        law_c_that_leaves_is_followed(&kind);                                                      \
    }

/* It takes three leases, so it is tried everywhere for some kinds only: Law is one of redisson.h.
 */
#define LawOfWatchdogs(Law, kind)                                                                  \
    Law(kind, is_renewed_by_the_watchdog_of_either_while_the_other_waits)                          \
    {                                                                                              \
        law_watchdogs(&kind);                                                                      \
    }

void law_reentry_of_java(const struct lock_kind *kind);
void law_reentry_of_c(const struct lock_kind *kind);

#define LawsOfReentry(kind)                                                                        \
    EverywhereLaw(kind, held_twice_by_java_has_two_levels_for_c)                                   \
    {                                                                                              \
        law_reentry_of_java(&kind);                                                                \
    }                                                                                              \
    EverywhereLaw(kind, held_twice_by_c_keeps_java_out_until_the_last_release)                     \
    {                                                                                              \
        law_reentry_of_c(&kind);                                                                   \
    }

#endif
