/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: any number of them on one connection. One subscription is to one channel, or to
 * two by one command: then nobody can count a subscriber of the one who is none of the other. Those
 * of the same name share the first one's: they follow it. All of it lives on the loop thread.
 */
#ifndef HLI_REDIS_PUBSUB_H
#define HLI_REDIS_PUBSUB_H

#include "base/map.h"
#include "redis/conn.h"

/* What came on which of the two. Borrowed. */
struct hli_message {
    bool is_beside;
    int64_t *left; /* what it counts and nobody has been woken for yet; of one without a positive
                      number: any number */
    struct hli_bytes text;
};

struct hli_channel;

struct hli_channel_name {
    struct hli_map_node node;
    struct hli_bytes bytes; /* borrowed from the owner */
    struct hli_channel *channel;
};

/* A subscription, embedded in what wants it. From hli_channel_want() to `gone` it must not go away.
 */
struct hli_channel {
    struct hli_pubsub *pubsub;
    struct hli_channel_name name, beside; /* the second may be empty */
    struct hli_op op;                     /* SUBSCRIBE or UNSUBSCRIBE */
    enum { HLI_CHANNEL_OFF, HLI_CHANNEL_JOINING, HLI_CHANNEL_ON, HLI_CHANNEL_LEAVING } state;
    bool is_wanted;
    struct hli_channel *leader;          /* whom it follows, or NULL */
    TAILQ_HEAD(, hli_channel) followers; /* and who follows it */
    TAILQ_ENTRY(hli_channel) link;       /* of its leader's */

    void (*confirmed)(struct hli_channel *channel); /* may be NULL, as `gone` */
    void (*message)(struct hli_channel *channel, const struct hli_message *message);
    void (*gone)(struct hli_channel *channel);
};

struct hli_pubsub {
    struct hli_map channels;
    struct hli_conn *conn;
    bool is_up;
};

void hli_pubsub_init(struct hli_pubsub *pubsub, struct hli_conn *conn);
void hli_pubsub_deinit(struct hli_pubsub *pubsub);

/* The connection is ready: subscribes to all that is wanted. */
void hli_pubsub_up(struct hli_pubsub *pubsub);
/* It is lost, and its requests in flight have ended. */
void hli_pubsub_down(struct hli_pubsub *pubsub);
void hli_pubsub_message(struct hli_pubsub *pubsub, const struct hli_reply *reply);

/* Errors: HL_ENOMEM. True subscriptions come later, by `confirmed`; a refused one (ACL) counts as
 * confirmed, for then polling is all there is. */
int hli_channel_want(struct hli_pubsub *pubsub, struct hli_channel *channel);
/* `gone` follows, at once or later: a leader goes after its followers. Does nothing for a channel
 * that is not wanted. */
void hli_channel_drop(struct hli_channel *channel);

/* Would dropping it cost no command, for others want the same? */
bool hli_channel_is_shared(const struct hli_channel *channel);

#endif
