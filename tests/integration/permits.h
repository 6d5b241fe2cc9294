/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The words in which the laws of permits speak: handles that are freed at the test's end, permits,
 * and calls beside the test. */
#ifndef HL_TEST_PERMITS_H
#define HL_TEST_PERMITS_H

#include "support/actor.h"
#include "support/kit.h"

#define IDS "{gate}:timeout"
#define CHANNEL "redisson_sc:{gate}"

static inline void permits_free(void *gate)
{
    hl_permits_free(gate);
}

static inline hl_permits *new_gate_named(hl_client *client, const char *name)
{
    hl_permits *gate = NULL;
    expect_ok(hl_permits_new(client, name, &gate, NULL));
    return free_at_end(gate, permits_free);
}

static inline hl_permits *new_gate(hl_client *client)
{
    return new_gate_named(client, "gate");
}

/* With that many permits. */
static inline hl_permits *set_gate(hl_client *client, int count)
{
    hl_permits *gate = new_gate(client);
    expect_ok(hl_permits_set_total(gate, count, 0, NULL));
    return gate;
}

static inline hl_permit take_one(hl_permits *gate)
{
    hl_permit permit = {""};
    hl_error err = HL_ERROR_INIT;
    int rc = hl_permits_try_acquire(gate, &permit, &err);
    check_msg(rc == 0, "%s", err.text);
    check_int(strlen(permit.id), 32);
    return permit;
}

static inline hl_permit take_with(hl_permits *gate, const hl_acquire_options *options)
{
    hl_permit permit = {""};
    expect_ok(hl_permits_acquire_with(gate, options, &permit, NULL));
    return permit;
}

static inline bool is_held(hl_permits *gate, hl_permit permit)
{
    return hl_permits_is_held(gate, &permit);
}

static inline int give_back(hl_permits *gate, hl_permit permit)
{
    return hl_permits_release(gate, &permit, NULL);
}

/* The server's numbers. */
static inline void expect_counts(hl_permits *gate, int64_t available, int64_t acquired)
{
    int64_t count = -99;
    expect_ok(hl_permits_available(gate, &count, NULL));
    check_int(count, available);
    expect_ok(hl_permits_acquired(gate, &count, NULL));
    check_int(count, acquired);
    expect_ok(hl_permits_total(gate, &count, NULL));
    check_int(count, available + acquired);
}

/* An acquire in an actor's thread. */
struct taking {
    struct actor *actor;
    hl_permits *gate;
    hl_acquire_options options;
    size_t count;
    hl_permit permits[8];
    int code;
    hl_error err;
};

static inline void taking_run(void *arg)
{
    struct taking *taking = arg;
    taking->code = hl_permits_acquire_many(taking->gate, taking->count, &taking->options,
                                           taking->permits, &taking->err);
}

static inline void taking_begin(struct taking *taking, hl_permits *gate, size_t count,
                                const hl_acquire_options *options)
{
    *taking =
        (struct taking){.actor = actor_start(), .gate = gate, .count = count, .options = *options};
    actor_begin(taking->actor, taking_run, taking);
}

static inline int taking_end(struct taking *taking)
{
    actor_await(taking->actor);
    return taking->code;
}

/* The server has told the subscriber's client that it listens. */
static inline void expect_listening(int clients)
{
    check(redis_wait_subscribers(server, CHANNEL, clients, 5000));
}

#endif
