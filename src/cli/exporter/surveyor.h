/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A thread that makes one survey after the other, with a pause between two, and writes down what
 * each has found. Whoever asks for the metrics gets what is written down, and waits for no server.
 */
#ifndef CLI_EXPORTER_SURVEYOR_H
#define CLI_EXPORTER_SURVEYOR_H

#include "cli/server.h"

struct exporter_surveyor;

struct exporter_options {
    hl_client *client;
    const struct cli_server *server; /* of that client */
    const char *pattern;             /* as in SCAN, with the prefix before it */
    int64_t interval_ms;             /* between two surveys */
    size_t names;                    /* that become labels, at most */
};

/* The options are borrowed until the end. NULL: there is no memory or no thread left. */
struct exporter_surveyor *exporter_surveyor_start(const struct exporter_options *options);

/* The metrics, those of the client too. Owned by the caller; NULL when memory is out. */
char *exporter_surveyor_text(struct exporter_surveyor *surveyor, size_t *ret_length);

/* Waits until the command that is under way has its answer, or fails. */
void exporter_surveyor_end(struct exporter_surveyor *surveyor);

#endif
