/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The server dies and comes back, with its keys or without them. */

#include "server_fault.h"

/* Without its keys the hold is gone, which the renewal at the reconnect says; the call after it
 * finds no script and notices nothing. */
Test(server_restart, without_persistence_loses_the_hold_at_once)
{
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client *client = fault_client(server, &events);
    hl_lock *lock = fault_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    int64_t killed_ns = now_ns();
    redis_server_restart(server);
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(now_ns() - killed_ns < slow_ms(2500) * 1000000); /* long before its validity ends */
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    check_int(hl_lock_acquire_for(lock, slow_ms(5000), &err), 0);
    check_int(hl_lock_release(lock, &err), 0);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

/* A renewal of many: what is gone is told hold by hold, and each of them is told once. */
Test(server_restart, without_persistence_loses_every_hold_once)
{
    enum { LOCKS = 250 };
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client *client = fault_client(server, &events);
    hl_lock *lock[LOCKS];
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        lock[i] = fault_lock(client, name);
        check_int(hl_lock_acquire(lock[i], NULL), 0);
    }
    redis_server_restart(server);
    check(wait_until(fault_has_seen, &(struct fault_wish){&events, HL_EVENT_LOST, LOCKS}, 8000));
    for (int i = 0; i < LOCKS; i++)
        check_int(hl_lock_release(lock[i], NULL), HL_ELOST);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), LOCKS);
    check_int((int)fault_stats(client).losses, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        hl_lock_free(lock[i]);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(server_restart, with_its_keys_keeps_the_holds)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.appendonly = true});
    struct fault_events events = {0};
    hl_client *client = fault_client(server, &events), *other = fault_client(server, NULL);
    hl_lock *lock = fault_lock(client, "n"), *others = fault_lock(other, "n");
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_server_restart(server);
    check(fault_wait_event(&events, HL_EVENT_CONNECTED, 5000));
    check(hl_lock_is_held(lock, NULL));
    check_int(hl_lock_acquire_for(others, 100, NULL), HL_ETIMEDOUT);
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 0);
    check_int(hl_lock_acquire_for(others, slow_ms(5000), NULL), 0);
    check_int(hl_lock_release(others, NULL), 0);
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
    redis_server_stop(server);
}

/* Time runs on while it is down, for the expiry in the file is an instant. */
Test(server_restart, after_the_lease_is_over_gives_the_lock_to_the_next)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.appendonly = true});
    struct fault_events events = {0};
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(600);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *client = fault_open(redis_server_url(server), &options);
    options.on_event = NULL;
    hl_client *other = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n"), *others = fault_lock(other, "n");
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_server_kill(server);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!atomic_load(&call.is_over));
    redis_server_restart(server);
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    check(hl_lock_is_held(others, call.options.owner));
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
    redis_server_stop(server);
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
    hl_lock *lock = fault_lock(worker->client, "n");
    while (!atomic_load(worker->stops)) {
        hl_error err = HL_ERROR_INIT;
        int rc = hl_lock_acquire_for(lock, slow_ms(20000), &err);
        check_msg(rc == 0, "acquire: %s", err.text);
        check_int(atomic_fetch_add(worker->inside, 1), 0);
        atomic_fetch_add(worker->counted, 1);
        sched_yield();
        check_int(atomic_fetch_sub(worker->inside, 1), 1);
        rc = hl_lock_release(lock, &err);
        check_msg(rc == 0 || rc == HL_EUNKNOWN, "release: %s", err.text);
    }
    hl_lock_free(lock);
    return NULL;
}

Test(server_restart, again_and_again_under_load_lets_no_two_inside)
{
    enum { WORKERS = 4, RESTARTS = 6 };
    struct redis_server *server = redis_server_start(&(struct redis_options){.appendonly = true});
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    options.request_timeout_ms = slow_ms(5000);
    options.watchdog_timeout_ms = slow_ms(30000);
    hl_client *client[] = {fault_open(redis_server_url(server), &options),
                           fault_open(redis_server_url(server), &options)};
    struct restart_worker worker[WORKERS];
    atomic_int inside = 0, counted = 0;
    atomic_bool stops = false;
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (struct restart_worker){client[i % 2], &inside, &counted, &stops, 0};
        check_int(pthread_create(&worker[i].thread, NULL, restart_work, &worker[i]), 0);
    }
    for (int i = 0; i < RESTARTS; i++) {
        int before = atomic_load(&counted);
        struct deadline deadline = deadline_in(10000);
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
    hl_client_close(client[0]);
    hl_client_close(client[1]);
    redis_server_stop(server);
}
