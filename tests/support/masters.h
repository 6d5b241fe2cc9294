/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Masters of a Redlock: servers that know nothing of one another. A test that begins with
 * masters_up_with() and ends with server_down(), as a MastersLaw does, need not stop them, nor
 * close what it opened by these functions. `server` is the first one.
 */
#ifndef HL_TEST_MASTERS_H
#define HL_TEST_MASTERS_H

#include <hirelock/redlock.h>

#include "kit.h"
#include "proxy.h"

enum { MASTERS_MAX = 7 };

struct masters {
    size_t count;
    struct redis_server *server[MASTERS_MAX];
    struct proxy *proxy[MASTERS_MAX]; /* before it; NULL: none */
};

extern struct masters masters;

/* A test with five of them; options of a Test may follow. Not run at sentinels or a cluster. */
#define MastersLaw(suite, ...) Test(suite, __VA_ARGS__, .init = masters_up, .fini = server_down)
void masters_up(void);
void masters_up_with(size_t count, const struct redis_options *options);

/* From now on clients are opened by a proxy before each master, which must have .tcp. */
void masters_use_proxies(void);

/* A client of each master, of which the first one has the options' on_event. The array is this
 * thread's, and overwritten by the 16th next call. */
hl_client **open_masters(const hl_client_options *options);

#define REDLOCK(...) (&(hl_redlock_options){.size = sizeof(hl_redlock_options), __VA_ARGS__})

/* Of the first `count` clients. options NULL: a restarted master votes at once. */
hl_lock *new_redlock_of(hl_client *const *clients, size_t count, const char *name,
                        const hl_redlock_options *options);
hl_lock *new_redlock(hl_client *const *clients, const char *name); /* of all masters */

/* The client has noticed, soon, that its master is dead. */
void expect_cut_off(hl_client *client);

/* How many masters have a key of this name, and those that have this value. */
size_t masters_with(const char *name);
size_t masters_with_value(const char *name, const char *value);
/* Those at which this owner has it: its value is the owner's and the master's index behind it. */
size_t masters_held_by(const char *name, const char *owner);
void expect_masters_with(const char *name, size_t count); /* soon */

#endif
