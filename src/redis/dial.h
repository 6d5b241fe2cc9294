/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Dialling: from a URL to a connected, non-blocking socket that is closed on exec. Names are
 * resolved by evdns, which does not block the loop as getaddrinfo would; of several addresses each
 * is tried in turn.
 */
#ifndef HLI_REDIS_DIAL_H
#define HLI_REDIS_DIAL_H

#include "redis/loop.h"
#include "redis/url.h"

#include <stdatomic.h>

struct hli_dial;

/* fd is the caller's, or -1 and err says why. On the loop thread, once, never inside
 * hli_dial_start. */
typedef void (*hli_dial_cb)(int fd, const hl_error *err, void *arg);

/* Loop thread; url is borrowed until the call back or the cancel. The socket's number stands in
 * *shown, for a forked child, until the call back has it or it is closed. Errors: HL_ENOMEM. */
struct hli_dial_said {
    const struct hli_url *url;
    hli_dial_cb done;
    void *arg;
    atomic_int *shown;
};
int hli_dial_start(struct hli_loop *loop, const struct hli_dial_said *said,
                   struct hli_dial **ret_dial);

/* Is it still waiting for a name server? NULL is fine. */
bool hli_dial_is_resolving(const struct hli_dial *dial);

/* The call back will not come. NULL is fine. */
void hli_dial_cancel(struct hli_dial *dial);

#endif
