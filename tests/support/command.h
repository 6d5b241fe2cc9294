/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Commands of a test's own, sent over a client: COMMAND(WORDS("GET", "n"), .key = "n"). */
#ifndef HL_TEST_COMMAND_H
#define HL_TEST_COMMAND_H

#include "kit.h"

#define WORDS(...)                                                                                 \
    .words = (const char *const[]){__VA_ARGS__},                                                   \
    .word_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define COMMAND(...) (&(hl_command){.size = sizeof(hl_command), __VA_ARGS__})

/* The reply, which lives until the end of the test; an error ends the test. */
static inline hl_reply *reply_of(hl_client *client, const hl_command *command)
{
    hl_reply *reply = NULL;

    expect_ok(hl_client_command(client, command, &reply, ERR));
    return free_at_end(reply, (void (*)(void *))hl_reply_free);
}

#endif
