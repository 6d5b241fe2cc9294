/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/exporter/surveyor.h"

#include "cli/exporter/report.h"
#include "cli/survey.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { SURVEYOR_ROOM = 64 * 1024, SURVEYOR_SLACK = 4096 }; /* slack: the numbers may grow */

struct exporter_surveyor {
    const struct exporter_options *options;
    pthread_t thread;
    atomic_bool is_stopped;
    struct exporter_nodes nodes; /* the thread's own */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t stopped;
    char *text; /* of the last survey, without locks if it failed; NULL: there is none */
    struct exporter_surveys surveys;
    long long seen_ms; /* the end of the last one that succeeded */
};

static const hl_error surveyor_no_memory = {.code = HL_ENOMEM, .text = "there is no memory left"};

/* A survey under way. */
struct surveyor_round {
    struct exporter_census *census;
    const atomic_bool *is_stopped;
};

static void surveyor_found(const struct cli_name *name, json_object *lock, void *arg)
{
    const struct surveyor_round *round = arg;

    (void)name;
    exporter_census_add(round->census, lock);
}

static bool surveyor_progress(uint64_t keys, void *arg)
{
    const struct surveyor_round *round = arg;

    round->census->keys = keys;
    return !atomic_load(round->is_stopped);
}

/* Part of the locks is none: what is counted must be whole. The PING comes first: a client that has
 * never reached its cluster knows of no nodes. */
static int surveyor_go_through(struct exporter_surveyor *surveyor, struct exporter_census *census,
                               hl_error *err)
{
    const struct exporter_options *options = surveyor->options;
    const char *prefix = options->server->prefix;
    struct surveyor_round round = {census, &surveyor->is_stopped};
    const struct cli_survey survey = {.client = options->client,
                                      .pattern = options->pattern,
                                      .prefix = prefix ? strlen(prefix) : 0,
                                      .found = surveyor_found,
                                      .progress = surveyor_progress,
                                      .arg = &round};

    int rc = hl_client_ping(options->client, -1, err);
    return rc < 0 ? rc : cli_survey(&survey, err);
}

static void surveyor_write(struct hli_exposition *text, const struct exporter_census *census,
                           const struct exporter_nodes *nodes)
{
    if (census)
        exporter_report_census(text, census);
    exporter_report_nodes(text, nodes);
}

/* census: NULL if not all was counted. Owned by the caller. */
static char *surveyor_text_of(const struct exporter_census *census,
                              const struct exporter_nodes *nodes)
{
    struct hli_exposition measured = {0};

    surveyor_write(&measured, census, nodes);
    struct hli_exposition text = {.buffer = malloc(measured.length + 1),
                                  .size = measured.length + 1};
    if (text.buffer) {
        text.buffer[0] = '\0'; /* there may be nothing to write */
        surveyor_write(&text, census, nodes);
    }
    return text.buffer;
}

/* Once for each change: an outage may last. */
static void surveyor_tell(const struct exporter_surveyor *surveyor, bool is_up, const hl_error *err)
{
    bool is_first = surveyor->surveys.succeeded + surveyor->surveys.failed == 0;

    if (!is_up && (is_first || surveyor->surveys.is_up))
        cli_say("the survey failed: %s", err->text);
    else if (is_up && !is_first && !surveyor->surveys.is_up)
        cli_say("surveys succeed again");
}

/* Takes over the text. */
static void surveyor_note(struct exporter_surveyor *surveyor, char *text, long long began_ms,
                          const hl_error *err)
{
    bool is_up = err->code == 0;

    surveyor_tell(surveyor, is_up, err);
    pthread_mutex_lock(&surveyor->mutex);
    struct exporter_surveys *surveys = &surveyor->surveys;
    free(surveyor->text);
    surveyor->text = text;
    surveys->is_up = is_up;
    surveys->took_ms = cli_now_ms() - began_ms;
    if (is_up) {
        surveys->succeeded++;
        surveyor->seen_ms = cli_now_ms();
    } else {
        surveys->failed++;
    }
    pthread_mutex_unlock(&surveyor->mutex);
}

/* *err tells of a failure. The nodes are looked at all the same: some may be well. */
static void surveyor_look(struct exporter_surveyor *surveyor, struct exporter_census *census,
                          char **ret_text, hl_error *err)
{
    const struct exporter_options *options = surveyor->options;
    int rc = surveyor_go_through(surveyor, census, err);

    exporter_nodes_look(&surveyor->nodes, options->client, cli_server_url(options->server),
                        &surveyor->is_stopped);
    *ret_text = surveyor_text_of(rc == 0 ? census : NULL, &surveyor->nodes);
    if (rc == 0 && !*ret_text)
        *err = surveyor_no_memory;
}

static void surveyor_survey(struct exporter_surveyor *surveyor)
{
    struct exporter_census census;
    long long began_ms = cli_now_ms();
    hl_error err = HL_ERROR_INIT;
    char *text = NULL;

    if (exporter_census_begin(&census, surveyor->options->names))
        surveyor_look(surveyor, &census, &text, &err);
    else
        err = surveyor_no_memory;
    if (atomic_load(&surveyor->is_stopped))
        free(text);
    else
        surveyor_note(surveyor, text, began_ms, &err);
    exporter_census_free(&census);
}

static void surveyor_pause(struct exporter_surveyor *surveyor)
{
    int64_t pause_ms = surveyor->options->interval_ms;
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += pause_ms / 1000;
    end.tv_nsec += pause_ms % 1000 * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&surveyor->mutex);
    while (!atomic_load(&surveyor->is_stopped) && rc == 0)
        rc = pthread_cond_timedwait(&surveyor->stopped, &surveyor->mutex, &end);
    pthread_mutex_unlock(&surveyor->mutex);
}

static void *surveyor_run(void *arg)
{
    struct exporter_surveyor *surveyor = arg;

    while (!atomic_load(&surveyor->is_stopped)) {
        surveyor_survey(surveyor);
        surveyor_pause(surveyor);
    }
    return NULL;
}

static void surveyor_free(struct exporter_surveyor *surveyor)
{
    exporter_nodes_free(&surveyor->nodes);
    pthread_cond_destroy(&surveyor->stopped);
    pthread_mutex_destroy(&surveyor->mutex);
    free(surveyor->text);
    free(surveyor);
}

/* Signals are for the thread that serves. */
static int surveyor_begin_thread(struct exporter_surveyor *surveyor)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&surveyor->thread, NULL, surveyor_run, surveyor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

struct exporter_surveyor *exporter_surveyor_start(const struct exporter_options *options)
{
    struct exporter_surveyor *surveyor = calloc(1, sizeof(*surveyor));
    pthread_condattr_t monotonic;

    if (!surveyor)
        return NULL;
    surveyor->options = options;
    surveyor->surveys.age_ms = surveyor->surveys.took_ms = -1;
    pthread_mutex_init(&surveyor->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&surveyor->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (surveyor_begin_thread(surveyor) == 0)
        return surveyor;
    surveyor_free(surveyor);
    return NULL;
}

void exporter_surveyor_end(struct exporter_surveyor *surveyor)
{
    pthread_mutex_lock(&surveyor->mutex);
    atomic_store(&surveyor->is_stopped, true);
    pthread_cond_signal(&surveyor->stopped);
    pthread_mutex_unlock(&surveyor->mutex);
    pthread_join(surveyor->thread, NULL);
    surveyor_free(surveyor);
}

/* What the last survey wrote, and what is so now. */
static size_t surveyor_write_now(struct exporter_surveyor *surveyor, char *buffer, size_t size)
{
    struct hli_exposition text = {.buffer = buffer, .size = size};

    pthread_mutex_lock(&surveyor->mutex);
    struct exporter_surveys surveys = surveyor->surveys;
    if (surveys.succeeded > 0)
        surveys.age_ms = cli_now_ms() - surveyor->seen_ms;
    exporter_report_surveys(&text, &surveys);
    if (surveyor->text)
        hli_exposition_add(&text, surveyor->text);
    pthread_mutex_unlock(&surveyor->mutex);
    return text.length;
}

/* Returns the whole length, as snprintf() does; -1: the client does not tell. */
static ssize_t surveyor_write_all(struct exporter_surveyor *surveyor, char *buffer, size_t size)
{
    hl_client *client = surveyor->options->client;
    size_t ours = surveyor_write_now(surveyor, buffer, size), used = ours < size ? ours : size;
    int more = hl_metrics_format(&client, NULL, 1, buffer + used, size - used);

    return more < 0 ? -1 : (ssize_t)ours + more;
}

char *exporter_surveyor_text(struct exporter_surveyor *surveyor, size_t *ret_length)
{
    size_t size = SURVEYOR_ROOM;
    char *text = malloc(size);

    while (text) {
        ssize_t length = surveyor_write_all(surveyor, text, size);
        if (length >= 0 && (size_t)length < size) {
            *ret_length = (size_t)length;
            break;
        }
        free(text);
        size = (size_t)length + SURVEYOR_SLACK;
        text = length < 0 ? NULL : malloc(size);
    }
    return text;
}
