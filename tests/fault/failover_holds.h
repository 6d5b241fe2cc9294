/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Holds that outlast a failover under load, each with a waiter of another client. Those that a
 * replica is known to have stay held, those that no replica can have are lost, and of the others
 * each is one or the other.
 */
#ifndef HL_TEST_FAILOVER_HOLDS_H
#define HL_TEST_FAILOVER_HOLDS_H

#include "failover_load.h"

#include "support/actor.h"
#include "support/topologies.h"

enum { HOLDS = 8, SURE_HOLDS = HOLDS / 2 };

/* Longer than a failover, an outage, and the lease of a hold that was lost. */
#define WAITERS_MS slow_ms(240000)

/* How the master of the holds ends. */
struct failure {
    void (*prepare)(struct redis_server *master); /* before the last holds; or NULL */
    void (*fail)(struct redis_server *master);
    bool loses; /* no replica has the last holds */
};

static struct hold {
    hl_lock *lock, *wanted;
    struct actor *actor; /* that wants it */
    struct events events;
    bool is_sure; /* a replica had it before the failover began */
} holds[HOLDS];

static hl_client *holder, *waiter;
static struct events holder_events, waiter_events;

static inline void holds_open(const char *url)
{
    holder = open_client_at(url, CLIENT(.watchdog_timeout_ms = slow_ms(60000),
                                        .request_timeout_ms = slow_ms(2000),
                                        .outage_timeout_ms = slow_ms(60000),
                                        .on_event = count_event, .arg = &holder_events));
    waiter = open_client_at(url, CLIENT(.watchdog_timeout_ms = slow_ms(LOAD_LEASE_MS),
                                        .request_timeout_ms = slow_ms(2000),
                                        .outage_timeout_ms = slow_ms(60000),
                                        .on_event = count_event, .arg = &waiter_events));
}

static inline void holds_take(int first, int end, const char *(*name_of)(const char *prefix))
{
    char prefix[32];

    for (int i = first; i < end; i++) {
        snprintf(prefix, sizeof prefix, "held-%d", i);
        holds[i].lock = new_lock(holder, name_of(prefix));
        holds[i].wanted = new_lock(waiter, name_of(prefix));
        expect_ok(hl_lock_acquire_with(holds[i].lock,
                                       ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .on_event = count_event,
                                               .event_arg = &holds[i].events),
                                       ERR));
        holds[i].actor = actor_start_acquire(holds[i].wanted, ACQUIRE(.wait_ms = WAITERS_MS));
    }
}

/* Holds and waiters, and the failure of their master under them. */
static inline void holds_begin(struct redis_server *master, const struct failure *failure,
                               const char *(*name_of)(const char *prefix))
{
    holds_take(0, SURE_HOLDS, name_of);
    expect_waiters(waiter, SURE_HOLDS);
    check(redis_wait_replicas(master, 1, 30000));
    for (int i = 0; i < SURE_HOLDS; i++)
        holds[i].is_sure = true;
    if (failure->prepare)
        failure->prepare(master);
    holds_take(SURE_HOLDS, HOLDS, name_of);
    failure->fail(master);
}

/* What the new master had from the first is never given to another while it is held. */
static inline void hold_check_alone(const struct hold *hold)
{
    bool is_another = actor_is_done(hold->actor);

    check_msg(!hold->is_sure || !is_another || !hl_lock_is_held(hold->lock, NULL),
              "%s has two holders", hl_lock_name(hold->lock, NULL));
}

static inline bool hold_is_decided(void *arg)
{
    const struct hold *hold = arg;
    const char *id = hl_client_id(holder);

    hold_check_alone(hold);
    return !hl_lock_is_held(hold->lock, NULL) || strncmp(field_of(hold->lock), id, strlen(id)) == 0;
}

/* A sure hold is lost only if its time was over. */
static inline void hold_check_loss(struct hold *hold, bool must_be_lost)
{
    int losses = events_told(&hold->events, HL_EVENT_LOST);

    check(losses == 1 || (losses == 0 && !must_be_lost));
    if (losses && hold->is_sure)
        check_str(hold->events.reason[HL_EVENT_LOST], "expired");
}

/* `server` is the new master. */
static inline void holds_expect_held_or_lost(const struct failure *failure)
{
    for (int i = 0; i < HOLDS; i++) {
        check(wait_until(hold_is_decided, &holds[i], 60000));
        expect_held_or_lost(holder, holds[i].lock, &holds[i].events);
        hold_check_loss(&holds[i], failure->loses && !holds[i].is_sure);
    }
}

static inline void holds_expect_waiters_served(void)
{
    int losses = 0;

    for (int i = 0; i < HOLDS; i++) {
        expect_ok(actor_end(holds[i].actor));
        expect_ok(actor_release(holds[i].actor, holds[i].wanted, NULL));
        losses += events_told(&holds[i].events, HL_EVENT_LOST);
    }
    check_int(stats_of(holder).losses, losses);
    check_int(events_told(&holder_events, HL_EVENT_LOST), losses);
    check_int(stats_of(waiter).losses, events_told(&waiter_events, HL_EVENT_LOST));
}

#endif
