/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Refusals: what a call is told that gets nothing. */
#include "base/error.h"
#include "lease/acquire.h"
#include "lease/contest.h"
#include "lease/tag.h"

#include <stdio.h>
#include <string.h>

static void refusal_count(hl_client *client, int code)
{
    struct hli_counters *counters = &client->counters;

    if (code == HL_EBUSY)
        hli_count(&counters->busy);
    else if (code == HL_ETIMEDOUT)
        hli_count(&counters->timeouts);
    else if (code == HL_ECANCELED)
        hli_count(&counters->cancels);
}

void hli_acquire_fail(struct hli_turn *turn, struct hli_acquire *acquire, int code,
                      const char *text)
{
    struct hli_name *name = turn->name;
    char shown[96];

    hli_acquire_withdraw(turn, acquire);
    refusal_count(name->client, code);
    hli_fail(acquire->wait.err, code, "%s '%s': %s",
             name->kind->verb ? name->kind->verb : "acquire",
             hli_error_escape(shown, sizeof(shown), name->bytes, name->length), text);
    hli_turn_finish(turn, &acquire->wait, code);
}

static void refusal_tell_tag(const struct hli_turn *turn, hl_lock_info *info)
{
    const struct hli_name *name = turn->name;
    struct hli_holder holder = {.pid = 0};

    if (name->current && name->current->state == HLI_TENURE_OWN) {
        if (name->current->tag)
            hli_tag_read_own(name->current, turn->now, &holder);
    } else if (name->contest && name->contest->busy.holder) {
        holder = *name->contest->busy.holder;
        holder.held_ms += (turn->now - name->contest->busy.at) / 1000000;
    }
    hli_tag_tell(&holder, info);
}

/* What a caller of an older version has no room for is left out. */
static void refusal_tell_busy(const struct hli_turn *turn, hl_lock_info *ret_busy)
{
    const struct hli_name *name = turn->name;
    const struct hli_tenure *tenure = name->current;
    hl_lock_info info = HL_LOCK_INFO_INIT;

    info.locked = true;
    if (tenure && tenure->state == HLI_TENURE_OWN) {
        info.mine = true;
        info.hold_count = tenure->hold.count;
        info.lease_left_ms = hli_ms_left(turn->now, tenure->valid_until);
        hli_tenure_field(tenure, info.owner);
    } else if (name->contest) {
        const struct hli_busy *busy = &name->contest->busy;
        info.mine = strncmp(busy->owner, name->client->id, HLI_UUID_LENGTH) == 0;
        info.hold_count = busy->count;
        info.lease_left_ms = busy->pttl_ms;
        memcpy(info.owner, busy->owner, sizeof(info.owner));
    }
    refusal_tell_tag(turn, &info);
    size_t size = ret_busy->size < sizeof(info) ? ret_busy->size : sizeof(info);
    info.size = ret_busy->size;
    memcpy(ret_busy, &info, size);
}

/* What stands in the way: borrowed. */
static const char *refusal_obstacle(const struct hli_name *name)
{
    if (name->kind->lacks)
        return name->kind->lacks;
    if (name->current && name->current->state == HLI_TENURE_OWN)
        return "another owner of this client";
    return name->contest && name->contest->busy.owner[0] ? name->contest->busy.owner
                                                         : "another owner";
}

void hli_acquire_fail_busy(struct hli_turn *turn, struct hli_acquire *acquire, int code)
{
    char text[160];

    if (acquire->ret_busy)
        refusal_tell_busy(turn, acquire->ret_busy);
    snprintf(text, sizeof(text), "%s%s%s", code == HL_EBUSY ? "" : "the wait time is over; ",
             turn->name->kind->lacks ? "" : "held by ", refusal_obstacle(turn->name));
    hli_acquire_fail(turn, acquire, code, text);
}

static int refusal_problem(const struct hli_name *name)
{
    return name->contest ? name->contest->problem : 0;
}

/* Nothing was heard: the reason for that. */
void hli_acquire_fail_unheard(struct hli_turn *turn, struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;
    char text[192];

    if (refusal_problem(name) < 0) {
        hli_acquire_fail(turn, acquire, name->contest->problem, name->contest->problem_text);
        return;
    }
    snprintf(text, sizeof(text), "no answer from %s within %lld ms",
             hli_link_where(name->client->link),
             (long long)((turn->now - acquire->wait.started) / 1000000));
    hli_acquire_fail(turn, acquire, HL_ECONN, text);
}

/* The wait time is over: busy, if that was the last thing we heard. */
void hli_acquire_time_out(struct hli_turn *turn, struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;
    bool is_behind_ours = name->current && name->current->state == HLI_TENURE_OWN && !acquire->got;

    if (is_behind_ours ||
        (refusal_problem(name) == 0 && name->answered_at >= acquire->wait.started))
        hli_acquire_fail_busy(turn, acquire, HL_ETIMEDOUT);
    else
        hli_acquire_fail_unheard(turn, acquire);
}
