/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A crew: a barrier before each round, and one behind it. */
#include "crew.h"

#include "instant.h"
#include "must.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct crew {
    pthread_barrier_t begin, end;
    int threads;
    crew_work *work; /* NULL: no more rounds; these three are set before the barrier */
    void *arg;
    const atomic_bool *is_over;
    struct member {
        pthread_t thread;
        struct crew *crew;
        int number;
        uint64_t done;
    } member[CREW_MOST];
};

static void *member_run(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;

    while (pthread_barrier_wait(&crew->begin), crew->work) {
        member->done = crew->work(crew->arg, member->number, crew->is_over);
        pthread_barrier_wait(&crew->end);
    }
    return NULL;
}

struct crew *crew_start(int threads)
{
    struct crew *crew = must_alloc(1, sizeof(*crew));

    must(threads <= CREW_MOST, "too large a crew");
    crew->threads = threads;
    pthread_barrier_init(&crew->begin, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&crew->end, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        struct member *member = &crew->member[i];
        member->crew = crew;
        member->number = i;
        must(pthread_create(&member->thread, NULL, member_run, member) == 0, "no more threads");
    }
    return crew;
}

void crew_stop(struct crew *crew)
{
    crew->work = NULL;
    pthread_barrier_wait(&crew->begin);
    for (int i = 0; i < crew->threads; i++)
        pthread_join(crew->member[i].thread, NULL);
    pthread_barrier_destroy(&crew->begin);
    pthread_barrier_destroy(&crew->end);
    free(crew);
}

static void crew_begin(struct crew *crew, crew_work *work, void *arg, const atomic_bool *is_over)
{
    crew->work = work;
    crew->arg = arg;
    crew->is_over = is_over;
    pthread_barrier_wait(&crew->begin);
}

static uint64_t crew_end(struct crew *crew)
{
    uint64_t done = 0;

    pthread_barrier_wait(&crew->end);
    for (int i = 0; i < crew->threads; i++)
        done += crew->member[i].done;
    return done;
}

uint64_t crew_work_until(struct crew *crew, crew_work *work, void *arg, const atomic_bool *is_over)
{
    crew_begin(crew, work, arg, is_over);
    return crew_end(crew);
}

uint64_t crew_round(struct crew *crew, crew_work *work, void *arg, int64_t until)
{
    atomic_bool is_over = false;

    crew_begin(crew, work, arg, &is_over);
    instant_sleep_us((until - instant_now()) / 1000);
    atomic_store(&is_over, true);
    return crew_end(crew);
}

uint64_t crew_done(const struct crew *crew, int member)
{
    return crew->member[member].done;
}
