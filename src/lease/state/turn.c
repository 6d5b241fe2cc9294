/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Turns: decisions under a name's mutex, actions after it. */
#include "lease/state/turn.h"

#include "base/check.h"
#include "lease/calls/replicas.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"
#include "lease/state/waiter_tag.h"

void hli_turn_begin(struct hli_turn *turn, struct hli_name *name)
{
    *turn = (struct hli_turn){.name = name, .timer_at = HLI_NEVER};
    TAILQ_INIT(&turn->send);
    TAILQ_INIT(&turn->finished);
    TAILQ_INIT(&turn->gone);
    STAILQ_INIT(&turn->callbacks);
    hli_mutex_lock(&name->mutex);
    turn->now = hli_now();
    if (HLI_GRACE_IS_ON(name->client))
        turn->term = hli_grace_term(name);
}

void hli_turn_send(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_op *op)
{
    hli_tenure_ref(tenure); /* the op's, dropped when it is done */
    TAILQ_INSERT_TAIL(&turn->send, op, link);
}

struct hli_op *hli_turn_take(struct hli_turn *turn, struct hli_op *op)
{
    struct hli_op *other;

    TAILQ_FOREACH (other, &turn->send, link)
        if (other == op)
            break;
    if (other)
        TAILQ_REMOVE(&turn->send, other, link);
    return other;
}

/* Is a tenure's `ask` still to be sent? A turn's thread may lose its core before it sends; by then
 * the tenure may be over and its release answered, and an ACQUIRE would put a field that has ended
 * into the lock or its queue. The connection calls this as it queues the request: so a tenure's
 * release comes behind all its other requests, or they are not sent. */
static bool turn_is_wanted(const struct hli_op *op)
{
    return !hli_tenure_is_over(HLI_PART_OF(op, struct hli_tenure, ask));
}

/* What makes a hold, or makes it longer, must be on as many replicas as the hold needs. */
static unsigned turn_replicas(const struct hli_tenure *tenure, enum hli_asking asking)
{
    const struct hli_acquire *head = TAILQ_FIRST(&tenure->name->waiters);

    switch (asking) {
    case HLI_ASKING_ACQUIRE:
        return head ? head->mode.replicas : 0;
    case HLI_ASKING_REENTER:
        return hli_replicas_more(tenure->reentry->mode.replicas, tenure->hold.replicas);
    case HLI_ASKING_KEEP:
        return tenure->hold.replicas;
    default:
        return 0;
    }
}

void hli_turn_ask(struct hli_turn *turn, struct hli_tenure *tenure, enum hli_asking asking)
{
    if (tenure->longest_lease_ms < tenure->asked_lease_ms)
        tenure->longest_lease_ms = tenure->asked_lease_ms;
    tenure->asking = asking;
    tenure->ask.replicas =
        turn->name->client->settings.min_replicas != 0 ? turn_replicas(tenure, asking) : 0;
    tenure->ask.term = turn->term;
    tenure->ask.done = turn->name->client->engine->answered;
    tenure->ask.is_wanted = turn_is_wanted;
    hli_turn_send(turn, tenure, &tenure->ask);
}

void hli_turn_finish(struct hli_turn *turn, struct hli_wait *wait, int code)
{
    HLI_CHECK(!wait->is_finished);
    wait->is_finished = true;
    wait->code = code;
    TAILQ_INSERT_TAIL(&turn->finished, wait, finish_link);
}

void hli_turn_watch(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns at)
{
    HLI_CHECK(!turn->watch || turn->watch == tenure);
    if (at >= tenure->visit_at)
        return; /* it visits by then anyway */
    tenure->visit_at = at;
    if (!turn->watch)
        hli_tenure_ref(tenure); /* the watchdog's, at the turn's end */
    turn->watch = tenure;
    turn->watch_at = at;
}

void hli_turn_unwatch(struct hli_turn *turn, struct hli_tenure *tenure)
{
    HLI_CHECK(!turn->unwatch || turn->unwatch == tenure);
    if (turn->watch == tenure)
        turn->watch = NULL; /* its reference serves for `unwatch` */
    else if (!turn->unwatch)
        hli_tenure_ref(tenure);
    turn->unwatch = tenure;
}

void hli_turn_timer(struct hli_turn *turn, hli_ns at)
{
    turn->timer_at = hli_earlier(turn->timer_at, at);
}

/* A tenure with its own channel cannot know whether an earlier tenure's was confirmed. */
void hli_turn_listen(struct hli_turn *turn)
{
    struct hli_contention *contention = turn->name->contention;

    if (!contention->is_listen_posted &&
        (contention->confirmed_at == 0 || turn->name->kind->write_channel))
        turn->wants_channel = contention->is_listen_posted = true;
    contention->listens = true;
}

void hli_turn_tell(struct hli_turn *turn, struct hli_callback *callback)
{
    STAILQ_INSERT_TAIL(&turn->callbacks, callback, link);
}

void hli_turn_change(struct hli_turn *turn, struct hli_tenure *tenure, hli_ns until)
{
    HLI_CHECK(!turn->changed || turn->changed == tenure);
    if (!turn->changed)
        hli_tenure_ref(tenure);
    turn->changed = tenure;
    turn->changed_until = until;
}

void hli_turn_act(struct hli_turn *turn, struct hli_tenure *tenure)
{
    HLI_CHECK(!turn->acted || turn->acted == tenure);
    if (!turn->acted)
        hli_tenure_ref(tenure);
    turn->acted = tenure;
}

void hli_turn_unref(struct hli_turn *turn, struct hli_tenure *tenure)
{
    TAILQ_INSERT_TAIL(&turn->gone, tenure, link);
}

/* Must the timer be set? Not if it fires by then anyway. With the mutex. */
static bool turn_moves_timer(const struct hli_turn *turn)
{
    struct hli_contention *contention = hli_contention_of(turn->name);

    if (contention && turn->timer_at >= contention->timer_at)
        return false;
    if (contention)
        contention->timer_at = turn->timer_at;
    return true;
}

/* A name without memory for its own timer uses the client's, which visits all names. The reference
 * is taken first, because the timer may run, and drop it, at once. */
static void turn_set_timer(const struct hli_turn *turn, struct hli_contention *contention)
{
    struct hli_name *name = turn->name;

    if (!contention) {
        hli_timer_set_earlier(name->client->loop, &name->client->timerless, turn->timer_at);
        return;
    }
    hli_name_ref(name); /* the timer's, dropped in contention_on_timer */
    if (!hli_timer_set_earlier(name->client->loop, &contention->timer, turn->timer_at))
        hli_name_unref(name);
}

static void turn_tell_watchdog(struct hli_turn *turn)
{
    const struct hli_engine *engine = turn->name->client->engine;

    if (turn->unwatch) {
        engine->unwatch(turn->unwatch);
        hli_tenure_unref(turn->unwatch);
    }
    if (turn->watch)
        engine->watch(turn->watch, turn->watch_at);
}

/* A Redlock and its parts are told last, and no turn of theirs is inside another. */
static void turn_tell_kinds(struct hli_turn *turn)
{
    if (turn->changed) {
        turn->changed->name->kind->changed(turn->changed, turn->changed_until);
        hli_tenure_unref(turn->changed);
    }
    if (turn->acted) {
        turn->acted->name->kind->quorum->act(turn->acted);
        hli_tenure_unref(turn->acted);
    }
}

static void turn_remove_tags(struct hli_turn *turn)
{
    struct hli_waiter_tag *tag;

    while ((tag = SLIST_FIRST(&turn->untagged))) {
        SLIST_REMOVE_HEAD(&turn->untagged, link);
        hli_waiter_tag_end(tag);
    }
}

void hli_turn_plan(struct hli_turn *turn)
{
    turn->name->client->engine->plan(turn);
}

/*
 * The caller has a reference on the name, so the name lives until the end. The watchdog hears of a
 * hold before its owner does, and requests go out before callers are woken.
 */
void hli_turn_end(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    hl_client *client = name->client;
    struct hli_callback *callback;
    struct hli_tenure *tenure;
    struct hli_wait *wait;
    struct hli_op *op;

    client->engine->plan(turn);
    bool moves_timer = turn->timer_at != HLI_NEVER && turn_moves_timer(turn);
    struct hli_contention *contention = name->contention; /* it stays as long as the name */
    hli_mutex_unlock(&name->mutex);
    if (turn->watch || turn->unwatch)
        turn_tell_watchdog(turn);
    while ((op = TAILQ_FIRST(&turn->send))) {
        TAILQ_REMOVE(&turn->send, op, link);
        if (name->kind->quorum)
            name->kind->quorum->send(op);
        else
            hli_link_send(hli_name_link(name), op);
    }
    if (!SLIST_EMPTY(&turn->untagged))
        turn_remove_tags(turn);
    if (turn->wants_channel)
        hli_contention_listen(contention);
    if (moves_timer)
        turn_set_timer(turn, contention);
    while ((callback = STAILQ_FIRST(&turn->callbacks))) {
        STAILQ_REMOVE_HEAD(&turn->callbacks, link);
        hli_callbacks_post(&client->callbacks, callback);
    }
    if (turn->is_last_releasing)
        hli_gate_nudge(&client->releasing_gate);
    while ((wait = TAILQ_FIRST(&turn->finished))) {
        TAILQ_REMOVE(&turn->finished, wait, finish_link);
        hli_wait_wake(wait);
    }
    while ((tenure = TAILQ_FIRST(&turn->gone))) {
        TAILQ_REMOVE(&turn->gone, tenure, link);
        if (name->kind->quorum) /* it has ended, as may several in one turn */
            name->kind->quorum->act(tenure);
        hli_tenure_unref(tenure);
    }
    if (turn->changed || turn->acted)
        turn_tell_kinds(turn);
}
