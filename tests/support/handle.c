/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Handles with the options that the environment wants. */

#include "handle.h"

#include "kinds.h"
#include "redis_probe.h"

static bool handle_wants(const char *word)
{
    const char *kind = getenv("HL_TEST_HANDLE");
    return kind != NULL && strstr(kind, word) != NULL;
}

bool handle_is_posted(void)
{
    return handle_wants("posted");
}

bool handle_retains(void)
{
    return handle_wants("retained");
}

bool handle_is_fair(void)
{
    return handle_wants("fair");
}

bool handle_is_plain(void)
{
    return !handle_is_posted() && !handle_retains();
}

static hl_lock_options handle_options(void)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = handle_is_posted() ? HL_LOCK_ASYNC_RELEASE : 0;
    options.retain_ms = handle_retains() ? HANDLE_RETAIN_MS : 0;
    return options;
}

int handle_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err)
{
    const hl_lock_options options = handle_options();
    return handle_is_fair() ? fair_lock_new(client, name, &options, ret_lock, err)
                            : lock_new_with(client, name, &options, ret_lock, err);
}

int handle_new_fenced(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err)
{
    const hl_lock_options options = handle_options();
    return fenced_lock_new(client, name, &options, ret_lock, err);
}

void handle_expect_released(const struct hl_test_place *place, int actual, int expected)
{
    bool may_be_ok = !handle_is_plain(), must_be_ok = handle_is_posted();
    bool is_right = must_be_ok ? actual == HL_OK : actual == expected;
    if (!is_right && !(may_be_ok && actual == HL_OK))
        hl_test_fail(place->file, place->line, "%s is %s, expected %s", place->what,
                     hl_err_name(actual), hl_err_name(must_be_ok ? HL_OK : expected));
}

bool handle_is_gone(struct redis_server *server, const char *name)
{
    if (handle_is_plain())
        return redis_int(server, "EXISTS %s", name) == 0;
    return redis_wait_int(server, 0, 5000, "EXISTS %s", name);
}
