/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Rivals. */
#include "rivals.h"

#include "crew.h"
#include "must.h"

#include <stdlib.h>

struct rival {
    const struct rivals *rivals;
    int process;
    hl_client *client;
    hl_lock *lock;
    struct crew *crew; /* NULL: one thread, which is the process's first */
    struct hold hold[CREW_MOST];
};

static void *rival_begin(void *arg, int process)
{
    struct rival *rival = must_alloc(1, sizeof(*rival));

    rival->rivals = arg;
    rival->process = process;
    rival->client = scenario_client(rival->rivals->bench, NULL);
    if (rival->rivals->is_fair)
        rival->lock = scenario_lock_of(rival->client, HL_LOCK_FAIR, "bench:fair");
    else
        rival->lock = scenario_lock(rival->client, "bench:shared:%d", 0);
    for (int i = 0; i < rival->rivals->threads; i++)
        rival->hold[i] = hold_of(&rival->rivals->hold, process * CREW_MOST + i);
    if (rival->rivals->threads > 1)
        rival->crew = crew_start(rival->rivals->threads);
    return rival;
}

static void rival_end(void *state)
{
    struct rival *rival = state;

    if (rival->crew)
        crew_stop(rival->crew);
    hl_lock_free(rival->lock);
    hl_client_close(rival->client);
    free(rival);
}

static uint64_t rival_compete(void *arg, int member, const atomic_bool *is_over)
{
    struct rival *rival = arg;
    uint64_t done = 0;

    for (; !atomic_load_explicit(is_over, memory_order_relaxed); done++) {
        scenario_acquire(rival->lock);
        struct turn *turn = diary_begin_turn(rival->rivals->diary, rival->process);
        hold_on(&rival->hold[member]);
        turn->gave_at = instant_now();
        scenario_release(rival->lock);
    }
    return done;
}

static void rival_round(void *state, const atomic_bool *is_over, struct feats *feats)
{
    struct rival *rival = state;

    feats->holds += rival->crew ? crew_work_until(rival->crew, rival_compete, rival, is_over)
                                : rival_compete(rival, 0, is_over);
    hl_stats stats = scenario_stats(rival->client);
    feats->passes = stats.passes;
    feats->grants = stats.grants;
}

const struct crowd_job rivals_job = {rival_begin, rival_round, rival_end};
