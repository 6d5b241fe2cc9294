/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Asking: the only place that sends a tenure's first requests, and sorts what comes back. One
 * request of a name is in flight at a time, however many wait.
 */
#include "lease/ask.h"

#include "base/check.h"
#include "lease/busy.h"
#include "lease/contest.h"
#include "lease/deepen.h"
#include "lease/grant.h"
#include "lease/hold.h"
#include "lease/keep.h"
#include "lease/loss.h"
#include "lease/release.h"
#include "lease/tag.h"

#include <stdlib.h>

enum {
    ASK_RETRY_MS = 100, /* after a refusal, doubled up to the poll */
    ASK_TOKENS = 65537, /* for a tenure that may be passed on so often without a request */
};

static void ask_done(struct hli_op *op, const struct hli_answer *answer);

void hli_ask_send(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking)
{
    if (tenure->longest_lease_ms < tenure->asked_lease_ms)
        tenure->longest_lease_ms = tenure->asked_lease_ms;
    tenure->asking = asking;
    tenure->ask.done = ask_done;
    hli_turn_send(turn, tenure, &tenure->ask);
}

/* The first waiter gets a new tenure. Made before anything is sent, so that nothing is ever held in
 * Redis without a record of it here. Without memory it is tried again, as long as somebody waits.
 */
static struct hli_acquire *ask_begin_tenure(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head = TAILQ_FIRST(&name->waiters);

    if (head && !name->current)
        name->current = hli_tenure_new(name);
    if (head && !name->current) {
        hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return NULL;
    }
    if (head && name->current->state == HLI_TENURE_NEW) {
        hli_tenure_move(name->current, HLI_TENURE_ASK);
        hli_contest_forget_problem(name);
    }
    return head;
}

/* It is Redisson's turn: not before that is over. */
static bool ask_stands_back(struct hli_turn *turn)
{
    const struct hli_contest *contest = turn->name->contest;

    if (!contest || turn->now >= contest->stands_back_until)
        return false;
    hli_turn_timer(turn, contest->stands_back_until);
    return true;
}

/* A try does not stand in the queue: it is over with its answer. Nor does who looks in every now
 * and then. */
bool hli_ask_queues(const struct hli_name *name)
{
    const struct hli_acquire *acquire;

    TAILQ_FOREACH (acquire, &name->waiters, link)
        if (!acquire->is_try && acquire->way.backoff_ms == 0)
            return true;
    return false;
}

/* One for each hold that may follow without another request. */
static uint32_t ask_tokens(const struct hli_name *name)
{
    const struct hli_acquire *acquire;
    bool is_fenced = false, may_be_kept = false;
    unsigned waiters = 0;

    TAILQ_FOREACH (acquire, &name->waiters, link) {
        is_fenced = is_fenced || acquire->way.is_fenced;
        may_be_kept = may_be_kept || acquire->way.lingers || ++waiters > 1;
    }
    return !is_fenced ? 0 : may_be_kept ? ASK_TOKENS : 1;
}

static void ask_take(struct hli_turn *turn, struct hli_tenure *tenure, int64_t lease_ms)
{
    const struct hli_taking taking = {.lease_ms = lease_ms,
                                      .count = 1,
                                      .tokens = ask_tokens(turn->name),
                                      .queues = hli_ask_queues(turn->name)};

    if (turn->name->kind->take(tenure, &tenure->ask, &taking) < 0) {
        hli_turn_timer(turn, hli_after_ms(turn->now, HLI_NO_MEMORY_MS));
        return;
    }
    tenure->is_queued = tenure->is_queued || taking.queues;
    if (tenure->asked_count == 0) /* the first of all: no grant is older */
        tenure->anchor_at = turn->now;
    if (turn->name->asked_at == 0)
        turn->name->asked_at = turn->now;
    tenure->asked_lease_ms = lease_ms;
    tenure->asked_count = 1;
    tenure->asked_tokens = taking.tokens;
    hli_ask_send(turn, tenure, HLI_ASKING_TAKE);
}

void hli_ask_go(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if ((name->current && !hli_tenure_is_contending(name->current)) ||
        hli_release_is_in_the_way(name))
        return;
    struct hli_acquire *head = ask_begin_tenure(turn);
    struct hli_tenure *tenure = name->current;
    if (head && tenure && tenure->asking == HLI_ASKING_NOTHING && !ask_stands_back(turn))
        ask_take(turn, tenure, head->lease_ms);
}

void hli_ask_wait_on(struct hli_turn *turn, const struct hli_answer *answer, hli_ns sent_at)
{
    struct hli_acquire *head = ask_begin_tenure(turn);
    struct hli_tenure *tenure = turn->name->current;

    if (!head)
        return;
    tenure->ask.sent_at = sent_at;
    tenure->is_queued = hli_ask_queues(turn->name);
    hli_busy_answered(turn, tenure, answer);
}

void hli_ask_abandon(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    struct hli_tenure *tenure = name->current;

    if (name->contest)
        name->contest->idle_since = turn->now;
    name->asked_at = 0;
    if (name->kind->is_used_once && name->contest)
        hli_turn_timer(turn, turn->now); /* its channel has served */
    if (!hli_tenure_is_contending(tenure))
        return;
    if (name->kind->leave && (tenure->asking != HLI_ASKING_NOTHING || tenure->may_stand))
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

/* Those of an earlier answer, which came too late, may be smaller than what others have had since.
 */
static void ask_note_tokens(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    const struct hli_reply *last = hli_reply_text_at(answer->reply, 2);

    tenure->tokens = last ? tenure->asked_tokens : 0;
    if (tenure->tokens == 0)
        return;
    tenure->token = strtoull(last->text, NULL, 10) - tenure->asked_tokens + 1;
}

/* What the first waiter asks for is more than was asked for when the request was sent: its own
 * field stands, and is asked for the rest. */
static bool ask_lacks_something(const struct hli_turn *turn, const struct hli_tenure *tenure)
{
    const struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    return turn->now >= tenure->valid_until || head->lease_ms > tenure->asked_lease_ms ||
           (head->way.is_fenced && tenure->tokens == 0);
}

/* We have it, if the answer did not take too long. The lease is the one of who waited first when it
 * was asked for. */
static void ask_is_ours(struct hli_turn *turn, struct hli_tenure *tenure,
                        const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head = TAILQ_FIRST(&name->waiters);
    int64_t was_free = 0;

    tenure->may_stand = true;
    tenure->least_count = tenure->most_count = 1;
    hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms);
    name->answered_at = turn->now;
    name->asked_at = 0;
    ask_note_tokens(tenure, answer);
    if (ask_lacks_something(turn, tenure)) {
        hli_ask_go(turn);
        return;
    }
    if (head->lease_ms < tenure->asked_lease_ms) {
        hli_release_quietly(turn, tenure); /* no lease is ever shortened: anew, with the lease of
                                              who is first now */
        hli_ask_go(turn);
        return;
    }
    hli_reply_integer_at(answer->reply, 1, &was_free);
    tenure->word_at = was_free == 1 && name->kind->is_handed_on ? tenure->ask.sent_at : 0;
    tenure->renew_at = tenure->ask.sent_at + HLI_MS(tenure->asked_lease_ms) / 3;
    hli_hold_begin(turn, head, tenure->ask.sent_at);
    hli_op_deinit(&tenure->ask);
    hli_busy_finish_tries(turn, turn->now); /* it is held now */
}

static void ask_is_refused(struct hli_turn *turn, const struct hli_answer *answer)
{
    struct hli_contest *contest = hli_contest_of(turn->name);
    unsigned refusals = contest ? contest->refusals++ : 0;
    int64_t pause_ms = (int64_t)ASK_RETRY_MS << (refusals < 6 ? refusals : 6);
    int64_t poll_ms = turn->name->client->settings.poll_ms;

    turn->distrusts = hli_answer_is(answer, "READONLY");
    hli_turn_timer(turn, hli_after_ms(turn->now, pause_ms < poll_ms ? pause_ms : poll_ms));
}

static void ask_take_read(struct hli_turn *turn, struct hli_tenure *tenure,
                          const struct hli_answer *answer)
{
    int64_t status = -2;

    hli_reply_integer_at(answer->reply, 0, &status);
    hli_contest_forget_problem(turn->name);
    if (status == 1 && turn->name->kind->taken)
        turn->name->kind->taken(turn, tenure, answer);
    else if (status == 1)
        ask_is_ours(turn, tenure, answer);
    else if (status == 0)
        hli_busy_answered(turn, tenure, answer);
    else
        hli_ask_fail_all(turn, HL_EPROTO, "an answer that the script does not give");
}

/* A request that bounced or was not answered is a new decision: it is asked again if somebody still
 * waits. */
static void ask_take_done(struct hli_turn *turn, struct hli_tenure *tenure,
                          const struct hli_answer *answer)
{
    if (answer->verdict != HLI_REPLIED && answer->verdict != HLI_BOUNCED)
        hli_contest_note_problem(turn->name, answer->code, answer->text);
    switch (answer->verdict) {
    case HLI_REPLIED:
        ask_take_read(turn, tenure, answer);
        break;
    case HLI_BOUNCED:
        hli_ask_go(turn);
        break;
    case HLI_REFUSED:
        tenure->may_stand = true; /* an error may come from the middle of a script */
        ask_is_refused(turn, answer);
        break;
    case HLI_FAILED:
        tenure->may_stand = true;
        hli_ask_fail_all(turn, answer->code, answer->text);
        break;
    case HLI_UNKNOWN:
        tenure->may_stand = true;
        hli_turn_timer(turn, hli_busy_poll_at(turn)); /* or when the link is up again */
        break;
    case HLI_UNSENT:
        if (answer->code == HL_EDENIED)
            hli_ask_fail_all(turn, answer->code, answer->text);
        else
            hli_turn_timer(turn, hli_busy_poll_at(turn));
        break;
    }
}

/* The answer of a tenure that has the key already: it was granted while a TAKE was under way, or
 * asked for something more. */
static void ask_kept_done(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking,
                          const struct hli_answer *answer)
{
    if (hli_loss_by_time(turn, tenure))
        return; /* what is over does not come back, whatever the answer says */
    if (asking == HLI_ASKING_TAKE)
        hli_grant_crossed(turn, tenure, answer);
    else if (asking == HLI_ASKING_KEEP)
        hli_keep_answered(turn, tenure, answer);
    else if (asking == HLI_ASKING_TAG)
        hli_tag_answered(turn, tenure, answer);
    else
        hli_deepen_answered(turn, tenure, asking, answer);
}

/* What is sent after a turn may be overtaken: the release of a tenure by its own TAKE's delay. Then
 * the key is there for nobody. */
static void ask_dead_done(struct hli_turn *turn, const struct hli_tenure *tenure,
                          const struct hli_answer *answer)
{
    int64_t status = 0;

    if (answer->verdict == HLI_REPLIED && hli_reply_integer_at(answer->reply, 0, &status) &&
        status == 1)
        hli_release_ghost(turn, tenure->number);
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
    else if (hli_tenure_is_kept(tenure))
        ask_kept_done(&turn, tenure, asking, answer);
    else if (tenure->state == HLI_TENURE_DEAD && asking == HLI_ASKING_TAKE &&
             tenure->name->kind->leave)
        ask_dead_done(&turn, tenure, answer);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the op's */
}
