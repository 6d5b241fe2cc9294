/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Keeping: pass, linger, and the word that allows them. */
#include "lease/keep.h"

#include "lease/ask.h"
#include "lease/command.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/loss.h"
#include "lease/release.h"
#include "lease/tag.h"

enum {
    KEEP_MS = 20,        /* how old the word may be: so long Redisson's waiters are not seen */
    KEEP_PASSES = 65536, /* in one tenure */
};

static bool keep_has_word(const struct hli_tenure *tenure, hli_ns now)
{
    return !tenure->is_wanted && tenure->word_at != 0 &&
           now < hli_after_ms(tenure->word_at, KEEP_MS);
}

/* Held without a lease time, with two thirds of the lease ahead, and without anything that is the
 * business of this hold alone. */
static bool keep_may(const struct hli_tenure *tenure, hli_ns now)
{
    return keep_has_word(tenure, now) && tenure->hold.is_watched &&
           now < hli_hold_jeopardy_at(tenure) && now >= tenure->hold.rests_until &&
           tenure->passes < KEEP_PASSES && !tenure->warning.is_queued && !hli_tag_is_shown(tenure);
}

static bool keep_needs_word(const struct hli_tenure *tenure, hli_ns now)
{
    return now >= hli_after_ms(tenure->word_at, KEEP_MS / 2) && !tenure->is_wanted &&
           tenure->asking == HLI_ASKING_NOTHING;
}

/* Has the tenure a fencing token for the next hold, if that wants one? */
static bool keep_has_token(const struct hli_tenure *tenure, const struct hli_acquire *next)
{
    return !next->way.is_fenced || tenure->tokens > 0;
}

/* There is demand, and the word is getting old: asks for a new one. */
static void keep_refresh(struct hli_turn *turn, struct hli_tenure *tenure)
{
    int64_t lease_ms = tenure->hold.watch_ms;

    if (!keep_needs_word(tenure, turn->now) || hli_command_keep(tenure, &tenure->ask, lease_ms) < 0)
        return;
    tenure->asked_lease_ms = lease_ms;
    hli_ask_send(turn, tenure, HLI_ASKING_KEEP);
}

bool hli_keep_pass(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    if (!head || !head->is_watched || !keep_has_token(tenure, head) || !keep_may(tenure, turn->now))
        return false;
    hli_hold_end(tenure, turn->now);
    tenure->passes++;
    hli_count(&turn->name->client->counters.passes);
    hli_hold_begin(turn, head, turn->now);
    keep_refresh(turn, tenure);
    hli_deepen_go(turn, tenure); /* the count on display may be another one's */
    return true;
}

/* The time counts from the first idle moment since the last word: who comes and goes does not make
 * it longer. */
bool hli_keep_linger(struct hli_turn *turn, struct hli_tenure *tenure, int64_t linger_ms)
{
    if (linger_ms == 0 || tenure->hold.watch_ms > HLI_LINGER_LEASE_MS ||
        !TAILQ_EMPTY(&turn->name->waiters) || !keep_may(tenure, turn->now))
        return false;
    if (tenure->idle_word != tenure->word_at) {
        tenure->idle_word = tenure->word_at;
        tenure->idle_until = hli_after_ms(turn->now, linger_ms);
    }
    if (turn->now >= tenure->idle_until)
        return false;
    hli_hold_end(tenure, turn->now);
    hli_tenure_move(tenure, HLI_TENURE_IDLE);
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));
    return true;
}

bool hli_keep_resume(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;
    struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    if (!tenure || tenure->state != HLI_TENURE_IDLE)
        return false;
    if (!head->is_watched || !keep_has_token(tenure, head) || tenure->is_wanted ||
        turn->now >= hli_hold_due(tenure)) {
        hli_release_quietly(turn, tenure);
        return false;
    }
    hli_count(&turn->name->client->counters.lingers);
    hli_hold_begin(turn, head, turn->now);
    keep_refresh(turn, tenure);
    hli_deepen_go(turn, tenure);
    return true;
}

bool hli_keep_take_up(struct hli_tenure *tenure, struct hl_owner *owner,
                      const struct hli_acquire_way *way)
{
    struct hli_counters *counters = &tenure->name->client->counters;
    hli_ns now = hli_now();

    if (tenure->is_wanted || !TAILQ_EMPTY(&tenure->name->waiters) || now >= hli_hold_due(tenure) ||
        tenure->told_due > hli_earlier(tenure->renew_at, hli_hold_jeopardy_at(tenure)) ||
        keep_needs_word(tenure, now) || (way->is_fenced && tenure->tokens == 0) ||
        !hli_deepen_may_wait(tenure, 1))
        return false;
    hli_hold_take(tenure, owner,
                  &(struct hli_hold){.is_accepted = true,
                                     .is_watched = true,
                                     .watch_ms = way->watch_ms,
                                     .began = now,
                                     .ends = HLI_NEVER,
                                     .leash = HLI_NEVER});
    if (way->is_fenced)
        tenure->hold.token = hli_tenure_take_token(tenure);
    hli_count(&counters->lingers);
    return true;
}

/* The watchdog may have looked meanwhile, for it looks a little early, and mean to come again for
 * the hold's sake only: then it has to be told. */
static bool keep_is_watched(const struct hli_tenure *tenure)
{
    return tenure->told_due <= hli_hold_idle_due(tenure);
}

bool hli_keep_leave(struct hli_tenure *tenure)
{
    hli_ns now = hli_now();

    if (!tenure->hold.is_accepted || tenure->deepener || tenure->idle_word != tenure->word_at ||
        now >= tenure->idle_until || !TAILQ_EMPTY(&tenure->name->waiters) ||
        !keep_may(tenure, now) || !keep_is_watched(tenure))
        return false;
    hli_hold_end(tenure, now);
    hli_tenure_move(tenure, HLI_TENURE_IDLE);
    return true;
}

static void keep_is_wanted(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->is_wanted = true;
    if (tenure->state != HLI_TENURE_IDLE)
        return;
    hli_release_quietly(turn, tenure);
    hli_ask_go(turn);
}

void hli_keep_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer)
{
    int64_t count = 0, waiting = 1;

    if (answer->verdict != HLI_REPLIED)
        return;
    hli_reply_integer_at(answer->reply, 0, &count);
    hli_reply_integer_at(answer->reply, 1, &waiting);
    if (count < 0) {
        hli_loss_of_key(turn, tenure);
        return;
    }
    hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms);
    if (waiting == 0)
        tenure->word_at = tenure->ask.sent_at;
    else
        keep_is_wanted(turn, tenure);
    if (tenure->state == HLI_TENURE_OWN)
        hli_deepen_go(turn, tenure);
}
