/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A rate limit for any number of machines: a semaphore of 5 permits, each of which is taken for the
 * length of the window and never given back. A permit comes back by itself when the window has
 * passed, so the server gives at most 5 permits in any window. A call begins later than its permit,
 * by the time of the way and of the scheduler: where the API counts by its own clock, let the
 * window be longer by that. Three workers make 20 calls as fast as they may: 5 at once, 5 after a
 * window, 5 after two, and 5 after three.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "example.h"

#include <hirelock/hirelock.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { CALLS_IN_A_WINDOW = 5, WINDOW_MS = 400, WORKERS = 3, CALLS = 20 };
enum { FULL_WINDOWS = (CALLS - 1) / CALLS_IN_A_WINDOW }; /* before the last call */

struct api {
    hl_permits *limit;
    atomic_int calls;
    hl_error err[WORKERS];
};

struct worker {
    struct api *api;
    hl_error *err;
    pthread_t thread;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_for_a_turn(hl_permits *limit, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    hl_permit permit;

    options.wait_ms = HL_WAIT_FOREVER;
    options.lease_ms = WINDOW_MS; /* not renewed: the permit comes back when the window is over */
    return hl_permits_acquire_with(limit, &options, &permit, err);
}

static void *work(void *arg)
{
    const struct worker *worker = arg;
    struct api *api = worker->api;

    while (atomic_fetch_add(&api->calls, 1) < CALLS)
        if (wait_for_a_turn(api->limit, worker->err) < 0) /* the call itself would follow it */
            break;
    return NULL;
}

static int call_it_often(struct api *api, hl_error *err)
{
    struct worker workers[WORKERS];
    int rc = 0, started = 0;

    for (; rc == 0 && started < WORKERS; started++) {
        workers[started] = (struct worker){.api = api, .err = &api->err[started]};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            rc = HL_ENOMEM;
    }
    for (int i = 0; i < started - (rc < 0); i++) {
        pthread_join(workers[i].thread, NULL);
        if (api->err[i].code < 0) {
            *err = api->err[i];
            rc = err->code;
        }
    }
    return rc;
}

static const char does[] = "20 calls of three workers, of which 5 may begin in 400 ms.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    hl_client *client = NULL;
    static struct api api;
    hl_error err = HL_ERROR_INIT;
    int64_t began_ms = 0, took_ms = 0;
    int rc = hl_client_open(url, NULL, &client, &err);

    if (rc == 0)
        rc = hl_permits_new(client, "api:calls", &api.limit, &err);
    if (rc == 0)
        rc = hl_permits_set_total(api.limit, CALLS_IN_A_WINDOW, 0, &err);
    began_ms = now_ms();
    if (rc == 0)
        rc = call_it_often(&api, &err);
    took_ms = now_ms() - began_ms;
    if (rc == 0)
        rc = hl_permits_delete(api.limit, &err);
    bool is_within = took_ms + 10 >= FULL_WINDOWS * WINDOW_MS;
    if (rc == 0) {
        printf("%d calls in %" PRId64 " ms\n", CALLS, took_ms);
        puts(is_within ? "within the limit" : "too fast");
    }
    if (rc < 0)
        fprintf(stderr, "rate_limit: %s\n", err.text);
    hl_permits_free(api.limit);
    hl_client_close(client);
    return rc < 0 || !is_within;
}
