/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Holds, from the first level to the last. */
#include "lease/hold.h"

#include "base/check.h"
#include "lease/release.h"
#include "lease/tag.h"

static hli_ns hold_after(hli_ns from, int64_t ms, hli_ns without)
{
    return ms > 0 ? hli_after_ms(from, ms) : without;
}

void hli_hold_take(struct hli_tenure *tenure, struct hl_owner *owner, const struct hli_hold *said)
{
    struct hl_owner *before = tenure->hold.owner; /* of a hold before, if there was one */

    if (owner != before) {
        hli_owner_ref(owner); /* the hold's */
        hli_owner_unref(before);
    }
    tenure->hold = *said;
    tenure->hold.owner = owner;
    tenure->hold.count = 1;
    atomic_fetch_add_explicit(&owner->holds, 1, memory_order_relaxed);
    hli_count(&tenure->name->client->counters.holds_now);
    if (tenure->state != HLI_TENURE_OWN)
        hli_tenure_move(tenure, HLI_TENURE_OWN);
}

static struct hli_hold hold_describe(const struct hli_acquire *acquire, hli_ns from, hli_ns now)
{
    return (struct hli_hold){
        .is_watched = acquire->is_watched,
        .watch_ms = acquire->lease_ms,
        .began = now,
        .ends = acquire->is_watched ? HLI_NEVER : hli_lease_validity(from, acquire->lease_ms),
        .leash = hold_after(now, acquire->max_hold_ms, HLI_NEVER),
        .rests_until = hold_after(now, acquire->min_hold_ms, 0),
        .on_event = acquire->on_event,
        .event_arg = acquire->event_arg,
    };
}

/* The channel of a name that is used once has served. */
static void hold_stop_listening(struct hli_turn *turn)
{
    if (turn->name->kind->is_used_once && turn->name->contest)
        hli_turn_timer(turn, turn->now);
}

void hli_hold_begin(struct hli_turn *turn, struct hli_acquire *acquire, hli_ns from)
{
    struct hli_name *name = turn->name;
    struct hli_tenure *tenure = name->current;
    const struct hli_hold hold = hold_describe(acquire, from, turn->now);

    hli_hold_take(tenure, acquire->owner, &hold);
    if (acquire->way.is_fenced)
        tenure->hold.token = hli_tenure_take_token(tenure);
    tenure->in_jeopardy = false;
    /* A grant's claim may be shorter than the lease that is wanted. */
    tenure->is_doubted =
        !hold.is_watched && (hold.ends > tenure->valid_until || name->kind->is_kept_up);
    if (tenure->is_doubted && name->kind->is_kept_up)
        tenure->renew_at =
            hli_earlier(tenure->renew_at,
                        hli_after_ms(turn->now, name->client->settings.watchdog_timeout_ms / 3));
    hli_tag_begin(turn, tenure, acquire->tag);
    acquire->tag = NULL;
    hold_stop_listening(turn);
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));

    hli_acquire_leave_line(turn, acquire);
    hli_tenure_ref(tenure); /* the call's, until it is settled */
    acquire->got = tenure;
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

/* A reply that lay in the socket while the process was stopped is no hold (M. Kleppmann's example;
 * etcd#11456): so whoever is told looks at the clock itself. */
bool hli_hold_accept(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (tenure->state == HLI_TENURE_OWN && turn->now < hli_hold_validity(tenure)) {
        tenure->hold.is_accepted = true;
        hli_turn_watch(turn, tenure, hli_hold_due(tenure)); /* it may be in jeopardy already */
        return true;
    }
    if (tenure->state == HLI_TENURE_OWN)
        hli_hold_end(tenure, turn->now);
    if (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_LOST)
        hli_release_quietly(turn, tenure);
    return false;
}

void hli_hold_end(struct hli_tenure *tenure, hli_ns now)
{
    hl_client *client = tenure->name->client;

    tenure->shows_at = 0;
    atomic_fetch_sub(&tenure->hold.owner->holds, 1);
    hli_uncount(&client->counters.holds_now);
    if (tenure->hold.is_accepted)
        hli_histogram_add(&client->counters.hold, now - tenure->hold.began);
}

/* A renewal names one. So what stands for several is not renewed before it is accepted, or one of
 * them would be kept and the others not; from then on each stands for itself. */
bool hli_hold_is_renewed(const struct hli_tenure *tenure)
{
    const struct hli_name *name = tenure->name;

    return tenure->hold.is_watched &&
           (tenure->hold.is_accepted || !name->kind->need || name->kind->need(name) == 1);
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
    return tenure->hold.is_watched && tenure->hold.is_accepted && !tenure->in_jeopardy;
}

hli_ns hli_hold_idle_due(const struct hli_tenure *tenure)
{
    return hli_earlier(tenure->idle_until, hli_hold_jeopardy_at(tenure));
}

hli_ns hli_hold_due(const struct hli_tenure *tenure)
{
    const struct hli_hold *hold = &tenure->hold;
    hli_ns due = hli_earlier(hli_hold_validity(tenure), hold->leash);

    if (tenure->state == HLI_TENURE_IDLE)
        return hli_hold_idle_due(tenure);
    if (tenure->shows_at != 0)
        due = hli_earlier(due, tenure->shows_at);
    due = hli_earlier(due, hli_tag_due(tenure));
    if (hli_hold_is_warned(tenure))
        due = hli_earlier(due, hli_hold_jeopardy_at(tenure));
    if ((hli_hold_is_renewed(tenure) || tenure->is_doubted) && !tenure->is_renewing)
        due = hli_earlier(due, tenure->renew_at);
    return due;
}

/* What the tenure that asked got is its first lease, whatever has become of it since. */
struct hli_adoption hli_hold_adoption(const struct hli_tenure *from)
{
    return (struct hli_adoption){
        .number = from->number,
        .hold = from->hold,
        .sent_at = from->ask.sent_at,
        .lease_ms = from->asked_lease_ms,
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
    hli_tenure_extend(tenure, adoption->sent_at, adoption->lease_ms);
    hli_hold_take(tenure, adoption->hold.owner, &adoption->hold);
    hli_turn_watch(turn, tenure, hli_hold_due(tenure));
}

bool hli_hold_adopt(struct hli_tenure *tenure, const struct hli_adoption *adoption)
{
    struct hli_name *name = tenure->name;
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    bool is_open = !atomic_load(&name->client->is_closed);
    if (is_open)
        hold_begin_adopted(&turn, tenure, adoption);
    hli_turn_end(&turn);
    return is_open;
}
