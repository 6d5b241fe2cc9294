/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquiring: arguments, joining, leaving, and the last look. */
#include "lease/acquire.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/keep.h"
#include "lease/loss.h"
#include "lease/release.h"
#include "lease/tag.h"

#include <sched.h>
#include <stdlib.h>

enum {
    ACQUIRE_MIN_LEASE_MS = 10
}; /* a shorter one is over before the margin of its validity begins */

static const int64_t acquire_max_ms =
    INT64_C(100000000000); /* about three years: no sum of times overflows */

static bool acquire_look(struct hli_wait *wait, hli_ns now);
static bool acquire_awaits_grant(struct hli_wait *wait);

int hli_acquire_check(const struct hli_acquire_way *way, const hl_acquire_options *options,
                      hl_error *err)
{
    if (options->wait_ms < HL_WAIT_FOREVER || options->wait_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "wait_ms is neither -1 nor from 0 to 10^11");
    if (options->lease_ms != 0 &&
        (options->lease_ms < ACQUIRE_MIN_LEASE_MS || options->lease_ms > acquire_max_ms))
        return hli_fail(err, HL_EINVAL, "lease_ms is neither 0 nor from %d to 10^11",
                        ACQUIRE_MIN_LEASE_MS);
    if (options->max_hold_ms < 0 || options->max_hold_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "max_hold_ms is not from 0 to 10^11");
    if (options->min_hold_ms < 0 || options->min_hold_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "min_hold_ms is not from 0 to 10^11");
    if (options->ret_token && !way->is_fenced)
        return hli_fail(err, HL_EINVAL, "ret_token is for fenced locks");
    if (options->ret_busy && options->ret_busy->size < sizeof(options->ret_busy->size))
        return hli_fail(err, HL_EINVAL, "ret_busy->size is not set");
    return 0;
}

static void acquire_take_options(struct hli_acquire *acquire, const hl_acquire_options *options)
{
    acquire->is_watched = options->lease_ms == 0;
    acquire->lease_ms = acquire->is_watched ? acquire->way.watch_ms : options->lease_ms;
    acquire->is_try = options->wait_ms == HL_NO_WAIT;
    acquire->max_hold_ms = options->max_hold_ms;
    acquire->min_hold_ms = options->min_hold_ms;
    acquire->on_event = options->on_event;
    acquire->event_arg = options->event_arg;
    acquire->ret_busy = options->ret_busy;
    acquire->ret_token = options->ret_token;
}

static void acquire_start_clock(struct hli_acquire *acquire, int64_t wait_ms, hl_error *err)
{
    struct hli_wait *wait = &acquire->wait;
    hl_client *client = acquire->name->client;

    hli_wait_init(wait, client, wait_ms, err);
    wait->look = acquire_look;
    wait->awaits_message = acquire_awaits_grant;
    wait->look_at = wait->first_look_at = hli_earlier(
        wait->deadline, hli_after_ms(wait->started, client->settings.outage_timeout_ms));
}

int hli_acquire_init(struct hli_acquire *acquire, struct hli_name *name,
                     const struct hli_acquire_way *way, const hl_acquire_options *options,
                     hl_error *err)
{
    struct hl_owner *owner = options->owner ? options->owner : hli_owner_of_thread();
    int rc = hli_acquire_check(way, options, err);

    if (rc < 0)
        return rc;
    *acquire = (struct hli_acquire){.name = name, .owner = owner, .way = *way};
    if (!owner || (options->on_event && hli_callbacks_want(&name->client->callbacks) < 0))
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_name_ref(name);
    hli_owner_ref(owner);
    acquire->tag = hli_tag_new(name);
    acquire_take_options(acquire, options);
    /* A try waits for no holder; how long it waits for a server is the outage timeout's business.
     */
    acquire_start_clock(acquire, acquire->is_try ? HL_WAIT_FOREVER : options->wait_ms, err);
    return 0;
}

int hli_acquire_init_anew(struct hli_acquire *acquire, const struct hli_acquire *late,
                          hl_error *err)
{
    struct hli_name *name = NULL;

    if (hli_name_get_next(late->name, &name) < 0)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_owner_ref(late->owner);
    *acquire = (struct hli_acquire){
        .name = name, /* its reference is ours now */
        .owner = late->owner,
        .way = late->way,
        .lease_ms = late->lease_ms,
        .is_watched = late->is_watched,
        .is_try = late->is_try,
        .max_hold_ms = late->max_hold_ms,
        .min_hold_ms = late->min_hold_ms,
        .on_event = late->on_event,
        .event_arg = late->event_arg,
        .ret_busy = late->ret_busy,
        .ret_token = late->ret_token,
    };
    acquire->tag = hli_tag_again(late->tag);
    acquire_start_clock(acquire, HL_WAIT_FOREVER, err);
    acquire->wait.started = late->wait.started;
    acquire->wait.deadline = late->wait.deadline;
    acquire->wait.look_at = acquire->wait.first_look_at = 0; /* its time may be over too */
    return 0;
}

void hli_acquire_deinit(struct hli_acquire *acquire)
{
    free(acquire->tag);
    hli_tenure_unref(acquire->got);
    hli_owner_unref(acquire->owner);
    hli_name_unref(acquire->name);
}

void hli_acquire_leave_line(struct hli_turn *turn, struct hli_acquire *acquire)
{
    TAILQ_REMOVE(&turn->name->waiters, acquire, link);
    acquire->is_waiting = false;
    hli_uncount(&turn->name->client->counters.waiters_now);
}

/* It waits no more: neither in the line nor for a longer lease. */
void hli_acquire_withdraw(struct hli_turn *turn, struct hli_acquire *acquire)
{
    if (acquire->is_waiting)
        hli_acquire_leave_line(turn, acquire);
    else if (acquire->got && acquire->got->deepener == acquire)
        acquire->got->deepener = NULL;
}

void hli_acquire_serve(struct hli_turn *turn, struct hli_acquire *acquire)
{
    hli_acquire_leave_line(turn, acquire);
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

/* When an answer will have been missing for the outage timeout. Who sleeps until the next poll, or
 * waits behind an owner of this process, misses none; a nested call's begins with itself. */
static hli_ns acquire_outage_at(const struct hli_turn *turn, const struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;
    hli_ns since = acquire->got          ? acquire->wait.started
                   : name->asked_at != 0 ? hli_later(acquire->wait.started, name->asked_at)
                                         : turn->now;

    return hli_after_ms(since, name->client->settings.outage_timeout_ms);
}

/* Those behind may want less: asked for as after a message, for the request under way, if there is
 * one, is about the one who left. */
static void acquire_has_left(struct hli_turn *turn, bool was_first)
{
    struct hli_name *name = turn->name;

    if (TAILQ_EMPTY(&name->waiters)) {
        hli_ask_abandon(turn);
    } else if (name->kind->is_counted && hli_contest_of(name)) {
        name->contest->heard_at = turn->now;
        if (was_first)
            hli_ask_go(turn);
    }
}

static bool acquire_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_acquire *acquire = HLI_OF(wait, struct hli_acquire, wait);
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    bool goes_on = !wait->is_finished, was_first = TAILQ_FIRST(&acquire->name->waiters) == acquire;
    hli_ns outage_at = acquire_outage_at(&turn, acquire);
    if (goes_on && hli_wait_is_cancelled(wait))
        hli_acquire_fail(&turn, acquire, HL_ECANCELED, "cancelled");
    else if (goes_on && now >= wait->deadline)
        hli_acquire_time_out(&turn, acquire);
    else if (goes_on && now >= outage_at)
        hli_acquire_fail_unheard(&turn, acquire);
    goes_on = !wait->is_finished;
    wait->look_at = hli_earlier(wait->deadline, outage_at);
    if (!goes_on)
        acquire_has_left(&turn, was_first);
    hli_turn_end(&turn);
    return goes_on;
}

/* Not while another owner of this process holds: then it is a pass that ends it. */
static bool acquire_awaits_grant(struct hli_wait *wait)
{
    struct hli_name *name = HLI_OF(wait, struct hli_acquire, wait)->name;

    pthread_mutex_lock(&name->mutex);
    bool awaits = !wait->is_finished && hli_tenure_is_contending(name->current);
    pthread_mutex_unlock(&name->mutex);
    return awaits;
}

static bool acquire_waits_already(const struct hli_name *name, const struct hl_owner *owner)
{
    const struct hli_acquire *other;

    if (name->kind->has_no_owner)
        return false;
    TAILQ_FOREACH (other, &name->waiters, link)
        if (other->owner == owner)
            return true;
    return false;
}

/* A try can be answered here when another owner of this process holds. */
static bool acquire_is_busy_here(const struct hli_turn *turn, const struct hli_acquire *acquire)
{
    const struct hli_tenure *tenure = turn->name->current;

    return acquire->is_try && tenure && tenure->state == HLI_TENURE_OWN &&
           turn->now < hli_hold_validity(tenure);
}

static void acquire_join(struct hli_turn *turn, struct hli_acquire *acquire, bool at_head)
{
    struct hli_name *name = turn->name;

    if (atomic_load(&name->client->is_closed)) {
        hli_acquire_fail(turn, acquire, HL_ECANCELED, "the client is closed");
    } else if (acquire_waits_already(name, acquire->owner)) {
        hli_acquire_fail(turn, acquire, HL_EINVAL, "its owner waits for it already");
    } else if (name->kind->is_used_once && atomic_load(&name->is_spent)) {
        hli_acquire_fail(turn, acquire, HL_EINVAL, "its owner has another call under way");
    } else if (acquire_is_busy_here(turn, acquire)) {
        hli_acquire_fail_busy(turn, acquire, HL_EBUSY);
    } else {
        if (at_head)
            TAILQ_INSERT_HEAD(&name->waiters, acquire, link);
        else
            TAILQ_INSERT_TAIL(&name->waiters, acquire, link);
        acquire->is_waiting = true;
        hli_count(&name->client->counters.waiters_now);
        if (!hli_keep_resume(turn))
            hli_ask_go(turn);
    }
}

/* The lock was handed to another process a moment ago. If that shares our core, it goes first: it
 * has the lock, and all that we can do is queue. */
void hli_acquire_make_way(struct hli_acquire *acquire)
{
    struct hli_name *name = acquire->name;

    pthread_mutex_lock(&name->mutex);
    bool makes_way = name->contest && name->contest->was_handed_over && !name->current;
    if (makes_way)
        name->contest->was_handed_over = false;
    pthread_mutex_unlock(&name->mutex);
    if (makes_way)
        sched_yield();
}

static void acquire_begin(struct hli_turn *turn, struct hli_acquire *acquire)
{
    struct hli_tenure *outer = hli_name_hold_of(acquire->name, acquire->owner);
    bool is_held = outer && outer->state == HLI_TENURE_OWN && turn->now < hli_hold_validity(outer);

    if (hli_wait_is_cancelled(&acquire->wait))
        hli_acquire_fail(turn, acquire, HL_ECANCELED, "cancelled");
    else if (is_held && acquire->way.is_flat)
        hli_acquire_fail(turn, acquire, HL_EDEADLK, "its owner holds it already");
    else if (is_held && acquire->way.is_fenced && outer->hold.token == 0)
        hli_acquire_fail(turn, acquire, HL_EINVAL, "the outer hold was taken without a token");
    else if (outer)
        hli_deepen_begin(turn, outer, acquire);
    else
        acquire_join(turn, acquire, false);
}

void hli_acquire_start(struct hli_acquire *acquire)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    acquire_begin(&turn, acquire);
    hli_turn_end(&turn);
}

static void acquire_reopen(const struct hli_turn *turn, struct hli_acquire *acquire)
{
    acquire->wait.is_finished = false;
    acquire->wait.started = turn->now;
}

void hli_acquire_start_part(struct hli_acquire *acquire)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    acquire_reopen(&turn, acquire);
    acquire_begin(&turn, acquire);
    hli_turn_end(&turn);
}

/* Does nobody of this process have to do with the name, so that its first request goes out now? */
static bool acquire_asks_at_once(const struct hli_turn *turn, const struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;

    return !name->current && TAILQ_EMPTY(&name->waiters) && !hli_release_is_in_the_way(name) &&
           !(name->contest && turn->now < name->contest->stands_back_until) &&
           !hli_wait_is_cancelled(&acquire->wait) && !atomic_load(&name->client->is_closed);
}

bool hli_acquire_start_together(struct hli_acquire *acquire, struct hli_op **ret_op)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    bool begins = acquire_asks_at_once(&turn, acquire);
    if (begins) {
        acquire_reopen(&turn, acquire);
        acquire_join(&turn, acquire, false);
        *ret_op = TAILQ_FIRST(&turn.send);
        if (*ret_op)
            TAILQ_REMOVE(&turn.send, *ret_op, link);
    }
    hli_turn_end(&turn);
    return begins;
}

bool hli_acquire_leave(struct hli_turn *turn, struct hli_acquire *acquire)
{
    if (acquire->wait.is_finished)
        return false;
    hli_acquire_withdraw(turn, acquire);
    acquire->wait.is_finished = true;
    return true;
}

/* A nested call that is told too late: its level goes again, and with the clock's word the whole
 * hold is lost. */
static int acquire_settle_nested(struct hli_turn *turn, struct hli_acquire *acquire)
{
    struct hli_tenure *tenure = acquire->got;
    char shown[96];

    if (tenure->state == HLI_TENURE_OWN && turn->now < hli_hold_validity(tenure))
        return HL_OK;
    if (tenure->hold.count > 1)
        tenure->hold.count--;
    if (tenure->state == HLI_TENURE_OWN)
        hli_loss_declare(turn, tenure, "expired");
    return hli_fail(acquire->wait.err, HL_ELOST,
                    "acquire '%s': the outer hold ended before its release",
                    hli_error_escape(shown, sizeof(shown), turn->name->bytes, turn->name->length));
}

/* What was got is over already: the call waits on, as the first in the line. */
static int acquire_wait_on(struct hli_turn *turn, struct hli_acquire *acquire)
{
    acquire->tag = hli_tag_again(acquire->got->tag);
    if (turn->name->kind->is_used_once)
        return HLI_ACQUIRE_ANEW;
    acquire->got = NULL; /* the caller has it, and drops its reference */
    acquire->wait.is_finished = false;
    atomic_store(&acquire->wait.gate.state, HLI_GATE_SHUT);
    acquire->wait.look_at = turn->now; /* its wait time may be over too */
    acquire_join(turn, acquire, true);
    return HLI_ACQUIRE_GOES_ON;
}

static void acquire_note_success(const struct hli_acquire *acquire, bool is_nested)
{
    struct hli_counters *counters = &acquire->wait.client->counters;

    hli_count(&counters->acquires);
    if (!is_nested)
        hli_histogram_add(&counters->wait, hli_now() - acquire->wait.started);
}

static int acquire_settle_hold(struct hli_acquire *acquire)
{
    struct hli_tenure *late = acquire->got;
    struct hli_turn turn;
    int code = HL_OK;

    hli_turn_begin(&turn, acquire->name);
    bool is_nested = acquire->got->hold.is_accepted;
    if (is_nested)
        code = acquire_settle_nested(&turn, acquire);
    else if (!hli_hold_accept(&turn, acquire->got))
        code = acquire_wait_on(&turn, acquire);
    if (code == HL_OK && acquire->ret_token)
        *acquire->ret_token = acquire->got->hold.token;
    hli_turn_end(&turn);
    if (code == HLI_ACQUIRE_GOES_ON)
        hli_tenure_unref(late);
    if (code == HL_OK)
        acquire_note_success(acquire, is_nested);
    return code;
}

int hli_acquire_settle(struct hli_acquire *acquire)
{
    int code = acquire->wait.code;

    if (code == HL_OK && acquire->got)
        return acquire_settle_hold(acquire);
    if (code == HL_OK)
        acquire_note_success(acquire, false);
    return code;
}

int hli_acquire_block(struct hli_acquire *acquire)
{
    int code;

    do {
        hli_wait_block(&acquire->wait);
    } while ((code = hli_acquire_settle(acquire)) == HLI_ACQUIRE_GOES_ON);
    return code;
}

void hli_acquire_cancel_all(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if (name->current && name->current->deepener)
        hli_acquire_fail(turn, name->current->deepener, HL_ECANCELED, "the client is closed");
    hli_ask_fail_all(turn, HL_ECANCELED, "the client is closed");
}
