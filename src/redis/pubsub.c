/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Subscriptions. A channel moves between OFF, JOINING, ON and LEAVING, with at most one command of
 * its own in flight. */
#include "redis/pubsub.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <stdio.h>
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
    TAILQ_FOREACH (follower, &channel->followers, link) {
        follower->is_denied = channel->is_denied;
        if (follower->confirmed)
            follower->confirmed(follower);
    }
}

static void channel_note_denial(struct hli_channel *channel, const struct hli_answer *answer)
{
    channel->is_denied = answer->verdict == HLI_FAILED;
    if (channel->is_denied)
        snprintf(channel->pubsub->denial, sizeof(channel->pubsub->denial), "%s", answer->text);
}

static void channel_move_away(struct hli_channel *channel);

static void channel_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_channel *channel = HLI_PART_OF(op, struct hli_channel, op);
    bool joined = channel->state == HLI_CHANNEL_JOINING;

    if (channel->is_interrupted)
        return; /* channel_left() goes on */
    if (joined && channel->moved && hli_answer_is(answer, "MOVED")) {
        channel_move_away(channel);
        return;
    }
    bool is_on = joined && (answer->verdict == HLI_REPLIED || answer->verdict == HLI_FAILED);
    channel->state = is_on ? HLI_CHANNEL_ON : HLI_CHANNEL_OFF;
    if (is_on) {
        channel_note_denial(channel, answer);
        channel_confirm(channel);
    }
    /* A busy server refused it: do not subscribe again at once, but with the next
     * hli_channel_want() and the next keepalive (hli_pubsub_up). */
    if (answer->verdict != HLI_REFUSED || !channel_is_needed(channel))
        channel_move(channel);
}

/* How many channels it has. */
static unsigned channel_count(const struct hli_channel *channel)
{
    unsigned count = 1;

    while (count < HLI_CHANNEL_NAMES && channel->names[count].bytes.length > 0)
        count++;
    return count;
}

static bool channel_write(struct hli_channel *channel, struct hli_op *op, bool joins)
{
    const char *verb = channel->pubsub->is_sharded ? joins ? "SSUBSCRIBE" : "SUNSUBSCRIBE"
                       : joins                     ? "SUBSCRIBE"
                                                   : "UNSUBSCRIBE";
    struct hli_bytes words[1 + HLI_CHANNEL_NAMES] = {hli_bytes_of(verb)};
    unsigned count = channel_count(channel);

    for (unsigned i = 0; i < count; i++)
        words[1 + i] = channel->names[i].bytes;
    op->more_replies = count - 1;
    return hli_op_command(op, words, 1 + count) == 0;
}

static bool channel_send(struct hli_channel *channel, bool joins, enum hli_conn_when when)
{
    HLI_PART_IS(&channel->op, struct hli_channel, op);
    channel->op.done = channel_done;
    return channel_write(channel, &channel->op, joins) &&
           hli_conn_send(channel->pubsub->conn, &channel->op, when);
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
    channel->is_denied = leader->is_denied;
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
    int rc = channel_name_insert(channel, &channel->names[0]);
    for (unsigned i = 1; rc == 0 && i < channel_count(channel); i++)
        rc =
            channel_name_insert(channel, &channel->names[i]); /* only a map's first node can fail */
    if (rc < 0)
        channel->pubsub = NULL;
    return rc;
}

static void channel_leave_map(struct hli_channel *channel)
{
    for (unsigned i = 0; i < channel_count(channel); i++)
        hli_map_remove(&channel->pubsub->channels, &channel->names[i].node);
    channel->pubsub = NULL;
}

static void channel_deinit_ops(struct hli_channel *channel)
{
    hli_op_deinit(&channel->op);
    hli_op_deinit(&channel->leave);
}

/* Takes the next step towards the wanted state. If memory is out, the next hli_channel_want() or
 * the next connection takes it. */
static void channel_move(struct hli_channel *channel)
{
    struct hli_pubsub *pubsub = channel->pubsub;
    bool is_needed = channel_is_needed(channel);

    if (is_needed && channel->state == HLI_CHANNEL_OFF && pubsub->is_up) {
        if (channel_send(channel, true, HLI_CONN_AT_ONCE))
            channel->state = HLI_CHANNEL_JOINING;
    } else if (!is_needed && channel->state == HLI_CHANNEL_ON && pubsub->is_up) {
        if (channel_send(channel, false, HLI_CONN_AT_ONCE))
            channel->state = HLI_CHANNEL_LEAVING;
    }
    if (!is_needed && channel->state == HLI_CHANNEL_OFF) {
        channel_leave_map(channel);
        channel_deinit_ops(channel);
        if (channel->gone)
            channel->gone(channel);
    }
}

/* The subscription has ended at this node. Its owner, and those of its followers, may want it at
 * another. */
static void channel_move_away(struct hli_channel *channel)
{
    struct hli_channel *follower;

    channel->state = HLI_CHANNEL_OFF;
    channel_leave_map(channel);
    channel_deinit_ops(channel);
    while ((follower = TAILQ_FIRST(&channel->followers))) {
        TAILQ_REMOVE(&channel->followers, follower, link);
        follower->leader = NULL;
        follower->pubsub = NULL;
        follower->moved(follower);
    }
    if (channel->is_wanted)
        channel->moved(channel);
    else if (channel->gone)
        channel->gone(channel);
}

int hli_channel_want(struct hli_pubsub *pubsub, struct hli_channel *channel)
{
    const struct hli_bytes *bytes = &channel->names[0].bytes;
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

/* A channel with several names is visited as often; the later visits change nothing. */
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

/* --- an interruption --- */

static bool channel_is_entered(const struct hli_channel_name *name)
{
    const struct hli_channel *channel = name->channel;

    return name == &channel->names[0] &&
           (channel->state == HLI_CHANNEL_ON || channel->state == HLI_CHANNEL_JOINING);
}

static void channel_left(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_channel *channel = HLI_PART_OF(op, struct hli_channel, leave);

    (void)answer;
    channel->is_interrupted = false;
    if (!channel->is_undone)
        return; /* the SUBSCRIBE behind it is in flight */
    channel->is_undone = false;
    channel->state = HLI_CHANNEL_OFF;
    channel_move(channel);
}

static void pubsub_write_leave(struct hli_map_node *node, void *arg)
{
    struct hli_channel_name *name = pubsub_name_of(node);
    bool *is_whole = arg;

    HLI_PART_IS(&name->channel->leave, struct hli_channel, leave);
    name->channel->leave.done = channel_left;
    if (channel_is_entered(name) && !channel_write(name->channel, &name->channel->leave, false))
        *is_whole = false;
}

static void pubsub_leave(struct hli_map_node *node, void *arg)
{
    struct hli_channel_name *name = pubsub_name_of(node);
    struct hli_pubsub *pubsub = arg;

    if (channel_is_entered(name))
        name->channel->is_interrupted =
            hli_conn_send(pubsub->conn, &name->channel->leave, HLI_CONN_WITH_NEXT);
}

/* A SUBSCRIBE that was in flight stands before the command that leaves: it is sent again when that
 * is answered. */
static void pubsub_enter_again(struct hli_map_node *node, void *arg)
{
    struct hli_channel_name *name = pubsub_name_of(node);
    struct hli_channel *channel = name->channel;

    (void)arg;
    if (name != &channel->names[0] || !channel->is_interrupted)
        return;
    channel->is_undone =
        channel->state == HLI_CHANNEL_JOINING || !channel_send(channel, true, HLI_CONN_WITH_NEXT);
    channel->state = HLI_CHANNEL_JOINING;
}

/* The connection must not stay subscribed to any channel, or it refuses what follows. */
bool hli_pubsub_interrupt(struct hli_pubsub *pubsub, struct hli_op *op)
{
    bool is_whole = true;

    hli_map_each(&pubsub->channels, pubsub_write_leave, &is_whole);
    if (!is_whole || !pubsub->is_up)
        return false;
    hli_map_each(&pubsub->channels, pubsub_leave, pubsub);
    bool is_sent = hli_conn_send(pubsub->conn, op, HLI_CONN_WITH_NEXT);
    hli_map_each(&pubsub->channels, pubsub_enter_again, NULL);
    return is_sent;
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

/* "hirelock:<uuid>", or "hirelock:{name}:<uuid>": the colon is in both halves. */
bool hli_pubsub_is_mailbox(const struct hli_pubsub *pubsub, const struct hli_reply *reply)
{
    const struct hli_bytes *mailbox = pubsub->mailbox ? &pubsub->mailbox->names[0].bytes : NULL;
    const struct hli_reply *name = hli_reply_text_at(reply, 1);
    const char *colon = mailbox ? memchr(mailbox->data, ':', mailbox->length) : NULL;

    if (!colon || !name || name->length < mailbox->length)
        return false;
    size_t before = (size_t)(colon - (const char *)mailbox->data),
           behind = mailbox->length - before;
    return memcmp(name->text, mailbox->data, before + 1) == 0 &&
           memcmp(name->text + name->length - behind, colon, behind) == 0;
}

static struct hli_channel *pubsub_channel_of(const struct hli_pubsub *pubsub,
                                             const struct hli_reply *reply)
{
    const struct hli_reply *name = hli_reply_text_at(reply, 1);
    const struct hli_channel_name *found =
        name ? pubsub_find(pubsub, name->text, name->length) : NULL;

    return found ? found->channel : NULL;
}

/* The subscription that has sent this request, or NULL. */
static const struct hli_channel *channel_of(const struct hli_op *op)
{
    if (op && op->done == channel_done)
        return HLI_PART_OF(op, struct hli_channel, op);
    return op && op->done == channel_left ? HLI_PART_OF(op, struct hli_channel, leave) : NULL;
}

/* "MOVED 3999 127.0.0.1:6381" answers only a request about this slot, and "sunsubscribe" only one
 * that leaves this channel. */
bool hli_pubsub_is_moved(const struct hli_pubsub *pubsub, const struct hli_reply *reply,
                         const struct hli_op *oldest)
{
    static const char moved[] = "MOVED ";
    const struct hli_channel *asker = channel_of(oldest);
    const struct hli_reply *kind = hli_reply_text_at(reply, 0);

    if (pubsub->is_sharded && reply->kind == HLI_REPLY_ERROR &&
        strncmp(reply->text, moved, strlen(moved)) == 0)
        return !asker || strtoul(reply->text + strlen(moved), NULL, 10) != asker->slot;
    if (!kind || strcmp(kind->text, "sunsubscribe") != 0)
        return false;
    bool leaves = asker && (asker->state == HLI_CHANNEL_LEAVING || oldest == &asker->leave);
    return !leaves || pubsub_channel_of(pubsub, reply) != asker;
}

/* The server tells it of each channel; the first word of a subscription ends it. MOVED names none:
 * the subscription has ended before. */
void hli_pubsub_moved(struct hli_pubsub *pubsub, const struct hli_reply *reply)
{
    struct hli_channel *channel = pubsub_channel_of(pubsub, reply);

    if (!channel || channel->state != HLI_CHANNEL_ON)
        return;
    if (channel->moved)
        channel_move_away(channel);
    else
        channel->state = HLI_CHANNEL_OFF;
}

static void pubsub_tell(struct hli_channel_name *name, struct hli_bytes text)
{
    struct hli_channel *channel = name->channel, *follower;
    int64_t left = strtoll(text.data, NULL, 10);

    if (left <= 0)
        left = INT64_MAX;
    const struct hli_message message = {
        .which = (size_t)(name - channel->names), .left = &left, .text = text};
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
