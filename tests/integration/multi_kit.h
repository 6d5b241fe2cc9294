/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The words in which tests speak of multi-locks: names in one string, "a b c", and what stands in
 * Redis for each.
 */
#ifndef HL_TEST_MULTI_KIT_H
#define HL_TEST_MULTI_KIT_H

#include "support/kit.h"

/* A handle of these names, in this order; options may be NULL. */
hl_lock *new_multi(hl_client *client, const char *names);
hl_lock *new_multi_with(hl_client *client, const char *names, const hl_lock_options *options);
hl_lock *new_multi_of(hl_lock *const *members, size_t count);

/* A foreign client holds this lock for ms, and no longer. */
void stranger_takes(const char *name, int64_t ms);
void stranger_leaves(const char *name);

/* In Redis, at once or soon: these names are held by fields of this client, once each; those are
 * free. */
void expect_all_held_by(hl_client *client, const char *names);
void expect_all_free(const char *names);

/* No lock is held, and nothing is left of one. */
void expect_nothing_left(void);

#endif
