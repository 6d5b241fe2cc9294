/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Library calls of the scenarios that must not fail. */
#include "scenario.h"

#include "instant.h"
#include "must.h"

#include <stdio.h>

/* The library is expected to log nothing in a benchmark; its text is printed. */
static void scenario_log(hl_log_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "hirelock: %s\n", text);
}

hl_client *scenario_client_at(const char *url, const hl_client_options *options)
{
    hl_client_options own = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    if (options)
        own = *options;
    own.on_log = scenario_log;
    must(hl_client_open(url, &own, &client, &err) == 0, "open: %s", err.text);
    return client;
}

hl_client *scenario_client(const struct bench *bench, const hl_client_options *options)
{
    return scenario_client_at(bench->server.url, options);
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

hl_lock *scenario_lock_with(hl_client *client, const char *name, const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    hl_lock_options named = *options;

    named.name = name;
    must(hl_lock_new_with(client, &named, &lock, &err) == 0, "lock: %s", err.text);
    return lock;
}

hl_lock *scenario_lock_of(hl_client *client, hl_lock_kind kind, const char *name)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    options.kind = kind;
    return scenario_lock_with(client, name, &options);
}

hl_stats scenario_stats(hl_client *client)
{
    hl_stats stats = {.size = sizeof(stats)};

    must(hl_client_stats(client, &stats) == 0, "no statistics");
    return stats;
}

/* Without an hl_error, which would have to be cleared each time. */
void scenario_acquire(hl_lock *lock)
{
    int code = hl_lock_acquire(lock, NULL);

    must(code == 0, "acquire: %s", hl_err_name(code));
}

void scenario_release(hl_lock *lock)
{
    int code = hl_lock_release(lock, NULL);

    must(code == 0, "release: %s", hl_err_name(code));
}

uint64_t scenario_pairs(void *lock, int64_t until)
{
    uint64_t done = 0;

    do {
        scenario_acquire(lock);
        scenario_release(lock);
        done++;
    } while (instant_now() < until);
    return done;
}
