/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The resolver: from a host name to its addresses, by getaddrinfo(), which does what every other
 * program on the host does. It blocks, for a minute if the name servers are silent, and nobody can
 * end it: so each look-up under way has a thread of its own, which holds no memory of the client
 * and may outlive it. All who ask for a name meanwhile share its look-up. One that is late gets
 * others beside it, which wait less long for a silent name server, and not for IPv6.
 */
#ifndef HLI_REDIS_RESOLVER_H
#define HLI_REDIS_RESOLVER_H

#include "redis/loop.h"

#include <netdb.h>

enum {
    HLI_RESOLVER_THREADS = 48,  /* of a client: 16 names, each asked about in three ways */
    HLI_RESOLVER_LATE_MS = 250, /* after it, a name is asked about in other ways, too */
};

struct hli_resolver;
struct hli_lookup;

/* One who asks, embedded in the object that needs the addresses; zero-initialised but for `done`.
 * Loop thread. */
struct hli_name_ask {
    /* Runs once unless the ask is dropped before; it may run inside hli_resolver_ask(). The
     * addresses have no port, and live until the ask is dropped. NULL: `why` says why. */
    void (*done)(struct hli_name_ask *ask, const struct addrinfo *addresses, const char *why);

    struct hli_lookup *lookup; /* NULL: nothing was asked; counted, as its addresses are used */
    bool is_waiting;
    TAILQ_ENTRY(hli_name_ask) link; /* of the lookup's asks, while it is waiting */
};

/* An answer for which nobody waits any more serves the next ask within keep_ms. NULL when memory is
 * out. */
struct hli_resolver *hli_resolver_new(struct hli_loop *loop, int64_t keep_ms);

/* The caller has the deadline. Loop thread, as the next two. */
void hli_resolver_ask(struct hli_resolver *resolver, struct hli_name_ask *ask, const char *host);
void hli_name_ask_drop(struct hli_name_ask *ask); /* does nothing if nothing was asked */

void hli_resolver_stop(struct hli_resolver *resolver); /* every ask is dropped */
/* After the stop, on the thread that closes. It does not wait for a look-up. NULL is fine. */
void hli_resolver_free(struct hli_resolver *resolver);
void hli_resolver_abandon(struct hli_resolver *resolver); /* in a forked child */

#endif
