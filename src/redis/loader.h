/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The loader: sends SCRIPT LOAD when the server answers NOSCRIPT (after a restart or SCRIPT FLUSH).
 * The loader does not repeat the bounced request: its sender decides anew, and its next request
 * follows the SCRIPT LOAD on the same connection.
 */
#ifndef HLI_REDIS_LOADER_H
#define HLI_REDIS_LOADER_H

#include "redis/conn.h"

struct hli_loader_script {
    struct hli_op op;
    bool in_flight;
    hl_error refused; /* the error answer to SCRIPT LOAD, if any; the next bounce reports it */
    enum hli_verdict verdict;
};

struct hli_loader { /* loop thread */
    struct hli_conn *conn;
    struct hli_loader_script script[HLI_SCRIPT_COUNT];
};

void hli_loader_init(struct hli_loader *loader, struct hli_conn *conn);
void hli_loader_deinit(struct hli_loader *loader);

/* To be called for each new connection. */
void hli_loader_reset(struct hli_loader *loader);

/* Called with every answer of the connection. If the SCRIPT LOAD was refused, a NOSCRIPT becomes
 * that refusal; after too many in a row it becomes HLI_REFUSED, or it would bounce for ever. */
void hli_loader_answered(struct hli_loader *loader, const struct hli_op *op,
                         struct hli_answer *answer);

#endif
