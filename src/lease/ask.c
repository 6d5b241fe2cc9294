/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Asking. Try; when busy, subscribe; try again once the subscription is confirmed, for a release
 * may have come in between; then sleep until a message, the holder's expiry, or the poll. One
 * request of a name is in flight at a time, however many wait.
 */
#include "lease/ask.h"

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "lease/command.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/release.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ASK_QUIET_MS = 10,  /* after messages that told nothing new, when there were more than */
    ASK_MISLED_MAX = 2, /* so many in a row */
    ASK_RETRY_MS = 100, /* after a refusal, doubled up to the poll */
};

static void ask_done(struct hli_op *op, const struct hli_answer *answer);

void hli_ask_send(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking)
{
    if (tenure->longest_lease_ms < tenure->asked_lease_ms)
        tenure->longest_lease_ms = tenure->asked_lease_ms;
    if (asking == HLI_ASKING_TAKE && turn->name->asked_at == 0)
        turn->name->asked_at = turn->now;
    tenure->asking = asking;
    tenure->ask.done = ask_done;
    hli_turn_send(turn, tenure, &tenure->ask);
}

/* The first waiter that has a tenure ready, or can get one, makes it the current one. */
static struct hli_acquire *ask_begin_tenure(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head;

    while ((head = TAILQ_FIRST(&name->waiters)) && !name->current) {
        name->current = head->spare ? head->spare : hli_tenure_new(name);
        head->spare = NULL;
        if (!name->current)
            hli_acquire_fail(turn, head, HL_ENOMEM, "out of memory");
    }
    if (head && name->current->state == HLI_TENURE_NEW) {
        hli_tenure_move(name->current, HLI_TENURE_ASK);
        name->refusals = 0;
        name->problem = 0;
    }
    return head;
}

void hli_ask_go(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if ((name->current && !hli_tenure_is_contending(name->current)) || hli_release_is_pending(name))
        return;
    struct hli_acquire *head = ask_begin_tenure(turn);
    struct hli_tenure *tenure = name->current;
    if (!head || !tenure || tenure->asking != HLI_ASKING_NOTHING)
        return;
    if (hli_command_acquire(tenure, &tenure->ask, head->lease_ms, 1) < 0) {
        hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return;
    }
    tenure->asked_lease_ms = head->lease_ms;
    tenure->asked_count = 1;
    hli_ask_send(turn, tenure, HLI_ASKING_TAKE);
}

void hli_ask_abandon(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    struct hli_tenure *tenure = name->current;

    name->idle_since = turn->now;
    name->asked_at = 0;
    if (!hli_tenure_is_contending(tenure))
        return;
    if (tenure->asking != HLI_ASKING_NOTHING || tenure->may_hold)
        hli_release_quietly(turn, tenure);
    else
        hli_tenure_bury(turn, tenure);
}

void hli_ask_fail_all(struct hli_turn *turn, int code, const char *text)
{
    struct hli_acquire *acquire;

    while ((acquire = TAILQ_FIRST(&turn->name->waiters)))
        hli_acquire_fail(turn, acquire, code, text);
    hli_ask_abandon(turn);
}

/* A field of this client's that no tenure of the name knows was put there by a late command. One
 * that rests is left alone; so is one that we would have written otherwise (":007"), for its
 * release would find nothing. */
static void ask_look_for_ghost(struct hli_turn *turn)
{
    const struct hli_name *name = turn->name;
    const struct hli_tenure *tenure;
    char field[HLI_FIELD_SIZE];

    if (strncmp(name->busy.owner, name->client->id, HLI_UUID_LENGTH) != 0 ||
        name->busy.count == 0 || name->busy.owner[HLI_UUID_LENGTH] != ':')
        return;
    uint64_t number = strtoull(name->busy.owner + HLI_UUID_LENGTH + 1, NULL, 10);
    snprintf(field, sizeof(field), "%s:%" PRIu64, name->client->id, number);
    if (strcmp(field, name->busy.owner) != 0 || (name->current && name->current->number == number))
        return;
    TAILQ_FOREACH (tenure, &name->past, link)
        if (tenure->number == number)
            return;
    hli_release_ghost(turn, number);
}

/* Tries are answered by a request that was sent after they began: an older answer may be from
 * before a release that the caller knows of. True when there are some left. */
static bool ask_finish_tries(struct hli_turn *turn, hli_ns sent_at)
{
    struct hli_acquire *acquire = TAILQ_FIRST(&turn->name->waiters);
    bool has_later = false;

    while (acquire) {
        struct hli_acquire *next = TAILQ_NEXT(acquire, link);
        if (acquire->is_try && acquire->wait.started <= sent_at)
            hli_acquire_fail_busy(turn, acquire, HL_EBUSY);
        else
            has_later = has_later || acquire->is_try;
        acquire = next;
    }
    return has_later;
}

/* When to ask again unless something wakes us before: with jitter, so that a thousand processes do
 * not ask together. */
static hli_ns ask_poll_at(const struct hli_turn *turn)
{
    int64_t poll_ms = turn->name->client->settings.poll_ms;

    return hli_after_ms(turn->now, poll_ms + hli_random_upto(poll_ms * 3 / 10));
}

/* The holder's expiry is announced by nobody. */
static hli_ns ask_expiry_at(const struct hli_turn *turn)
{
    int64_t pttl_ms = turn->name->busy.pttl_ms;

    return pttl_ms < 0 ? HLI_NEVER : hli_after_ms(turn->now, pttl_ms + 1);
}

/* A message since the last busy answer, and still the same holder: it told nothing new. That
 * happens to an honest message too, which comes by another connection than the answers; to several
 * in a row it does not. */
static bool ask_was_misled(struct hli_name *name, const struct hli_busy *before)
{
    if (before->at == 0 || strcmp(before->owner, name->busy.owner) != 0)
        name->misled = 0;
    else if (name->heard_at >= before->at)
        name->misled++;
    return name->misled > ASK_MISLED_MAX;
}

static void ask_sleep(struct hli_turn *turn, const struct hli_tenure *tenure,
                      const struct hli_busy *before)
{
    struct hli_name *name = turn->name;
    hli_ns sent_at = tenure->ask.sent_at;
    bool may_have_missed = name->heard_at >= sent_at || name->channel.confirmed_at > sent_at;
    bool was_misled = ask_was_misled(name, before);

    turn->wants_channel = true;
    hli_turn_timer(turn, hli_earlier(ask_poll_at(turn), ask_expiry_at(turn)));
    if (was_misled)
        name->quiet_until = hli_after_ms(turn->now, ASK_QUIET_MS);
    if (may_have_missed && was_misled)
        hli_turn_timer(turn, name->quiet_until);
    else if (may_have_missed)
        hli_ask_go(turn);
}

static void ask_note_busy(struct hli_turn *turn, const struct hli_answer *answer)
{
    struct hli_busy *busy = &turn->name->busy;
    const struct hli_reply *owner = hli_reply_text_at(answer->reply, 2);
    int64_t count = 0;

    busy->at = turn->now;
    busy->pttl_ms = -1;
    hli_reply_integer_at(answer->reply, 1, &busy->pttl_ms);
    hli_reply_integer_at(answer->reply, 3, &count);
    busy->count = count < 0 || count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    snprintf(busy->owner, sizeof(busy->owner), "%s", owner ? owner->text : "");
}

static void ask_is_busy(struct hli_turn *turn, struct hli_tenure *tenure,
                        const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_busy before = name->busy;

    ask_note_busy(turn, answer);
    tenure->may_hold = false;
    name->answered_at = turn->now;
    name->asked_at = 0;
    if (tenure->state == HLI_TENURE_ASK)
        hli_tenure_move(tenure, HLI_TENURE_WAIT);
    bool asks_again = ask_finish_tries(turn, tenure->ask.sent_at);
    ask_look_for_ghost(turn);
    if (TAILQ_EMPTY(&name->waiters))
        hli_ask_abandon(turn);
    else
        ask_sleep(turn, tenure, &before);
    if (asks_again)
        hli_ask_go(turn);
}

/* We have it, if the answer did not take too long. The lease is the one of who waited first when it
 * was asked for. */
static void ask_is_ours(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head = TAILQ_FIRST(&name->waiters);

    tenure->may_hold = true;
    tenure->least_count = tenure->most_count = 1;
    hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms);
    name->answered_at = turn->now;
    name->asked_at = 0;
    if (turn->now >= tenure->valid_until || head->lease_ms > tenure->asked_lease_ms) {
        hli_ask_go(turn); /* its own field stands: the lease will be extended */
    } else if (head->lease_ms < tenure->asked_lease_ms) {
        hli_release_quietly(
            turn,
            tenure); /* no lease is ever shortened: anew, with the lease of who is first now */
        hli_ask_go(turn);
    } else {
        hli_hold_begin(turn, head, tenure->ask.sent_at);
        ask_finish_tries(turn, turn->now); /* it is held now */
    }
}

static void ask_is_refused(struct hli_turn *turn, const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    unsigned doublings = name->refusals < 6 ? name->refusals : 6;
    int64_t pause_ms = (int64_t)ASK_RETRY_MS << doublings;

    name->refusals++;
    turn->distrusts = hli_answer_is(answer, "READONLY");
    hli_turn_timer(turn, hli_after_ms(turn->now, pause_ms < name->client->settings.poll_ms
                                                     ? pause_ms
                                                     : name->client->settings.poll_ms));
}

static void ask_take_read(struct hli_turn *turn, struct hli_tenure *tenure,
                          const struct hli_answer *answer)
{
    int64_t status = -2;

    hli_reply_integer_at(answer->reply, 0, &status);
    turn->name->problem = 0;
    turn->name->refusals = 0;
    if (status == 1)
        ask_is_ours(turn, tenure);
    else if (status == 0)
        ask_is_busy(turn, tenure, answer);
    else
        hli_ask_fail_all(turn, HL_EPROTO, "an answer that the script does not give");
}

/* A request that bounced or was not answered is a new decision: it is asked again if somebody still
 * waits. */
static void ask_take_done(struct hli_turn *turn, struct hli_tenure *tenure,
                          const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED && answer->verdict != HLI_BOUNCED)
        hli_name_note_problem(turn->name, answer->code, answer->text);
    switch (answer->verdict) {
    case HLI_REPLIED:
        ask_take_read(turn, tenure, answer);
        break;
    case HLI_BOUNCED:
        hli_ask_go(turn);
        break;
    case HLI_REFUSED:
        tenure->may_hold = true; /* an error may come from the middle of a script */
        ask_is_refused(turn, answer);
        break;
    case HLI_FAILED:
        tenure->may_hold = true;
        hli_ask_fail_all(turn, answer->code, answer->text);
        break;
    case HLI_UNKNOWN:
        tenure->may_hold = true;
        hli_turn_timer(turn, ask_poll_at(turn)); /* or when the link is up again */
        break;
    case HLI_UNSENT:
        if (answer->code == HL_EDENIED)
            hli_ask_fail_all(turn, answer->code, answer->text);
        else
            hli_turn_timer(turn, ask_poll_at(turn));
        break;
    }
}

static void ask_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_tenure *tenure = HLI_OF(op, struct hli_tenure, ask);
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    enum hli_asking asking = tenure->asking;
    tenure->asking = HLI_ASKING_NOTHING;
    if (hli_tenure_is_contending(tenure))
        ask_take_done(&turn, tenure, answer);
    else if (tenure->state == HLI_TENURE_OWN)
        hli_deepen_answered(&turn, tenure, asking, answer);
    else if (tenure->state == HLI_TENURE_DYING && asking == HLI_ASKING_TAKE)
        hli_release_after_take(&turn, tenure, answer);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
}
