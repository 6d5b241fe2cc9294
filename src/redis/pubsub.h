/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: any number of them on one connection. A subscription has one channel, or up to
 * three by one SUBSCRIBE: then no script can count a subscriber of one channel that is not yet a
 * subscriber of the others. A second subscription to the same first channel follows the first,
 * without a SUBSCRIBE of its own. Where the channels are sharded, they are those of one slot of a
 * cluster, and the commands are SSUBSCRIBE and SUNSUBSCRIBE. Loop thread.
 */
#ifndef HLI_REDIS_PUBSUB_H
#define HLI_REDIS_PUBSUB_H

#include "base/map.h"
#include "redis/conn.h"

/* A message; borrowed. */
struct hli_message {
    size_t which;  /* of the subscription's channels: 0 the first */
    int64_t *left; /* the message's number, less the waiters that were woken for it; INT64_MAX if
                      the text is not a positive number */
    struct hli_bytes text;
};

enum { HLI_CHANNEL_NAMES = 3 };

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
    struct hli_channel_name names[HLI_CHANNEL_NAMES]; /* those behind the first may be empty */
    unsigned slot;       /* of all its names, where channels are sharded */
    struct hli_op op;    /* SUBSCRIBE or UNSUBSCRIBE */
    struct hli_op leave; /* of hli_pubsub_interrupt() */
    enum { HLI_CHANNEL_OFF, HLI_CHANNEL_JOINING, HLI_CHANNEL_ON, HLI_CHANNEL_LEAVING } state;
    bool is_wanted;
    bool is_denied;      /* the server has refused it for good: no message comes */
    bool is_interrupted; /* JOINING, and `leave` is in flight */
    bool is_undone;      /* `leave` undoes the SUBSCRIBE before it, or there is none behind it */
    struct hli_channel *leader;          /* the subscription that this one follows, or NULL */
    TAILQ_HEAD(, hli_channel) followers; /* the subscriptions that follow this one */
    TAILQ_ENTRY(hli_channel) link;       /* in the leader's `followers` */

    void (*message)(struct hli_channel *channel, const struct hli_message *message);
    void (*confirmed)(struct hli_channel *channel); /* may be NULL, as all below */
    void (*gone)(struct hli_channel *channel);
    /* In place of `gone`: its slot is at another node. NULL: it is as after a lost connection. */
    void (*moved)(struct hli_channel *channel);
};

enum { HLI_DENIAL_SIZE = 96 };

struct hli_pubsub {
    struct hli_map channels;
    struct hli_channel *mailbox; /* immutable once the link is started; may be NULL */
    struct hli_conn *conn;
    bool is_up;
    bool is_sharded;              /* set before the first subscription */
    char denial[HLI_DENIAL_SIZE]; /* the server's words of the last refusal for good */
};

void hli_pubsub_init(struct hli_pubsub *pubsub, struct hli_conn *conn);
void hli_pubsub_deinit(struct hli_pubsub *pubsub);

/* The connection is ready: subscribes to all wanted channels. A later call subscribes again to
 * those that the server refused. */
void hli_pubsub_up(struct hli_pubsub *pubsub);
/* The connection is lost, and its requests in flight have ended. */
void hli_pubsub_down(struct hli_pubsub *pubsub);
/* Sends a command that a connection with subscriptions refuses (RESP2): leaves all channels before
 * it and enters them again behind it, in one write, so that next to no message is published in
 * between. `confirmed` runs again for each. False when the connection is not open or memory is out:
 * then nothing was sent. */
bool hli_pubsub_interrupt(struct hli_pubsub *pubsub, struct hli_op *op);
/* On the loop thread; a message of the mailbox on any thread. In a cluster the client has a mailbox
 * for each name; their names begin and end as the mailbox's name does, and their messages go to it,
 * too. */
void hli_pubsub_message(struct hli_pubsub *pubsub, const struct hli_reply *reply);
bool hli_pubsub_is_mailbox(const struct hli_pubsub *pubsub, const struct hli_reply *reply);

/* Is this the server's word that a channel's slot has moved away, and not the answer to the oldest
 * request in flight, which may be NULL? Then hli_pubsub_moved() is to be told. When the slot moves,
 * the server sends a "sunsubscribe" for each channel, which looks like the answer to SUNSUBSCRIBE;
 * one that was on its way then is answered by MOVED as well. Loop thread. */
bool hli_pubsub_is_moved(const struct hli_pubsub *pubsub, const struct hli_reply *reply,
                         const struct hli_op *oldest);
void hli_pubsub_moved(struct hli_pubsub *pubsub, const struct hli_reply *reply);

/* Errors: HL_ENOMEM. `confirmed` runs later, when the subscription is active. It also runs if the
 * server denies the channel for good (ACL, a server without SUBSCRIBE): with `is_denied`, and then
 * the owner can only poll. */
int hli_channel_want(struct hli_pubsub *pubsub, struct hli_channel *channel);
/* `gone` runs at once or later: for a leader after its followers are gone. Does nothing for a
 * channel that is not wanted. */
void hli_channel_drop(struct hli_channel *channel);

/* True if other subscriptions share its channels, so that dropping it sends no command. */
bool hli_channel_is_shared(const struct hli_channel *channel);

#endif
