/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A hold that ends before its release, and what to do about it. Here an operator breaks the lock;
 * an outage longer than the lease, a DEL or max_hold_ms would look the same to the program.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { STEPS = 200, STEP_MS = 20, BROKEN_AT = 5 };

static atomic_bool is_in_jeopardy;
static atomic_bool is_lost;

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Runs on the client's callback thread: be short, and leave the work to other threads. */
static void on_event(const hl_event *event, void *arg)
{
    (void)arg;
    switch (event->kind) {
    case HL_EVENT_JEOPARDY: /* a renewal is overdue: begin nothing long */
        printf("event: in jeopardy, %lld ms left\n", (long long)event->validity_ms);
        atomic_store(&is_in_jeopardy, true);
        break;
    case HL_EVENT_SAFE: /* it came after all */
        puts("event: safe again");
        atomic_store(&is_in_jeopardy, false);
        break;
    case HL_EVENT_LOST: /* somebody else may be inside from now on: stop */
        printf("event: lost (%s)\n", event->reason);
        atomic_store(&is_lost, true);
        break;
    case HL_EVENT_DISCONNECTED: /* no reason to stop: the lease goes on, and so may we */
    case HL_EVENT_CONNECTED:
        break;
    default: /* later versions add kinds */
        break;
    }
}

/* In another program: an operator believes that this lock is stuck. */
static int operator_breaks(const char *url, const char *name, hl_error *err)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    int rc = hl_client_open(url, NULL, &client, err);

    if (rc == 0)
        rc = hl_lock_new(client, name, &lock, err);
    if (rc == 0)
        rc = hl_lock_force_release(lock, err);
    hl_lock_free(lock);
    hl_client_close(client);
    return rc;
}

/* Work in steps that can be undone, or that the resource itself refuses when they come too late,
 * and look before each of them. Returns the steps done. */
static int work(const char *url, hl_lock *lock, hl_error *err)
{
    int done = 0;

    while (done < STEPS && hl_lock_is_held(lock, NULL)) {
        if (done == BROKEN_AT && operator_breaks(url, hl_lock_name(lock, NULL), err) < 0)
            break;
        if (!atomic_load(&is_in_jeopardy))
            done++;
        nap_ms(STEP_MS);
    }
    return done;
}

static int run(const char *url, hl_client *client, hl_error *err)
{
    hl_lock *lock = NULL;
    int rc = hl_lock_new(client, "report", &lock, err);

    if (rc == 0)
        rc = hl_lock_acquire_for(lock, 5000, err);
    if (rc == 0) {
        int done = work(url, lock, err);
        rc = hl_lock_release(lock, err); /* always: it says how the hold ended */
        if (rc == HL_ELOST)
            printf("%d steps done, the last ones perhaps not alone: reconcile\n", done);
    }
    hl_lock_free(lock);
    return rc;
}

static const char does[] = "A lock that is lost before its release, and what a program does then.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.watchdog_timeout_ms = 1500; /* renewed every third of it, which notices a loss */
    options.on_event = on_event;
    int rc = hl_client_open(url, &options, &client, &err);
    if (rc == 0)
        rc = run(url, client, &err);
    if (rc < 0 && rc != HL_ELOST)
        fprintf(stderr, "lost_lock: %s\n", err.text);
    hl_client_close(client); /* runs the events that are still queued */
    if (rc == HL_ELOST)
        printf("release: %s, event: %s\n", hl_err_name(rc),
               atomic_load(&is_lost) ? "lost" : "none");
    return rc != HL_ELOST || !atomic_load(&is_lost);
}
