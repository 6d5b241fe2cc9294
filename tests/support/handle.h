/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Handles with this run's options. The environment variable HL_TEST_HANDLE ("posted", "retained",
 * "posted+retained" or "fair") sets the options of the handles that the tests' helpers make. So the
 * laws of every handle are tested again with each kind. A test states a kind's difference by the
 * expectations below.
 */
#ifndef HL_TEST_HANDLE_H
#define HL_TEST_HANDLE_H

#include <hirelock/hirelock.h>

#include "redis_server.h"
#include "test.h"

enum { HANDLE_RETAIN_MS = 15 };

bool handle_is_posted(void);
bool handle_retains(void);
bool handle_is_fair(void);
bool handle_is_plain(void);

/* hl_lock_new and hl_fenced_lock_new, with this run's options. */
int handle_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err);
int handle_new_fenced(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err);

/* A release that the server answers with this code. A posted release has returned 0 already, and
 * HL_EVENT_RELEASE_FAILED reports the code; a retained lock may not have sent its release yet. */
#define expect_released(call, code)                                                                \
    handle_expect_released(&(struct hl_test_place){__FILE__, __LINE__, #call}, (call), (code))
void handle_expect_released(const struct hl_test_place *place, int actual, int expected);

/* After a release the lock's key is gone from Redis: at once, or soon if the release was posted or
 * the lock is retained. */
#define expect_gone(server, name)                                                                  \
    check_msg(handle_is_gone((server), (name)), "%s is still there", (name))
bool handle_is_gone(struct redis_server *server, const char *name);

#endif
