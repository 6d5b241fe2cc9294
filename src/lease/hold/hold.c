/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Holds, from the first level to the last. */
#include "lease/hold/hold.h"

#include "lease/hold/tag.h"
#include "lease/hold/write.h"
#include "lease/state/grace.h"
#include "lease/state/notice.h"

/* Who looks for a deadlock finds the holder so. */
static void hold_share(struct hli_name *shared, const struct hl_owner *owner)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every hold has an owner */
    atomic_store(&shared->last_holder, owner->number);
    atomic_fetch_add(&shared->holds, 1);
}

void hli_hold_set(struct hli_tenure *tenure, struct hl_owner *owner, const struct hli_hold *said)
{
    struct hl_owner *before = tenure->hold.owner; /* of an earlier hold, or NULL */

    if (owner != before)
        hli_owner_ref(owner); /* the hold's */
    if (before && owner != before)
        hli_owner_unref(before);
    tenure->hold = *said;
    tenure->hold.owner = owner;
    tenure->hold.count = 1;
    tenure->ask_at = 0;
    atomic_fetch_add_explicit(&owner->holds, 1, memory_order_relaxed);
    if (tenure->name->shared)
        hold_share(tenure->name->shared, owner);
    if (!tenure->name->kind->changed)
        hli_count(&tenure->name->client->counters.holds_now);
    if (tenure->state != HLI_TENURE_OWN)
        hli_tenure_move(tenure, HLI_TENURE_OWN);
}

static struct hli_hold hold_describe(const struct hli_acquire *acquire, hli_ns from, hli_ns now)
{
    int64_t max_ms = acquire->options.max_hold_ms, min_ms = acquire->options.min_hold_ms;

    return (struct hli_hold){
        .is_watched = acquire->is_watched,
        .watch_ms = acquire->lease_ms,
        .began = now,
        .ends = acquire->is_watched ? HLI_NEVER : hli_lease_validity(from, acquire->lease_ms),
        .max_hold_at = max_ms > 0 ? hli_after_ms(now, max_ms) : HLI_NEVER,
        .min_hold_until = min_ms > 0 ? hli_after_ms(now, min_ms) : 0,
        .replicas = acquire->mode.replicas,
        .is_kept_anyway = acquire->mode.is_kept_anyway,
        .on_event = acquire->options.on_event,
        .event_arg = acquire->options.event_arg,
    };
}

void hli_hold_begin(struct hli_turn *turn, struct hli_acquire *acquire, hli_ns from)
{
    struct hli_name *name = turn->name;
    struct hli_tenure *tenure = name->current;
    const struct hli_hold hold = hold_describe(acquire, from, turn->now);

    hli_hold_set(tenure, acquire->owner, &hold);
    if (acquire->mode.is_fenced)
        tenure->hold.token = hli_tenure_take_token(tenure);
    tenure->in_jeopardy = tenure->is_unconfirmed = false;
    /* A grant's claim may be shorter than the hold's lease time. */
    tenure->is_doubted =
        !hold.is_watched && (hold.ends > tenure->valid_until || name->kind->is_always_renewed);
    if (tenure->is_doubted && name->kind->is_always_renewed)
        tenure->renew_at =
            hli_earlier(tenure->renew_at,
                        hli_after_ms(turn->now, name->client->settings.watchdog_timeout_ms / 3));
    if (HLI_GRACE_IS_ON(name->client))
        hli_grace_meet(turn, tenure);
    if (name->client->settings.flags & HL_CLIENT_HOLDER_INFO)
        hli_tag_begin(turn, tenure, acquire->thread);

    hli_waiters_leave(turn, acquire);
    hli_tenure_ref(tenure); /* the call's, until it is settled */
    acquire->got = tenure;
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

bool hli_hold_confirm(struct hli_turn *turn, struct hli_tenure *tenure, bool is_confirmed)
{
    bool is_news = !is_confirmed && !tenure->is_unconfirmed;

    if (is_news)
        hli_notice_warning(turn, tenure, HL_EVENT_UNCONFIRMED);
    tenure->is_unconfirmed = !is_confirmed;
    return is_news;
}

/* Does this hold stand for several permits that came with one request? It does until the others
 * have tenures of their own: an action on it is one on all. */
static bool hold_stands_for_several(const struct hli_tenure *tenure)
{
    const struct hli_name *name = tenure->name;

    return !tenure->hold.is_accepted && name->kind->need && name->kind->need(name) > 1;
}

/* A reply that lay in the socket while the process was stopped gives no hold (M. Kleppmann's
 * example; etcd#11456). So the caller's thread checks the clock itself. */
bool hli_hold_accept(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (hli_hold_is_valid(tenure, turn->now)) {
        tenure->hold.is_accepted = !hold_stands_for_several(tenure);
        return true;
    }
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_LOST)
        hli_releasing_begin(turn, tenure);
    return false;
}

void hli_hold_end(struct hli_tenure *tenure, hli_ns now)
{
    hl_client *client = tenure->name->client;

    tenure->shows_at = 0;
    atomic_fetch_sub(&tenure->hold.owner->holds, 1);
    if (tenure->name->shared)
        atomic_fetch_sub(&tenure->name->shared->holds, 1);
    if (tenure->name->kind->changed)
        return;
    hli_uncount(&client->counters.holds_now);
    if (tenure->hold.is_accepted)
        hli_histogram_add(&client->counters.hold, now - tenure->hold.began);
}

/* A renewal names one permit: a hold that stands for several would keep one and lose the others. A
 * hold on several masters is renewed at each of them. */
static bool hold_has_renewals(const struct hli_tenure *tenure)
{
    return !tenure->is_final && !tenure->name->kind->quorum && !hold_stands_for_several(tenure);
}

/* A look could undo a lease that is just being set. */
bool hli_hold_is_renewed(const struct hli_tenure *tenure)
{
    bool is_looked_at = tenure->is_doubted && (!tenure->is_lease_changing || tenure->is_returned);

    return is_looked_at || (tenure->hold.is_watched && hold_has_renewals(tenure));
}

void hli_hold_look_by(struct hli_tenure *tenure, hli_ns at)
{
    if (tenure->state != HLI_TENURE_OWN || !hold_has_renewals(tenure))
        return;
    tenure->renew_at = hli_hold_is_renewed(tenure) ? hli_earlier(tenure->renew_at, at) : at;
    tenure->is_doubted = true;
}

void hli_hold_doubt(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns at)
{
    tenure->doubted_at = turn->now;
    hli_hold_look_by(tenure, at);
}

/* At two thirds of the lease: then a third of it is left. */
hli_ns hli_hold_jeopardy_at(const struct hli_tenure *tenure)
{
    int64_t lease_ms =
        tenure->valid_ms < tenure->hold.watch_ms ? tenure->valid_ms : tenure->hold.watch_ms;

    return tenure->valid_until - HLI_MS(lease_ms) / 3;
}

bool hli_hold_is_warned(const struct hli_tenure *tenure)
{
    return tenure->hold.is_watched && tenure->hold.is_accepted && !tenure->in_jeopardy &&
           !tenure->name->kind->changed;
}

hli_ns hli_hold_idle_due(const struct hli_tenure *tenure)
{
    return hli_earlier(tenure->idle_until, hli_hold_jeopardy_at(tenure));
}

hli_ns hli_hold_due(const struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    bool shows = tenure->shows_at != 0 && tenure->asking == HLI_ASKING_NOTHING;
    bool is_renewed = hli_hold_is_renewed(tenure);
    hli_ns due = hold->max_hold_at;

    if (tenure->state == HLI_TENURE_IDLE)
        return hli_hold_idle_due(tenure);
    if (tenure->is_returned) /* it is only brought into a new term */
        return tenure->is_doubted && !tenure->is_renewing && !hli_grace_is_met(tenure)
                   ? tenure->renew_at
                   : HLI_NEVER;
    const hli_ns times[] = {
        hold->ends,
        tenure->valid_until,
        shows ? tenure->shows_at : HLI_NEVER,
        tenure->tag ? hli_tag_due(tenure) : HLI_NEVER,
        hli_hold_is_warned(tenure) ? hli_hold_jeopardy_at(tenure) : HLI_NEVER,
        is_renewed && !tenure->is_renewing ? tenure->renew_at : HLI_NEVER,
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < due)
            due = times[i];
    return due;
}

/* The adopted tenure begins with the lease that the request got, whatever became of the asking
 * tenure since. */
struct hli_adoption hli_hold_adoption(const struct hli_tenure *from)
{
    return (struct hli_adoption){
        .number = from->number,
        .hold = from->hold,
        .sent_at = from->ask.sent_at,
        .lease_ms = from->asked_lease_ms,
        .term = from->ask.term,
    };
}

static void hold_begin_adopted(struct hli_turn *turn, struct hli_tenure *tenure,
                               const struct hli_adoption *adoption)
{
    turn->name->current = tenure;
    tenure->number = adoption->number;
    tenure->may_stand = true;
    tenure->asked_count = tenure->least_count = tenure->most_count = 1;
    tenure->asked_lease_ms = tenure->longest_lease_ms = adoption->lease_ms;
    tenure->renew_at = adoption->sent_at + HLI_MS(adoption->lease_ms) / 3;
    hli_tenure_move(tenure, HLI_TENURE_ASK);
    hli_tenure_extend(tenure, adoption->sent_at, adoption->lease_ms, adoption->hold.replicas,
                      adoption->term);
    hli_hold_set(tenure, adoption->hold.owner, &adoption->hold);
    if (HLI_GRACE_IS_ON(turn->name->client)) /* the link may have come up meanwhile */
        hli_grace_meet(turn, tenure);
    tenure->hold.is_accepted = true;
}

bool hli_hold_adopt(struct hli_tenure *tenure, const struct hli_adoption *adoption)
{
    struct hli_name *name = tenure->name;
    struct hli_turn turn;

    if (adoption->hold.replicas > 0)
        hli_name_take_confirmed_lane(name);
    hli_turn_begin(&turn, name);
    bool is_open = !atomic_load(&name->client->is_closed);
    if (is_open)
        hold_begin_adopted(&turn, tenure, adoption);
    hli_turn_end(&turn);
    return is_open;
}

bool hli_hold_stand_alone(struct hli_name *name)
{
    struct hli_tenure *tenure;
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    tenure = name->current;
    bool is_held = tenure && tenure->state == HLI_TENURE_OWN;
    if (is_held)
        tenure->hold.is_accepted = true;
    hli_turn_end(&turn);
    return is_held;
}

void hli_releasing_end(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_name *name = turn->name;

    if (tenure->state == HLI_TENURE_RELEASING && atomic_fetch_sub(&name->client->dying, 1) == 1)
        turn->is_last_releasing = true;
    if (name->current == tenure)
        name->current = NULL;
    else
        TAILQ_REMOVE(&name->past, tenure, link);
    hli_tenure_move(tenure, HLI_TENURE_ENDED);
    hli_write_unref(tenure->write);
    tenure->write = NULL;
    hli_turn_unref(turn, tenure); /* the name's */
}

/* Moves the tenure into `past` as RELEASING; its key is gone by itself after the longest lease that
 * was asked for. */
void hli_releasing_begin(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_name *name = turn->name;
    int64_t lease_ms = tenure->longest_lease_ms;

    tenure->may_stand = false; /* its release removes what is there by now */
    if (hli_tenure_has_key(tenure))
        hli_turn_unwatch(turn, tenure);
    if (tenure->state == HLI_TENURE_OWN) {
        if (name->kind->changed)
            hli_turn_change(turn, tenure, 0);
        bool is_alive = tenure->hold.is_accepted && hli_hold_is_valid(tenure, turn->now);
        if (!is_alive)
            tenure->was_valid_until = 0;
        else if (tenure->was_valid_until == 0)
            tenure->was_valid_until = hli_hold_validity(tenure);
        hli_hold_end(tenure, turn->now);
    }
    if (name->current == tenure) {
        name->current = NULL;
        TAILQ_INSERT_TAIL(&name->past, tenure, link);
    }
    tenure->give_up_at = hli_later(tenure->valid_until, hli_after_ms(turn->now, lease_ms)) +
                         hli_lease_margin(lease_ms);
    hli_tenure_move(tenure, HLI_TENURE_RELEASING);
    hli_count(&name->client->dying);
}

void hli_releasing_orphan_at(struct hli_turn *turn, uint64_t number, hli_ns at)
{
    struct hli_tenure *tenure = hli_tenure_new(turn->name, number);

    if (!tenure)
        return; /* the next busy answer shows it again */
    tenure->longest_lease_ms =
        turn->name->client->settings.watchdog_timeout_ms + hli_ms_left(turn->now, at);
    tenure->retry_at = at;
    TAILQ_INSERT_TAIL(&turn->name->past, tenure, link);
    hli_releasing_begin(turn, tenure);
}

void hli_releasing_orphan(struct hli_turn *turn, uint64_t number)
{
    hli_releasing_orphan_at(turn, number, 0);
}

static bool hold_beside_in(struct hli_name *name, const struct hl_owner *owner,
                           struct hli_beside *ret_beside)
{
    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    bool is_valid = tenure && hli_hold_is_valid(tenure, hli_now());
    if (is_valid)
        *ret_beside = (struct hli_beside){tenure->number, tenure->is_final ? 0 : tenure->term};
    hli_mutex_unlock(&name->mutex);
    return is_valid;
}

bool hli_hold_beside(const struct hli_name *name, const struct hl_owner *owner,
                     struct hli_beside *ret_beside)
{
    const struct hli_kind *kind = name->kind->sibling;
    struct hli_name_key key = {.kind = kind, .bytes = name->bytes, .length = name->length};

    if (kind->is_per_owner)
        key.owner_key.half[0] = owner->number;
    struct hli_name *other = hli_name_find(name->client, &key);
    bool is_valid = other && hold_beside_in(other, owner, ret_beside);
    if (other)
        hli_name_unref(other);
    return is_valid;
}
