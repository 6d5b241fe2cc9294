/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/errand.h"

#include "cli/force.h"
#include "cli/inspection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void top_errand_free(struct top_errand *errand)
{
    if (!errand)
        return;
    json_object_put(errand->lock);
    free(errand->text);
    free(errand->bytes);
    free(errand);
}

static struct top_errand *errand_new(enum top_errand_kind kind, const struct cli_name *name)
{
    struct top_errand *errand = calloc(1, sizeof(*errand));
    char *bytes = malloc(name->length + 1);

    if (!errand || !bytes) {
        free(errand);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, name->bytes, name->length);
    bytes[name->length] = '\0';
    errand->kind = kind;
    errand->bytes = bytes;
    errand->name = (struct cli_name){bytes, name->length, name->prefix};
    return errand;
}

/* Returns a code of the library. */
static int errand_inspect(struct top_errand *errand, hl_client *client, hl_error *err)
{
    json_object *lock = NULL;
    size_t size = 0;
    int rc = cli_inspection(client, &errand->name, &lock, err);

    if (rc < 0)
        return rc;
    FILE *to = open_memstream(&errand->text, &size);
    if (to && lock)
        cli_inspection_print(to, lock);
    else if (to)
        fputs("It is free.\n", to);
    if (to)
        fclose(to);
    json_object_put(lock);
    return 0;
}

static int errand_ask(struct top_errand *errand, struct cli_force *force, hl_error *err)
{
    char who[CLI_FORCE_WHO];
    int rc = cli_look(force->client, &errand->name, &errand->lock, err);

    if (rc == 0 && !errand->lock) {
        snprintf(err->text, sizeof(err->text), "nobody holds it");
        rc = HL_ENOENT;
    }
    force->lock = errand->lock;
    if (rc < 0 || !cli_force_may(force, err))
        return rc < 0 ? rc : err->code;
    cli_force_who(force, who);
    errand->text = strdup(who);
    return 0;
}

static int errand_take(struct top_errand *errand, struct cli_force *force, hl_error *err)
{
    json_object *name = json_object_object_get(errand->lock, "name");
    char text[CLI_FORCE_WHO];
    int rc = cli_force_look_again(force, err);

    if (rc == 0)
        rc = cli_force(force, err);
    if (rc < 0)
        return rc;
    snprintf(text, sizeof(text), "'%s' was taken away", json_object_get_string(name));
    errand->text = strdup(text);
    return 0;
}

static void errand_run(struct top_errand *errand, const struct top_errands *errands)
{
    struct cli_force force = {.client = errands->client,
                              .name = errand->name,
                              .lock = errand->lock,
                              .has_values = errands->has_values};
    hl_error err = HL_ERROR_INIT;
    int rc = 0;

    switch (errand->kind) {
    case TOP_INSPECT:
        rc = errand_inspect(errand, errands->client, &err);
        break;
    case TOP_ASK:
        rc = errand_ask(errand, &force, &err);
        break;
    case TOP_TAKE:
        rc = errand_take(errand, &force, &err);
        break;
    }
    errand->is_done = rc == 0;
    if (rc < 0)
        errand->text = strdup(err.text);
}

static void *errands_run(void *arg)
{
    struct top_errands *errands = arg;

    pthread_mutex_lock(&errands->mutex);
    while (!errands->is_stopped) {
        struct top_errand *errand = errands->next;
        if (!errand || errands->done) {
            pthread_cond_wait(&errands->changed, &errands->mutex);
            continue;
        }
        errands->next = NULL;
        pthread_mutex_unlock(&errands->mutex);
        errand_run(errand, errands);
        pthread_mutex_lock(&errands->mutex);
        errands->done = errand;
        eventfd_write(errands->bell, 1);
    }
    pthread_mutex_unlock(&errands->mutex);
    return NULL;
}

bool top_errands_start(struct top_errands *errands, hl_client *client, bool has_values)
{
    *errands = (struct top_errands){.client = client, .has_values = has_values};
    errands->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (errands->bell < 0)
        return false;
    pthread_mutex_init(&errands->mutex, NULL);
    pthread_cond_init(&errands->changed, NULL);
    if (pthread_create(&errands->thread, NULL, errands_run, errands) == 0)
        return true;
    pthread_cond_destroy(&errands->changed);
    pthread_mutex_destroy(&errands->mutex);
    close(errands->bell);
    return false;
}

void top_errands_stop(struct top_errands *errands)
{
    pthread_mutex_lock(&errands->mutex);
    errands->is_stopped = true;
    pthread_cond_signal(&errands->changed);
    pthread_mutex_unlock(&errands->mutex);
    pthread_join(errands->thread, NULL);
    top_errand_free(errands->next);
    top_errand_free(errands->done);
    pthread_cond_destroy(&errands->changed);
    pthread_mutex_destroy(&errands->mutex);
    close(errands->bell);
}

bool top_errands_begin(struct top_errands *errands, enum top_errand_kind kind,
                       const struct cli_name *name, json_object *lock)
{
    struct top_errand *errand = errand_new(kind, name);

    pthread_mutex_lock(&errands->mutex);
    bool begins = errand && !errands->next;
    if (begins) {
        errand->lock = lock;
        errands->next = errand;
        pthread_cond_signal(&errands->changed);
    }
    pthread_mutex_unlock(&errands->mutex);
    if (!begins) {
        top_errand_free(errand);
        json_object_put(lock);
    }
    return begins;
}

struct top_errand *top_errands_end(struct top_errands *errands)
{
    eventfd_t rung;

    eventfd_read(errands->bell, &rung);
    pthread_mutex_lock(&errands->mutex);
    struct top_errand *errand = errands->done;
    errands->done = NULL;
    pthread_cond_signal(&errands->changed);
    pthread_mutex_unlock(&errands->mutex);
    return errand;
}
