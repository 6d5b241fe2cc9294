/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Handles as this run wants them. HL_TEST_HANDLE in the environment, "posted", "linger" or
 * "posted+linger", gives the handles that tests make by their helpers these options, so that what
 * is true of any handle is tested again with each kind. A test that asks says where a kind differs.
 */
#ifndef HL_TEST_HANDLE_H
#define HL_TEST_HANDLE_H

#include <hirelock/hirelock.h>

enum { HANDLE_LINGER_MS = 15 };

bool handle_is_posted(void);
bool handle_lingers(void);

/* hl_lock_new, with this run's options. */
int handle_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err);

/* What hl_lock_release says where only the server's answer tells that it ends with `code`: a posted
 * release has returned before, and HL_EVENT_RELEASE_FAILED tells it. */
int handle_answered(int code);

#endif
