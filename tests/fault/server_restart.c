/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The server dies and comes back, with its keys or without them. */

#include "server_fault.h"

/* Without its keys the hold is gone, which the renewal at the reconnect says; the call after it
 * finds no script and notices nothing. */
Law(server_restart, without_persistence_loses_the_hold_at_once)
{
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_lock *lock = new_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_server_restart(server);
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone"); /* it did not wait until its lease was over */
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), &err));
    expect_ok(hl_lock_release(lock, &err));
}

/* A renewal of many: what is gone is told hold by hold, and each of them is told once. */
Law(server_restart, without_persistence_loses_every_hold_once)
{
    enum { LOCKS = 250 };
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_lock *lock[LOCKS];
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        lock[i] = new_lock(client, name);
        expect_ok(hl_lock_acquire(lock[i], NULL));
    }
    redis_server_restart(server);
    check(events_wait(&events, HL_EVENT_LOST, LOCKS, 8000));
    for (int i = 0; i < LOCKS; i++)
        expect_outcome(hl_lock_release(lock[i], NULL), HL_ELOST);
    check_int(events_told(&events, HL_EVENT_LOST), LOCKS);
    check_int((int)stats_of(client).losses, LOCKS);
}

Test(server_restart, with_its_keys_keeps_the_holds, .fini = server_down)
{
    server_up_with(&(struct redis_options){.appendonly = true});
    static struct events events;
    hl_client *client = open_impatient(&events), *other = open_impatient(NULL);
    hl_lock *lock = new_lock(client, "n"), *others = new_lock(other, "n");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_server_restart(server);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 5000));
    check(hl_lock_is_held(lock, NULL));
    wait_stat(other, reconnects, 1);
    expect_outcome(hl_lock_acquire_for(others, 100, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_acquire_for(others, slow_ms(5000), NULL));
    expect_ok(hl_lock_release(others, NULL));
}

/* Time runs on while it is down, for the expiry in the file is an instant. */
Test(server_restart, after_the_lease_is_over_gives_the_lock_to_the_next, .fini = server_down)
{
    server_up_with(&(struct redis_options){.appendonly = true});
    static struct events events;
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(600) + 1400;
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *client = open_client(&options);
    options.on_event = NULL;
    options.watchdog_timeout_ms = slow_ms(30000);
    hl_client *other = open_client(&options);
    hl_lock *lock = new_lock(client, "n"), *others = new_lock(other, "n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_server_kill(server);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!actor_is_done(call));
    redis_server_restart(server);
    expect_ok(actor_end(call));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(actor_holds(call, others, NULL));
    expect_ok(actor_release(call, others, NULL));
}

/* Several threads of two clients count under one lock while the server is killed again and again.
 * The file keeps every key, so no two are ever inside, and every acquire that said yes counts. */
struct restart_worker {
    hl_client *client;
    atomic_int *inside, *counted;
    atomic_bool *stops;
    pthread_t thread;
};

static void *restart_work(void *arg)
{
    struct restart_worker *worker = arg;
    hl_lock *lock = new_lock(worker->client, "n");
    while (!atomic_load(worker->stops)) {
        hl_error err = HL_ERROR_INIT;
        int rc = hl_lock_acquire_for(lock, slow_ms(20000), &err);
        check_msg(rc == 0, "acquire: %s", err.text);
        check_int(atomic_fetch_add(worker->inside, 1), 0);
        atomic_fetch_add(worker->counted, 1);
        sched_yield();
        check_int(atomic_fetch_sub(worker->inside, 1), 1);
        rc = hl_lock_release(lock, &err);
        check_msg(rc == 0 || rc == HL_EINDOUBT, "release: %s", err.text);
    }
    free_lock(lock);
    return NULL;
}

Test(server_restart, again_and_again_under_load_lets_no_two_inside, .fini = server_down)
{
    enum { WORKERS = 4, RESTARTS = 6 };
    server_up_with(&(struct redis_options){.appendonly = true});
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    options.request_timeout_ms = slow_ms(5000);
    options.watchdog_timeout_ms = slow_ms(30000);
    hl_client *client[] = {open_client(&options), open_client(&options)};
    struct restart_worker worker[WORKERS];
    atomic_int inside = 0, counted = 0;
    atomic_bool stops = false;
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (struct restart_worker){client[i % 2], &inside, &counted, &stops, 0};
        check_int(pthread_create(&worker[i].thread, NULL, restart_work, &worker[i]), 0);
    }
    for (int i = 0; i < RESTARTS; i++) {
        int before = atomic_load(&counted);
        struct deadline deadline = deadline_of_wait(10000);
        while (atomic_load(&counted) < before + 20) { /* they work again */
            check(!deadline_is_over(deadline));
            deadline_nap();
        }
        redis_server_restart(server);
    }
    atomic_store(&stops, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i].thread, NULL);
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}
