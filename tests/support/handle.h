/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Handles as this run wants them. HL_TEST_HANDLE in the environment, "posted", "linger",
 * "posted+linger" or "fair", gives the handles that tests make by their helpers these options, so
 * that what is true of any handle is tested again with each kind. Where a kind differs, a test says
 * so by the expectations below.
 */
#ifndef HL_TEST_HANDLE_H
#define HL_TEST_HANDLE_H

#include <hirelock/hirelock.h>

#include "redis_server.h"
#include "test.h"

enum { HANDLE_LINGER_MS = 15 };

bool handle_is_posted(void);
bool handle_lingers(void);
bool handle_is_fair(void);
bool handle_is_plain(void);

/* hl_lock_new and hl_fenced_lock_new, with this run's options. */
int handle_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err);
int handle_new_fenced(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err);

/* A release that the server would answer so: a posted one has returned 0 before, and
 * HL_EVENT_RELEASE_FAILED tells it; one that lingers may have sent nothing yet. */
#define expect_released(call, code)                                                                \
    handle_expect_released(&(struct hl_test_place){__FILE__, __LINE__, #call}, (call), (code))
void handle_expect_released(const struct hl_test_place *place, int actual, int expected);

/* After a release the lock has gone from Redis: at once, or soon when it was posted or lingers. */
#define expect_gone(server, name)                                                                  \
    check_msg(handle_is_gone((server), (name)), "%s is still there", (name))
bool handle_is_gone(struct redis_server *server, const char *name);

#endif
