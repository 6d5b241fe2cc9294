/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/observer.h"

#include "cli/scan.h"
#include "cli/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OBSERVER_PAUSE_MS = 1000,  /* between surveys, at least */
    OBSERVER_SHARE = 4,        /* and so many times as long as the last one took */
    OBSERVER_TROUBLE_MS = 2500 /* a failure is shown so long, unless the next one renews it */
};

void top_observer_init(struct top_observer *observer, struct top_store *store)
{
    pthread_condattr_t attributes;

    *observer = (struct top_observer){.store = store};
    pthread_mutex_init(&observer->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&observer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void top_observer_deinit(struct top_observer *observer)
{
    pthread_cond_destroy(&observer->changed);
    pthread_mutex_destroy(&observer->mutex);
    free(observer->sha);
}

static void observer_fail(struct top_observer *observer, const hl_error *err)
{
    pthread_mutex_lock(&observer->mutex);
    observer->failed_ms = cli_now_ms();
    observer->failure = *err;
    pthread_mutex_unlock(&observer->mutex);
}

static void observer_note_away(const hl_node *node, void *arg)
{
    struct top_state *state = arg;

    if (node->is_connected || state->is_away)
        return;
    state->is_away = true;
    snprintf(state->why, sizeof(state->why), "%s", node->problem ? node->problem : "");
}

void top_observer_state(struct top_observer *observer, struct top_state *ret_state)
{
    ret_state->is_away = false;
    cli_nodes_each(observer->client, observer_note_away, ret_state);
    pthread_mutex_lock(&observer->mutex);
    if (!ret_state->is_away)
        observer->away_since = 0;
    else if (observer->away_since == 0)
        observer->away_since = time(NULL);
    ret_state->away_since = observer->away_since;
    ret_state->has_surveyed = observer->has_surveyed;
    ret_state->has_failed =
        observer->failed_ms > 0 && cli_now_ms() - observer->failed_ms < OBSERVER_TROUBLE_MS;
    if (!ret_state->is_away)
        snprintf(ret_state->why, sizeof(ret_state->why), "%s", observer->failure.text);
    pthread_mutex_unlock(&observer->mutex);
}

static bool observer_goes_on(struct top_observer *observer)
{
    pthread_mutex_lock(&observer->mutex);
    bool goes_on = !observer->is_stopped && !observer->has_missed;
    pthread_mutex_unlock(&observer->mutex);
    return goes_on;
}

static void observer_found(const struct cli_name *name, json_object *lock, void *arg)
{
    struct top_observer *observer = arg;

    top_store_see(observer->store, name, lock);
    json_object_put(lock);
}

static bool observer_progress(uint64_t keys, void *arg)
{
    (void)keys;
    return observer_goes_on(arg);
}

struct observer_sum {
    hl_client *client;
    int64_t keys; /* -1: a node does not tell */
};

static void observer_add_keys(const hl_node *node, void *arg)
{
    static const char *const words[] = {"DBSIZE"};
    struct observer_sum *sum = arg;
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;

    if (sum->keys < 0)
        return;
    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = 1;
    command.node = node->address;
    int rc = hl_client_command(sum->client, &command, &reply, NULL);
    sum->keys = rc == 0 ? sum->keys + reply->integer : -1;
    hl_reply_free(reply);
}

static void observer_count_keys(struct top_observer *observer)
{
    struct observer_sum sum = {.client = observer->client};

    if (cli_nodes_each(observer->client, observer_add_keys, &sum) < 0)
        sum.keys = -1;
    pthread_mutex_lock(&observer->store->mutex);
    observer->store->keys = sum.keys;
    pthread_mutex_unlock(&observer->store->mutex);
}

/* Whoever looks at the screen gets the script into the server once. */
static bool observer_load(struct top_observer *observer)
{
    char *sha = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = cli_glance_load(observer->client, NULL, &sha, &err);

    if (rc < 0)
        observer_fail(observer, &err);
    pthread_mutex_lock(&observer->mutex);
    free(observer->sha);
    observer->sha = sha;
    pthread_mutex_unlock(&observer->mutex);
    return rc == 0;
}

/* A survey that was ended early, or was held for a moment, has not seen all. */
static void observer_end_survey(struct top_observer *observer)
{
    if (!observer_goes_on(observer))
        return;
    pthread_mutex_lock(&observer->store->mutex);
    observer->store->finished = observer->store->round;
    pthread_mutex_unlock(&observer->store->mutex);
    pthread_mutex_lock(&observer->mutex);
    observer->has_surveyed = true;
    observer->failed_ms = 0;
    pthread_mutex_unlock(&observer->mutex);
}

static void observer_survey(struct top_observer *observer)
{
    const struct cli_survey survey = {.client = observer->client,
                                      .pattern = observer->pattern,
                                      .prefix = observer->prefix,
                                      .has_values = observer->has_values,
                                      .found = observer_found,
                                      .progress = observer_progress,
                                      .arg = observer};
    hl_error err = HL_ERROR_INIT;

    pthread_mutex_lock(&observer->mutex);
    observer->has_missed = observer->is_paused;
    pthread_mutex_unlock(&observer->mutex);
    pthread_mutex_lock(&observer->store->mutex);
    observer->store->round++;
    pthread_mutex_unlock(&observer->store->mutex);
    observer_count_keys(observer);
    if (cli_survey(&survey, &err) < 0)
        observer_fail(observer, &err);
    else
        observer_end_survey(observer);
}

/* Sleeps until it is over, or until the observer is stopped; also as long as it is paused. Returns
 * whether it is to go on. */
static bool observer_sleep(struct top_observer *observer, int64_t ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&observer->mutex);
    int rc = 0;
    while (!observer->is_stopped && (rc == 0 || observer->is_paused))
        rc = observer->is_paused
                 ? pthread_cond_wait(&observer->changed, &observer->mutex)
                 : pthread_cond_timedwait(&observer->changed, &observer->mutex, &until);
    bool goes_on = !observer->is_stopped;
    pthread_mutex_unlock(&observer->mutex);
    return goes_on;
}

/* The longer a survey takes, the longer is the pause behind it: the server has other work. */
static void *observer_run(void *arg)
{
    struct top_observer *observer = arg;
    int64_t pause_ms = 0;

    while (observer_sleep(observer, pause_ms)) {
        int64_t began_ms = cli_now_ms();
        if (observer->sha || observer_load(observer))
            observer_survey(observer);
        pause_ms = OBSERVER_SHARE * (cli_now_ms() - began_ms);
        if (pause_ms < OBSERVER_PAUSE_MS || !observer_goes_on(observer))
            pause_ms = OBSERVER_PAUSE_MS;
    }
    return NULL;
}

bool top_observer_start(struct top_observer *observer)
{
    return pthread_create(&observer->thread, NULL, observer_run, observer) == 0;
}

void top_observer_stop(struct top_observer *observer)
{
    pthread_mutex_lock(&observer->mutex);
    observer->is_stopped = true;
    pthread_cond_broadcast(&observer->changed);
    pthread_mutex_unlock(&observer->mutex);
    pthread_join(observer->thread, NULL);
}

void top_observer_pause(struct top_observer *observer, bool is_paused)
{
    pthread_mutex_lock(&observer->mutex);
    observer->is_paused = is_paused;
    observer->has_missed = observer->has_missed || is_paused;
    pthread_cond_broadcast(&observer->changed);
    pthread_mutex_unlock(&observer->mutex);
    pthread_mutex_lock(&observer->store->mutex);
    observer->store->is_paused = is_paused;
    pthread_mutex_unlock(&observer->store->mutex);
}

static void observer_glanced(const struct cli_glance *seen, void *arg)
{
    struct top_observer *observer = arg;

    if (seen->code == 0)
        top_store_see(observer->store, &seen->name, seen->lock);
    else
        observer_fail(observer, seen->err);
    json_object_put(seen->lock);
    pthread_mutex_lock(&observer->mutex);
    observer->under_way--;
    pthread_mutex_unlock(&observer->mutex);
}

static void observer_glance_at(struct top_observer *observer, const struct top_record *record,
                               const char *sha)
{
    const struct cli_name name = {record->name, record->length, observer->prefix};

    pthread_mutex_lock(&observer->mutex);
    observer->under_way++;
    pthread_mutex_unlock(&observer->mutex);
    if (cli_glance(observer->client, &name, sha, observer_glanced, observer) == 0)
        return;
    pthread_mutex_lock(&observer->mutex);
    observer->under_way--;
    pthread_mutex_unlock(&observer->mutex);
}

void top_observer_glance(struct top_observer *observer, const struct top_record *const *records,
                         size_t count)
{
    char sha[64] = "";

    pthread_mutex_lock(&observer->mutex);
    bool is_free = observer->under_way == 0 && !observer->is_paused;
    if (observer->sha)
        snprintf(sha, sizeof(sha), "%s", observer->sha);
    pthread_mutex_unlock(&observer->mutex);
    for (size_t i = 0; i < count && is_free; i++)
        observer_glance_at(observer, records[i], sha[0] ? sha : NULL);
}
