/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Worker threads have names, which a lock's holder shows on the page and in `hirelock inspect`. */
#define _POSIX_C_SOURCE 200809L
#include "crew.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct worker {
    struct crew *crew;
    long number;
};

static void *worker_run(void *arg)
{
    struct worker worker = *(struct worker *)arg;
    char name[16];
    struct job *job = NULL;

    free(arg);
    snprintf(name, sizeof(name), "worker %ld", worker.number);
    prctl(PR_SET_NAME, name);
    while ((job = queue_take(&worker.crew->orders))) {
        job->answer = sale_serve(worker.crew->sale, &job->order);
        queue_put(&worker.crew->answers, job); /* never full, never closed */
        bell_ring(worker.crew->bell);
    }
    return NULL;
}

static bool crew_hire(struct crew *crew)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return false;
    worker->crew = crew;
    worker->number = crew->count + 1;
    if (pthread_create(&crew->threads[crew->count], NULL, worker_run, worker) != 0) {
        free(worker);
        return false;
    }
    crew->count++;
    return true;
}

bool crew_start(struct crew *crew, struct sale *sale, const struct bell *bell)
{
    sigset_t all, before;
    bool is_good = true;

    crew->sale = sale;
    crew->bell = bell;
    crew->count = 0;
    queue_init(&crew->orders, sale->config->queue);
    queue_init(&crew->answers, LONG_MAX); /* an answer must get through */
    sigfillset(&all);                     /* signals are the main thread's, which runs the loop */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (is_good && crew->count < sale->config->workers)
        is_good = crew_hire(crew);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_good;
}

void crew_finish(struct crew *crew)
{
    queue_close(&crew->orders);
    while (crew->count > 0)
        pthread_join(crew->threads[--crew->count], NULL);
}

void crew_deinit(struct crew *crew)
{
    queue_deinit(&crew->orders);
    queue_deinit(&crew->answers);
}
