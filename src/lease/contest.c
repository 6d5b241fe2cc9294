/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Contests: the subscription, the timer, and what was heard. */
#include "lease/contest.h"

#include "lease/wake.h"

#include <stdio.h>
#include <string.h>

static void contest_on_confirmed(struct hli_channel *channel)
{
    hli_wake_on_confirmed(HLI_OF(channel, struct hli_contest, channel)->name);
}

/* One who needs more than there seem to be may be wrong, or they are, and asks beside the others.
 */
static void contest_wake_counted(struct hli_name *name, int64_t *left)
{
    int64_t need = name->kind->need(name);

    if (*left > 0 && hli_wake_on_message(name) && need <= *left)
        *left -= need;
}

static void contest_on_message(struct hli_channel *channel, const struct hli_message *message)
{
    struct hli_name *name = HLI_OF(channel, struct hli_contest, channel)->name;

    if (message->is_beside)
        hli_wake_on_courtesy(name);
    else if (name->kind->need)
        contest_wake_counted(name, message->left);
    else
        hli_wake_on_message(name);
}

static void contest_on_channel_gone(struct hli_channel *channel)
{
    struct hli_contest *contest = HLI_OF(channel, struct hli_contest, channel);

    contest->has_channel_ref = false;
    hli_name_unref(contest->name);
}

static void contest_listen_now(struct hli_contest *contest)
{
    struct hli_name *name = contest->name;

    if (atomic_load(&name->client->is_closed))
        return; /* nobody would drop it any more */
    if (!contest->has_channel_ref) {
        contest->has_channel_ref = true;
        hli_name_ref(name); /* the channel's, dropped in contest_on_channel_gone */
    }
    if (hli_channel_want(hli_link_pubsub(name->client->link), &contest->channel) < 0)
        contest_on_channel_gone(
            &contest->channel); /* no memory: the next busy answer tries again */
}

static void contest_listen_posted(void *arg)
{
    struct hli_contest *contest = arg;
    struct hli_name *name = contest->name;

    pthread_mutex_lock(&name->mutex);
    contest->is_listen_posted = false;
    pthread_mutex_unlock(&name->mutex);
    contest_listen_now(contest);
    hli_name_unref(name); /* the task's */
}

void hli_contest_listen(struct hli_contest *contest)
{
    struct hli_name *name = contest->name;

    if (hli_loop_is_current(name->client->loop)) {
        contest_listen_now(contest);
        return;
    }
    pthread_mutex_lock(&name->mutex);
    bool is_posted = contest->is_listen_posted;
    contest->is_listen_posted = true;
    pthread_mutex_unlock(&name->mutex);
    if (is_posted)
        return;
    hli_name_ref(name); /* the task's, dropped in contest_listen_posted */
    if (!hli_loop_post(name->client->loop, &contest->listen))
        hli_name_unref(name);
}

void hli_contest_stop_listening(struct hli_contest *contest)
{
    hli_channel_drop(&contest->channel);
}

static void contest_on_timer(void *arg)
{
    struct hli_contest *contest = arg;
    struct hli_name *name = contest->name;

    hli_wake_on_timer(name);
    hli_name_unref(name); /* the timer's */
}

static void contest_on_timer_orphaned(void *arg)
{
    hli_name_unref(((struct hli_contest *)arg)->name); /* the timer's */
}

/* Who wants to tell Redisson's waiters from ours listens to two channels. */
static size_t contest_write_own_channel(const struct hli_name *name, char text[HLI_CHANNEL_SIZE])
{
    return name->kind->is_handed_on ? hli_name_write(name, HLI_NAME_OWN_CHANNEL, text) : 0;
}

static struct hli_contest *contest_new(struct hli_name *name)
{
    char channel[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE];
    size_t lengths[] = {hli_name_write_channel(name, channel),
                        contest_write_own_channel(name, own)};
    struct hli_contest *contest = calloc(1, sizeof(*contest) + lengths[0] + lengths[1]);

    if (!contest)
        return NULL;
    contest->name = name;
    memcpy(contest->bytes, channel, lengths[0]);
    memcpy(contest->bytes + lengths[0], own, lengths[1]);
    contest->channel.name.bytes = (struct hli_bytes){contest->bytes, lengths[0]};
    contest->channel.beside.bytes = (struct hli_bytes){contest->bytes + lengths[0], lengths[1]};
    contest->channel.confirmed = contest_on_confirmed;
    contest->channel.message = contest_on_message;
    contest->channel.gone = contest_on_channel_gone;
    contest->listen = (struct hli_task){.run = contest_listen_posted, .arg = contest};
    contest->timer = (struct hli_timer){
        .run = contest_on_timer, .orphaned = contest_on_timer_orphaned, .arg = contest};
    return contest;
}

struct hli_contest *hli_contest_of(struct hli_name *name)
{
    if (!name->contest)
        name->contest = contest_new(name);
    return name->contest;
}

void hli_contest_free(struct hli_contest *contest)
{
    if (contest)
        free(contest->busy.holder);
    free(contest);
}

void hli_contest_stand_back(struct hli_contest *contest, hli_ns now)
{
    contest->stands_back_until = hli_after_ms(now, HLI_STAND_BACK_MS);
    contest->courteous_at = now;
}

bool hli_contest_is_courteous(const struct hli_name *name, hli_ns now)
{
    return !name->contest || now >= hli_after_ms(name->contest->courteous_at, HLI_COURTESY_MS);
}

/* Without memory the text is lost, and the caller is told that no answer came. */
void hli_contest_note_problem(struct hli_name *name, int code, const char *text)
{
    struct hli_contest *contest = hli_contest_of(name);

    if (!contest)
        return;
    contest->problem = code;
    snprintf(contest->problem_text, sizeof(contest->problem_text), "%s", text);
}

void hli_contest_forget_problem(struct hli_name *name)
{
    if (!name->contest)
        return;
    name->contest->problem = 0;
    name->contest->refusals = 0;
}
