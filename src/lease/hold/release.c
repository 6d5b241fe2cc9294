/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Releasing. From the moment a release is called the hold is over for this process, whatever the
 * answer; the release is repeated in the background until the server answers or the lease is over
 * by itself. Repeating it is harmless, because its field is never used again.
 */
#include "lease/hold/release.h"

#include "base/check.h"
#include "base/error.h"
#include "base/probe.h"
#include "lease/hold/hold.h"
#include "lease/hold/keep.h"
#include "lease/hold/loss.h"
#include "lease/hold/write.h"
#include "lease/state/command.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"
#include "lease/state/notice.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RELEASE_RETRY_MS = 100,
    RELEASE_AGAIN_MS = 10000, /* how long a release may take that is sent once more */
};

static void release_done(struct hli_op *op, const struct hli_answer *answer);
static void release_tell(struct hli_turn *turn, struct hli_tenure *tenure, int code,
                         const char *text);
static const char *release_problem(const struct hli_tenure *tenure, const char *otherwise);

/* Must the release wait for the answer of an ACQUIRE in flight? The ACQUIRE runs first. If the hold
 * was over by then, it has put its field into the lock once more, and the release would find that
 * field and write. So a release that writes waits for the answer. */
static bool release_awaits_answer(const struct hli_tenure *tenure)
{
    return tenure->write && tenure->asking == HLI_ASKING_ACQUIRE;
}

bool hli_release_blocks_ask(const struct hli_name *name)
{
    bool has_foreign_waiters = name->contention && name->contention->has_foreign_waiters;
    const struct hli_tenure *tenure;

    /* Each master of a Redlock has an order of its own, and one may be silent; nobody is handed
     * what a vote releases: the next request goes out behind. */
    if (name->kind->quorum || name->kind->changed)
        return false;
    TAILQ_FOREACH (tenure, &name->past, link)
        if ((tenure->is_releasing || release_awaits_answer(tenure)) &&
            (!tenure->is_posted || has_foreign_waiters))
            return true;
    return false;
}

static int64_t release_min_hold_left_ms(const struct hli_tenure *tenure, hli_ns now)
{
    hli_ns left = tenure->hold.min_hold_until - now;

    return left > 0 ? left / 1000000 + 1 : 0;
}

/* The term comes first: the grace may be that of a later one, and then this is not sent. */
static void release_note_term(struct hli_tenure *tenure, hli_ns now)
{
    tenure->release.term = hli_grace_term(tenure->name);
    tenure->releases_in_grace = hli_grace_until(tenure->name, now) != 0;
}

static int release_format(struct hli_tenure *tenure, hli_ns now)
{
    /* A lost hold no longer decides how long the key rests. */
    const struct hli_kind *kind = tenure->name->kind;
    const struct hli_release_request release_request = {
        .count = tenure->count_kept,
        .min_hold_left_ms =
            tenure->was_valid_until != 0 ? release_min_hold_left_ms(tenure, now) : 0,
        .yields = kind->is_handed_on && hli_contention_may_yield(tenure->name, now),
        .is_silent = tenure->is_silent,
        .is_of_wait = tenure->is_queued && tenure->was_valid_until == 0,
        .write = tenure->write,
    };

    tenure->release_yields = release_request.yields;
    if (HLI_GRACE_IS_ON(tenure->name->client))
        release_note_term(tenure, now);
    tenure->release.done = release_done;
    return kind->release(tenure, &tenure->release, &release_request);
}

/* Without memory the timer tries again. */
static void release_send(struct hli_turn *turn, struct hli_tenure *tenure)
{
    /* A key rests until a fixed time: a repeated release has less time to name; and in another term
     * it may grant to nobody. */
    bool is_stale = tenure->hold.min_hold_until > 0 || !tenure->release.bytes ||
                    (HLI_GRACE_IS_ON(turn->name->client) &&
                     tenure->release.term != hli_grace_term(tenure->name));
    if (is_stale && release_format(tenure, turn->now) < 0 && !tenure->release.bytes) {
        tenure->retry_at = hli_after_ms(turn->now, RELEASE_RETRY_MS);
        hli_turn_timer(turn, tenure->retry_at);
        return;
    }
    tenure->is_releasing = true;
    hli_turn_send(turn, tenure, &tenure->release);
}

/* The release goes out without its value, and is formatted anew. */
static void release_drop_write(struct hli_tenure *tenure)
{
    hli_write_unref(tenure->write);
    tenure->write = NULL;
    hli_op_deinit(&tenure->release);
}

/* Drops the value unless it is certain that the hold stood. */
void hli_release_behind(struct hli_turn *turn, struct hli_tenure *tenure, bool stood)
{
    if (!tenure->write || stood)
        return;
    release_tell(turn, tenure, HL_ELOST, "the hold ended before its release; nothing is written");
    release_drop_write(tenure);
}

/* A part of a Redlock counts with the whole. */
static void release_count_failure(const struct hli_turn *turn, int code, const char *text)
{
    if (!turn->name->kind->changed)
        hli_count_failure(turn->name->client, HL_CALL_RELEASE, code, hli_answer_reason(code, text));
}

/* Ends the call with an error. */
static void release_fail(struct hli_turn *turn, struct hli_wait *wait, int code, const char *text)
{
    release_count_failure(turn, code, text);
    hli_turn_finish(turn, wait, hli_name_fail(wait->err, code, turn->name, "release", text));
}

/* Releases a level of a lost hold: HL_ELOST for each level, and after the last one the release
 * request goes out all the same. */
static void release_lost(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_wait *wait)
{
    char why[HLI_LOSS_SIZE];

    hli_loss_write(tenure, turn->now, "", why);
    release_fail(turn, wait, HL_ELOST, why);
    if (--tenure->hold.count == 0)
        hli_releasing_begin(turn, tenure);
}

/* Releases the last level, and the lock. The request is formatted first: without memory nothing is
 * changed. */
static void release_hold(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_release_mode *mode, struct hli_wait *wait)
{
    tenure->was_valid_until = hli_hold_validity(tenure);
    tenure->is_silent = mode->is_silent;
    tenure->write = mode->write;
    if (mode->write && mode->write->token == 0)
        mode->write->token = tenure->hold.token;
    if (release_format(tenure, turn->now) < 0) {
        tenure->was_valid_until = 0;
        tenure->write = NULL;
        release_fail(turn, wait, HL_ENOMEM, "out of memory; still held");
        return;
    }
    if (mode->write)
        hli_write_ref(mode->write); /* the tenure's */
    HLI_PROBE2(release, turn->name->bytes, turn->now - tenure->hold.began);
    tenure->is_posted = mode->is_posted;
    if (mode->is_posted)
        hli_turn_finish(turn, wait, HL_OK);
    else
        tenure->releaser = wait;
    hli_releasing_begin(turn, tenure);
    hli_release_behind(turn, tenure, !tenure->is_unsure);
}

/* Releases one level of a live hold. A value is written with the last level only. */
static void release_live(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_release_mode *mode, struct hli_wait *wait)
{
    bool is_inner = tenure->hold.count > 1;

    if (is_inner && mode->write) {
        release_fail(
            turn, wait, HL_EINVAL,
            "only the last level is written with: release the nested ones first; still held");
    } else if (is_inner) {
        tenure->hold.count--;
        hli_turn_finish(turn, wait, HL_OK);
    } else if (!mode->write &&
               (hli_keep_pass(turn, tenure) || hli_keep_retain(turn, tenure, mode->retain_ms))) {
        hli_turn_finish(turn, wait, HL_OK);
    } else {
        release_hold(turn, tenure, mode, wait);
    }
}

static void release_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                          const struct hli_release_mode *mode, struct hli_wait *wait)
{
    if (tenure && tenure->state == HLI_TENURE_OWN)
        hli_loss_by_time(turn, tenure);
    if (!tenure || !tenure->hold.is_accepted)
        release_fail(turn, wait, HL_ENOTOWNER, hli_name_not_owner(turn->name));
    else if (tenure->reentry || tenure->is_returned)
        release_fail(turn, wait, HL_EINVAL, HLI_NAME_IN_USE);
    else if (tenure->state == HLI_TENURE_LOST)
        release_lost(turn, tenure, wait);
    else
        release_live(turn, tenure, mode, wait);
}

/* May this release go into a batch? Only if no process is known to wait, and the key does not rest.
 */
static bool release_is_simple(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_contention *contention = turn->name->contention;

    return tenure && tenure->is_releasing && turn->name->kind->release_all &&
           !tenure->has_waiters && !tenure->is_silent && tenure->hold.min_hold_until <= turn->now &&
           !(contention && contention->has_foreign_waiters);
}

/* Takes the tenure's release out of the turn, if it may go into a batch; else NULL. */
static struct hli_op *release_take_out(struct hli_turn *turn, struct hli_tenure *tenure)
{
    hli_turn_plan(turn);
    return release_is_simple(turn, tenure) ? hli_turn_take(turn, &tenure->release) : NULL;
}

void hli_release_start(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_mode *mode, struct hli_wait *wait,
                       struct hli_op **ret_op)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    release_begin(&turn, tenure, mode, wait);
    if (ret_op)
        *ret_op = release_take_out(&turn, tenure);
    hli_turn_end(&turn);
}

/* Is the tenure LOST with nobody to release it? Its thread has ended, its owner is freed, or it is
 * a permit that ends by itself. */
static bool release_is_orphan(const struct hli_tenure *tenure)
{
    return tenure->state == HLI_TENURE_LOST &&
           (tenure->name->kind->is_forgotten || atomic_load(&tenure->hold.owner->has_exited));
}

/* A request in flight gets its answer before the lease is over, because the link's patience is
 * shorter; the answer's turn comes here again. */
static void release_plan_one(struct hli_turn *turn, struct hli_tenure *tenure)
{
    bool is_being_released = tenure->state == HLI_TENURE_RELEASING;
    bool is_later = is_being_released &&
                    tenure->retry_at > turn->now; /* else it goes out behind the renewals */

    if (tenure->is_releasing || tenure->asking != HLI_ASKING_NOTHING)
        return;
    if (turn->now < tenure->give_up_at) {
        hli_turn_timer(turn, is_later ? hli_earlier(tenure->retry_at, tenure->give_up_at)
                                      : tenure->give_up_at);
    } else if (is_being_released || release_is_orphan(tenure)) {
        release_tell(turn, tenure, HL_EINDOUBT,
                     release_problem(tenure, "no answer while the lease lasted"));
        hli_releasing_end(turn, tenure);
    } else {
        hli_turn_timer(turn, hli_after_ms(turn->now, tenure->longest_lease_ms));
    }
}

static bool release_may_go(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    int sends = atomic_load(&turn->name->client->sends);

    return tenure->state == HLI_TENURE_RELEASING && !tenure->is_releasing &&
           !release_awaits_answer(tenure) && turn->now >= tenure->retry_at &&
           turn->now < tenure->give_up_at &&
           sends <= (tenure->write ? HLI_SENDS_ALL : HLI_SENDS_NO_VALUES);
}

void hli_release_plan(struct hli_turn *turn)
{
    struct hli_tenure *tenure, *next;

    for (tenure = TAILQ_FIRST(&turn->name->past); tenure; tenure = next) {
        next = TAILQ_NEXT(tenure, link);
        if (release_may_go(turn, tenure))
            release_send(turn, tenure);
        release_plan_one(turn, tenure);
    }
}

void hli_release_on_link_up(struct hli_turn *turn)
{
    struct hli_tenure *tenure;

    TAILQ_FOREACH (tenure, &turn->name->past, link)
        tenure->retry_at = 0;
}

void hli_release_end_all(struct hli_turn *turn)
{
    struct hli_tenure *tenure;

    while ((tenure = TAILQ_FIRST(&turn->name->past))) {
        release_tell(turn, tenure, HL_EINDOUBT, "the client was closed before the answer");
        hli_releasing_end(turn, tenure);
    }
}

static void release_tell(struct hli_turn *turn, struct hli_tenure *tenure, int code,
                         const char *text)
{
    struct hli_wait *wait = tenure->releaser;

    if (tenure->is_posted && code < 0) {
        release_count_failure(turn, code, text);
        hli_notice_release(turn, tenure, hl_err_text(code));
    }
    if (!wait)
        return;
    tenure->releaser = NULL;
    if (code < 0)
        release_fail(turn, wait, code, text);
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

/* Of a release that writes, and no copy of which has run while the hold stood. */
static void release_tell_unwritten(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const char *problem = release_problem(tenure, "");
    char text[192];

    snprintf(text, sizeof(text), "the hold ended before its release; nothing is written%s%s",
             problem[0] ? ": " : "", problem);
    release_tell(turn, tenure, HL_ELOST, text);
}

/* The release found nothing: an earlier copy may have released the lock, or the hold was lost
 * before; or it lasted until its lease was over, while the server refused its release. */
static void release_tell_gone(struct hli_turn *turn, struct hli_tenure *tenure)
{
    /* The server lost the hold, which lasted until its release, and had not got it back yet. */
    bool is_over = tenure->was_valid_until != 0 && turn->now >= tenure->was_valid_until;
    bool is_of_old_term = tenure->was_valid_until != 0 && tenure->releases_in_grace &&
                          tenure->term != tenure->release.term;

    if (is_of_old_term && !tenure->write)
        release_tell(turn, tenure, HL_OK, NULL);
    else if (tenure->is_release_unsure)
        release_tell(turn, tenure, HL_EINDOUBT, "an earlier copy was not answered");
    else if (tenure->write)
        release_tell_unwritten(turn, tenure);
    else if (tenure->is_release_put_off && is_over)
        release_tell(turn, tenure, HL_EINDOUBT,
                     release_problem(tenure, "refused until the lease was over"));
    else
        release_tell(turn, tenure, HL_ELOST, "the hold ended before its release");
}

/* Of a release that writes: element 3 of the reply says what became of the value; a copy behind
 * another copy may find nothing left to judge by. */
static void release_tell_written(struct hli_turn *turn, struct hli_tenure *tenure,
                                 const struct hli_answer *answer)
{
    const struct hli_reply *wrote = hli_reply_item(answer->reply, 3);
    char text[HLI_WRITE_TEXT];

    if (wrote && wrote->kind == HLI_REPLY_INTEGER && wrote->integer == 1)
        release_tell(turn, tenure, HL_OK, NULL);
    else if (wrote && (wrote->kind == HLI_REPLY_STRING || wrote->kind == HLI_REPLY_ERROR))
        release_tell(turn, tenure, hli_write_refused(tenure->write, wrote, text), text);
    else
        release_tell_gone(turn, tenure);
}

/* The last text of a fair lock's reply: the waiter whose turn it is may be dead, which shows after
 * so long; and perhaps no process of ours waits behind it, to look then. So the release is sent
 * once more, and passes it over. Its caller has had the result. */
static bool release_looks_again(struct hli_turn *turn, struct hli_tenure *tenure, bool found,
                                const struct hli_answer *answer)
{
    const struct hli_reply *again = hli_reply_text_at(answer->reply, found ? 3 : 1);
    int64_t again_ms = again ? strtoll(again->text, NULL, 10) : 0;

    if (!turn->name->kind->write_channel || again_ms < 1 || again_ms > RELEASE_AGAIN_MS)
        return false;
    tenure->looks_again = true;
    tenure->is_posted = false; /* no event tells what becomes of it */
    tenure->retry_at = hli_after_ms(turn->now, again_ms);
    tenure->give_up_at = hli_after_ms(tenure->retry_at, RELEASE_AGAIN_MS);
    return true;
}

/* {1, ...}: the field held the lock until now. {0, ...}: it holds nothing. */
static void release_is_answered(struct hli_turn *turn, struct hli_tenure *tenure,
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
        release_tell(turn, tenure, HL_OK, NULL);
    else
        release_tell_gone(turn, tenure);
    if (release_looks_again(turn, tenure, found, answer))
        return;
    hli_releasing_end(turn, tenure);
    if (!found && tenure->may_stand && !tenure->looks_again)
        hli_releasing_orphan(turn, tenure->number);
}

/* Keeps the problem for the error of a call that still waits. */
static void release_note_problem(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    tenure->is_release_put_off = true;
    if (!tenure->releaser)
        return;
    struct hli_release_wait *released =
        HLI_PART_OF(tenure->releaser, struct hli_release_wait, wait);
    snprintf(released->problem, sizeof(released->problem), "%s", answer->text);
}

static const char *release_problem(const struct hli_tenure *tenure, const char *otherwise)
{
    if (!tenure->releaser)
        return otherwise;
    const struct hli_release_wait *released =
        HLI_PART_OF(tenure->releaser, struct hli_release_wait, wait);
    return released->problem[0] ? released->problem : otherwise;
}

/* The server refused the request as a whole. The key of the data may be the reason (an ACL, or its
 * slot in a cluster), so the lock is released without the write. */
static void release_is_refused(struct hli_turn *turn, struct hli_tenure *tenure,
                               const struct hli_answer *answer)
{
    int code = tenure->is_release_unsure ? HL_EINDOUBT : answer->code;

    release_tell(turn, tenure, code, answer->text);
    if (!tenure->write) {
        hli_releasing_end(turn, tenure);
        return;
    }
    release_drop_write(tenure);
    tenure->retry_at = 0;
}

/* Refused for now. It is worded anew if its slot moves. */
static void release_is_put_off(struct hli_turn *turn, struct hli_tenure *tenure,
                               const struct hli_answer *answer)
{
    bool goes_alone = hli_command_goes_alone(turn->name, answer, turn->now);

    if (hli_answer_is(answer, "TRYAGAIN"))
        hli_op_deinit(&tenure->release);
    release_note_problem(tenure, answer);
    tenure->retry_at = goes_alone ? 0 : hli_after_ms(turn->now, RELEASE_RETRY_MS);
}

static void release_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct hli_answer *answer)
{
    switch (answer->verdict) {
    case HLI_REPLIED:
        release_is_answered(turn, tenure, answer);
        break;
    case HLI_BOUNCED: /* it did not run: still to be done, whatever else happens */
        tenure->retry_at = 0;
        break;
    case HLI_FAILED:
        release_is_refused(turn, tenure, answer);
        break;
    case HLI_REFUSED:
        release_is_put_off(turn, tenure, answer);
        break;
    case HLI_UNSENT: /* the link may be up by then */
        release_note_problem(tenure, answer);
        tenure->retry_at = hli_after_ms(turn->now, RELEASE_RETRY_MS);
        break;
    case HLI_UNKNOWN:
        tenure->is_release_unsure = true;
        release_note_problem(tenure, answer);
        tenure->retry_at = HLI_NEVER; /* again when the link is up */
        break;
    }
}

static void release_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_tenure *tenure = HLI_PART_OF(op, struct hli_tenure, release);
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_releasing = false;
    if (tenure->state == HLI_TENURE_RELEASING)
        release_answered(&turn, tenure, answer);
    hli_tenure_ask_soon(turn.name->current); /* it may have been told busy because of this tenure */
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
}

void hli_release_leave(struct hli_turn *turn, struct hli_wait *wait)
{
    struct hli_tenure *tenure;

    TAILQ_FOREACH (tenure, &turn->name->past, link)
        if (tenure->releaser == wait)
            break;
    if (tenure)
        release_tell(turn, tenure, HL_EINDOUBT, release_problem(tenure, "no answer in time"));
}
