/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One lock on several masters that know nothing of one another; with one master it is the lock of
 * redis-py, redsync and others. A master that has just been started has no vote for the longest
 * lease, here a second: so the first run may wait for that.
 */
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>

enum { MASTERS_MAX = 31 };

static int work(hl_client *const *clients, size_t count, hl_error *err)
{
    hl_lock *lock = NULL;
    int rc = hl_redlock_new(clients, count, "report:daily", &lock, err); /* no I/O */

    if (rc == 0)
        rc = hl_lock_acquire_for(lock, 20000, err); /* at more than half of the masters */
    if (rc == 0) {
        puts("mine");
        rc = hl_lock_release(lock, err);
    }
    hl_lock_free(lock);
    return rc;
}

/* Lazily: a minority of the masters may be out of reach. */
static int open_all(char *const *urls, size_t count, hl_client **clients, hl_error *err)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    int rc = 0;

    options.flags = HL_CLIENT_LAZY;
    options.watchdog_timeout_ms = 1000;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = hl_client_open(urls[i], &options, &clients[i], err);
    return rc;
}

static const char does[] = "A Redlock on as many masters as there are URLs: 1, 3, 5 ...";

int main(int argc, char **argv)
{
    const char *first = example_url(argc, argv, does);
    hl_client *clients[MASTERS_MAX] = {NULL};
    hl_error err = HL_ERROR_INIT;
    char *alone[] = {(char *)first};
    size_t count = argc > 2 ? (size_t)argc - 1 : 1;

    if (count > MASTERS_MAX)
        count = MASTERS_MAX;
    int rc = open_all(argc > 2 ? argv + 1 : alone, count, clients, &err);
    if (rc == 0)
        rc = work(clients, count, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; i < count; i++)
        hl_client_close(clients[i]); /* NULL is fine */
    return rc < 0;
}
