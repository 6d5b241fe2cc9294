/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Handles with the options that the environment wants. */

#include "handle.h"

#include <stdlib.h>
#include <string.h>

static bool handle_wants(const char *word)
{
    const char *kind = getenv("HL_TEST_HANDLE");
    return kind != NULL && strstr(kind, word) != NULL;
}

bool handle_is_posted(void)
{
    return handle_wants("posted");
}

bool handle_lingers(void)
{
    return handle_wants("linger");
}

int handle_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = handle_is_posted() ? HL_LOCK_POSTED_RELEASE : 0;
    options.linger_ms = handle_lingers() ? HANDLE_LINGER_MS : 0;
    return hl_lock_new_with(client, name, &options, ret_lock, err);
}

int handle_answered(int code)
{
    return handle_is_posted() ? HL_OK : code;
}
