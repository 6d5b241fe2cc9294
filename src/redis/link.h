/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link: everything between one client and one server. Two connections, one for commands and one
 * for pub/sub, that live and die together; greeted, watched by PINGs, and made anew with backoff
 * when they are lost.
 *
 * The link never sends a request twice: when it comes up again, the listener's objects decide anew
 * what to ask.
 */
#ifndef HLI_REDIS_LINK_H
#define HLI_REDIS_LINK_H

#include "base/thread.h"
#include "redis/pubsub.h"
#include "redis/url.h"

struct hli_link_settings { /* immutable; strings are owned by the link from hli_link_new on */
    struct hli_url url;
    char *client_name;
    int64_t connect_timeout_ms, request_timeout_ms;
    int64_t backoff_min_ms, backoff_max_ms;
    int64_t busy_poll_us; /* 0: off */
};

void hli_link_settings_deinit(struct hli_link_settings *settings);

struct hli_link_listener { /* on the loop thread */
    void (*up)(void *arg);
    void (*down)(const hl_error *err, void *arg);   /* it was up */
    void (*failed)(const hl_error *err, void *arg); /* it did not come up */
    void *arg;
};

struct hli_link;

/* Consumes the settings' strings, also when it fails. Errors: HL_ENOMEM. */
int hli_link_new(struct hli_loop *loop, struct hli_link_settings *settings,
                 const struct hli_link_listener *listener, atomic_uint_fast64_t *commands,
                 struct hli_link **ret_link);

/* Any thread: begins to connect; and later ends it all, with everything in flight answered
 * HLI_UNKNOWN. Both on the loop. */
void hli_link_start(struct hli_link *link);
void hli_link_stop(struct hli_link *link); /* loop thread */
void hli_link_free(struct hli_link *link); /* stopped; NULL is fine */

/* Any thread. When the link is not up, done runs at once with HLI_UNSENT. */
void hli_link_send(struct hli_link *link, struct hli_op *op);

/* This thread will block for what it sends from now on, and comes to lead: until it does, others
 * leave the answers to it. */
void hli_link_promise(struct hli_link *link);
/* Redeems the promise: reads the answers in place of the loop if the request is the only one in
 * flight, until the gate is opened or poked or the deadline comes. Else, or when it is not to read
 * any longer, it returns while the gate is shut. */
void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* The messages of this channel, once it is wanted, may be told in any thread: in one that blocks
 * until such a message and reads in place of the loop, as above. Before the link is started. */
void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox);
void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* Any thread: why it is not up. Returns the code; 0 when it is up, or was not tried yet. */
int hli_link_problem(struct hli_link *link, hl_error *ret_err);

/* The server turned out to be one not to talk to (READONLY): drops the link. Loop thread. */
void hli_link_distrust(struct hli_link *link, const char *reason);

struct hli_pubsub *hli_link_pubsub(struct hli_link *link); /* loop thread */

/* "127.0.0.1:6379" */
const char *hli_link_where(const struct hli_link *link);

/* In a forked child. */
void hli_link_abandon(struct hli_link *link);

#endif
