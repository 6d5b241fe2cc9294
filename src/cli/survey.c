/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/survey.h"

#include "cli/glance.h"
#include "cli/scan.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SURVEY_UNDER_WAY = 2000 /* looks at a time */
};

struct survey_state {
    const struct cli_survey *survey;
    struct cli_nodes nodes;
    const char *where; /* the node that is gone through now */
    char *sha;         /* of the script, loaded there; owned */
    bool is_value;     /* the keys of this pass are strings */
    uint64_t keys;
    bool is_stopped; /* by progress() */

    pthread_mutex_t mutex; /* guards all below, and `found` */
    pthread_cond_t answered;
    unsigned under_way;
    uint64_t found;
    hl_error err; /* the first failure at this node */

    hl_error first; /* of all nodes that were missed */
};

static void survey_fail(struct survey_state *state, const hl_error *err)
{
    pthread_mutex_lock(&state->mutex);
    if (state->err.code == 0)
        state->err = *err;
    pthread_mutex_unlock(&state->mutex);
}

static bool survey_is_over(struct survey_state *state)
{
    pthread_mutex_lock(&state->mutex);
    bool is_full = state->survey->limit > 0 && state->found >= state->survey->limit;
    bool is_over = state->err.code < 0 || is_full || state->is_stopped;
    pthread_mutex_unlock(&state->mutex);
    return is_over;
}

static void survey_wait_below(struct survey_state *state, unsigned most)
{
    pthread_mutex_lock(&state->mutex);
    while (state->under_way > most)
        pthread_cond_wait(&state->answered, &state->mutex);
    pthread_mutex_unlock(&state->mutex);
}

static void survey_end_look(struct survey_state *state, const struct cli_name *name,
                            json_object *lock)
{
    const struct cli_survey *survey = state->survey;

    pthread_mutex_lock(&state->mutex);
    bool is_wanted = lock && (survey->limit == 0 || state->found < survey->limit);
    if (is_wanted) {
        state->found++;
        survey->found(name, lock, survey->arg);
    }
    state->under_way--;
    pthread_cond_signal(&state->answered);
    pthread_mutex_unlock(&state->mutex);
    if (lock && !is_wanted)
        json_object_put(lock);
}

/* A string without an expiry is no lock. That of permits is found by the key beside it. */
static bool survey_is_lock(const struct survey_state *state, json_object *lock)
{
    const char *kind = json_object_get_string(json_object_object_get(lock, "kind"));

    if (strcmp(kind, "value") == 0 || strcmp(kind, "number") == 0)
        return json_object_get_int64(json_object_object_get(lock, "lease_left_ms")) >= 0;
    return !state->is_value;
}

static void survey_looked(const struct cli_glance *seen, void *arg)
{
    struct survey_state *state = arg;
    json_object *lock = seen->lock;

    /* No lock has a name whose keys are in several slots. */
    bool is_no_lock = seen->code == HL_ESERVER && strstr(seen->err->text, "CROSSSLOT");
    if (seen->code < 0 && !is_no_lock)
        survey_fail(state, seen->err);
    if (lock && !survey_is_lock(state, lock)) {
        json_object_put(lock);
        lock = NULL;
    }
    survey_end_look(state, &seen->name, lock);
}

static void survey_look(struct survey_state *state, const char *bytes, size_t length)
{
    const struct cli_name name = {bytes, length, state->survey->prefix};

    pthread_mutex_lock(&state->mutex);
    state->under_way++;
    pthread_mutex_unlock(&state->mutex);
    int rc = cli_glance(state->survey->client, &name, state->sha, survey_looked, state);
    if (rc < 0 && rc != HL_EINVAL) /* a longer name is no lock */
        survey_fail(state, hl_err_last());
    if (rc < 0)
        survey_end_look(state, &name, NULL);
}

/* A pass of SCAN: keys of this type that match; `name_of` has the name of the lock in the key. */
struct survey_pass {
    const char *type, *pattern;
    bool (*name_of)(const struct survey_state *state, const hl_reply *key, const char **ret_name,
                    size_t *ret_length);
};

/* Keys beside locks, of ours and Redisson's: no lock may have such a name (lock.h). */
static bool survey_is_beside(const char *key)
{
    static const char *const prefixes[] = {
        "hirelock_queue:",      "hirelock_fence:",       "hirelock_holder:", "hirelock_waiter:",
        "hirelock_rw_writer:",  "hirelock_fair:",        "hirelock_note:",   "redisson_lock_token:",
        "redisson_lock_queue:", "redisson_lock_timeout:"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool survey_name_itself(const struct survey_state *state, const hl_reply *key,
                               const char **ret_name, size_t *ret_length)
{
    (void)state;
    *ret_name = key->text;
    *ret_length = key->length;
    return !survey_is_beside(key->text);
}

/* A string; but not the hold key of a reader. */
static bool survey_name_of_value(const struct survey_state *state, const hl_reply *key,
                                 const char **ret_name, size_t *ret_length)
{
    return survey_name_itself(state, key, ret_name, ret_length) &&
           !strstr(key->text, ":rwlock_timeout:");
}

/* "{stock}:timeout", or "a{b}:timeout". */
static bool survey_name_of_permits(const struct survey_state *state, const hl_reply *key,
                                   const char **ret_name, size_t *ret_length)
{
    size_t ending = strlen(":timeout");
    size_t length = key->length > ending ? key->length - ending : 0;
    bool is_braced = length > 2 && key->text[0] == '{' && key->text[length - 1] == '}';
    char name[CLI_LOOK_KEY];

    *ret_name = key->text + (is_braced ? 1 : 0);
    *ret_length = length - (is_braced ? 2 : 0);
    if (*ret_length == 0 || *ret_length >= sizeof(name))
        return false;
    memcpy(name, *ret_name, *ret_length);
    name[*ret_length] = '\0';
    return fnmatch(state->survey->pattern, name, 0) == 0;
}

static void survey_tell_progress(struct survey_state *state)
{
    if (state->survey->progress && !state->is_stopped)
        state->is_stopped = !state->survey->progress(state->keys, state->survey->arg);
}

/* The keys of one step. */
static void survey_step(struct survey_state *state, const struct survey_pass *pass,
                        const hl_reply *keys)
{
    const char *name = NULL;
    size_t length = 0;

    state->keys += keys->element_count;
    for (size_t i = 0; i < keys->element_count; i++) {
        const hl_reply *key = cli_reply_text(keys, i);
        if (key && pass->name_of(state, key, &name, &length))
            survey_look(state, name, length);
    }
    survey_tell_progress(state);
    survey_wait_below(state, SURVEY_UNDER_WAY);
}

static void survey_go_through(struct survey_state *state, const struct survey_pass *pass)
{
    struct cli_scan scan = cli_scan_of(state->survey->client, state->where, pass->type);
    hl_error err = HL_ERROR_INIT;

    scan.pattern = pass->pattern;
    survey_wait_below(state, 0); /* of the pass before */
    state->is_value = strcmp(pass->type, "string") == 0;
    do {
        hl_reply *reply = NULL;
        if (cli_scan_next(&scan, &reply, &err) < 0)
            survey_fail(state, &err);
        if (reply)
            survey_step(state, pass, reply->elements[1]);
        hl_reply_free(reply);
    } while (!scan.is_over && !survey_is_over(state));
}

/* What has failed here says nothing of the other nodes. */
static void survey_end_node(struct survey_state *state)
{
    const struct cli_survey *survey = state->survey;

    survey_wait_below(state, 0);
    if (state->err.code == 0)
        return;
    if (survey->missed)
        survey->missed(state->where, &state->err, survey->arg);
    if (state->first.code == 0)
        state->first = state->err;
    state->err = (hl_error){0};
    survey_tell_progress(state);
}

static void survey_node(struct survey_state *state, size_t at)
{
    const struct cli_survey *survey = state->survey;
    const struct survey_pass passes[] = {{"hash", survey->pattern, survey_name_itself},
                                         {"zset", "*:timeout", survey_name_of_permits},
                                         {"string", survey->pattern, survey_name_of_value}};
    size_t count = survey->has_values ? 3 : 2;
    hl_error err = HL_ERROR_INIT;

    state->where = state->nodes.where[at];
    free(state->sha);
    if (cli_glance_load(survey->client, state->where, &state->sha, &err) < 0)
        survey_fail(state, &err);
    for (size_t i = 0; i < count && !survey_is_over(state); i++)
        survey_go_through(state, &passes[i]);
    survey_end_node(state);
}

int cli_survey(const struct cli_survey *survey, hl_error *err)
{
    struct survey_state *state = calloc(1, sizeof(*state));

    if (!state) {
        *err = (hl_error){.code = HL_ENOMEM, .text = "there is no memory left"};
        return HL_ENOMEM;
    }
    state->survey = survey;
    pthread_mutex_init(&state->mutex, NULL);
    pthread_cond_init(&state->answered, NULL);
    if (cli_nodes_note(&state->nodes, survey->client, &state->first) < 0)
        state->nodes.count = 0;
    for (size_t i = 0; i < state->nodes.count && !survey_is_over(state); i++)
        survey_node(state, i);
    int rc = state->first.code;
    if (rc < 0)
        *err = state->first;
    pthread_cond_destroy(&state->answered);
    pthread_mutex_destroy(&state->mutex);
    free(state->sha);
    free(state);
    return rc;
}

/* The prefix means itself: in a pattern some of its letters would mean more. */
char *cli_survey_pattern(const struct cli_server *server, const char *pattern)
{
    const char *prefix = server->prefix ? server->prefix : "";
    const char *behind = pattern ? pattern : "*";
    char *text = malloc(2 * strlen(prefix) + strlen(behind) + 1), *to = text;

    if (!text)
        return NULL;
    for (; *prefix; prefix++) {
        if (strchr("*?[]\\^", *prefix))
            *to++ = '\\';
        *to++ = *prefix;
    }
    memcpy(to, behind, strlen(behind) + 1);
    return text;
}
