/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Asking: the only place that sends a tenure's first requests, and sorts the answers. One request
 * of a name is in flight at a time, however many calls wait.
 */
#include "lease/acquire/ask.h"

#include "base/check.h"
#include "base/random.h"
#include "lease/acquire/busy.h"
#include "lease/acquire/grant.h"
#include "lease/acquire/restart.h"
#include "lease/calls/replicas.h"
#include "lease/hold/hold.h"
#include "lease/hold/keep.h"
#include "lease/hold/loss.h"
#include "lease/hold/reenter.h"
#include "lease/hold/release.h"
#include "lease/hold/tag.h"
#include "lease/state/command.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ASK_RETRY_MS = 100, /* after a refusal, doubled up to the poll */
    ASK_TOKENS = 65537, /* for a tenure that may be passed so often without a request */
};

/* The first waiter gets a new tenure. It is made before anything is sent, so that nothing is ever
 * held in Redis without a record of it here. Without memory the timer tries again, as long as a
 * call waits. */
static struct hli_acquire *ask_begin_tenure(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head = TAILQ_FIRST(&name->waiters);

    if (head && !name->current)
        name->current = hli_tenure_new(name, hli_tenure_next_number(name));
    if (head && !name->current) {
        hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return NULL;
    }
    if (head && name->current->state == HLI_TENURE_NEW) {
        hli_tenure_move(name->current, HLI_TENURE_ASK);
        if (name->contention)
            hli_contention_forget_problem(name->contention);
    }
    return head;
}

/* One for each hold that may follow without another request. */
static uint32_t ask_tokens(const struct hli_name *name)
{
    const struct hli_acquire *acquire;
    bool is_fenced = false, may_stay = false;
    unsigned waiters = 0;

    TAILQ_FOREACH (acquire, &name->waiters, link) {
        is_fenced = is_fenced || acquire->mode.is_fenced;
        may_stay = may_stay || acquire->mode.retains || ++waiters > 1;
    }
    return !is_fenced ? 0 : may_stay ? ASK_TOKENS : 1;
}

/* An owner that writes may read in the grace, too, if the server has its write lock in this term:
 * as no other hold stands beside that. */
static bool ask_is_under(const struct hli_turn *turn, const struct hli_acquire *head)
{
    return head && head->mode.under_term != 0 &&
           head->mode.under_term == hli_grace_term(turn->name);
}

/* The grace ends for all waiters of all clients at one moment: each asks within a third of a poll
 * behind it. */
static hli_ns ask_after_grace(const struct hli_turn *turn, hli_ns until)
{
    return hli_after_ms(until, hli_random_upto(turn->name->client->settings.poll_ms / 3));
}

/* In the grace of a new term nobody takes what is free, and whether it is free only the new holder
 * would learn: so nobody asks. True if it lasts. */
static bool ask_is_in_grace(struct hli_turn *turn)
{
    struct hli_acquire *acquire = TAILQ_FIRST(&turn->name->waiters), *next;
    hli_ns until = hli_grace_until(turn->name, turn->now);

    if (until == 0 || ask_is_under(turn, acquire))
        return false;
    turn->name->asked_at = 0;
    for (; acquire; acquire = next) {
        next = TAILQ_NEXT(acquire, link);
        if (acquire->is_try)
            hli_acquire_fail_busy(turn, acquire, HL_EBUSY);
    }
    hli_turn_timer(turn, ask_after_grace(turn, until));
    return true;
}

static void ask_send_acquire(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct hli_acquire *head)
{
    const struct hli_acquire_request request = {
        .lease_ms = head->lease_ms,
        .count = 1,
        .tokens = ask_tokens(turn->name),
        .queues = hli_waiters_queue(turn->name),
        .young_ms = head->mode.restart_ms > 0 ? hli_restart_young_ms(turn) : 0};

    if (turn->name->kind->acquire(tenure, &tenure->ask, &request) < 0) {
        tenure->ask_at = hli_after_ms(turn->now, HLI_NO_MEMORY_MS);
        hli_turn_timer(turn, tenure->ask_at);
        return;
    }
    tenure->is_queued = tenure->is_queued || request.queues;
    if (tenure->asked_count == 0) /* the first request: no grant is older */
        tenure->anchor_at = turn->now;
    if (turn->name->asked_at == 0)
        turn->name->asked_at = turn->now;
    tenure->asked_lease_ms = head->lease_ms;
    tenure->asked_count = 1;
    tenure->asked_tokens = request.tokens;
    hli_turn_ask(turn, tenure, HLI_ASKING_ACQUIRE);
}

/* A counted kind's busy answer leaves nothing but a place in line, if it has one. */
static bool ask_may_stand(const struct hli_tenure *tenure)
{
    return tenure->may_stand || (tenure->is_queued && hli_command_is_deaf(tenure->name));
}

void hli_ask_abandon(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;

    if (!hli_tenure_is_contending(tenure) || !TAILQ_EMPTY(&turn->name->waiters))
        return;
    if (turn->name->kind->release &&
        (tenure->asking != HLI_ASKING_NOTHING || ask_may_stand(tenure)))
        hli_releasing_begin(turn, tenure);
    else
        hli_releasing_end(turn, tenure);
}

/* The waiters are behind a hold of their own client, and no message tells it that somebody has
 * taken its key away. So it looks as often as a waiter behind another client asks. */
static void ask_look_at_hold(struct hli_turn *turn)
{
    int64_t poll_ms = turn->name->client->settings.poll_ms;

    hli_hold_look_by(turn->name->current, hli_after_ms(turn->now, poll_ms));
}

/* A release that blocks the ask is in flight, and its answer's turn comes here again; so does the
 * turn of a request's answer. */
void hli_ask_plan(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if (name->current && name->current->hold.owner) {
        if (name->current->state == HLI_TENURE_OWN)
            ask_look_at_hold(turn);
        return;
    }
    if ((!TAILQ_EMPTY(&name->past) && hli_release_blocks_ask(name)) ||
        atomic_load(&name->client->sends) == HLI_SENDS_RENEWALS ||
        (HLI_GRACE_IS_ON(name->client) && ask_is_in_grace(turn)))
        return;
    struct hli_acquire *head = ask_begin_tenure(turn);
    if (!head || !name->current || name->current->asking != HLI_ASKING_NOTHING)
        return;
    if (head->mode.restart_ms > 0 && turn->now >= name->current->ask_at &&
        hli_link_is_up(hli_name_link(name)) && !hli_restart_looks_first(turn) &&
        hli_restart_forbids(turn)) {
        hli_ask_abandon(turn); /* if only tries were there */
        if (!name->current)
            return;
    }
    hli_ns at = name->current->ask_at;
    if (name->contention) /* during the turn of Redisson's waiters, no ACQUIRE is sent */
        at = hli_later(at, name->contention->yields_until);
    if (turn->now >= at)
        ask_send_acquire(turn, name->current, head);
    else
        hli_turn_timer(turn, at);
}

void hli_ask_wait_on(struct hli_turn *turn, const struct hli_answer *answer, hli_ns sent_at)
{
    struct hli_acquire *head = ask_begin_tenure(turn);
    struct hli_tenure *tenure = turn->name->current;

    if (!head)
        return;
    tenure->ask.sent_at = sent_at;
    tenure->is_queued = hli_waiters_queue(turn->name);
    hli_busy_answered(turn, tenure, answer);
}

void hli_ask_fail_for_now(struct hli_turn *turn, int code, const char *text)
{
    struct hli_acquire *acquire = TAILQ_FIRST(&turn->name->waiters);

    while (acquire) {
        struct hli_acquire *next = TAILQ_NEXT(acquire, link);
        if (acquire->is_try || code == HL_EDENIED)
            hli_waiters_fail(turn, acquire, code, text);
        acquire = next;
    }
}

/* Tokens of an earlier answer that came too late are dropped: other holders may have had larger
 * ones since. */
static void ask_note_tokens(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    const struct hli_reply *last = hli_reply_text_at(answer->reply, 2);

    tenure->tokens = last ? tenure->asked_tokens : 0;
    if (tenure->tokens == 0)
        return;
    tenure->token = strtoull(last->text, NULL, 10) - tenure->asked_tokens + 1;
}

/* Does the first waiter need more than the answer gave: time, a longer lease, or a token? Our field
 * is in the lock, and the next ACQUIRE asks for the rest. */
static bool ask_lacks_something(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    return turn->now >= tenure->valid_until || head->lease_ms > tenure->asked_lease_ms ||
           (head->mode.is_fenced && tenure->tokens == 0) ||
           (head->mode.replicas > 0 &&
            !hli_replicas_cover(tenure->ask.replicas, head->mode.replicas));
}

/* Too few replicas have our field: all waiters fail for which that was asked, and the plan asks
 * anew for the others, or undoes the acquire. */
static void ask_is_short(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_answer *answer)
{
    struct hli_acquire *acquire = TAILQ_FIRST(&turn->name->waiters), *next;
    unsigned confirmed = hli_op_confirmed(&tenure->ask, answer);
    char text[HLI_REPLICAS_TEXT];
    int code = hli_replicas_write(turn->name->client, &tenure->ask, answer, text);

    tenure->may_stand = true;
    tenure->ask_at = 0;
    turn->name->asked_at = 0;
    for (; acquire; acquire = next) {
        next = TAILQ_NEXT(acquire, link);
        unsigned wanted = acquire->mode.replicas;
        if (!hli_replicas_cover(confirmed, wanted) &&
            hli_replicas_cover(tenure->ask.replicas, wanted) && !acquire->mode.is_kept_anyway)
            hli_waiters_fail(turn, acquire, code, text);
    }
}

/* Must the first waiter go without the lock, as too few replicas have it? */
static bool ask_lacks_replicas(const struct hli_turn *turn, const struct hli_tenure *tenure,
                               const struct hli_answer *answer)
{
    const struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    if (hli_op_is_confirmed(&tenure->ask, answer))
        return false;
    hli_count(&turn->name->client->counters.unconfirmed);
    return head && !head->mode.is_kept_anyway &&
           !hli_replicas_cover(hli_op_confirmed(&tenure->ask, answer), head->mode.replicas);
}

/* Our field is in the lock, and the tenure has it, if the answer did not take too long. The lease
 * is that of the call that was the first waiter when the request was sent. */
static void ask_is_ours(struct hli_turn *turn, struct hli_tenure *tenure,
                        const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head = TAILQ_FIRST(&name->waiters);
    unsigned confirmed = tenure->ask.replicas > 0 ? hli_op_confirmed(&tenure->ask, answer) : 0;
    int64_t was_free = 0;

    tenure->may_stand = true;
    tenure->least_count = tenure->most_count = 1;
    /* The link may have met a restarted server after the request was begun: it came too early. The
     * answer may be here before the link counts as up. */
    if (head->mode.restart_ms > 0 && hli_restart_forbids(turn))
        return;
    hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms, confirmed,
                      tenure->ask.term);
    name->asked_at = 0;
    if (tenure->asked_tokens > 0 || tenure->tokens > 0)
        ask_note_tokens(tenure, answer);
    tenure->ask_at = 0;
    if (ask_lacks_something(turn, tenure))
        return; /* asked again */
    if (head->lease_ms < tenure->asked_lease_ms) {
        hli_releasing_begin(turn, tenure); /* no lease is ever shortened: a new tenure asks with the
                                              lease of the waiter that is first now */
        return;
    }
    hli_reply_integer_at(answer->reply, 1, &was_free);
    tenure->no_waiters_at = was_free == 1 && name->kind->is_handed_on ? tenure->ask.sent_at : 0;
    tenure->renew_at = tenure->ask.sent_at + HLI_MS(tenure->asked_lease_ms) / 3;
    bool is_kept_anyway =
        head->mode.replicas > 0 && !hli_replicas_cover(confirmed, head->mode.replicas);
    hli_hold_begin(turn, head, tenure->ask.sent_at);
    if (is_kept_anyway)
        hli_hold_confirm(turn, tenure, false);
    hli_op_deinit(&tenure->ask);
    if (!TAILQ_EMPTY(&name->waiters))
        hli_busy_finish_tries(turn, turn->now); /* it is held now */
}

static void ask_is_refused(struct hli_turn *turn)
{
    struct hli_contention *contention = hli_contention_of(turn->name);
    unsigned refusals = contention ? contention->refusals++ : 0;
    int64_t pause_ms = (int64_t)ASK_RETRY_MS << (refusals < 6 ? refusals : 6);
    int64_t poll_ms = turn->name->client->settings.poll_ms;

    turn->name->current->ask_at = hli_after_ms(turn->now, pause_ms < poll_ms ? pause_ms : poll_ms);
}

static void ask_acquire_read(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct hli_answer *answer)
{
    int64_t status = -2;

    hli_reply_integer_at(answer->reply, 0, &status);
    if (turn->name->contention)
        hli_contention_forget_problem(turn->name->contention);
    if (status == 1 && tenure->ask.replicas > 0 && ask_lacks_replicas(turn, tenure, answer))
        ask_is_short(turn, tenure, answer);
    else if (status == 1 && turn->name->kind->served)
        turn->name->kind->served(turn, tenure, answer);
    else if (status == 1)
        ask_is_ours(turn, tenure, answer);
    else if (status == 0)
        hli_busy_answered(turn, tenure, answer);
    else if (status != -1 || !hli_restart_told_age(turn, answer))
        hli_waiters_fail_all(turn, HL_EPROTO, "an answer that the script does not give");
}

/* After a bounced or unanswered request the plan decides anew: it asks again if a call still waits.
 */
static void ask_acquire_done(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED && answer->verdict != HLI_BOUNCED)
        hli_contention_note_problem(turn->name, answer->code, answer->text);
    switch (answer->verdict) {
    case HLI_REPLIED:
        ask_acquire_read(turn, tenure, answer);
        break;
    case HLI_BOUNCED:
        tenure->ask_at = 0;
        break;
    case HLI_REFUSED:
        tenure->may_stand = true; /* an error may come from the middle of a script */
        ask_is_refused(turn);
        hli_ask_fail_for_now(turn, answer->code, answer->text);
        break;
    case HLI_FAILED:
        tenure->may_stand = true;
        hli_waiters_fail_all(turn, answer->code, answer->text);
        break;
    case HLI_UNKNOWN:
        tenure->may_stand = true;
        tenure->ask_at = hli_busy_poll_at(turn); /* or when the link is up again */
        break;
    case HLI_UNSENT:
        tenure->ask_at = hli_busy_poll_at(turn);
        if (answer->link_has_failed) /* else the failure of this attempt will be told */
            hli_ask_fail_for_now(turn, answer->code, answer->text);
        break;
    }
}

/* The answer to a tenure that has the key already: a grant came while its ACQUIRE was under way, or
 * it asked for something more. */
static void ask_kept_done(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                          const struct hli_answer *answer)
{
    bool is_there;

    if (hli_loss_by_time(turn, tenure))
        return; /* a hold that is over does not come back, whatever the answer says */
    if (asking == HLI_ASKING_ACQUIRE)
        is_there = hli_grant_crossed(tenure, answer);
    else if (asking == HLI_ASKING_KEEP)
        is_there = hli_keep_answered(tenure, answer);
    else if (asking == HLI_ASKING_TAG)
        is_there = hli_tag_answered(turn, tenure, answer);
    else
        is_there = hli_reenter_answered(turn, tenure, asking, answer);
    if (!is_there)
        hli_loss_declare(turn, tenure, "gone");
}

void hli_ask_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer)
{
    enum hli_asking asking = tenure->asking;
    struct hli_answer bounced;

    tenure->asking = HLI_ASKING_NOTHING;
    if (answer->verdict == HLI_REFUSED && hli_command_goes_alone(turn->name, answer, turn->now)) {
        bounced = *answer;
        bounced.verdict = HLI_BOUNCED; /* it did not run */
        answer = &bounced;
    }
    if (asking == HLI_ASKING_ACQUIRE && answer->verdict == HLI_UNKNOWN)
        tenure->is_unsure = true;
    if (hli_tenure_is_contending(tenure))
        ask_acquire_done(turn, tenure, answer);
    else if (hli_tenure_has_key(tenure))
        ask_kept_done(turn, tenure, asking, answer);
    else if (asking == HLI_ASKING_ACQUIRE)
        hli_release_behind(turn, tenure, hli_grant_stood(tenure, answer));
}

void hli_ask_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_tenure *tenure = HLI_PART_OF(op, struct hli_tenure, ask);
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    hli_ask_answered(&turn, tenure, answer);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
}
