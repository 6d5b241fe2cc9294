/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Keeping: the pass, the retained tenure, and the server's word that allows them. */
#include "lease/hold/keep.h"

#include "base/probe.h"
#include "lease/hold/hold.h"
#include "lease/hold/reenter.h"
#include "lease/hold/tag.h"
#include "lease/state/command.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

enum {
    KEEP_MS = 20, /* the greatest age of the server's word; Redisson's waiters may go unseen for so
                     long */
    KEEP_PASSES = 65536, /* in one tenure */
};

static bool keep_has_no_waiters(const struct hli_tenure *tenure, hli_ns now)
{
    return !tenure->has_waiters && tenure->no_waiters_at != 0 &&
           now < hli_after_ms(tenure->no_waiters_at, KEEP_MS);
}

/* May the tenure stay? If it is held without a lease time, with a third of the lease ahead, and if
 * nothing about this hold alone is unfinished. */
static bool keep_may(const struct hli_tenure *tenure, hli_ns now)
{
    return keep_has_no_waiters(tenure, now) && tenure->hold.is_watched &&
           now < hli_hold_jeopardy_at(tenure) && now >= tenure->hold.min_hold_until &&
           !tenure->is_lease_changing && !tenure->is_final && tenure->passes < KEEP_PASSES &&
           !tenure->warning.is_queued && !hli_tag_is_shown(tenure);
}

static bool keep_must_ask(const struct hli_tenure *tenure, hli_ns now)
{
    return now >= hli_after_ms(tenure->no_waiters_at, KEEP_MS / 2) && !tenure->has_waiters &&
           tenure->asking == HLI_ASKING_NOTHING &&
           (!HLI_GRACE_IS_ON(tenure->name->client) || hli_grace_is_met(tenure));
}

/* Has the tenure a fencing token for the next hold, if that wants one? */
static bool keep_has_token(const struct hli_tenure *tenure, const struct hli_acquire *next)
{
    return !next->mode.is_fenced || tenure->tokens > 0;
}

/* Has the tenure all that this waiter wants of the next hold? */
static bool keep_suits(const struct hli_tenure *tenure, const struct hli_acquire *next)
{
    return next->is_watched && keep_has_token(tenure, next) &&
           hli_replicas_cover(tenure->replicas, next->mode.replicas);
}

/* The lock is in demand and the server's word gets old: sends a KEEP for a new one. */
static void keep_refresh(struct hli_turn *turn, struct hli_tenure *tenure)
{
    int64_t lease_ms = tenure->hold.watch_ms;

    if (!keep_must_ask(tenure, turn->now) ||
        turn->name->kind->keep(tenure, &tenure->ask, lease_ms) < 0)
        return;
    tenure->asked_lease_ms = lease_ms;
    hli_turn_ask(turn, tenure, HLI_ASKING_KEEP);
}

bool hli_keep_pass(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    if (!head || !keep_suits(tenure, head) || !keep_may(tenure, turn->now))
        return false;
    hli_ns began = tenure->hold.began;
    hli_hold_end(tenure, turn->now);
    tenure->passes++;
    hli_count(&turn->name->client->counters.passes);
    HLI_PROBE2(pass, turn->name->bytes, turn->now - began);
    hli_hold_begin(turn, head, turn->now);
    keep_refresh(turn, tenure);
    return true;
}

/* May the tenure be retained? Only with a short lease, because the key stands for a whole lease if
 * this process dies. */
static bool keep_may_retain(const struct hli_tenure *tenure, hli_ns now)
{
    return tenure->longest_lease_ms <= HLI_RETAIN_LEASE_MS && TAILQ_EMPTY(&tenure->name->waiters) &&
           keep_may(tenure, now);
}

/* Does this client hear that another one waits? In a cluster only by the mailbox of the name, which
 * is subscribed to with the name's channels. */
static bool keep_hears_wants(const struct hli_tenure *tenure)
{
    const struct hli_contention *contention = tenure->name->contention;

    return !tenure->name->client->wording->is_for_cluster ||
           (contention && contention->confirmed_at != 0);
}

/* So the name subscribes, and the next hold may be retained. */
static void keep_listen(struct hli_turn *turn)
{
    struct hli_contention *contention = hli_contention_of(turn->name);

    if (!contention)
        return;
    contention->idle_since = turn->now;
    hli_turn_listen(turn);
}

/* The subscription stays for longer than a tenure may be retained. */
static void keep_idle(struct hli_tenure *tenure, hli_ns now)
{
    hli_hold_end(tenure, now);
    hli_tenure_move(tenure, HLI_TENURE_IDLE);
    if (tenure->name->client->wording->is_for_cluster)
        tenure->name->contention->idle_since = now;
}

/* The time counts from the first idle moment since the server's last word; holds in between do not
 * make it longer. */
bool hli_keep_retain(struct hli_turn *turn, struct hli_tenure *tenure, int64_t retain_ms)
{
    hli_ns until = hli_after_ms(turn->now, retain_ms);

    if (retain_ms == 0 || !keep_may_retain(tenure, turn->now))
        return false;
    if (!keep_hears_wants(tenure)) {
        keep_listen(turn);
        return false;
    }
    if (tenure->idle_no_waiters_at != tenure->no_waiters_at)
        tenure->idle_until = until;
    tenure->idle_no_waiters_at = tenure->no_waiters_at;
    tenure->idle_until = hli_earlier(tenure->idle_until, until); /* this handle's may be shorter */
    if (turn->now >= tenure->idle_until)
        return false;
    keep_idle(tenure, turn->now);
    return true;
}

void hli_keep_plan(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;
    struct hli_acquire *head = TAILQ_FIRST(&turn->name->waiters);

    bool is_over = tenure->has_waiters || turn->now >= hli_hold_due(tenure);
    if (!head && !is_over)
        return;
    if (is_over || !keep_suits(tenure, head)) {
        hli_releasing_begin(turn, tenure);
        return;
    }
    hli_count(&turn->name->client->counters.retained);
    hli_hold_begin(turn, head, turn->now);
    keep_refresh(turn, tenure);
}

bool hli_keep_resume_fast(struct hli_tenure *tenure, struct hl_owner *owner,
                          const struct hli_acquire_mode *mode)
{
    struct hli_counters *counters = &tenure->name->client->counters;
    hli_ns now = hli_now();

    if (tenure->has_waiters || !TAILQ_EMPTY(&tenure->name->waiters) ||
        now >= hli_hold_due(tenure) ||
        tenure->visit_at > hli_earlier(tenure->renew_at, hli_hold_jeopardy_at(tenure)) ||
        keep_must_ask(tenure, now) || (mode->is_fenced && tenure->tokens == 0) ||
        !hli_replicas_cover(tenure->replicas, mode->replicas) || !hli_reenter_may_wait(tenure, 1))
        return false;
    hli_hold_set(tenure, owner,
                 &(struct hli_hold){.is_accepted = true,
                                    .is_watched = true,
                                    .watch_ms = mode->watch_ms,
                                    .replicas = mode->replicas,
                                    .is_kept_anyway = mode->is_kept_anyway,
                                    .began = now,
                                    .ends = HLI_NEVER,
                                    .max_hold_at = HLI_NEVER});
    if (mode->is_fenced)
        tenure->hold.token = hli_tenure_take_token(tenure);
    hli_count(&counters->retained);
    return true;
}

/* Will the watchdog visit in time for an IDLE tenure? It may have visited a little early, and have
 * planned its next visit for the hold only; then it has to be told. */
static bool keep_is_watched(const struct hli_tenure *tenure)
{
    return tenure->visit_at <= hli_hold_idle_due(tenure);
}

bool hli_keep_retain_fast(struct hli_tenure *tenure, int64_t retain_ms)
{
    hli_ns now = hli_now();

    if (!tenure->hold.is_accepted || tenure->reentry ||
        tenure->idle_no_waiters_at != tenure->no_waiters_at || now >= tenure->idle_until ||
        hli_after_ms(now, retain_ms) < tenure->idle_until || !keep_may_retain(tenure, now) ||
        !keep_is_watched(tenure) || !keep_hears_wants(tenure))
        return false;
    keep_idle(tenure, now);
    return true;
}

bool hli_keep_answered(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    int64_t count = 0, waiting = 1;

    if (answer->verdict != HLI_REPLIED)
        return true;
    hli_reply_integer_at(answer->reply, 0, &count);
    hli_reply_integer_at(answer->reply, 1, &waiting);
    if (count < 0)
        return false;
    unsigned confirmed = hli_op_confirmed(&tenure->ask, answer);
    if (hli_hold_takes(tenure, confirmed)) /* an earlier hold may have asked for fewer */
        hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms, confirmed,
                          tenure->ask.term);
    if (waiting == 0)
        tenure->no_waiters_at = tenure->ask.sent_at;
    else
        tenure->has_waiters = true;
    return true;
}
