/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a release has come to: what its call is told, and what its name notes. */
#include "lease/hold/release_outcome.h"

#include "base/error.h"
#include "lease/hold/write.h"
#include "lease/state/contention.h"
#include "lease/state/notice.h"

#include <stdio.h>

void hli_release_fail(struct hli_turn *turn, struct hli_wait *wait, int code, const char *text)
{
    hli_turn_finish(turn, wait, hli_name_fail(wait->err, code, turn->name, "release", text));
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
        hli_release_fail(turn, wait, code, text);
    else
        hli_turn_finish(turn, wait, code);
}

/* Notes whether the release handed the lock to another client, which then goes first when we ask
 * again. */
static void release_note_next(struct hli_turn *turn, const struct hli_answer *answer)
{
    const struct hli_reply *next = hli_reply_text_at(answer->reply, 1);

    atomic_store(&turn->name->was_handed_over, next && next->length > 0);
}

/* Notes how many of Redisson's clients listen: they get their turn, now or with the next release.
 */
static void release_note_foreign_waiters(struct hli_turn *turn, const struct hli_tenure *tenure,
                                         const struct hli_answer *answer)
{
    int64_t foreign_waiters = 0;

    if (!hli_reply_integer_at(answer->reply, 2, &foreign_waiters) || foreign_waiters < 0)
        return; /* the script did not check */
    struct hli_contention *contention =
        foreign_waiters > 0 ? hli_contention_of(turn->name) : turn->name->contention;
    if (!contention)
        return;
    contention->has_foreign_waiters = foreign_waiters > 0;
    contention->yielded_at =
        turn->now; /* each check has its price: at most one every HLI_YIELD_EVERY_MS */
    if (foreign_waiters > 0 && tenure->release_yields)
        hli_contention_yield(contention, turn->now);
}

/* Reports that the value was not written: because of an error, or of a larger token. */
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

/* The release found nothing: an earlier copy may have released the lock, or the hold was lost
 * before. */
static void release_tell_gone(struct hli_turn *turn, struct hli_tenure *tenure)
{
    /* The server lost the hold, which lasted until its release, and had not got it back yet. */
    bool is_of_old_term = tenure->was_valid_until != 0 && tenure->releases_in_grace &&
                          tenure->term != tenure->release.term;

    if (is_of_old_term && !tenure->write)
        hli_release_tell(turn, tenure, HL_OK, NULL);
    else if (tenure->is_release_unsure)
        hli_release_tell(turn, tenure, HL_EINDOUBT, "an earlier copy was not answered");
    else
        hli_release_tell(turn, tenure, HL_ELOST,
                         tenure->write ? "the hold ended before its release; nothing is written"
                                       : "the hold ended before its release");
}

/* Of a release that writes: element 3 of the reply says what became of the value; a copy behind
 * another copy may find nothing left to judge by. */
static void release_tell_written(struct hli_turn *turn, struct hli_tenure *tenure,
                                 const struct hli_answer *answer)
{
    const struct hli_reply *wrote = hli_reply_item(answer->reply, 3);

    if (wrote && wrote->kind == HLI_REPLY_INTEGER && wrote->integer == 1)
        hli_release_tell(turn, tenure, HL_OK, NULL);
    else if (wrote && (wrote->kind == HLI_REPLY_STRING || wrote->kind == HLI_REPLY_ERROR))
        release_tell_unwritten(turn, tenure, wrote);
    else
        release_tell_gone(turn, tenure);
}

bool hli_release_outcome(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_answer *answer)
{
    int64_t status = 0;
    bool found = hli_reply_integer_at(answer->reply, 0, &status) && status == 1;

    if (found) {
        release_note_next(turn, answer);
        release_note_foreign_waiters(turn, tenure, answer);
    }
    if (tenure->write)
        release_tell_written(turn, tenure, answer);
    else if (found)
        hli_release_tell(turn, tenure, HL_OK, NULL);
    else
        release_tell_gone(turn, tenure);
    return found;
}
