/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A load for the tests of failovers: threads of two clients acquire and release their locks without
 * a pause, and judge what they get. No two believe to be alone at one name, each hold ends in
 * one way, and each thread is served again.
 */
#ifndef HL_TEST_FAILOVER_LOAD_H
#define HL_TEST_FAILOVER_LOAD_H

#include "support/deadline.h"
#include "support/events.h"
#include "support/kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    LOAD_CLIENTS = 2,
    LOAD_THREADS = 8,
    LOAD_SEATS = 3,      /* of each thread; the last one is at a name of its own client */
    LOAD_LEASE_MS = 8000 /* on an idle machine; what an old master forgot to tell ends with it */
};

/* Two sit at each name. */
struct seat {
    hl_client *client;
    hl_lock *lock;
    hl_owner *owner;
    const struct seat *rival;
    bool is_shared;    /* the rival is of the other client */
    atomic_int reign;  /* of the master that granted the hold; -1: a change came in between */
    atomic_int visits; /* odd while the owner believes to be alone */
    atomic_int losses; /* that were told of holds of this seat */
    int losses_due;
};

struct load_thread {
    struct seat seat[LOAD_SEATS];
    pthread_t thread;
    atomic_int turns; /* once at each seat */
    int wanted;
    int in_doubt;
};

/* The threads end before the clients are closed, also when the test fails. */
static struct load {
    hl_client *client[LOAD_CLIENTS];
    struct events events[LOAD_CLIENTS];
    struct load_thread thread[LOAD_THREADS];
    atomic_bool is_over;
    int threads; /* that run */
} load;

static inline int seat_reign(const struct seat *seat)
{
    return (int)stats_of(seat->client).master_changes;
}

static inline void seat_count_loss(const hl_event *event, void *seat)
{
    if (event->kind == HL_EVENT_LOST)
        atomic_fetch_add(&((struct seat *)seat)->losses, 1);
}

/*
 * Replication is asynchronous, so a hold of the old master and one of the new master may be
 * believed in at once. Two holds of one master may not; nor may two of one client, which knows of
 * both. A rival that was inside when this seat had its lock already, and is held still, is such a
 * case.
 */
static inline void seat_check_alone(const struct seat *seat)
{
    const struct seat *rival = seat->rival;
    int visit = atomic_load(&rival->visits), reign = atomic_load(&rival->reign);
    int own = atomic_load(&seat->reign);

    if (visit % 2 == 0 || (seat->is_shared && (own < 0 || own != reign)))
        return;
    bool is_rivals = hl_lock_is_held(rival->lock, rival->owner);
    bool is_ours = hl_lock_is_held(seat->lock, seat->owner);
    check_msg(!is_rivals || !is_ours || atomic_load(&rival->visits) != visit,
              "%s has two holders, both of reign %d", hl_lock_name(seat->lock, NULL), reign);
}

static inline bool seat_is_told(void *arg)
{
    const struct seat *seat = arg;

    return atomic_load(&seat->losses) == seat->losses_due;
}

/* The text of HL_ELOST says when the hold was lost if an event told it. Without an event the
 * release itself found the key gone, and that may be only behind a failover. */
static inline void seat_note_loss(struct seat *seat, const char *text)
{
    if (strstr(text, " s ago)")) {
        seat->losses_due++;
        check_msg(wait_until(seat_is_told, seat, 10000), "no event told: %s", text);
    } else {
        check_msg(atomic_load(&seat->reign) != seat_reign(seat), "without a failover: %s", text);
    }
}

static inline void seat_release(struct load_thread *thread, struct seat *seat)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release_as(seat->lock, seat->owner, &err);

    check_msg(code == HL_OK || code == HL_ELOST || code == HL_EINDOUBT, "release: %s", err.text);
    if (code == HL_ELOST)
        seat_note_loss(seat, err.text);
    if (code == HL_EINDOUBT)
        thread->in_doubt++;
    check_msg(seat_is_told(seat), "LOST was told of a hold that ended with %d", code);
    check(!hl_lock_is_held(seat->lock, seat->owner));
}

static inline void seat_take_turn(struct load_thread *thread, struct seat *seat)
{
    int before = seat_reign(seat);

    expect_ok(hl_lock_acquire_with(seat->lock,
                                   ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .owner = seat->owner,
                                           .on_event = seat_count_loss, .event_arg = seat),
                                   ERR));
    atomic_store(&seat->reign, before == seat_reign(seat) ? before : -1);
    atomic_fetch_add(&seat->visits, 1);
    seat_check_alone(seat);
    deadline_nap();
    atomic_fetch_add(&seat->visits, 1);
    seat_release(thread, seat);
}

static inline void *load_work(void *arg)
{
    struct load_thread *thread = arg;

    while (!atomic_load(&load.is_over)) {
        for (int i = 0; i < LOAD_SEATS; i++)
            seat_take_turn(thread, &thread->seat[i]);
        atomic_fetch_add(&thread->turns, 1);
    }
    return NULL;
}

static inline void load_stop(void)
{
    atomic_store(&load.is_over, true);
    while (load.threads > 0)
        pthread_join(load.thread[--load.threads].thread, NULL);
}

static inline void load_free(void *arg)
{
    (void)arg;
    load_stop();
    for (int i = 0; i < LOAD_THREADS * LOAD_SEATS; i++) {
        hl_lock_free(load.thread[i / LOAD_SEATS].seat[i % LOAD_SEATS].lock);
        hl_owner_free(load.thread[i / LOAD_SEATS].seat[i % LOAD_SEATS].owner);
    }
}

static inline void load_seat(int thread, int i, const char *(*name_of)(const char *prefix))
{
    bool is_shared = i < LOAD_SEATS - 1;
    int rival = thread ^ (is_shared ? 1 : LOAD_CLIENTS), first = rival < thread ? rival : thread;
    struct seat *seat = &load.thread[thread].seat[i];
    char prefix[32];

    snprintf(prefix, sizeof prefix, "load-%d-%d", first, i);
    seat->client = load.client[thread % LOAD_CLIENTS];
    expect_ok(hl_lock_new(seat->client, name_of(prefix), &seat->lock, ERR));
    expect_ok(hl_owner_new(seat->client, &seat->owner));
    seat->rival = &load.thread[rival].seat[i];
    seat->is_shared = is_shared;
}

static inline bool load_is_served(void *arg)
{
    (void)arg;
    for (int i = 0; i < LOAD_THREADS; i++)
        if (atomic_load(&load.thread[i].turns) < load.thread[i].wanted)
            return false;
    return true;
}

/* Each thread twice from now on: its first turn may have begun before. */
static inline void load_expect_served(void)
{
    for (int i = 0; i < LOAD_THREADS; i++)
        load.thread[i].wanted = atomic_load(&load.thread[i].turns) + 2;
    if (wait_until(load_is_served, NULL, 60000))
        return;
    for (int i = 0; i < LOAD_THREADS; i++)
        check_msg(atomic_load(&load.thread[i].turns) >= load.thread[i].wanted,
                  "thread %d is not served", i);
}

static inline void load_begin(const char *url, const char *(*name_of)(const char *prefix))
{
    for (int i = 0; i < LOAD_CLIENTS; i++)
        load.client[i] = open_client_at(
            url, CLIENT(.watchdog_timeout_ms = slow_ms(LOAD_LEASE_MS),
                        .request_timeout_ms = slow_ms(2000), .outage_timeout_ms = slow_ms(60000),
                        .on_event = count_event, .arg = &load.events[i]));
    for (int i = 0; i < LOAD_THREADS * LOAD_SEATS; i++)
        load_seat(i / LOAD_SEATS, i % LOAD_SEATS, name_of);
    free_at_end(&load, load_free);
    for (; load.threads < LOAD_THREADS; load.threads++)
        check_int(pthread_create(&load.thread[load.threads].thread, NULL, load_work,
                                 &load.thread[load.threads]),
                  0);
    load_expect_served();
}

/* The statistics of a client say what its events and calls said. */
static inline void load_check_stats(int client)
{
    int acquires = 0, losses = 0, in_doubt = 0;

    for (int i = client; i < LOAD_THREADS; i += LOAD_CLIENTS) {
        in_doubt += load.thread[i].in_doubt;
        for (int j = 0; j < LOAD_SEATS; j++) {
            acquires += atomic_load(&load.thread[i].seat[j].visits) / 2;
            losses += load.thread[i].seat[j].losses_due;
            check(seat_is_told(&load.thread[i].seat[j]));
        }
    }
    hl_stats stats = stats_of(load.client[client]);
    check_int(stats.acquires, acquires);
    check_int(stats.losses, losses);
    check_int(stats.in_doubt, in_doubt);
    check(events_wait(&load.events[client], HL_EVENT_LOST, losses, 10000));
    check_int(events_told(&load.events[client], HL_EVENT_LOST), losses);
}

/* Each thread ends its turn; nothing of the load is left at `server`, at the latest when what the
 * old master forgot to tell has ended. */
static inline void load_end(void)
{
    load_stop();
    for (int i = 0; i < LOAD_CLIENTS; i++)
        load_check_stats(i);
    check(redis_wait_int(server, 0, 60000, "DBSIZE"));
}

#endif
