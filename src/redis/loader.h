/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The loader: sends SCRIPT LOAD when the server answers NOSCRIPT (it was restarted, or someone said
 * SCRIPT FLUSH). The bounced request is not repeated here: who asked decides anew, and what it
 * sends then is behind the SCRIPT LOAD on the same connection.
 */
#ifndef HLI_REDIS_LOADER_H
#define HLI_REDIS_LOADER_H

#include "redis/conn.h"

struct hli_loader_script {
    struct hli_op op;
    bool in_flight;
    hl_error refused; /* what SCRIPT LOAD answered, if that was an error; told to the next that
                         bounces */
    enum hli_verdict verdict;
};

struct hli_loader { /* loop thread */
    struct hli_conn *conn;
    struct hli_loader_script script[HLI_SCRIPT_COUNT];
};

void hli_loader_init(struct hli_loader *loader, struct hli_conn *conn);
void hli_loader_deinit(struct hli_loader *loader);

/* The connection is new. */
void hli_loader_reset(struct hli_loader *loader);

/* Looks at every answer of the connection. A NOSCRIPT whose SCRIPT LOAD was refused becomes that
 * refusal, for else it would bounce for ever. */
void hli_loader_answered(struct hli_loader *loader, const struct hli_op *op,
                         struct hli_answer *answer);

#endif
