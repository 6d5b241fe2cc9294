/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * An errand: something about one lock that has to be asked of the server and may take its time. A
 * thread of its own runs it, so that keys are answered meanwhile. One is under way at a time, and
 * one may wait for it.
 */
#ifndef CLI_TOP_ERRAND_H
#define CLI_TOP_ERRAND_H

#include "cli/look.h"

#include <pthread.h>

enum top_errand_kind {
    TOP_INSPECT, /* all that there is to say of it */
    TOP_ASK,     /* who would lose it, if it were taken away? */
    TOP_TAKE     /* takes it from the owner that TOP_ASK has found */
};

struct top_errand {
    enum top_errand_kind kind;
    char *bytes; /* of the name; owned */
    struct cli_name name;
    /* When it has been run: */
    char *text;        /* what came out; owned; NULL when memory was out */
    json_object *lock; /* of TOP_ASK that may be followed by TOP_TAKE; owned */
    bool is_done;      /* it did what it was to do; else the text says why not */
};

struct top_errands {
    hl_client *client; /* immutable, as the next two */
    bool has_values;
    int bell; /* an eventfd that is rung when one has been run; owned */

    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct top_errand *next, *done; /* owned */
    bool is_stopped;
};

/* False: there is no thread to be had, or no descriptor. */
bool top_errands_start(struct top_errands *errands, hl_client *client, bool has_values);

/* Waits for the one that is under way. */
void top_errands_stop(struct top_errands *errands);

/* Takes the lock over, the one of TOP_ASK or NULL. False: another one waits already, or memory is
 * out. */
bool top_errands_begin(struct top_errands *errands, enum top_errand_kind kind,
                       const struct cli_name *name, json_object *lock);

/* What has been run, owned by the caller; NULL: nothing yet. */
struct top_errand *top_errands_end(struct top_errands *errands);

void top_errand_free(struct top_errand *errand);

#endif
