/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Handles of multi-locks, and expectations of several names. */

#include "multi_kit.h"

#include <hirelock/multi_lock.h>

enum { MEMBERS = 8, STRANGERS_COUNT = 1 };

hl_lock *new_multi_of(hl_lock *const *members, size_t count)
{
    hl_lock *lock = NULL;
    expect_ok(hl_multi_lock_new(members, count, NULL, &lock, NULL));
    return keep_lock(lock);
}

/* Calls each with one name of "a b c". */
static int for_each_name(const char *names, void (*each)(const char *name, void *arg), void *arg)
{
    char copy[128], *rest = NULL;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        each(name, arg);
        count++;
    }
    return count;
}

struct crew {
    hl_client *client;
    hl_lock *member[MEMBERS];
    size_t count;
};

static void add_member(const char *name, void *arg)
{
    struct crew *crew = arg;
    check(crew->count < MEMBERS);
    crew->member[crew->count++] = new_lock(crew->client, name);
}

hl_lock *new_multi_with(hl_client *client, const char *names, const hl_lock_options *options)
{
    struct crew crew = {.client = client};
    hl_lock *lock = NULL;
    for_each_name(names, add_member, &crew);
    expect_ok(hl_multi_lock_new(crew.member, crew.count, options, &lock, NULL));
    return keep_lock(lock);
}

hl_lock *new_multi(hl_client *client, const char *names)
{
    return new_multi_with(client, names, NULL);
}

void stranger_takes(const char *name, int64_t ms)
{
    redis_do(server, "HSET %s 0a1b2c3d-0000-4000-8000-1234567890ab:71 %d", name, STRANGERS_COUNT);
    redis_do(server, "PEXPIRE %s %lld", name, (long long)ms);
}

void stranger_leaves(const char *name)
{
    redis_do(server, "DEL %s", name);
    redis_do(server, "PUBLISH redisson_lock__channel:{%s} 0", name);
}

static void expect_one_held(const char *name, void *client)
{
    expect_held_by(client, new_lock(client, name), 1);
}

void expect_all_held_by(hl_client *client, const char *names)
{
    for_each_name(names, expect_one_held, client);
}

static void expect_one_free(const char *name, void *arg)
{
    (void)arg;
    check_msg(redis_wait_int(server, 0, 5000, "EXISTS %s", name), "%s is held", name);
}

void expect_all_free(const char *names)
{
    for_each_name(names, expect_one_free, NULL);
}

void expect_nothing_left(void)
{
    check_msg(redis_wait_int(server, 0, 5000, "DBSIZE"), "left: %s", redis_str(server, "KEYS *"));
}
