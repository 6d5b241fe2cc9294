/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The observer of hirelock top, without a server: by surveys that this file makes. */

#include "cli/scan.h"
#include "cli/survey.h"
#include "cli/top/observer.h"
#include "support/test.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

static struct top_store store;
static struct top_observer observer;
static int surveys;
static uint32_t finished_before_second;
static bool is_ended;
static sem_t second_ends;

long long cli_now_ms(void)
{
    return 100000;
}

int cli_nodes_each(hl_client *client, hl_node_cb visit, void *arg)
{
    (void)client;
    (void)visit;
    (void)arg;
    return 0;
}

int cli_glance_load(hl_client *client, const char *node, char **ret_sha, hl_error *err)
{
    (void)client;
    (void)node;
    (void)err;
    *ret_sha = strdup("sha");
    return 0;
}

int cli_glance(hl_client *client, const struct cli_name *name, const char *sha, cli_glance_cb done,
               void *arg)
{
    (void)client;
    (void)name;
    (void)sha;
    (void)done;
    (void)arg;
    return HL_EINVAL;
}

/* The first is held for a moment, and does not see that before it is over; the second is not. */
int cli_survey(const struct cli_survey *survey, hl_error *err)
{
    (void)err;
    if (++surveys == 1) {
        is_ended = !survey->progress(1, survey->arg);
        top_observer_pause(&observer, true);
        top_observer_pause(&observer, false);
        is_ended = !is_ended && !survey->progress(2, survey->arg);
    } else if (surveys == 2) {
        finished_before_second = store.finished;
    } else {
        sem_post(&second_ends);
    }
    return 0;
}

static void begin(void)
{
    top_store_init(&store);
    top_observer_init(&observer, &store);
    sem_init(&second_ends, 0, 0);
}

static void end(void)
{
    top_observer_deinit(&observer);
    top_store_deinit(&store);
    sem_destroy(&second_ends);
}

/* What it has missed is not gone from the server. */
Test(top_observer, does_not_count_a_survey_that_was_held_as_one_of_all_locks, .init = begin,
     .fini = end)
{
    check(top_observer_start(&observer));
    while (sem_wait(&second_ends) != 0)
        continue;
    top_observer_stop(&observer);
    check_int(finished_before_second, 0);
    check(is_ended);
    check(store.finished >= 2);
}
