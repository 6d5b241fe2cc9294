/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A lookup: the addresses of a name, by the hosts file and by evdns, which does not block the loop
 * as getaddrinfo would. Each reads /etc/resolv.conf anew.
 *
 * evdns tells of a request's end later, from the loop, and touches its base then; so what is given
 * up lives on until that, without its asker.
 */
#ifndef HLI_REDIS_LOOKUP_H
#define HLI_REDIS_LOOKUP_H

#include "redis/loop.h"

#include <event2/util.h>

struct hli_lookup;

/* addresses are the callee's, NULL when problem is not 0. At most once, on the loop thread, also
 * from inside hli_lookup_start. */
typedef void (*hli_lookup_cb)(int problem, struct evutil_addrinfo *addresses, void *arg);

/* Loop thread. Errors: NULL when memory is out. */
struct hli_lookup *hli_lookup_new(struct hli_loop *loop, hli_lookup_cb done, void *arg);
void hli_lookup_start(struct hli_lookup *lookup, const char *host, const char *port);

bool hli_lookup_is_over(const struct hli_lookup *lookup); /* it was called back */

/* Gives it back, answered or not; nothing is called back any more. NULL is fine. */
void hli_lookup_drop(struct hli_lookup *lookup);

#endif
