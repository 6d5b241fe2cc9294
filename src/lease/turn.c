/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Turns: decisions under a name's mutex, deeds after it. */
#include "lease/turn.h"

#include "base/check.h"
#include "lease/contest.h"
#include "lease/notice.h"
#include "lease/watchdog.h"

void hli_turn_begin(struct hli_turn *turn, struct hli_name *name)
{
    *turn = (struct hli_turn){.name = name, .timer_at = HLI_NEVER};
    TAILQ_INIT(&turn->send);
    TAILQ_INIT(&turn->finished);
    TAILQ_INIT(&turn->gone);
    STAILQ_INIT(&turn->notices);
    pthread_mutex_lock(&name->mutex);
    turn->now = hli_now();
}

void hli_turn_send(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_op *op)
{
    hli_tenure_ref(tenure); /* the op's, dropped when it is done */
    TAILQ_INSERT_TAIL(&turn->send, op, link);
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
    if (at >= tenure->told_due)
        return; /* it looks by then anyway */
    tenure->told_due = at;
    if (!turn->watch)
        hli_tenure_ref(tenure); /* the turn's, until the watchdog is told */
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

/* A name without memory for a timer of its own is visited with all the others. */
void hli_turn_timer(struct hli_turn *turn, hli_ns at)
{
    turn->contest = hli_contest_of(turn->name);
    turn->timer_at = hli_earlier(turn->timer_at, at);
}

void hli_turn_notice(struct hli_turn *turn, struct hli_notice *notice)
{
    STAILQ_INSERT_TAIL(&turn->notices, notice, turn_link);
}

void hli_turn_unref(struct hli_turn *turn, struct hli_tenure *tenure)
{
    TAILQ_INSERT_TAIL(&turn->gone, tenure, link);
}

/* The reference comes first, for the timer may run, and drop it, at once. */
static void turn_set_timer(const struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if (!turn->contest) {
        hli_timer_set_earlier(name->client->loop, &name->client->starved, turn->timer_at);
        return;
    }
    hli_name_ref(name); /* the timer's, dropped in contest_on_timer */
    if (!hli_timer_set_earlier(name->client->loop, &turn->contest->timer, turn->timer_at))
        hli_name_unref(name);
}

static void turn_tell_watchdog(struct hli_turn *turn)
{
    struct hli_watchdog *watchdog = turn->name->client->watchdog;

    if (turn->unwatch)
        hli_watchdog_remove(watchdog, turn->unwatch);
    if (turn->watch)
        hli_watchdog_wake_by(watchdog, turn->watch, turn->watch_at);
    hli_tenure_unref(turn->unwatch);
    hli_tenure_unref(turn->watch);
}

static void turn_wake_waits(struct hli_turn *turn)
{
    struct hli_wait *wait;

    while ((wait = TAILQ_FIRST(&turn->finished))) {
        TAILQ_REMOVE(&turn->finished, wait, finish_link);
        hli_wait_wake(wait);
    }
}

static void turn_send_ops(struct hli_turn *turn)
{
    struct hli_op *op;

    while ((op = TAILQ_FIRST(&turn->send))) {
        TAILQ_REMOVE(&turn->send, op, link);
        hli_link_send(turn->name->client->link, op);
    }
}

static void turn_post_notices(struct hli_turn *turn)
{
    struct hli_notice *notice;

    while ((notice = STAILQ_FIRST(&turn->notices))) {
        STAILQ_REMOVE_HEAD(&turn->notices, turn_link);
        hli_notice_post(notice);
    }
}

static void turn_drop_refs(struct hli_turn *turn)
{
    struct hli_tenure *tenure;

    while ((tenure = TAILQ_FIRST(&turn->gone))) {
        TAILQ_REMOVE(&turn->gone, tenure, link);
        hli_tenure_unref(tenure);
    }
}

/*
 * The caller of a turn has a reference on the name, so that it is there until the end. The watchdog
 * hears of a hold before its owner does, and requests go out before anybody is woken.
 */
void hli_turn_end(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    pthread_mutex_unlock(&name->mutex);
    turn_tell_watchdog(turn);
    turn_send_ops(turn);
    if (turn->wants_channel)
        hli_contest_listen(turn->contest);
    if (turn->timer_at != HLI_NEVER)
        turn_set_timer(turn);
    if (turn->distrusts)
        hli_link_distrust(name->client->link, "READONLY the server has become a replica");
    turn_post_notices(turn);
    if (turn->is_last_dying)
        hli_gate_poke(&name->client->dying_gate);
    turn_wake_waits(turn);
    turn_drop_refs(turn);
}
