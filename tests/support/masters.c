/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Masters, their clients, and the keys there. */

#include "masters.h"

#include "shared_servers.h"

struct masters masters;

static void masters_stop(void *item)
{
    redis_server_stop(item);
}

void masters_up_with(size_t count, const struct redis_options *options)
{
    if (shared_servers_wanted() != SHARED_NONE)
        skip("left out: it is about masters of its own");
    check(count <= MASTERS_MAX);
    masters = (struct masters){.count = count};
    for (size_t i = 0; i < count; i++) {
        masters.server[i] = redis_server_start(options);
        if (i > 0)
            stop_at_end(masters.server[i], masters_stop);
    }
    server = masters.server[0];
}

void masters_up(void)
{
    masters_up_with(5, NULL);
}

void masters_use_proxies(void)
{
    struct redis_server *first = server;

    for (size_t i = 0; i < masters.count; i++) {
        server = masters.server[i];
        masters.proxy[i] = new_proxy();
    }
    server = first;
}

hl_client **open_masters(const hl_client_options *options)
{
    enum { CALLS = 16 };
    static _Thread_local hl_client *clients[CALLS][MASTERS_MAX];
    static _Thread_local unsigned calls;
    hl_client **opened = clients[calls++ % CALLS];

    hl_client_options own = HL_CLIENT_OPTIONS_INIT;
    if (options)
        own = *options;
    for (size_t i = 0; i < masters.count; i++) {
        opened[i] = open_client_at(masters.proxy[i] ? proxy_url(masters.proxy[i])
                                                    : redis_server_url(masters.server[i]),
                                   &own);
        own.on_event = NULL;
    }
    return opened;
}

hl_lock *new_redlock_of(hl_client *const *clients, size_t count, const char *name,
                        const hl_redlock_options *options)
{
    hl_redlock_options named =
        options ? *options
                : *REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY, .vote_timeout_ms = slow_ms(2000));
    hl_lock *lock = NULL;

    named.name = name;
    expect_ok(hl_redlock_new_with(clients, count, &named, &lock, ERR));
    return keep_lock(lock);
}

hl_lock *new_redlock(hl_client *const *clients, const char *name)
{
    return new_redlock_of(clients, masters.count, name, NULL);
}

static bool is_cut_off(void *client)
{
    return stats_of(client).nodes_now == 0;
}

void expect_cut_off(hl_client *client)
{
    check(wait_until(is_cut_off, client, 10000));
}

size_t masters_with(const char *name)
{
    size_t with = 0;

    for (size_t i = 0; i < masters.count; i++)
        with += redis_server_is_up(masters.server[i]) &&
                redis_int(masters.server[i], "EXISTS %s", name) == 1;
    return with;
}

size_t masters_with_value(const char *name, const char *value)
{
    size_t with = 0;

    for (size_t i = 0; i < masters.count; i++)
        with += redis_server_is_up(masters.server[i]) &&
                strcmp(redis_str(masters.server[i], "GET %s", name), value) == 0;
    return with;
}

size_t masters_held_by(const char *name, const char *owner)
{
    size_t with = 0;
    char value[128];

    for (size_t i = 0; i < masters.count; i++) {
        snprintf(value, sizeof value, "%s:%zu", owner, i);
        with += redis_server_is_up(masters.server[i]) &&
                strcmp(redis_str(masters.server[i], "GET %s", name), value) == 0;
    }
    return with;
}

struct masters_wait {
    const char *name;
    size_t count;
};

static bool masters_are_so(void *arg)
{
    const struct masters_wait *wait = arg;

    return masters_with(wait->name) == wait->count;
}

void expect_masters_with(const char *name, size_t count)
{
    struct masters_wait wait = {name, count};

    check_msg(wait_until(masters_are_so, &wait, 10000), "%s is at %zu masters, expected %zu", name,
              masters_with(name), count);
}
