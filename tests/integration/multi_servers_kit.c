/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Several servers, and locks at them. */

#include "multi_servers_kit.h"

enum { MEMBERS = 8 };

struct site site[SITES + 1];

static void stop_server(void *item)
{
    redis_server_stop(item);
}

void site_open(int number, const hl_client_options *options)
{
    struct site *here = &site[number];
    here->server = number == 1 ? server : stop_at_end(redis_server_start(NULL), stop_server);
    here->client = open_client_at(redis_server_url(here->server), options);
}

void sites_open(const hl_client_options *options)
{
    for (int i = 1; i <= SITES; i++)
        site_open(i, options);
}

/* "b2": the name, and the server's number. */
static int read_place(const char *place, char name[16])
{
    size_t length = strlen(place) - 1;
    check(length < 16);
    memcpy(name, place, length);
    name[length] = '\0';
    return place[length] - '0';
}

static size_t each_place(const char *places, void (*visit)(const char *place, void *arg), void *arg)
{
    char copy[128], *rest = NULL;
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", places);
    for (char *place = strtok_r(copy, " ", &rest); place; place = strtok_r(NULL, " ", &rest)) {
        visit(place, arg);
        count++;
    }
    return count;
}

struct crew {
    hl_client *const *clients;
    hl_lock *member[MEMBERS];
    size_t count;
};

static void add_member(const char *place, void *arg)
{
    struct crew *crew = arg;
    char name[16];
    int number = read_place(place, name);
    check(crew->count < MEMBERS);
    crew->member[crew->count++] = new_lock(crew->clients[number], name);
}

hl_lock *new_multi_of_clients(hl_client *const *clients, const char *places)
{
    struct crew crew = {.clients = clients};
    hl_lock *lock = NULL;
    each_place(places, add_member, &crew);
    expect_ok(hl_multi_lock_new(crew.member, crew.count, NULL, &lock, ERR));
    return keep_lock(lock);
}

hl_lock *new_multi_at(const char *places)
{
    hl_client *clients[SITES + 1];
    for (int i = 1; i <= SITES; i++)
        clients[i] = site[i].client;
    return new_multi_of_clients(clients, places);
}

void stranger_takes_at(const char *place)
{
    char name[16];
    struct redis_server *there = site[read_place(place, name)].server;
    redis_do(there, "HSET %s 0a1b2c3d-0000-4000-8000-1234567890ab:71 1", name);
    redis_do(there, "PEXPIRE %s 60000", name);
}

void stranger_leaves_at(const char *place)
{
    char name[16];
    struct redis_server *there = site[read_place(place, name)].server;
    redis_do(there, "DEL %s", name);
    redis_do(there, "PUBLISH redisson_lock__channel:{%s} 0", name);
}

static void expect_one(const char *place, void *arg)
{
    const int *count = arg;
    char name[16];
    struct redis_server *there = site[read_place(place, name)].server;
    check_msg(redis_wait_int(there, *count, 5000, "EXISTS %s", name), "%s: not %d", place, *count);
}

void expect_keys_at(const char *places, int count)
{
    each_place(places, expect_one, &count);
}

void expect_queue_at(const char *place, int count)
{
    char name[16];
    struct redis_server *there = site[read_place(place, name)].server;
    check_msg(redis_wait_int(there, count, 5000, "ZCARD hirelock_queue:{%s}", name), "%s", place);
}

void expect_nothing_left_at_all(void)
{
    for (int i = 1; i <= SITES; i++)
        if (site[i].server)
            check_msg(redis_wait_int(site[i].server, 0, 5000, "DBSIZE"), "left at %d: %s", i,
                      redis_str(site[i].server, "KEYS *"));
}
