/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link: everything between one client and one server. It has two connections, one for commands
 * and one for pub/sub; when one is lost, both are closed. The link does their handshakes, watches
 * them by PING, and reconnects with backoff.
 *
 * The link never sends a request twice: when it comes up again, the listener's objects decide what
 * to send.
 */
#ifndef HLI_REDIS_LINK_H
#define HLI_REDIS_LINK_H

#include "base/thread.h"
#include "redis/pubsub.h"
#include "redis/url.h"

#include <hirelock/client.h>

struct hli_link_listener { /* on the loop thread */
    void (*up)(void *arg);
    void (*down)(const hl_error *err, void *arg);   /* the link was up */
    void (*failed)(const hl_error *err, void *arg); /* an attempt to connect failed */
    void *arg;
};

struct hli_link;

/* Borrows the settings, and takes over the URL on success. NULL when memory is out. */
struct hli_link *hli_link_new(struct hli_loop *loop, const hl_client_options *settings,
                              const struct hli_url *url, const struct hli_link_listener *listener,
                              atomic_uint_fast64_t *commands);

/* Any thread: begins to connect, on the loop. */
void hli_link_start(struct hli_link *link);
/* Closes everything; the requests in flight end as HLI_UNKNOWN. */
void hli_link_stop(struct hli_link *link); /* loop thread */
void hli_link_free(struct hli_link *link); /* stopped; NULL is fine */

/* Any thread. done runs at once with HLI_UNSENT when the link is not up, and with HLI_BOUNCED when
 * the request is not wanted any more. */
void hli_link_send(struct hli_link *link, struct hli_op *op);

/* This thread promises to block for the requests that it sends from now on, and then to lead: if it
 * is given the role, no other thread reads the answers until then. */
void hli_link_lead_begin(struct hli_link *link);
/* Redeems the promise. A thread that was given the role reads in place of the loop until the gate
 * is opened or nudged, or the deadline comes. It returns with the gate shut if it was not given the
 * role, or gave the role back earlier. */
void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* Messages of this channel may be delivered on any thread, by a caller that listens. Before the
 * link is started. */
void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox);
/* Reads mailbox messages in place of the loop, if no other thread does; returns as the lead above.
 */
void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* Any thread: the reason why the link is not up. Returns the code; 0 when the link is up, or has
 * not been tried yet. */
int hli_link_problem(struct hli_link *link, hl_error *ret_err);

/* Drops the link, because this server must not be used. Loop thread. */
void hli_link_drop(struct hli_link *link, const char *reason);

struct hli_pubsub *hli_link_pubsub(struct hli_link *link); /* loop thread */

/* "127.0.0.1:6379" */
const char *hli_link_where(const struct hli_link *link);

/* In a forked child. */
void hli_link_abandon(struct hli_link *link);

#endif
