/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tallies. */
#include "lease/several/tally.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static struct hli_reply *tally_begin(struct hli_tally_reply *reply, size_t length)
{
    memset(reply, 0, sizeof(*reply));
    reply->reply.kind = HLI_REPLY_ARRAY;
    reply->reply.length = length;
    return &reply->reply;
}

static void tally_put(struct hli_tally_reply *reply, size_t index, struct hli_reply *item)
{
    struct hli_reply **items = reply->reply.item;

    items[index] = item;
}

static void tally_set(struct hli_tally_reply *reply, size_t index, int64_t number)
{
    reply->number[index] = (struct hli_reply){.kind = HLI_REPLY_INTEGER, .integer = number};
    tally_put(reply, index, &reply->number[index]);
}

const struct hli_reply *hli_tally_yes(struct hli_tally_reply *reply)
{
    struct hli_reply *made = tally_begin(reply, 2);

    tally_set(reply, 0, 1);
    tally_set(reply, 1, 1);
    return made;
}

const struct hli_reply *hli_tally_gone(struct hli_tally_reply *reply)
{
    struct hli_reply *made = tally_begin(reply, 1);

    tally_set(reply, 0, 0);
    return made;
}

/* The first of those that most masters name. */
static const hl_lock_info *tally_holder(const struct hli_ballot *ballot)
{
    const struct hli_quorum *quorum = ballot->tenure.name->quorum;
    const hl_lock_info *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < quorum->count; i++) {
        const hl_lock_info *info = &ballot->votes[i].err.busy;
        size_t same = 0;
        for (size_t j = 0; j < quorum->count; j++)
            same += ballot->votes[j].code == HL_EBUSY &&
                    strcmp(ballot->votes[j].err.busy.owner, info->owner) == 0;
        if (ballot->votes[i].code == HL_EBUSY && same > most) {
            most = same;
            best = info;
        }
    }
    return best;
}

/* {0, pttl, seconds, microseconds, holder, count} */
const struct hli_reply *hli_tally_no(const struct hli_ballot *ballot, struct hli_tally_reply *reply)
{
    struct hli_reply *made = tally_begin(reply, HLI_TALLY_ITEMS);
    const hl_lock_info *info = tally_holder(ballot);
    struct hli_reply *holder = &reply->holder.reply;

    for (size_t i = 0; i < HLI_TALLY_ITEMS; i++)
        tally_set(reply, i, 0);
    tally_set(reply, 1, info ? info->lease_left_ms : -1);
    tally_set(reply, 5, 1);
    holder->kind = HLI_REPLY_STRING;
    holder->length = info ? strlen(info->owner) : 0;
    if (info)
        memcpy(holder->text, info->owner, holder->length + 1);
    tally_put(reply, 4, holder);
    return made;
}

const char *hli_tally_reason(const hl_error *err)
{
    const char *behind = strstr(err->text, "': ");

    return behind ? behind + 3 : err->text;
}

static bool tally_is_silent(const struct hli_vote *vote)
{
    return hli_vote_state_of(vote) == HLI_VOTE_NONE && vote->code != HL_EBUSY &&
           vote->code != HL_ECANCELED;
}

/* Why this master has no vote. */
static void tally_write_reason(const struct hli_ballot *ballot, const struct hli_vote *vote,
                               char *text, size_t size)
{
    char where[HLI_WHERE_SIZE];

    if (vote->err.code < 0) {
        snprintf(text, size, "%s", hli_tally_reason(&vote->err));
        return;
    }
    hli_quorum_where(ballot->tenure.name->quorum, (size_t)(vote - ballot->votes), where);
    snprintf(text, size, "no answer from %s within %lld ms", where, (long long)ballot->vote_ms);
}

struct tally {
    size_t no, silent;
    int code; /* of the silent ones, if they have the same; else HL_ECONN */
    char reasons[HLI_QUORUM_TALLY];
};

static bool tally_is_new(const struct hli_ballot *ballot, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (tally_is_silent(&ballot->votes[i]) &&
            ballot->votes[i].code == ballot->votes[index].code)
            return false;
    return true;
}

static void tally_add_reason(struct tally *tally, const struct hli_ballot *ballot, size_t index)
{
    char reason[128];
    size_t used = strlen(tally->reasons);

    tally_write_reason(ballot, &ballot->votes[index], reason, sizeof(reason));
    snprintf(tally->reasons + used, sizeof(tally->reasons) - used, "%s%s", used > 0 ? "; " : "",
             reason);
}

/* One reason of each code: a master that restarted has a vote by itself later, and one that is out
 * of reach needs somebody. */
static struct tally tally_count(const struct hli_ballot *ballot)
{
    struct tally tally = {.code = HL_OK};

    for (size_t i = 0; i < ballot->tenure.name->quorum->count; i++) {
        const struct hli_vote *vote = &ballot->votes[i];
        tally.no += vote->code == HL_EBUSY && hli_vote_state_of(vote) == HLI_VOTE_NONE;
        if (!tally_is_silent(vote))
            continue;
        tally.silent++;
        if (tally_is_new(ballot, i))
            tally_add_reason(&tally, ballot, i);
        tally.code = tally.code == HL_OK || tally.code == vote->code ? vote->code : HL_ECONN;
    }
    return tally;
}

/* "3 of 5 masters said no, 1 yes, 1 did not vote (connect 10.0.0.3:6379: connection refused)" */
int hli_tally_write(const struct hli_ballot *ballot, size_t yes, bool is_busy,
                    char text[HLI_QUORUM_TALLY])
{
    struct hli_name *name = ballot->tenure.name;
    size_t count = name->quorum->count, used = 0;
    struct tally tally = tally_count(ballot);

    if (is_busy)
        used =
            (size_t)snprintf(text, HLI_QUORUM_TALLY, "%zu of %zu masters said no", tally.no, count);
    else
        used = (size_t)snprintf(text, HLI_QUORUM_TALLY, "only %zu of %zu masters voted",
                                yes + tally.no, count);
    if (is_busy && yes > 0)
        used += (size_t)snprintf(text + used, HLI_QUORUM_TALLY - used, ", %zu yes", yes);
    if (is_busy && tally.silent > 0)
        used += (size_t)snprintf(text + used, HLI_QUORUM_TALLY - used, ", %zu did not vote",
                                 tally.silent);
    if (tally.silent > 0)
        snprintf(text + used, HLI_QUORUM_TALLY - used, " (%s)", tally.reasons);
    hli_mutex_lock(&name->mutex);
    memcpy(name->quorum->tally, text, HLI_QUORUM_TALLY);
    hli_mutex_unlock(&name->mutex);
    return tally.code < 0 && tally.code != HL_ENOTOWNER ? tally.code : HL_ECONN;
}

void hli_tally_miss(const struct hli_ballot *ballot, struct hli_vote *vote, int code)
{
    vote->code = code;
    hli_vote_count(ballot->tenure.name->client, vote);
}

void hli_tally_twin(const struct hli_quorum *quorum, struct hli_vote *vote, size_t twin)
{
    char where[HLI_WHERE_SIZE];

    hli_quorum_where(quorum, twin, where);
    vote->code = hli_fail(&vote->err, HL_EINVAL, "two masters are the same server: %s", where);
}
