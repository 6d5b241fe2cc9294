/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The busy answer: noted, told to those who do not wait, and slept on by the others. */
#include "lease/busy.h"

#include "base/random.h"
#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/ghost.h"
#include "lease/release.h"
#include "lease/tag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BUSY_QUIET_MS = 10,  /* after messages that told nothing new, when there were more than */
    BUSY_MISLED_MAX = 2, /* so many in a row */
};

/* {0, pttl, seconds, microseconds, holder, count[, tag]} */
enum { BUSY_PTTL = 1, BUSY_SECONDS, BUSY_MICROSECONDS, BUSY_HOLDER, BUSY_COUNT, BUSY_TAG };

uint64_t hli_busy_stamp(const struct hli_answer *answer)
{
    int64_t seconds = 0, microseconds = 0;

    hli_reply_integer_at(answer->reply, BUSY_SECONDS, &seconds);
    hli_reply_integer_at(answer->reply, BUSY_MICROSECONDS, &microseconds);
    return (uint64_t)seconds * 1000000 + (uint64_t)microseconds;
}

uint64_t hli_busy_own_number(const struct hli_name *name)
{
    const char *owner = name->contest->busy.owner;
    char field[HLI_FIELD_SIZE];

    if (strncmp(owner, name->client->id, HLI_UUID_LENGTH) != 0 || owner[HLI_UUID_LENGTH] != ':')
        return 0;
    uint64_t number = strtoull(owner + HLI_UUID_LENGTH + 1, NULL, 10);
    snprintf(field, sizeof(field), "%s:%" PRIu64 "%s", name->client->id, number,
             name->kind->field_suffix);
    return strcmp(field, owner) == 0 ? number : 0;
}

bool hli_busy_finish_tries(struct hli_turn *turn, hli_ns sent_at)
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

hli_ns hli_busy_poll_at(const struct hli_turn *turn)
{
    int64_t poll_ms = turn->name->client->settings.poll_ms;

    return hli_after_ms(turn->now, poll_ms + hli_random_upto(poll_ms * 3 / 10));
}

/* The holder's expiry is announced by nobody. */
static hli_ns busy_expiry_at(const struct hli_turn *turn)
{
    int64_t pttl_ms = turn->name->contest->busy.pttl_ms;

    return pttl_ms < 0 ? HLI_NEVER : hli_after_ms(turn->now, pttl_ms + 1);
}

/* A message since the last busy answer, and still the same holder: it told nothing new. That
 * happens to an honest message too, which comes by another connection than the answers; to several
 * in a row it does not. */
static bool busy_was_misled(struct hli_contest *contest, const struct hli_busy *before)
{
    if (before->at == 0 || strcmp(before->owner, contest->busy.owner) != 0)
        contest->misled = 0;
    else if (contest->heard_at >= before->at)
        contest->misled++;
    return contest->misled > BUSY_MISLED_MAX;
}

/* One that looks in every now and then: next after twice as long, and a little by chance. */
static void busy_back_off(struct hli_turn *turn, struct hli_acquire *acquire)
{
    const struct hli_acquire_way *way = &acquire->way;
    int64_t pause_ms = acquire->backoff_ms > 0 ? acquire->backoff_ms : way->backoff_ms;

    if (turn->now >= acquire->backoff_at) {
        acquire->backoff_at = hli_after_ms(turn->now, pause_ms + hli_random_upto(pause_ms / 4));
        acquire->backoff_ms =
            pause_ms * 2 < way->backoff_max_ms ? pause_ms * 2 : way->backoff_max_ms;
    }
    hli_turn_timer(turn, acquire->backoff_at);
}

/* Plans the next look of those that look in. Is there anybody who is to be told by a message? */
static bool busy_has_listeners(struct hli_turn *turn)
{
    struct hli_acquire *acquire;
    bool listens = false;

    TAILQ_FOREACH (acquire, &turn->name->waiters, link) {
        listens = listens || acquire->way.backoff_ms == 0 || acquire->way.listens;
        if (acquire->way.backoff_ms > 0)
            busy_back_off(turn, acquire);
    }
    return listens;
}

static void busy_sleep(struct hli_turn *turn, const struct hli_tenure *tenure,
                       const struct hli_busy *before)
{
    struct hli_contest *contest = turn->name->contest;

    if (!busy_has_listeners(turn))
        return;
    hli_ns sent_at = tenure->ask.sent_at;
    /* Or it was sent for tries only, and does not stand in the queue. */
    bool may_have_missed = contest->heard_at >= sent_at || contest->confirmed_at > sent_at ||
                           (!tenure->is_queued && hli_ask_queues(turn->name));
    bool was_misled = busy_was_misled(contest, before);

    turn->wants_channel = contest->confirmed_at == 0;
    hli_turn_timer(turn, hli_earlier(hli_busy_poll_at(turn), busy_expiry_at(turn)));
    if (was_misled)
        contest->quiet_until = hli_after_ms(turn->now, BUSY_QUIET_MS);
    if (may_have_missed && was_misled)
        hli_turn_timer(turn, contest->quiet_until);
    else if (may_have_missed)
        hli_ask_go(turn);
}

/* A count of 0 rests: its holder has gone. */
static void busy_note_tag(struct hli_busy *busy, const struct hli_answer *answer)
{
    const struct hli_reply *tag = hli_reply_text_at(answer->reply, BUSY_TAG);
    const struct hli_reply *owner = hli_reply_text_at(answer->reply, BUSY_HOLDER);
    struct hli_holder holder;

    free(busy->holder);
    busy->holder = NULL;
    if (!tag || !owner || busy->count == 0 ||
        !hli_tag_read(tag->text, owner->text, (int64_t)(hli_busy_stamp(answer) / 1000), &holder))
        return;
    busy->holder = malloc(sizeof(holder));
    if (busy->holder)
        *busy->holder = holder;
}

static void busy_note(struct hli_turn *turn, const struct hli_answer *answer)
{
    struct hli_busy *busy = &turn->name->contest->busy;
    const struct hli_reply *owner = hli_reply_text_at(answer->reply, BUSY_HOLDER);
    int64_t count = 0;

    busy->at = turn->now;
    busy->pttl_ms = -1;
    hli_reply_integer_at(answer->reply, BUSY_PTTL, &busy->pttl_ms);
    hli_reply_integer_at(answer->reply, BUSY_COUNT, &count);
    busy->count = count < 0 || count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    snprintf(busy->owner, sizeof(busy->owner), "%s", owner ? owner->text : "");
    busy_note_tag(busy, answer);
}

/* Whatever is granted from now on was granted after this request was sent. */
static void busy_set_anchor(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    if (!tenure->name->kind->taken) /* else nothing stands, but for what an unanswered copy does */
        tenure->may_stand = tenure->is_queued;
    tenure->is_wanted = false; /* whoever asked for it did not mean this one */
    tenure->anchor_at = tenure->ask.sent_at;
    tenure->busy_stamp = hli_busy_stamp(answer);
}

/* Held by a tenure of ours whose release is under way: it was posted, and bounced, and what was
 * sent behind it came first. That is no answer for a try; asked again when the release is answered.
 */
static bool busy_is_with_ourselves(const struct hli_name *name)
{
    uint64_t number = hli_busy_own_number(name);
    const struct hli_tenure *tenure = number != 0 ? hli_name_tenure(name, number) : NULL;

    return tenure && tenure->is_releasing;
}

void hli_busy_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_contest *contest = hli_contest_of(name);

    busy_set_anchor(tenure, answer);
    name->answered_at = turn->now;
    name->asked_at = 0;
    if (tenure->state == HLI_TENURE_ASK)
        hli_tenure_move(tenure, HLI_TENURE_WAIT);
    if (!contest) { /* out of memory: asked again, until there is some to note the answer in */
        hli_busy_finish_tries(turn, tenure->ask.sent_at);
        if (TAILQ_EMPTY(&name->waiters))
            hli_ask_abandon(turn);
        else
            hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return;
    }
    turn->contest = contest;
    struct hli_busy before = contest->busy;
    busy_note(turn, answer);
    if (busy_is_with_ourselves(name)) {
        hli_turn_timer(turn, hli_busy_poll_at(turn));
        return;
    }
    bool asks_again = hli_busy_finish_tries(turn, tenure->ask.sent_at);
    hli_ghost_look(turn);
    if (TAILQ_EMPTY(&name->waiters))
        hli_ask_abandon(turn);
    else
        busy_sleep(turn, tenure, &before);
    if (asks_again)
        hli_ask_go(turn);
}
