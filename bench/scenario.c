/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the scenarios share: library calls that must not fail. */
#include "scenario.h"

#include "must.h"

#include <stdio.h>

hl_client *scenario_client(const struct bench *bench, const hl_client_options *options)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    must(hl_client_open(bench->server.url, options, &client, &err) == 0, "open: %s", err.text);
    return client;
}

hl_lock *scenario_lock(hl_client *client, const char *format, int number)
{
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;
    char name[64];

    snprintf(name, sizeof(name), format, number);
    must(hl_lock_new(client, name, &lock, &err) == 0, "lock: %s", err.text);
    return lock;
}

void scenario_acquire(hl_lock *lock)
{
    hl_error err = HL_ERROR_INIT;

    must(hl_lock_acquire(lock, &err) == 0, "%s", err.text);
}

void scenario_release(hl_lock *lock)
{
    hl_error err = HL_ERROR_INIT;

    must(hl_lock_release(lock, &err) == 0, "%s", err.text);
}
