/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A cluster under load: at each master a lock is held and waited for, and another goes round among
 * threads of two clients, which judge that never two are inside. */
#ifndef HL_TEST_CLUSTER_ROUND_H
#define HL_TEST_CLUSTER_ROUND_H

#include "cluster_kit.h"

#include "support/recorder.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MASTERS = 3, WORKERS = 2 };

/* At one master. */
struct spot {
    char name[64], held_name[64], asked_name[64];
    hl_lock *held;
    struct actor *waiter;
    hl_lock *wanted;
    struct actor *worker[WORKERS];
    atomic_int inside, served;
    atomic_bool may_overlap; /* its master fails over, and its replica may lack the last grant */
};

static struct spot spots[MASTERS];
static atomic_bool is_over;
static struct events events;
static struct recorder lines; /* warnings of the log of `other` */
static hl_client *holder, *other;

static inline void work(void *arg)
{
    struct spot *spot = arg;
    static atomic_uint turn;
    hl_lock *lock = new_lock(atomic_fetch_add(&turn, 1) % 2 ? holder : other, spot->name);

    while (!atomic_load(&is_over)) {
        if (hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 200), NULL) != HL_OK)
            continue;
        int others = atomic_fetch_add(&spot->inside, 1);
        check(others == 0 || atomic_load(&spot->may_overlap));
        atomic_fetch_sub(&spot->inside, 1);
        if (hl_lock_release(lock, NULL) == HL_OK)
            atomic_fetch_add(&spot->served, 1);
    }
}

static inline bool is_served(void *served_before)
{
    const int *before = served_before;

    return atomic_load(&spots[before[0]].served) >= before[1] + 4;
}

static inline void expect_served(int master)
{
    int before[] = {master, atomic_load(&spots[master].served)};

    check_msg(wait_until(is_served, before, 60000), "the threads at master %d are not served",
              master);
}

static inline void load_begin_at(int master)
{
    struct spot *spot = &spots[master];

    snprintf(spot->name, sizeof spot->name, "%s", name_at(master, "work"));
    snprintf(spot->held_name, sizeof spot->held_name, "%s", name_at(master, "held"));
    snprintf(spot->asked_name, sizeof spot->asked_name, "%s", name_at(master, "asked"));
    spot->held = new_lock(holder, spot->held_name);
    spot->wanted = new_lock(other, spot->held_name);
    expect_ok(hl_lock_acquire(spot->held, ERR));
    spot->waiter = actor_start_acquire(spot->wanted, ACQUIRE(.wait_ms = -1));
    for (int i = 0; i < WORKERS; i++) {
        spot->worker[i] = actor_start();
        actor_begin(spot->worker[i], work, spot);
    }
}

static inline void load_begin_by(const char *url)
{
    hl_client_options options = *cluster_client(&events);

    options.watchdog_timeout_ms = slow_ms(120000); /* no hold ends by time within a law */
    holder = open_client_at(url, &options);
    options.on_event = NULL;
    options.on_log = record_log;
    options.log_level = HL_LOG_WARN;
    options.arg = &lines;
    lines = (struct recorder)RECORDER_INIT;
    other = open_client_at(url, &options);
    for (int i = 0; i < MASTERS; i++)
        load_begin_at(i);
    expect_waiters(other, MASTERS);
    for (int i = 0; i < MASTERS; i++)
        expect_served(i);
}

static inline void load_begin(void)
{
    load_begin_by(cluster_url(cluster));
}

static inline void load_stop(void)
{
    atomic_store(&is_over, true);
    for (int i = 0; i < MASTERS; i++)
        for (int n = 0; n < WORKERS; n++)
            actor_await(spots[i].worker[n]);
}

/* But at this master (-1: at none), what was held is held, and the waiter gets it. */
static inline void expect_kept(int but)
{
    for (int i = 0; i < MASTERS; i++) {
        if (i == but)
            continue;
        check_msg(hl_lock_is_held(spots[i].held, NULL), "the hold at master %d is lost", i);
        expect_ok(hl_lock_release(spots[i].held, ERR));
        expect_ok(actor_end(spots[i].waiter));
        expect_ok(actor_release(spots[i].waiter, spots[i].wanted, NULL));
    }
}

static inline void load_end(int but)
{
    load_stop();
    expect_kept(but);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

/* The master is there without its data: what was held is lost, and the waiter gets it. */
static inline void load_end_without_data(int master)
{
    load_stop();
    expect_kept(master);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    expect_outcome(hl_lock_release(spots[master].held, ERR), HL_ELOST);
    expect_ok(actor_end(spots[master].waiter));
    expect_ok(actor_release(spots[master].waiter, spots[master].wanted, NULL));
}

/* Another node is at its address then. */
static inline void start_empty(struct redis_server *killed)
{
    char path[128];

    redis_server_wipe(killed);
    snprintf(path, sizeof path, "%s/nodes.conf", redis_server_dir(killed));
    check_int(unlink(path), 0);
    redis_server_restart(killed);
}

/* A node of another cluster, with all slots. */
static inline struct redis_server *new_stranger(const char *host, int port, const char *config)
{
    struct redis_server *stranger =
        stop_at_end(redis_server_start(&(struct redis_options){.cluster = true,
                                                               .tcp = true,
                                                               .plain = true,
                                                               .host = host,
                                                               .port = port,
                                                               .config = config}),
                    (void (*)(void *))redis_server_stop);

    redis_do(stranger, "CLUSTER SET-CONFIG-EPOCH 99");
    redis_do(stranger, "CLUSTER ADDSLOTSRANGE 0 16383");
    return stranger;
}

static inline bool has_met_stranger(void *arg)
{
    (void)arg;
    return recorder_says(&lines, "is there, and not node");
}

/* It was connected to, and nothing was asked for there. */
static inline void expect_untouched(struct redis_server *stranger)
{
    check(strstr(redis_str(stranger, "INFO commandstats"), "cmdstat_cluster|myid") != NULL);
    check(strstr(redis_str(stranger, "INFO commandstats"), "cmdstat_evalsha") == NULL);
    check_int(redis_int(stranger, "DBSIZE"), 0);
}

/* By a call of its own, which has no more to do with the load than its node. */
static inline void expect_says(int master, int code, const char *says)
{
    hl_lock *lock = new_lock(holder, spots[master].asked_name);
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(1000)), &err), code);
    check_has(err.text, says);
    free_lock(lock);
}

static inline void cut_all(void)
{
    for (int i = 0; i < cluster_nodes(cluster); i++)
        if (redis_server_is_up(cluster_node(cluster, i)))
            redis_kill_clients(cluster_node(cluster, i), REDIS_NORMAL);
}

#endif
