/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock as a user has it: one client for each process, the watchdog on, no options; with the
 * word "confirmed" before them a replica has each lock when its acquire returns. At several masters
 * it is the Redlock. */
#include "worker.h"

#include <hirelock/hirelock.h>
#include <hirelock/redlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_confirmed;
static hl_client *masters[WORKER_MASTERS];

static hl_client *hirelock_connect(int port)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    char url[64];

    options.min_replicas = is_confirmed ? 1 : 0;
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    worker_must(hl_client_open(url, &options, &client, &err) == 0, "%s", err.text);
    return client;
}

static void *hirelock_open(int port)
{
    for (int i = 0; i < worker_masters_count; i++)
        masters[i] = hirelock_connect(worker_masters[i]);
    return worker_masters_count > 0 ? NULL : hirelock_connect(port);
}

static void *hirelock_join(void *client, const char *name)
{
    hl_redlock_options options = HL_REDLOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    options.name = name;
    options.flags = HL_REDLOCK_NO_RESTART_DELAY; /* as the others: the masters have just begun */
    int rc =
        client ? hl_lock_new(client, name, &lock, &err)
               : hl_redlock_new_with(masters, (size_t)worker_masters_count, &options, &lock, &err);
    worker_must(rc == 0, "%s", err.text);
    return lock;
}

static void hirelock_acquire(void *lock)
{
    hl_error err = HL_ERROR_INIT;

    worker_must(hl_lock_acquire(lock, &err) == 0, "%s", err.text);
}

static void hirelock_release(void *lock)
{
    hl_error err = HL_ERROR_INIT;

    worker_must(hl_lock_release(lock, &err) == 0, "%s", err.text);
}

int main(int argc, char **argv)
{
    static const struct peer peer = {hirelock_open, hirelock_join, hirelock_acquire,
                                     hirelock_release};

    is_confirmed = argc > 1 && strcmp(argv[1], "confirmed") == 0;
    return worker_main(argv + (is_confirmed ? 1 : 0), &peer);
}
