/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/survey.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SURVEY_COUNT = 500,      /* of a SCAN; its answer is to stay within the library's bounds */
    SURVEY_UNDER_WAY = 2000, /* looks at a time */
    SURVEY_NODES = 1024,
    SURVEY_WHERE = 300
};

struct survey_state {
    const struct cli_survey *survey;
    char node[SURVEY_NODES][SURVEY_WHERE];
    size_t nodes;
    bool has_slots;       /* it is a cluster */
    const char *where;    /* the node that is gone through now */
    char *sha;            /* of the script, loaded there; owned */
    struct cli_look look; /* scratch of the scanning thread */
    uint64_t keys;

    pthread_mutex_t mutex; /* guards all below, and `found` */
    pthread_cond_t answered;
    unsigned under_way;
    uint64_t found;
    hl_error err; /* the first failure */
};

struct survey_look {
    struct survey_state *state;
    struct cli_name name;
    bool has_script; /* it was sent with the script's text */
    char bytes[];
};

static void survey_fail(struct survey_state *state, const hl_error *err)
{
    pthread_mutex_lock(&state->mutex);
    if (state->err.code == 0)
        state->err = *err;
    pthread_mutex_unlock(&state->mutex);
}

static void survey_note_node(const hl_node *node, void *arg)
{
    struct survey_state *state = arg;
    bool is_empty = state->has_slots && node->slots == 0;

    if (node->role == HL_NODE_SENTINEL || is_empty)
        return;
    if (state->nodes == SURVEY_NODES) {
        survey_fail(state,
                    &(hl_error){.code = HL_ENOTSUP, .text = "the cluster has too many nodes"});
        return;
    }
    snprintf(state->node[state->nodes++], SURVEY_WHERE, "%s", node->address);
}

static void survey_note_slots(const hl_node *node, void *arg)
{
    struct survey_state *state = arg;

    state->has_slots = state->has_slots || node->slots > 0;
}

/* A node of a cluster may have no slots, and so no keys. */
static void survey_note_nodes(struct survey_state *state)
{
    hl_client *client = state->survey->client;

    if (hl_client_nodes(client, survey_note_slots, state) < 0 ||
        hl_client_nodes(client, survey_note_node, state) < 0)
        survey_fail(state, hl_err_last());
}

static bool survey_is_over(struct survey_state *state)
{
    pthread_mutex_lock(&state->mutex);
    bool is_full = state->survey->limit > 0 && state->found >= state->survey->limit;
    bool is_over = state->err.code < 0 || is_full;
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

/* The thread of the callbacks has its own look for the second copy. */
static int survey_send(struct survey_look *asked, const char *sha, struct cli_look *look,
                       hl_reply_cb done)
{
    asked->has_script = !sha;
    if (!cli_look_begin(look, &asked->name, sha))
        return HL_EINVAL;
    return hl_client_command_async(asked->state->survey->client, &look->command, done, asked);
}

static void survey_end_look(struct survey_look *asked, json_object *lock)
{
    struct survey_state *state = asked->state;
    const struct cli_survey *survey = state->survey;

    pthread_mutex_lock(&state->mutex);
    bool is_wanted = lock && (survey->limit == 0 || state->found < survey->limit);
    if (is_wanted) {
        state->found++;
        survey->found(lock, survey->arg);
    }
    state->under_way--;
    pthread_cond_signal(&state->answered);
    pthread_mutex_unlock(&state->mutex);
    if (lock && !is_wanted)
        json_object_put(lock);
    free(asked);
}

static bool survey_lacks_script(const struct survey_look *asked, int code, const hl_error *err)
{
    return code == HL_ESERVER && !asked->has_script && strstr(err->text, "NOSCRIPT") != NULL;
}

static bool survey_send_script(struct survey_look *asked, hl_reply_cb done)
{
    struct cli_look *look = malloc(sizeof(*look));
    int rc = look ? survey_send(asked, NULL, look, done) : HL_ENOMEM;

    free(look);
    return rc == 0;
}

/* A string without an expiry is no lock. */
static bool survey_is_lock(json_object *lock)
{
    const char *kind = json_object_get_string(json_object_object_get(lock, "kind"));
    bool is_string = strcmp(kind, "value") == 0 || strcmp(kind, "number") == 0;

    return !is_string || json_object_get_int64(json_object_object_get(lock, "lease_left_ms")) >= 0;
}

static void survey_looked(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    struct survey_look *asked = arg;

    /* Another node serves the slot by now, or somebody has flushed the scripts. */
    if (survey_lacks_script(asked, code, err) && survey_send_script(asked, survey_looked))
        return;
    /* No lock has a name whose keys are in several slots. */
    bool is_no_lock = code == HL_ESERVER && strstr(err->text, "CROSSSLOT");
    if (code < 0 && !is_no_lock)
        survey_fail(asked->state, err);
    json_object *lock = code == 0 ? cli_look_read(&asked->name, reply) : NULL;
    if (lock && !survey_is_lock(lock)) {
        json_object_put(lock);
        lock = NULL;
    }
    survey_end_look(asked, lock);
}

static void survey_look(struct survey_state *state, const char *bytes, size_t length)
{
    struct survey_look *asked = malloc(sizeof(*asked) + length + 1);

    if (!asked) {
        survey_fail(state, &(hl_error){.code = HL_ENOMEM, .text = "there is no memory left"});
        return;
    }
    memcpy(asked->bytes, bytes, length);
    asked->bytes[length] = '\0';
    asked->state = state;
    asked->name = (struct cli_name){asked->bytes, length, state->survey->prefix};
    pthread_mutex_lock(&state->mutex);
    state->under_way++;
    pthread_mutex_unlock(&state->mutex);
    int rc = survey_send(asked, state->sha, &state->look, survey_looked);
    if (rc < 0 && rc != HL_EINVAL) /* a longer name is no lock */
        survey_fail(state, hl_err_last());
    if (rc < 0)
        survey_end_look(asked, NULL);
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
        "hirelock_queue:",      "hirelock_fence:",      "hirelock_holder:",
        "hirelock_rw_writer:",  "hirelock_fair:",       "hirelock_note:",
        "redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:"};

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
    size_t length = key->length - strlen(":timeout");
    bool is_braced = length > 2 && key->text[0] == '{' && key->text[length - 1] == '}';
    char name[CLI_LOOK_KEY];

    *ret_name = key->text + (is_braced ? 1 : 0);
    *ret_length = length - (is_braced ? 2 : 0);
    if (*ret_length >= sizeof(name))
        return false;
    memcpy(name, *ret_name, *ret_length);
    name[*ret_length] = '\0';
    return fnmatch(state->survey->pattern, name, 0) == 0;
}

static int survey_scan(struct survey_state *state, const struct survey_pass *pass,
                       const char *cursor, unsigned count, hl_reply **ret_reply)
{
    char number[16];
    const char *words[] = {"SCAN",  cursor, "MATCH", pass->pattern,
                           "COUNT", number, "TYPE",  pass->type};
    hl_command command = HL_COMMAND_INIT;
    hl_error err = HL_ERROR_INIT;

    snprintf(number, sizeof(number), "%u", count);
    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = sizeof(words) / sizeof(words[0]);
    command.node = state->where;
    int rc = hl_client_command(state->survey->client, &command, ret_reply, &err);
    bool is_beyond = rc == HL_EPROTO && count > 1;
    if (rc < 0 && !is_beyond)
        survey_fail(state, &err);
    return rc;
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
    if (state->survey->progress)
        state->survey->progress(state->keys, state->survey->arg);
    survey_wait_below(state, SURVEY_UNDER_WAY);
}

/* Long keys make an answer too big: then it asks for fewer. */
static void survey_go_through(struct survey_state *state, const struct survey_pass *pass)
{
    char cursor[32] = "0";
    unsigned count = SURVEY_COUNT;

    do {
        hl_reply *reply = NULL;
        int rc = survey_scan(state, pass, cursor, count, &reply);
        const hl_reply *next = cli_reply_text(reply, 0);
        if (rc == HL_EPROTO)
            count = count > 3 ? count / 4 : 1;
        if (next && reply->element_count > 1) {
            snprintf(cursor, sizeof(cursor), "%s", next->text);
            survey_step(state, pass, reply->elements[1]);
        }
        hl_reply_free(reply);
        if (rc == 0 && !next)
            survey_fail(state,
                        &(hl_error){.code = HL_EPROTO, .text = "an answer that is no SCAN's"});
        if (rc == 0 && strcmp(cursor, "0") == 0)
            break;
    } while (!survey_is_over(state));
}

static void survey_load(struct survey_state *state)
{
    const char *words[] = {"SCRIPT", "LOAD", cli_look_script};
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;

    command.flags = HL_COMMAND_READS; /* a second copy does no harm */
    command.words = words;
    command.word_count = 3;
    command.node = state->where;
    int rc = hl_client_command(state->survey->client, &command, &reply, &err);
    if (rc < 0 && rc != HL_EDENIED) /* else each look brings it */
        survey_fail(state, &err);
    free(state->sha);
    state->sha = rc == 0 && reply->text ? strdup(reply->text) : NULL;
    hl_reply_free(reply);
}

static void survey_node(struct survey_state *state, size_t at)
{
    const struct cli_survey *survey = state->survey;
    const struct survey_pass passes[] = {{"hash", survey->pattern, survey_name_itself},
                                         {"zset", "*:timeout", survey_name_of_permits},
                                         {"string", survey->pattern, survey_name_of_value}};
    size_t count = survey->has_values ? 3 : 2;

    state->where = state->node[at];
    survey_load(state);
    for (size_t i = 0; i < count && !survey_is_over(state); i++)
        survey_go_through(state, &passes[i]);
    survey_wait_below(state, 0);
}

int cli_survey(const struct cli_survey *survey)
{
    struct survey_state *state = calloc(1, sizeof(*state));
    int status = CLI_OK;

    if (!state) {
        cli_say("there is no memory left");
        return CLI_FAILED;
    }
    state->survey = survey;
    pthread_mutex_init(&state->mutex, NULL);
    pthread_cond_init(&state->answered, NULL);
    survey_note_nodes(state);
    for (size_t i = 0; i < state->nodes && !survey_is_over(state); i++)
        survey_node(state, i);
    if (state->err.code < 0)
        status = cli_failed(&state->err);
    pthread_cond_destroy(&state->answered);
    pthread_mutex_destroy(&state->mutex);
    free(state->sha);
    free(state);
    return status;
}
