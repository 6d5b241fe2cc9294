/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Waking: events from outside. Each records what is new, and the turn's plan does the rest. */
#include "lease/acquire/wake.h"

#include "lease/hold/hold.h"
#include "lease/state/contention.h"
#include "lease/state/waiters.h"

enum {
    WAKE_SUBSCRIBED_MS = 5000, /* how long a subscription outlives its last waiter */
    WAKE_LOOK_MS = 100,        /* a shorter hold costs no look */
};

/* A message says that the lock was released; it may be false. After messages that told nothing new,
 * the next ones make us ask only from quiet_until on. A holder may hear of a release from before
 * its hold; or its key was taken away, by force. */
bool hli_wake_on_message(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_contention *contention = name->contention;
    struct hli_tenure *tenure = name->current;
    contention->heard_at = turn.now;
    bool sleeps = hli_tenure_is_contending(tenure) && tenure->asking == HLI_ASKING_NOTHING;
    if (sleeps)
        tenure->ask_at = hli_earlier(tenure->ask_at, contention->quiet_until);
    if (tenure && name->kind->force)
        hli_hold_doubt(&turn, tenure, hli_after_ms(turn.now, WAKE_LOOK_MS));
    hli_turn_plan(&turn);
    bool is_asked = sleeps && name->current == tenure && tenure->asking != HLI_ASKING_NOTHING;
    hli_turn_end(&turn);
    if (name->kind->heard)
        name->kind->heard(name);
    return is_asked;
}

/* A client's release lets Redisson's waiters go first. */
void hli_wake_on_yield(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contention->has_foreign_waiters = true;
    hli_contention_yield(name->contention, turn.now);
    hli_turn_end(&turn);
}

/* The turn of a waiter with a channel of its own is told by that channel alone: without it there is
 * no order. Tries need none. */
static void wake_refuse_the_deaf(struct hli_turn *turn)
{
    struct hli_acquire *acquire, *next;

    for (acquire = TAILQ_FIRST(&turn->name->waiters); acquire; acquire = next) {
        next = TAILQ_NEXT(acquire, link);
        if (!acquire->is_try)
            hli_waiters_fail(turn, acquire, HL_EDENIED,
                             "the server refuses the waiter's channel, without which there is no "
                             "order: docs/fair-lock.md lists what to grant");
    }
}

void hli_wake_on_confirmed(struct hli_name *name)
{
    bool is_denied = hli_contention_is_denied(name->contention);
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contention->confirmed_at = turn.now;
    name->contention->is_deaf = is_denied;
    if (is_denied && name->kind->write_channel)
        wake_refuse_the_deaf(&turn);
    hli_tenure_ask_soon(name->current);
    hli_turn_end(&turn);
    if (name->kind->heard) /* a release may have come in between */
        name->kind->heard(name);
}

/* What was published meanwhile is not heard: the name asks once, and a busy answer subscribes. */
void hli_wake_on_moved(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contention->listens = false;
    name->contention->confirmed_at = 0;
    name->contention->heard_at = turn.now;
    hli_tenure_ask_soon(name->current);
    hli_turn_end(&turn);
}

/* When a subscription without waiters ends: at once, if the next tenure has another channel. */
static hli_ns wake_idle_until(const struct hli_name *name)
{
    if (name->kind->write_channel)
        return 0;
    return hli_after_ms(name->contention->idle_since, WAKE_SUBSCRIBED_MS);
}

void hli_wake_plan(struct hli_turn *turn)
{
    const struct hli_name *name = turn->name;

    if (name->contention && name->contention->listens && TAILQ_EMPTY(&name->waiters))
        hli_turn_timer(turn, wake_idle_until(name));
}

/* Ends the subscription of a name without waiters? Yes, if it was idle for long enough, or if
 * another name of this process shares it. */
static bool wake_stops_listening(const struct hli_turn *turn)
{
    struct hli_contention *contention = turn->name->contention;

    if (!contention || !contention->listens || !TAILQ_EMPTY(&turn->name->waiters) ||
        (turn->now < wake_idle_until(turn->name) && !hli_contention_is_shared(contention)))
        return false;
    contention->listens = false;
    contention->confirmed_at = 0;
    return true;
}

void hli_wake_on_timer(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    if (name->contention)
        name->contention->timer_at = HLI_NEVER; /* it has come */
    bool drops = wake_stops_listening(&turn);
    hli_turn_end(&turn);
    if (drops)
        hli_contention_stop_listening(name->contention);
}

static void wake_timerless(struct hli_name *name, void *arg)
{
    (void)arg;
    hli_wake_on_timer(name);
}

void hli_client_wake_timerless(void *arg)
{
    hli_names_visit(arg, wake_timerless, NULL);
}
