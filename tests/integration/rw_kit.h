/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the tests of the read-write lock "stock". A test that ends by rw_down() left no
 * key behind, unless it fails.
 */
#ifndef HL_TEST_RW_KIT_H
#define HL_TEST_RW_KIT_H

#include <pthread.h>
#include <stdlib.h>

#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"

#define RW_CHANNEL "redisson_rwlock:{stock}"
#define RW_WRITER "hirelock_rw_writer:{stock}"

#define RwLaw(suite, ...) Test(suite, __VA_ARGS__, .init = server_up, .fini = rw_down)
#define RwSingleLaw(suite, ...) Test(suite, __VA_ARGS__, .init = server_up_single, .fini = rw_down)

struct rw {
    hl_client *client;
    hl_lock *read, *write;
};

static inline struct rw rw_new_with(hl_client *client, const hl_lock_options *options)
{
    struct rw rw = {.client = client};
    expect_ok(rw_lock_new(client, "stock", options, &rw.read, &rw.write, NULL));
    keep_lock(rw.read), keep_lock(rw.write);
    return rw;
}

static inline struct rw rw_new(hl_client *client)
{
    return rw_new_with(client, NULL);
}

/* With a client of its own, whose polls and leases end when the test is long over: what happens is
 * heard. */
static inline struct rw rw_new_deaf(void)
{
    return rw_new(open_client(CLIENT(.poll_ms = 3600000, .watchdog_timeout_ms = 3600000)));
}

static inline void rw_down(void)
{
    actors_stop();
    check_msg(redis_wait_int(server, 0, 10000, "DBSIZE"), "left behind: %s",
              redis_str(server, "KEYS *"));
    server_down();
}

/* The lock's key in Redis: "read 2", "write 1" (the number of fields beside the mode), or "". */
static inline const char *rw_state(void)
{
    static _Thread_local char text[64];
    const char *mode = redis_str(server, "HGET stock mode");
    if (strcmp(mode, "(nil)") == 0)
        return "";
    snprintf(text, sizeof text, "%s %d", mode, (int)redis_int(server, "HLEN stock") - 1);
    return text;
}

static inline bool rw_is_in_state(void *wanted)
{
    return strcmp(rw_state(), wanted) == 0;
}

static inline void expect_state(const char *wanted)
{
    check_msg(wait_until(rw_is_in_state, (void *)wanted, 5000), "%s, expected %s",
              redis_str(server, "HGETALL stock"), wanted);
}

/* A thread that waits for one of the halves. */
static inline struct actor *rw_waits(hl_lock *lock)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    return actor;
}

#endif
