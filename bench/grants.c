/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Grants, by hl_lock_acquire_async with an owner for each. */
#include "grants.h"

#include "instant.h"
#include "must.h"

#include <stdio.h>
#include <stdlib.h>

static void grant_served(int code, const hl_error *err, void *arg)
{
    struct grant *grant = arg;

    if (code == HL_ECANCELED)
        return; /* the client is being closed, and the report says who was not served */
    must(code == 0, "acquire: %s", err ? err->text : hl_err_name(code));
    grant->served_at = instant_now();
    atomic_fetch_add(&grant->grants->served, 1);
}

static void grant_begin(struct grant *grant, hl_client *client, const char *format, int number)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    grant->lock = scenario_lock(client, format, number);
    must(hl_owner_new(client, &grant->owner) == 0, "no owner");
    options.owner = grant->owner;
    options.wait_ms = HL_WAIT_FOREVER;
    must(hl_lock_acquire_async(grant->lock, &options, grant_served, grant) == 0, "no acquire");
}

struct grants *grants_begin(struct bench *bench, hl_client *client, const char *prefix, int count)
{
    struct grants *grants = must_alloc(1, sizeof(*grants) + (size_t)count * sizeof(struct grant));
    char format[64], channels[96];
    int64_t calls = server_calls(&bench->server, "evalsha"), deadline = instant_after_ms(30000);

    grants->count = count;
    snprintf(format, sizeof(format), "%s%%d", prefix);
    snprintf(channels, sizeof(channels), "redisson_lock__channel:{%s", prefix);
    for (int i = 0; i < count; i++) {
        grants->grant[i].grants = grants;
        grant_begin(&grants->grant[i], client, format, i);
    }
    while (server_channels(&bench->server, channels) < count ||
           server_calls(&bench->server, "evalsha") - calls < 2L * count) {
        must(instant_now() < deadline, "the waiters do not come together");
        instant_sleep_ms(1);
    }
    return grants;
}

void grants_wait(struct grants *grants, int64_t ms)
{
    int64_t deadline = instant_after_ms(ms);

    while (atomic_load(&grants->served) < grants->count && instant_now() < deadline)
        instant_sleep_ms(1);
}

void grants_release(struct grants *grants)
{
    for (int i = 0; i < grants->count; i++) {
        hl_lock_release_as(grants->grant[i].lock, grants->grant[i].owner, NULL);
        hl_owner_free(grants->grant[i].owner);
        hl_lock_free(grants->grant[i].lock);
    }
    free(grants);
}
