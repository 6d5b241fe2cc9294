/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The loader: sends SCRIPT LOAD when the server answers NOSCRIPT (after a restart or SCRIPT FLUSH).
 * The loader does not repeat the bounced request: its sender decides anew, and its next request
 * follows the SCRIPT LOAD on the same connection. It has memory for what is in flight only, since a
 * script is loaded once in a long time.
 */
#ifndef HLI_REDIS_LOADER_H
#define HLI_REDIS_LOADER_H

#include "redis/conn.h"

struct hli_loader { /* loop thread */
    struct hli_conn *conn;
    uint64_t in_flight;       /* a bit for each script, by its hli_script_id; as the next */
    uint64_t refused;         /* SCRIPT LOAD got an error answer, which the next bounce reports */
    enum hli_verdict verdict; /* of the last such answer, as the next two: the reason is mostly the
                                 same for all scripts */
    int code;
    char text[160];
};

void hli_loader_init(struct hli_loader *loader, struct hli_conn *conn);

/* To be called for each new connection. */
void hli_loader_reset(struct hli_loader *loader);

/* Called with every answer of the connection. If the SCRIPT LOAD was refused, a NOSCRIPT becomes
 * that refusal; after too many in a row it becomes HLI_REFUSED, or it would bounce for ever. */
void hli_loader_answered(struct hli_loader *loader, const struct hli_op *op,
                         struct hli_answer *answer);

#endif
