/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a release is answered, and what its call is told. */
#include "base/check.h"
#include "base/error.h"
#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/notice.h"
#include "lease/release.h"
#include "lease/write.h"

#include <stdio.h>

int hli_release_fail(hl_error *err, const struct hli_name *name, int code, const char *text)
{
    char shown[96];

    return hli_fail(err, code, "release '%s': %s",
                    hli_error_escape(shown, sizeof(shown), name->bytes, name->length), text);
}

void hli_release_tell(struct hli_turn *turn, struct hli_tenure *tenure, int code, const char *text)
{
    struct hli_wait *wait = tenure->releaser;

    if (tenure->is_posted && code < 0)
        hli_notice_release(turn, tenure, hl_err_text(code));
    if (!wait)
        return;
    tenure->releaser = NULL;
    if (code < 0)
        hli_release_fail(wait->err, turn->name, code, text);
    hli_turn_finish(turn, wait, code);
}

/* Did the release hand it to another client? Then that one goes first when we ask again. */
static void release_note_next(struct hli_turn *turn, const struct hli_answer *answer)
{
    const struct hli_reply *next = hli_reply_text_at(answer->reply, 1);

    if (turn->name->contest)
        turn->name->contest->was_handed_over = next && next->length > 0;
}

/* How many of Redisson's clients listen: they get their turn, now or with the next release. */
static void release_note_strangers(struct hli_turn *turn, const struct hli_tenure *tenure,
                                   const struct hli_answer *answer)
{
    int64_t strangers = 0;

    if (!hli_reply_integer_at(answer->reply, 2, &strangers) || strangers < 0)
        return; /* it was not looked at */
    struct hli_contest *contest = strangers > 0 ? hli_contest_of(turn->name) : turn->name->contest;
    if (!contest)
        return;
    contest->has_strangers = strangers > 0;
    contest->courteous_at = turn->now; /* each look has its price: at most so often */
    if (strangers > 0 && tenure->is_release_courteous)
        hli_contest_stand_back(contest, turn->now);
}

/* The release was answered, and what it was to write was not written. */
static void release_tell_unwritten(struct hli_turn *turn, struct hli_tenure *tenure,
                                   const struct hli_reply *wrote)
{
    struct hli_answer refused = {.code = HL_EFENCED};
    char shown[64], text[224];

    hli_error_escape(shown, sizeof(shown), tenure->write->key.data, tenure->write->key.length);
    if (wrote->kind == HLI_REPLY_ERROR) {
        refused = hli_answer_from(wrote);
        snprintf(text, sizeof(text), "set '%s': %s", shown, refused.text);
    } else {
        snprintf(text, sizeof(text), "set '%s': token %s was there before", shown, wrote->text);
    }
    hli_release_tell(turn, tenure, refused.code, text);
}

/* Of a release that writes: {1, ...} says what became of the value, but for a copy that came behind
 * another, which found nothing left to judge by. */
static void release_tell_written(struct hli_turn *turn, struct hli_tenure *tenure,
                                 const struct hli_answer *answer)
{
    const struct hli_reply *wrote = hli_reply_item(answer->reply, 3);

    if (wrote && wrote->kind == HLI_REPLY_INTEGER && wrote->integer == 1)
        hli_release_tell(turn, tenure, HL_OK, NULL);
    else if (wrote && (wrote->kind == HLI_REPLY_STRING || wrote->kind == HLI_REPLY_ERROR))
        release_tell_unwritten(turn, tenure, wrote);
    else if (tenure->is_release_unsure)
        hli_release_tell(turn, tenure, HL_EUNKNOWN,
                         "an earlier copy, which may have written, was not answered");
    else
        hli_release_tell(turn, tenure, HL_ELOST,
                         "the hold ended before its release; nothing is written");
}

/* {1, ...}: it was there until now. {0}: if an earlier copy may have run, it was that one; else
 * somebody else took it away. */
static void release_is_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                                const struct hli_answer *answer)
{
    int64_t status = 0;
    bool found = hli_reply_integer_at(answer->reply, 0, &status) && status == 1;

    if (found) {
        release_note_next(turn, answer);
        release_note_strangers(turn, tenure, answer);
    }
    if (tenure->write)
        release_tell_written(turn, tenure, answer);
    else if (tenure->was_alive && (found || tenure->is_release_unsure))
        hli_release_tell(turn, tenure, HL_OK, NULL);
    else
        hli_release_tell(turn, tenure, HL_ELOST, "the hold ended before its release");
    hli_tenure_bury(turn, tenure);
}

/* For the call that still waits, if it waits in vain. */
static void release_note_problem(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    if (!tenure->releaser)
        return;
    struct hli_released *released = HLI_OF(tenure->releaser, struct hli_released, wait);
    snprintf(released->problem, sizeof(released->problem), "%s", answer->text);
}

static void release_retry_later(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->retry_at = hli_after_ms(turn->now, HLI_RELEASE_RETRY_MS);
    hli_turn_timer(turn, tenure->retry_at);
}

static void release_take_answer(struct hli_turn *turn, struct hli_tenure *tenure,
                                const struct hli_answer *answer)
{
    switch (answer->verdict) {
    case HLI_REPLIED:
        release_is_answered(turn, tenure, answer);
        break;
    case HLI_BOUNCED: /* it did not run: still to be done, whatever else happens */
        hli_release_send(turn, tenure);
        break;
    case HLI_FAILED:
        hli_release_tell(turn, tenure, answer->code, answer->text);
        hli_tenure_bury(turn, tenure);
        break;
    case HLI_REFUSED:
        release_note_problem(tenure, answer);
        turn->distrusts = hli_answer_is(answer, "READONLY");
        release_retry_later(turn, tenure);
        break;
    case HLI_UNKNOWN:
        tenure->is_release_unsure = true;
        release_note_problem(tenure, answer);
        hli_turn_timer(turn, tenure->give_up_at);
        break; /* again when the link is up */
    case HLI_UNSENT:
        release_note_problem(tenure, answer);
        release_retry_later(turn, tenure); /* for it may be up by now */
        break;
    }
}

void hli_release_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_tenure *tenure = HLI_OF(op, struct hli_tenure, release);
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_releasing = false;
    if (tenure->state == HLI_TENURE_DYING)
        release_take_answer(&turn, tenure, answer);
    hli_ask_go(&turn);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
}

/* The call does not wait any longer, and the release goes on behind it. */
static void release_leave(struct hli_turn *turn, struct hli_wait *wait)
{
    const struct hli_released *released = HLI_OF(wait, struct hli_released, wait);
    struct hli_tenure *tenure;

    TAILQ_FOREACH (tenure, &turn->name->past, link)
        if (tenure->releaser == wait)
            break;
    if (tenure)
        hli_release_tell(turn, tenure, HL_EUNKNOWN,
                         released->problem[0] ? released->problem : "no answer in time");
}

static bool released_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_released *released = HLI_OF(wait, struct hli_released, wait);
    struct hli_turn turn;

    hli_turn_begin(&turn, released->name);
    if (!wait->is_finished && now >= wait->deadline)
        release_leave(&turn, wait);
    bool goes_on = !wait->is_finished;
    hli_turn_end(&turn);
    return goes_on;
}

void hli_released_init(struct hli_released *released, struct hli_name *name, hl_error *err)
{
    released->name = name;
    released->problem[0] = '\0';
    hli_wait_init(&released->wait, name->client, name->client->settings.request_timeout_ms, err);
    released->wait.look = released_look;
}

void hli_released_count(const struct hli_released *released)
{
    struct hli_counters *counters = &released->name->client->counters;

    if (released->wait.code == HL_OK)
        hli_count(&counters->releases);
    else if (released->wait.code == HL_EUNKNOWN)
        hli_count(&counters->unknowns);
}
