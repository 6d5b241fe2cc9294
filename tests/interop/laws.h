/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * What is true of every kind of lock that has one owner at a time, whichever side holds it. A
 * program stamps these laws for its kind, and adds what is its own:
 *
 *     static const struct lock_kind fenced = {"fenced", new_fenced, java_listens};
 *     LawsOfWaking(fenced)
 *     LawsOfLeases(fenced)
 *     LawsOfReentry(fenced)
 */
#ifndef HL_INTEROP_LAWS_H
#define HL_INTEROP_LAWS_H

#include "redisson.h"

struct lock_kind {
    const char *java;                                      /* the kind's word in README.md */
    hl_lock *(*make)(hl_client *client, const char *name); /* freed at the end of the test */
    void (*expect_java_waits)(const char *name, int n);    /* so many threads of Java's, soon */
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

/* They listen to the channel of a lock. */
void java_listens(const char *name, int n);

void law_release_wakes_java(const struct lock_kind *kind);
void law_unlock_wakes_c(const struct lock_kind *kind);
void law_all_are_served(const struct lock_kind *kind);
void law_force_release_wakes_java(const struct lock_kind *kind);
void law_force_unlock_wakes_c(const struct lock_kind *kind);
void law_waits_end_in_vain(const struct lock_kind *kind);
void law_interrupted_waits(const struct lock_kind *kind);
void law_foreign_releases(const struct lock_kind *kind);

#define LawsOfWaking(kind)                                                                         \
    Law(kind, that_c_releases_wakes_java_long_before_the_lease_ends)                               \
    {                                                                                              \
        law_release_wakes_java(&kind);                                                             \
    }                                                                                              \
    Law(kind, that_java_unlocks_wakes_c_long_before_the_lease_ends)                                \
    {                                                                                              \
        law_unlock_wakes_c(&kind);                                                                 \
    }                                                                                              \
    Law(kind, is_given_to_all_waiters_of_two_javas_and_two_cs)                                     \
    {                                                                                              \
        law_all_are_served(&kind);                                                                 \
    }                                                                                              \
    Law(kind, that_c_takes_from_java_by_force_wakes_java)                                          \
    {                                                                                              \
        law_force_release_wakes_java(&kind);                                                       \
    }                                                                                              \
    Law(kind, that_java_takes_from_c_by_force_wakes_c)                                             \
    {                                                                                              \
        law_force_unlock_wakes_c(&kind);                                                           \
    }                                                                                              \
    Law(kind, is_waited_for_in_vain_for_as_long_as_it_was_said)                                    \
    {                                                                                              \
        law_waits_end_in_vain(&kind);                                                              \
    }                                                                                              \
    Law(kind, goes_to_others_when_waiters_of_both_sides_are_interrupted)                           \
    {                                                                                              \
        law_interrupted_waits(&kind);                                                              \
    }                                                                                              \
    Law(kind, that_the_other_side_holds_is_released_by_neither)                                    \
    {                                                                                              \
        law_foreign_releases(&kind);                                                               \
    }

void law_watchdogs(const struct lock_kind *kind);
void law_lease_of_c_ends(const struct lock_kind *kind);
void law_lease_of_java_ends(const struct lock_kind *kind);
void law_killed_java_is_followed(const struct lock_kind *kind);
void law_c_that_leaves_is_followed(const struct lock_kind *kind);

#define LawsOfLeases(kind)                                                                         \
    Law(kind, is_renewed_by_the_watchdog_of_either_while_the_other_waits)                          \
    {                                                                                              \
        law_watchdogs(&kind);                                                                      \
    }                                                                                              \
    Law(kind, whose_lease_by_c_is_over_goes_to_java)                                               \
    {                                                                                              \
        law_lease_of_c_ends(&kind);                                                                \
    }                                                                                              \
    Law(kind, whose_lease_by_java_is_over_goes_to_c)                                               \
    {                                                                                              \
        law_lease_of_java_ends(&kind);                                                             \
    }                                                                                              \
    Law(kind, of_a_java_that_is_killed_goes_to_c)                                                  \
    {                                                                                              \
        law_killed_java_is_followed(&kind);                                                        \
    }                                                                                              \
    Law(kind, of_a_c_that_leaves_goes_to_java)                                                     \
    {                                                                                              \
        law_c_that_leaves_is_followed(&kind);                                                      \
    }

void law_reentry_of_java(const struct lock_kind *kind);
void law_reentry_of_c(const struct lock_kind *kind);

#define LawsOfReentry(kind)                                                                        \
    Law(kind, that_java_holds_twice_is_seen_so_by_c)                                               \
    {                                                                                              \
        law_reentry_of_java(&kind);                                                                \
    }                                                                                              \
    Law(kind, that_c_holds_twice_keeps_java_out_until_the_last_release)                            \
    {                                                                                              \
        law_reentry_of_c(&kind);                                                                   \
    }

#endif
