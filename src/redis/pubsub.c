/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Subscriptions. A channel moves between OFF, JOINING, ON and LEAVING, with at most one command of
 * its own in flight. */
#include "redis/pubsub.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <stdlib.h>
#include <string.h>

static void channel_move(struct hli_channel *channel);

void hli_pubsub_init(struct hli_pubsub *pubsub, struct hli_conn *conn)
{
    *pubsub = (struct hli_pubsub){.conn = conn};
    hli_map_init(&pubsub->channels);
}

void hli_pubsub_deinit(struct hli_pubsub *pubsub)
{
    hli_map_deinit(&pubsub->channels);
}

/* True if its owner wants it, or another subscription follows it. */
static bool channel_is_needed(const struct hli_channel *channel)
{
    return channel->is_wanted || !TAILQ_EMPTY(&channel->followers);
}

static void channel_confirm(struct hli_channel *channel)
{
    struct hli_channel *follower;

    if (channel->is_wanted && channel->confirmed)
        channel->confirmed(channel);
    TAILQ_FOREACH (follower, &channel->followers, link)
        if (follower->confirmed)
            follower->confirmed(follower);
}

static void channel_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_channel *channel = HLI_OF(op, struct hli_channel, op);
    bool joined = channel->state == HLI_CHANNEL_JOINING;

    bool is_on = joined && (answer->verdict == HLI_REPLIED || answer->verdict == HLI_FAILED);
    channel->state = is_on ? HLI_CHANNEL_ON : HLI_CHANNEL_OFF;
    if (is_on)
        channel_confirm(channel);
    /* A busy server refused it: do not subscribe again at once, but with the next
     * hli_channel_want() and the next keepalive (hli_pubsub_up). */
    if (answer->verdict != HLI_REFUSED || !channel_is_needed(channel))
        channel_move(channel);
}

static bool channel_send(struct hli_channel *channel, const char *verb)
{
    const struct hli_bytes words[] = {hli_bytes_of(verb), channel->name.bytes,
                                      channel->beside.bytes};
    unsigned more = channel->beside.bytes.length > 0 ? 1 : 0;

    channel->op.done = channel_done;
    channel->op.more_replies = more;
    return hli_op_command(&channel->op, words, 2 + more) == 0 &&
           hli_conn_send(channel->pubsub->conn, &channel->op, HLI_CONN_AT_ONCE);
}

static int channel_name_insert(struct hli_channel *channel, struct hli_channel_name *name)
{
    name->channel = channel;
    return hli_map_insert(&channel->pubsub->channels, &name->node, name->bytes.data,
                          name->bytes.length);
}

static struct hli_channel_name *pubsub_name_of(struct hli_map_node *node)
{
    return HLI_OF(node, struct hli_channel_name, node);
}

static struct hli_channel_name *pubsub_find(const struct hli_pubsub *pubsub, const void *bytes,
                                            size_t length)
{
    struct hli_map_node *node = hli_map_find(&pubsub->channels, bytes, length);

    return node ? pubsub_name_of(node) : NULL;
}

static void channel_follow(struct hli_channel *channel, struct hli_channel *leader)
{
    channel->pubsub = leader->pubsub;
    channel->leader = leader;
    TAILQ_INSERT_TAIL(&leader->followers, channel, link);
    channel_move(leader);
    if (leader->state == HLI_CHANNEL_ON && channel->confirmed)
        channel->confirmed(channel);
}

static void channel_stop_following(struct hli_channel *channel)
{
    struct hli_channel *leader = channel->leader;

    TAILQ_REMOVE(&leader->followers, channel, link);
    channel->leader = NULL;
    channel->pubsub = NULL;
    channel_move(leader);
    if (channel->gone)
        channel->gone(channel);
}

static int channel_enter_map(struct hli_channel *channel, struct hli_pubsub *pubsub)
{
    channel->pubsub = pubsub;
    TAILQ_INIT(&channel->followers);
    int rc = channel_name_insert(channel, &channel->name);
    if (rc == 0 && channel->beside.bytes.length > 0)
        rc = channel_name_insert(channel, &channel->beside); /* only a map's first node can fail */
    if (rc < 0)
        channel->pubsub = NULL;
    return rc;
}

static void channel_leave_map(struct hli_channel *channel)
{
    hli_map_remove(&channel->pubsub->channels, &channel->name.node);
    if (channel->beside.bytes.length > 0)
        hli_map_remove(&channel->pubsub->channels, &channel->beside.node);
    channel->pubsub = NULL;
}

/* Takes the next step towards the wanted state. If memory is out, the next hli_channel_want() or
 * the next connection takes it. */
static void channel_move(struct hli_channel *channel)
{
    struct hli_pubsub *pubsub = channel->pubsub;
    bool is_needed = channel_is_needed(channel);

    if (is_needed && channel->state == HLI_CHANNEL_OFF && pubsub->is_up) {
        if (channel_send(channel, "SUBSCRIBE"))
            channel->state = HLI_CHANNEL_JOINING;
    } else if (!is_needed && channel->state == HLI_CHANNEL_ON && pubsub->is_up) {
        if (channel_send(channel, "UNSUBSCRIBE"))
            channel->state = HLI_CHANNEL_LEAVING;
    }
    if (!is_needed && channel->state == HLI_CHANNEL_OFF) {
        channel_leave_map(channel);
        hli_op_deinit(&channel->op);
        if (channel->gone)
            channel->gone(channel);
    }
}

int hli_channel_want(struct hli_pubsub *pubsub, struct hli_channel *channel)
{
    const struct hli_bytes *bytes = &channel->name.bytes;
    struct hli_channel_name *other = pubsub_find(pubsub, bytes->data, bytes->length);

    if (!channel->pubsub && !other && channel_enter_map(channel, pubsub) < 0)
        return HL_ENOMEM;
    channel->is_wanted = true;
    if (!channel->pubsub)
        channel_follow(channel, other->channel);
    else if (!channel->leader)
        channel_move(channel);
    return 0;
}

void hli_channel_drop(struct hli_channel *channel)
{
    if (!channel->pubsub || !channel->is_wanted)
        return;
    channel->is_wanted = false;
    if (channel->leader)
        channel_stop_following(channel);
    else
        channel_move(channel);
}

bool hli_channel_is_shared(const struct hli_channel *channel)
{
    return channel->pubsub && (channel->leader || !TAILQ_EMPTY(&channel->followers));
}

/* A channel with two names is visited twice; the second visit changes nothing. */
static void pubsub_move(struct hli_map_node *node, void *arg)
{
    (void)arg;
    channel_move(pubsub_name_of(node)->channel);
}

void hli_pubsub_up(struct hli_pubsub *pubsub)
{
    pubsub->is_up = true;
    hli_map_each(&pubsub->channels, pubsub_move, NULL);
}

/* Sets *arg to the channel if it is not needed any more. */
static void pubsub_find_stale(struct hli_map_node *node, void *arg)
{
    struct hli_channel *channel = pubsub_name_of(node)->channel, **ret_stale = arg;

    if (channel->state == HLI_CHANNEL_ON)
        channel->state = HLI_CHANNEL_OFF;
    if (channel->state == HLI_CHANNEL_OFF && !channel_is_needed(channel))
        *ret_stale = channel;
}

/* Removes unwanted channels from the map: one for each walk, since a visit must not change the map.
 */
void hli_pubsub_down(struct hli_pubsub *pubsub)
{
    struct hli_channel *stale;

    pubsub->is_up = false;
    do {
        stale = NULL;
        hli_map_each(&pubsub->channels, pubsub_find_stale, &stale);
        if (stale)
            channel_move(stale);
    } while (stale);
}

bool hli_pubsub_is_mailbox(const struct hli_pubsub *pubsub, const struct hli_reply *reply)
{
    const struct hli_channel *mailbox = pubsub->mailbox;
    const struct hli_reply *name = hli_reply_text_at(reply, 1);

    return mailbox && name && name->length == mailbox->name.bytes.length &&
           memcmp(name->text, mailbox->name.bytes.data, name->length) == 0;
}

static void pubsub_tell(struct hli_channel_name *name, struct hli_bytes text)
{
    struct hli_channel *channel = name->channel, *follower;
    int64_t left = strtoll(text.data, NULL, 10);

    if (left <= 0)
        left = INT64_MAX;
    const struct hli_message message = {
        .is_beside = name == &channel->beside, .left = &left, .text = text};
    if (channel->is_wanted)
        channel->message(channel, &message);
    TAILQ_FOREACH (follower, &channel->followers, link)
        follower->message(follower, &message);
}

void hli_pubsub_message(struct hli_pubsub *pubsub, const struct hli_reply *reply)
{
    const struct hli_reply *name = hli_reply_text_at(reply, 1), *text = hli_reply_text_at(reply, 2);

    if (!name || !text)
        return;
    const struct hli_message message = {.text = {text->text, text->length}};
    if (hli_pubsub_is_mailbox(pubsub, reply)) {
        pubsub->mailbox->message(pubsub->mailbox, &message);
        return;
    }
    struct hli_channel_name *found = pubsub_find(pubsub, name->text, name->length);
    if (found)
        pubsub_tell(found, message.text);
}
