/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Contention: the subscription, the timer, and the server's problems. */
#include "lease/state/contention.h"

#include "lease/state/command.h"

#include <stdio.h>
#include <string.h>

/* A subscription to a name's channels, or to that of one of its tenures. It outlives its end by the
 * answer to UNSUBSCRIBE. Loop thread. */
struct hli_listener {
    struct hli_channel channel;
    struct hli_name *name; /* counted */
    char bytes[];          /* the names of its channels */
};

static struct hli_listener *listener_of(struct hli_channel *channel)
{
    return HLI_OF(channel, struct hli_listener, channel);
}

void hli_contention_tell_denied(hl_client *client, const struct hli_channel *channel)
{
    const struct hli_pubsub *pubsub = channel->leader ? channel->leader->pubsub : channel->pubsub;

    hli_count(&client->counters.channels_denied);
    if (atomic_exchange(&client->has_told_denial, true))
        return;
    hli_log(client, HL_LOG_WARN,
            "the server refuses a subscription (%s): no message comes, and waiters poll; since "
            "Redis 7 a user needs channels, too: docs/semantics.md lists them",
            pubsub->denial);
    hli_client_tell(client,
                    &(const hl_event){.kind = HL_EVENT_CHANNELS_DENIED, .reason = pubsub->denial});
}

bool hli_contention_is_denied(const struct hli_contention *contention)
{
    return contention->listener && contention->listener->channel.is_denied;
}

static void contention_on_confirmed(struct hli_channel *channel)
{
    struct hli_name *name = listener_of(channel)->name;

    if (channel->is_denied)
        hli_contention_tell_denied(name->client, channel);
    name->client->engine->on_confirmed(name);
}

/* A waiter that needs more units than the message announces asks nevertheless, because the number
 * may be out of date; it uses up none of them. */
static void contention_wake_counted(struct hli_name *name, int64_t *left)
{
    int64_t need = name->kind->need(name);

    if (*left > 0 && name->client->engine->on_message(name) && need <= *left)
        *left -= need;
}

static void contention_on_message(struct hli_channel *channel, const struct hli_message *message)
{
    struct hli_name *name = listener_of(channel)->name;

    if (message->which > 0) /* our own channel; a mailbox's messages go to the client's */
        name->client->engine->on_yield(name);
    else if (name->kind->need)
        contention_wake_counted(name, message->left);
    else
        name->client->engine->on_message(name);
}

static void contention_on_channel_gone(struct hli_channel *channel)
{
    hli_name_unref(listener_of(channel)->name);
    free(listener_of(channel));
}

/* The subscription will be had at another node, by the busy answer that comes from there. */
static void contention_on_channel_moved(struct hli_channel *channel)
{
    struct hli_name *name = listener_of(channel)->name;

    name->contention->listener = NULL;
    name->client->engine->on_moved(name);
    contention_on_channel_gone(channel);
}

/* Writes the channels behind the first. A kind that tells Redisson's waiters from ours listens to
 * our own channel, too; and in a cluster to this client's mailbox for the name. Returns the total
 * length. */
static size_t listener_write_others(const struct hli_name *name, char *text,
                                    size_t lengths[HLI_CHANNEL_NAMES])
{
    if (!name->kind->is_handed_on)
        return 0;
    size_t used = lengths[1] = hli_name_write(name, HLI_NAME_OWN_CHANNEL, text);
    if (!name->client->wording->is_for_cluster)
        return used;
    used += hli_command_write_mailbox(name, text + used);
    memcpy(text + used, name->client->id, HLI_UUID_LENGTH);
    used += HLI_UUID_LENGTH;
    lengths[2] = used - lengths[1];
    return used;
}

static struct hli_listener *listener_new(struct hli_name *name, struct hli_bytes channel)
{
    char others[2 * HLI_CHANNEL_SIZE];
    size_t lengths[HLI_CHANNEL_NAMES] = {channel.length};
    size_t others_length = listener_write_others(name, others, lengths);
    struct hli_listener *listener = calloc(1, sizeof(*listener) + channel.length + others_length);

    if (!listener)
        return NULL;
    hli_name_ref(name); /* the listener's, dropped in contention_on_channel_gone */
    listener->name = name;
    listener->channel.slot = name->slot;
    memcpy(listener->bytes, channel.data, channel.length);
    memcpy(listener->bytes + channel.length, others, others_length);
    const char *at = listener->bytes;
    for (size_t i = 0; i < HLI_CHANNEL_NAMES; at += lengths[i++])
        listener->channel.names[i].bytes = (struct hli_bytes){at, lengths[i]};
    listener->channel.confirmed = contention_on_confirmed;
    listener->channel.message = contention_on_message;
    listener->channel.gone = contention_on_channel_gone;
    listener->channel.moved = contention_on_channel_moved;
    return listener;
}

static bool listener_hears(const struct hli_listener *listener, struct hli_bytes channel)
{
    const struct hli_bytes *heard = &listener->channel.names[0].bytes;

    return heard->length == channel.length && memcmp(heard->data, channel.data, heard->length) == 0;
}

/* Without memory the next busy answer tries again. */
static void contention_subscribe(struct hli_contention *contention, struct hli_bytes channel)
{
    struct hli_name *name = contention->name;
    struct hli_pubsub *pubsub = hli_link_pubsub(hli_name_link(name));

    if (contention->listener && !listener_hears(contention->listener, channel))
        hli_contention_stop_listening(contention);
    if (!contention->listener)
        contention->listener = listener_new(name, channel);
    if (contention->listener && hli_channel_want(pubsub, &contention->listener->channel) < 0) {
        contention_on_channel_gone(&contention->listener->channel);
        contention->listener = NULL;
    }
}

/* The channel to be heard now; 0: none. Name mutex. */
static size_t contention_write_channel(const struct hli_contention *contention,
                                       char text[HLI_CHANNEL_SIZE])
{
    const struct hli_name *name = contention->name;

    if (!contention->listens)
        return 0;
    if (!name->kind->write_channel)
        return hli_name_write(name, name->kind->channel, text);
    return name->current ? name->kind->write_channel(name->current, text) : 0;
}

static void contention_listen_posted(void *arg)
{
    struct hli_contention *contention = arg;
    struct hli_name *name = contention->name;
    char text[HLI_CHANNEL_SIZE];

    hli_mutex_lock(&name->mutex);
    contention->is_listen_posted = false;
    size_t length = contention_write_channel(contention, text);
    hli_mutex_unlock(&name->mutex);
    if (length > 0 && !atomic_load(&name->client->is_closed)) /* later nothing would drop it */
        contention_subscribe(contention, (struct hli_bytes){text, length});
    hli_name_unref(name); /* the task's */
}

void hli_contention_listen(struct hli_contention *contention)
{
    struct hli_name *name = contention->name;

    hli_name_ref(name); /* the task's, dropped in contention_listen_posted */
    if (!hli_loop_post(name->client->loop, &contention->listen))
        hli_name_unref(name);
}

void hli_contention_stop_listening(struct hli_contention *contention)
{
    struct hli_listener *listener = contention->listener;

    contention->listener = NULL;
    if (listener)
        hli_channel_drop(&listener->channel);
}

bool hli_contention_is_shared(const struct hli_contention *contention)
{
    return contention->listener && hli_channel_is_shared(&contention->listener->channel);
}

static void contention_on_timer(void *arg)
{
    struct hli_name *name = ((struct hli_contention *)arg)->name;

    name->client->engine->on_timer(name);
    hli_name_unref(name); /* the timer's */
}

static void contention_on_timer_orphaned(void *arg)
{
    hli_name_unref(((struct hli_contention *)arg)->name); /* the timer's */
}

static struct hli_contention *contention_new(struct hli_name *name)
{
    struct hli_contention *contention = calloc(1, sizeof(*contention));

    if (!contention)
        return NULL;
    contention->name = name;
    contention->timer_at = HLI_NEVER;
    contention->listen = (struct hli_task){.run = contention_listen_posted, .arg = contention};
    contention->timer = (struct hli_timer){
        .run = contention_on_timer, .orphaned = contention_on_timer_orphaned, .arg = contention};
    return contention;
}

struct hli_contention *hli_contention_of(struct hli_name *name)
{
    if (!name->contention)
        name->contention = contention_new(name);
    return name->contention;
}

void hli_contention_yield(struct hli_contention *contention, hli_ns now)
{
    contention->yields_until = hli_after_ms(now, HLI_YIELD_MS);
    contention->yielded_at = now;
}

bool hli_contention_may_yield(const struct hli_name *name, hli_ns now)
{
    return !name->contention ||
           now >= hli_after_ms(name->contention->yielded_at, HLI_YIELD_EVERY_MS);
}

/* Without memory the text is lost, and the error says that no answer came. */
void hli_contention_note_problem(struct hli_name *name, int code, const char *text)
{
    struct hli_contention *contention = hli_contention_of(name);

    if (!contention)
        return;
    contention->problem = code;
    snprintf(contention->problem_text, sizeof(contention->problem_text), "%s", text);
}

void hli_contention_forget_problem(struct hli_contention *contention)
{
    contention->problem = 0;
    contention->refusals = 0;
}
