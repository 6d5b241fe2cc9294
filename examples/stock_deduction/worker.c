/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Serving orders: read, decide, write; alone, if there is a lock. */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"

#include "shop.h"

#include <hirelock/hirelock.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

struct worker {
    const struct options *options;
    struct sale *sale;
    int process, gate;
    hl_client *client; /* of the whole process */
    hl_lock *lock;     /* shared by its threads; NULL in the sale without a lock */
};

static bool worker_fail(const struct worker *worker, const char *why)
{
    fprintf(stderr, "stock_deduction: process %d: %s\n", worker->process + 1, why);
    atomic_fetch_add(&worker->sale->failed, 1);
    return false;
}

/* The worst moment for a process to end: it has the lock, and nobody is told. Or the lock's server
 * ends, and the one that takes its place may not know of this hold. */
static void worker_kill(struct worker *worker)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;

    if (worker->options->kill_pid != 0) {
        atomic_store(&worker->sale->killed_us, sale_now_us());
        kill((pid_t)worker->options->kill_pid, SIGKILL);
        return;
    }

    if (hl_lock_inspect(worker->lock, &info, NULL) == 0)
        atomic_store(&worker->sale->lease_left_ms, info.lease_left_ms);
    atomic_store(&worker->sale->killed_process, worker->process);
    atomic_store(&worker->sale->killed_us, sale_now_us());
    kill(getpid(), SIGKILL);
    pause();
}

static bool worker_acquire(struct worker *worker, uint32_t order)
{
    hl_error err = HL_ERROR_INIT;
    int64_t asked_us = sale_now_us();
    /* Longer than a holder or a server that dies can keep us waiting, whatever the lease. */
    int rc = hl_lock_acquire_for(worker->lock, WAIT_MS + 2 * worker->options->lease_ms, &err);

    if (rc < 0)
        return worker_fail(worker, err.text);
    sale_note_wait(worker->sale, order, sale_now_us() - asked_us);
    if (order == worker->sale->kills)
        worker_kill(worker);
    return true;
}

/* A hold that was lost is counted; whether it did harm, the shop's figures show at the end. So is a
 * release whose server died: the library goes on trying, and the lease ends it at the latest. */
static bool worker_release(struct worker *worker)
{
    hl_error err = HL_ERROR_INIT;
    int rc = hl_lock_release(worker->lock, &err);

    if (rc == HL_ELOST)
        atomic_fetch_add(&worker->sale->lost, 1);
    if (rc == HL_EINDOUBT && worker->options->kill_pid != 0) {
        atomic_fetch_add(&worker->sale->in_doubt, 1);
        return true;
    }
    return rc == 0 || rc == HL_ELOST || worker_fail(worker, err.text);
}

static bool worker_deduct(struct worker *worker, struct shop *shop, long quantity)
{
    long left = 0;

    if (!shop_read(shop, &left))
        return worker_fail(worker, shop_error(shop));
    /* Looked at just before the write: had we been stopped for longer than the lease, somebody
     * else would be selling by now, and this customer has to ask again. */
    bool is_sold = left >= quantity && (!worker->lock || hl_lock_is_held(worker->lock, NULL));
    if (is_sold && !shop_write(shop, left - quantity, quantity))
        return worker_fail(worker, shop_error(shop));
    sale_note_answer(worker->sale, worker->process, is_sold);
    return true;
}

static bool worker_serve(struct worker *worker, struct shop *shop, uint32_t order)
{
    if (worker->lock && !worker_acquire(worker, order))
        return false;
    bool is_well = worker_deduct(worker, shop, sale_quantity(order));
    return (!worker->lock || worker_release(worker)) && is_well;
}

static void *worker_thread(void *arg)
{
    struct worker *worker = arg;
    struct shop *shop = shop_new();
    uint32_t order = 0;
    char nothing = 0;

    if (!shop || !shop_open(shop, worker->options->url, worker->sale->id))
        worker_fail(worker, shop_error(shop));
    atomic_fetch_add(&worker->sale->ready, 1);
    /* Nobody writes to the gate: this returns when it is closed, and all begin together. */
    bool goes_on = read(worker->gate, &nothing, 1) == 0;
    while (goes_on && atomic_load(&worker->sale->failed) == 0 && sale_next(worker->sale, &order))
        goes_on = worker_serve(worker, shop, order);
    shop_free(shop);
    return NULL;
}

static void worker_threads(struct worker *worker)
{
    pthread_t threads[OPTIONS_MAX_THREADS];
    long started = 0;

    while (started < worker->options->threads &&
           pthread_create(&threads[started], NULL, worker_thread, worker) == 0)
        started++;
    if (started < worker->options->threads)
        worker_fail(worker, "cannot start a thread");
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

/* After the fork: a client's threads and its connection belong to the process that opened it. */
static int worker_open(struct worker *worker, hl_error *err)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    const char *url = worker->options->lock_url;
    char name[48];

    options.client_name = "stock_deduction";
    options.tls_ca_file = worker->options->ca;
    options.watchdog_timeout_ms = worker->options->lease_ms;
    options.outage_timeout_ms = WAIT_MS;
    /* The braces give all locks of the demo one slot of a cluster. */
    snprintf(name, sizeof(name), "{stock_deduction}:%ld:lock", worker->sale->id);
    int rc = hl_client_open(url ? url : worker->options->url, &options, &worker->client, err);
    return rc < 0 ? rc : hl_lock_new(worker->client, name, &worker->lock, err);
}

int worker_run(const struct options *options, struct sale *sale, int process, int gate)
{
    struct worker worker = {.options = options, .sale = sale, .process = process, .gate = gate};
    hl_error err = HL_ERROR_INIT;

    if (sale->is_locked && worker_open(&worker, &err) < 0)
        worker_fail(&worker, err.text);
    else
        worker_threads(&worker);
    hl_lock_free(worker.lock);
    hl_client_close(worker.client);
    return atomic_load(&sale->failed) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
