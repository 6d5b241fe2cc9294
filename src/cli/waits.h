/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The waits that show a tag: calls that have waited for longer than a second, of clients with
 * HL_CLIENT_HOLDER_INFO, on all nodes (docs/semantics.md, "The waiter's tag").
 */
#ifndef CLI_WAITS_H
#define CLI_WAITS_H

#include "cli/look.h"

#include <stdint.h>

enum { CLI_CLIENT_ID = 36, CLI_WAIT_TEXT = 264 };

struct cli_wait {
    struct cli_name name;           /* the lock's; borrowed */
    char client[CLI_CLIENT_ID + 1]; /* hl_client_id() */
    uint64_t owner;                 /* a number, of that client's process */
    long long since_ms, waited_ms, pid;
    char host[CLI_WAIT_TEXT], thread[CLI_WAIT_TEXT]; /* escaped (escape.h) */
};

struct cli_waits {
    hl_client *client;
    const char *prefix; /* of the names; the rest of them is shown. NULL: none */
    /* One at a time, each from any thread; the wait is borrowed. */
    void (*found)(const struct cli_wait *wait, void *arg);
    /* NULL, or a node was not gone through to its end; it goes on at the others. */
    void (*missed)(const char *where, const hl_error *err, void *arg);
    void *arg;
    size_t *denied; /* NULL, or counts the tags that the user may not read: they are not told */
};

/* Returns a code of the library: that of the first node that was missed. A wait may be found twice
 * (Redis docs, SCAN). */
int cli_waits(const struct cli_waits *waits, hl_error *err);

/* Does it still go on? A later wait of the same owner is another one. Returns a code of the
 * library. */
int cli_wait_goes_on(hl_client *client, const struct cli_wait *wait, bool *ret_goes_on,
                     hl_error *err);

#endif
