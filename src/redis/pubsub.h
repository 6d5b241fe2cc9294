/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: any number of them on one connection. A subscription has one channel, or two by
 * one SUBSCRIBE: then no script can count a subscriber of one channel that is not yet a subscriber
 * of the other. A second subscription to the same name follows the first, without a SUBSCRIBE of
 * its own. Loop thread.
 */
#ifndef HLI_REDIS_PUBSUB_H
#define HLI_REDIS_PUBSUB_H

#include "base/map.h"
#include "redis/conn.h"

/* A message; borrowed. */
struct hli_message {
    bool is_beside; /* it came on the second channel, `beside` */
    int64_t *left;  /* the message's number, less the waiters that were woken for it; INT64_MAX if
                       the text is not a positive number */
    struct hli_bytes text;
};

struct hli_channel;

struct hli_channel_name {
    struct hli_map_node node;
    struct hli_bytes bytes; /* borrowed from the owner */
    struct hli_channel *channel;
};

/* A subscription, embedded in the object that wants it. The object must live from
 * hli_channel_want() until `gone`. */
struct hli_channel {
    struct hli_pubsub *pubsub;
    struct hli_channel_name name, beside; /* the second may be empty */
    struct hli_op op;                     /* SUBSCRIBE or UNSUBSCRIBE */
    enum { HLI_CHANNEL_OFF, HLI_CHANNEL_JOINING, HLI_CHANNEL_ON, HLI_CHANNEL_LEAVING } state;
    bool is_wanted;
    struct hli_channel *leader;          /* the subscription that this one follows, or NULL */
    TAILQ_HEAD(, hli_channel) followers; /* the subscriptions that follow this one */
    TAILQ_ENTRY(hli_channel) link;       /* in the leader's `followers` */

    void (*confirmed)(struct hli_channel *channel); /* may be NULL, as may `gone` */
    void (*message)(struct hli_channel *channel, const struct hli_message *message);
    void (*gone)(struct hli_channel *channel);
};

struct hli_pubsub {
    struct hli_map channels;
    struct hli_channel *mailbox; /* immutable once the link is started; may be NULL */
    struct hli_conn *conn;
    bool is_up;
};

void hli_pubsub_init(struct hli_pubsub *pubsub, struct hli_conn *conn);
void hli_pubsub_deinit(struct hli_pubsub *pubsub);

/* The connection is ready: subscribes to all wanted channels. A later call subscribes again to
 * those that the server refused. */
void hli_pubsub_up(struct hli_pubsub *pubsub);
/* The connection is lost, and its requests in flight have ended. */
void hli_pubsub_down(struct hli_pubsub *pubsub);
/* On the loop thread; a message of the mailbox on any thread. */
void hli_pubsub_message(struct hli_pubsub *pubsub, const struct hli_reply *reply);
bool hli_pubsub_is_mailbox(const struct hli_pubsub *pubsub, const struct hli_reply *reply);

/* Errors: HL_ENOMEM. `confirmed` runs later, when the subscription is active. It also runs if the
 * server denies the channel for good (ACL): then the owner can only poll. */
int hli_channel_want(struct hli_pubsub *pubsub, struct hli_channel *channel);
/* `gone` runs at once or later: for a leader after its followers are gone. Does nothing for a
 * channel that is not wanted. */
void hli_channel_drop(struct hli_channel *channel);

/* True if other subscriptions share its channels, so that dropping it sends no command. */
bool hli_channel_is_shared(const struct hli_channel *channel);

#endif
