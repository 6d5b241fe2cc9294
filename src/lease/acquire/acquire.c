/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquiring: arguments, joining, leaving, and the second check of the clock. */
#include "lease/acquire/acquire.h"

#include "base/check.h"
#include "base/error.h"
#include "base/probe.h"
#include "lease/acquire/deadlock.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/hold/reenter.h"
#include "lease/hold/release.h"
#include "lease/hold/tag.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"
#include "lease/state/waiter_tag.h"

#include <stdlib.h>

enum {
    ACQUIRE_MIN_LEASE_MS = 10
}; /* a shorter one is over before the margin of its validity begins */

static const int64_t acquire_max_ms =
    INT64_C(100000000000); /* about three years: no sum of times overflows */

static bool acquire_check(struct hli_wait *wait, hli_ns now);
static bool acquire_awaits_grant(struct hli_wait *wait);

int hli_acquire_check_lease(int64_t lease_ms, hl_error *err)
{
    if (lease_ms == 0 || (lease_ms >= ACQUIRE_MIN_LEASE_MS && lease_ms <= acquire_max_ms))
        return 0;
    return hli_fail(err, HL_EINVAL, "lease_ms is neither 0 nor from %d to 10^11",
                    ACQUIRE_MIN_LEASE_MS);
}

int hli_acquire_check_longest(const char *what, int64_t lease_ms, int64_t longest_ms, hl_error *err)
{
    if (longest_ms == 0 || lease_ms <= longest_ms)
        return 0;
    return hli_fail(err, HL_EINVAL,
                    "%s is more than max_lease_ms, for which restarted masters have no vote: "
                    "raise that in all programs first",
                    what);
}

int hli_acquire_check(const hl_acquire_options *options, hl_error *err)
{
    if (options->wait_ms < HL_WAIT_FOREVER || options->wait_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "wait_ms is neither -1 nor from 0 to 10^11");
    if (hli_acquire_check_lease(options->lease_ms, err) < 0)
        return HL_EINVAL;
    if (options->max_hold_ms < 0 || options->max_hold_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "max_hold_ms is not from 0 to 10^11");
    if (options->min_hold_ms < 0 || options->min_hold_ms > acquire_max_ms)
        return hli_fail(err, HL_EINVAL, "min_hold_ms is not from 0 to 10^11");
    return 0;
}

static void acquire_start_clock(struct hli_acquire *acquire, int64_t wait_ms, hl_error *err)
{
    struct hli_wait *wait = &acquire->wait;
    hl_client *client = acquire->name->client;

    hli_wait_init(wait, client, wait_ms, err);
    HLI_PART_IS(wait, struct hli_acquire, wait);
    wait->check = acquire_check;
    wait->awaits_message = acquire_awaits_grant;
    wait->check_at = wait->first_check_at = hli_earlier(
        wait->deadline, hli_after_ms(wait->started, client->settings.outage_timeout_ms));
}

/* The tags of the hold, and of a long wait. A try waits for a server, not for a holder. */
static void acquire_prepare_tags(struct hli_acquire *acquire)
{
    struct hli_wait *wait = &acquire->wait;

    hli_tag_write_thread(acquire->thread);
    if (acquire->is_try || !hli_tag_is_asked(acquire->name))
        return;
    acquire->tag_at = hli_waiter_tag_first_at(wait->started);
    wait->check_at = wait->first_check_at = hli_earlier(wait->first_check_at, acquire->tag_at);
}

static int acquire_check_grace(const hl_client *client, const hl_acquire_options *options,
                               hl_error *err)
{
    int rc = hli_grace_check(client, "lease_ms", options->lease_ms, err);

    return rc == 0 ? hli_grace_check(client, "min_hold_ms", options->min_hold_ms, err) : rc;
}

/* A key that rests after its release is forgotten like one that is held. */
static int acquire_check_restart(const hl_acquire_options *options, int64_t restart_ms,
                                 hl_error *err)
{
    int rc = hli_acquire_check_longest("lease_ms", options->lease_ms, restart_ms, err);

    return rc < 0 ? rc
                  : hli_acquire_check_longest("min_hold_ms", options->min_hold_ms, restart_ms, err);
}

int hli_acquire_init(struct hli_acquire *acquire, const struct hli_acquire_spec *spec,
                     hl_error *err)
{
    const hl_acquire_options *options = spec->options;
    struct hl_owner *owner = options->owner ? options->owner : hli_owner_of_thread();
    hl_client *client = spec->name->client;
    int rc = hli_acquire_check(options, err);

    if (rc == 0 && HLI_GRACE_IS_ON(client))
        rc = acquire_check_grace(client, options, err);
    if (rc == 0 && spec->mode.restart_ms > 0)
        rc = acquire_check_restart(options, spec->mode.restart_ms, err);
    if (rc < 0)
        return rc;
    if (!owner || (options->on_event && hli_callbacks_want(&client->callbacks) < 0))
        return hli_no_memory(err);
    *acquire = (struct hli_acquire){
        .name = spec->name,
        .owner = owner,
        .mode = spec->mode,
        .options = *options,
        .tag_at = HLI_NEVER,
        .is_watched = options->lease_ms == 0,
        .is_try = options->wait_ms == HL_NO_WAIT,
        .lease_ms = options->lease_ms == 0 ? spec->mode.watch_ms : options->lease_ms,
    };
    hli_name_ref(acquire->name);
    hli_owner_ref(acquire->owner);
    if (acquire->mode.replicas > 0)
        hli_name_take_confirmed_lane(acquire->name);
    /* A try waits for no holder; the outage timeout limits how long it waits for a server. */
    acquire_start_clock(acquire, acquire->is_try ? HL_WAIT_FOREVER : options->wait_ms, err);
    if (client->settings.flags & HL_CLIENT_HOLDER_INFO)
        acquire_prepare_tags(acquire);
    return 0;
}

void hli_acquire_deinit(struct hli_acquire *acquire)
{
    hli_tenure_unref(acquire->got);
    hli_owner_unref(acquire->owner);
    hli_name_unref(acquire->name);
}

/* When an answer will have been missing for the outage timeout. A call that sleeps until the next
 * poll, or waits behind an owner of this process, misses no answer. A nested call's time begins
 * with the call. */
static hli_ns acquire_outage_at(const struct hli_turn *turn, const struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;
    hli_ns since = acquire->got          ? acquire->wait.started
                   : name->asked_at != 0 ? hli_later(acquire->wait.started, name->asked_at)
                                         : turn->now;

    return hli_after_ms(since, name->client->settings.outage_timeout_ms);
}

/* A call that is not in the line may come back to it: until then it has nothing to show. */
static struct hli_waiter_tag *acquire_plan_tag(struct hli_acquire *acquire, hli_ns now)
{
    if (acquire->is_waiting)
        return hli_waiter_tag_plan(acquire, now);
    acquire->tag_at = hli_waiter_tag_first_at(now);
    return NULL;
}

static bool acquire_check(struct hli_wait *wait, hli_ns now)
{
    struct hli_acquire *acquire = HLI_PART_OF(wait, struct hli_acquire, wait);
    struct hli_waiter_tag *tag = NULL;
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    bool goes_on = !wait->is_finished;
    hli_ns outage_at = acquire_outage_at(&turn, acquire);
    if (goes_on && hli_wait_is_cancelled(wait))
        hli_waiters_fail(&turn, acquire, HL_ECANCELED, hli_wait_why_cancelled(wait));
    else if (goes_on && now >= wait->deadline)
        hli_acquire_time_out(&turn, acquire);
    else if (goes_on && now >= outage_at)
        hli_acquire_fail_unheard(&turn, acquire);
    goes_on = !wait->is_finished;
    if (now >= acquire->tag_at)
        tag = acquire_plan_tag(acquire, now);
    wait->check_at = hli_earlier(hli_earlier(wait->deadline, acquire->tag_at), outage_at);
    hli_turn_end(&turn);
    if (tag)
        hli_waiter_tag_send(tag);
    return goes_on;
}

/* Can a grant end this wait? Not while another owner of this process holds: then a pass or a
 * release does. */
static bool acquire_awaits_grant(struct hli_wait *wait)
{
    struct hli_name *name = HLI_PART_OF(wait, struct hli_acquire, wait)->name;

    hli_mutex_lock(&name->mutex);
    bool awaits = !wait->is_finished && hli_tenure_is_contending(name->current);
    hli_mutex_unlock(&name->mutex);
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

/* Does another owner of this process hold? Then a try is answered here. */
static bool acquire_is_busy_here(const struct hli_turn *turn)
{
    const struct hli_tenure *tenure = turn->name->current;

    return tenure && hli_hold_is_valid(tenure, turn->now);
}

static void acquire_join(struct hli_turn *turn, struct hli_acquire *acquire, bool at_head)
{
    struct hli_name *name = turn->name;

    if (atomic_load(&name->client->is_closed)) {
        hli_waiters_fail(turn, acquire, HL_ECANCELED, "the client is closed");
    } else if (!TAILQ_EMPTY(&name->waiters) && acquire_waits_already(name, acquire->owner)) {
        hli_waiters_fail(turn, acquire, HL_EINVAL, HLI_NAME_IN_USE);
    } else if (acquire->is_try && acquire_is_busy_here(turn)) {
        hli_acquire_fail_busy(turn, acquire, HL_EBUSY);
    } else {
        hli_waiters_join(turn, acquire, at_head);
    }
}

void hli_acquire_yield_core(struct hli_name *name)
{
    if (atomic_exchange(&name->was_handed_over, false))
        hli_thread_yield();
}

static void acquire_begin(struct hli_turn *turn, struct hli_acquire *acquire)
{
    struct hli_tenure *outer = hli_name_hold_of(acquire->name, acquire->owner);
    bool is_held = outer && hli_hold_is_valid(outer, turn->now);

    if (hli_wait_is_cancelled(&acquire->wait))
        hli_waiters_fail(turn, acquire, HL_ECANCELED, hli_wait_why_cancelled(&acquire->wait));
    else if (is_held && acquire->mode.is_nonreentrant)
        hli_waiters_fail(
            turn, acquire, HL_EDEADLK,
            "its owner holds it already, and this handle does not nest: release it first");
    else if (is_held && acquire->mode.is_fenced && outer->hold.token == 0)
        hli_waiters_fail(
            turn, acquire, HL_EINVAL,
            "the outer hold was taken without a token: release it, then acquire by this handle");
    else if (outer)
        hli_reenter_begin(turn, outer, acquire);
    else
        acquire_join(turn, acquire, false);
}

/* Returns whether it stands in the line. */
static bool acquire_start(struct hli_acquire *acquire)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    acquire_begin(&turn, acquire);
    bool waits = acquire->is_waiting;
    hli_turn_end(&turn);
    return waits;
}

static void acquire_reopen(const struct hli_turn *turn, struct hli_acquire *acquire)
{
    acquire->wait.is_finished = false;
    acquire->wait.started = turn->now;
    if (acquire->tag_at != HLI_NEVER)
        acquire->tag_at = hli_waiter_tag_first_at(turn->now);
}

void hli_acquire_start_part(struct hli_acquire *acquire)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    acquire_reopen(&turn, acquire);
    acquire_begin(&turn, acquire);
    hli_turn_end(&turn);
}

/* Is the name unused in this process, so that the first request goes out now? */
static bool acquire_asks_at_once(const struct hli_turn *turn, const struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;

    return !name->current && TAILQ_EMPTY(&name->waiters) && !hli_release_blocks_ask(name) &&
           !(name->contention && turn->now < name->contention->yields_until) &&
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
        hli_turn_plan(&turn);
        struct hli_tenure *asker = acquire->name->current;
        *ret_op = asker ? hli_turn_take(&turn, &asker->ask) : NULL;
    }
    hli_turn_end(&turn);
    return begins;
}

bool hli_acquire_withdraw(struct hli_turn *turn, struct hli_acquire *acquire)
{
    if (acquire->wait.is_finished)
        return false;
    hli_waiters_withdraw(turn, acquire);
    acquire->wait.is_finished = true;
    return true;
}

/* Settles a nested call. If its hold is over by now, the level is undone; by the clock the whole
 * hold is lost. */
static int acquire_settle_nested(struct hli_turn *turn, struct hli_acquire *acquire)
{
    struct hli_tenure *tenure = acquire->got;
    char why[HLI_LOSS_SIZE];

    if (hli_hold_is_valid(tenure, turn->now))
        return HL_OK;
    if (tenure->hold.count > 1)
        tenure->hold.count--;
    if (tenure->state == HLI_TENURE_OWN)
        hli_loss_declare(turn, tenure, "expired");
    hli_loss_write(tenure, turn->now, HLI_LOSS_ADVICE, why);
    return hli_name_refuse(acquire->wait.err, HL_ELOST, turn->name, HL_CALL_ACQUIRE, why);
}

/* The hold is over already: the call waits on, as the first in the line. */
static int acquire_wait_on(struct hli_turn *turn, struct hli_acquire *acquire)
{
    acquire->got = NULL; /* the caller has it, and drops its reference */
    acquire->wait.is_finished = false;
    atomic_store(&acquire->wait.gate.state, HLI_GATE_SHUT);
    if (!acquire->wait.timer)
        acquire->wait.check_at = turn->now; /* its wait time may be over too */
    acquire_join(turn, acquire, true);
    return HLI_ASYNC_GOES_ON;
}

static int acquire_settle_hold(struct hli_acquire *acquire)
{
    struct hli_counters *counters = &acquire->wait.client->counters;
    struct hli_tenure *late = acquire->got;
    struct hli_turn turn;
    int code = HL_OK;

    hli_turn_begin(&turn, acquire->name);
    bool is_nested = acquire->got->hold.is_accepted;
    if (is_nested)
        code = acquire_settle_nested(&turn, acquire);
    else if (!hli_hold_accept(&turn, acquire->got))
        code = acquire_wait_on(&turn, acquire);
    hli_turn_end(&turn);
    if (code == HLI_ASYNC_GOES_ON)
        hli_tenure_unref(late);
    if (code == HL_OK)
        hli_count(&counters->acquires);
    if (code == HL_OK && !is_nested) {
        hli_histogram_add(&counters->wait, turn.now - acquire->wait.started);
        HLI_PROBE2(acquire, acquire->name->bytes, turn.now - acquire->wait.started);
    }
    return code;
}

int hli_acquire_settle(struct hli_acquire *acquire)
{
    struct hli_counters *counters = &acquire->wait.client->counters;
    int code = acquire->wait.code;

    if (code == HL_OK && acquire->got)
        return acquire_settle_hold(acquire);
    if (code != HL_OK)
        return code;
    hli_count(&counters->acquires);
    hli_histogram_add(&counters->wait, hli_now() - acquire->wait.started);
    return HL_OK;
}

static void acquire_start_at_masters(struct hli_acquire *acquire)
{
    struct hli_name *name = acquire->name;
    struct hli_quorum_lead lead;

    name->kind->quorum->lead_begin(name, &lead);
    acquire_start(acquire);
    name->kind->quorum->lead(name, &lead, &acquire->wait);
}

static int acquire_block(struct hli_acquire *acquire)
{
    struct hli_wait *wait = &acquire->wait;
    struct hli_blocked blocked = {0};
    int code;

    if (acquire->options.cancel)
        hli_wait_attach(wait, acquire->options.cancel);
    if (atomic_load(&acquire->name->was_handed_over))
        hli_acquire_yield_core(acquire->name);
    if (acquire->name->kind->quorum) {
        acquire_start_at_masters(acquire);
    } else {
        hli_wait_lead(wait, hli_name_choose_link(acquire->name));
        if (acquire_start(acquire) && atomic_load(&acquire->owner->holds) > 0)
            hli_blocked_begin(&blocked, acquire);
    }
    while (hli_wait_block(wait), (code = hli_acquire_settle(acquire)) == HLI_ASYNC_GOES_ON) {
        hli_blocked_end(&blocked); /* what it waits for may have another holder by now */
        if (atomic_load(&acquire->owner->holds) > 0)
            hli_blocked_begin(&blocked, acquire);
    }
    if (blocked.acquire)
        hli_blocked_end(&blocked);
    if (wait->cancel)
        hli_wait_detach(wait);
    return code;
}

void hli_acquire_cancel_all(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;

    if (name->current && name->current->reentry)
        hli_waiters_fail(turn, name->current->reentry, HL_ECANCELED, "the client is closed");
    hli_waiters_fail_all(turn, HL_ECANCELED, "the client is closed");
}

static int acquire_run_here(const struct hli_acquire_spec *spec, hl_error *err)
{
    struct hli_acquire acquire;
    int rc = hli_acquire_init(&acquire, spec, err);

    if (rc < 0)
        return rc;
    rc = acquire_block(&acquire);
    hli_acquire_deinit(&acquire);
    return rc;
}

struct acquire_call {
    struct hli_async async;
    struct hli_acquire acquire;
};

static struct acquire_call *acquire_call_of(struct hli_async *async)
{
    return HLI_PART_OF(async, struct acquire_call, async);
}

static void acquire_call_freed(struct hli_async *async)
{
    if (acquire_call_of(async)->acquire.name)
        hli_acquire_deinit(&acquire_call_of(async)->acquire);
    free(acquire_call_of(async));
}

static int acquire_call_settle(struct hli_async *async)
{
    return hli_acquire_settle(&acquire_call_of(async)->acquire);
}

static void acquire_call_start(struct hli_async *async)
{
    struct acquire_call *call = acquire_call_of(async);

    hli_wait_attach(&call->acquire.wait, call->acquire.options.cancel);
    acquire_start(&call->acquire);
}

int hli_acquire_run(const struct hli_acquire_spec *spec, const struct hli_completion *completion)
{
    if (!completion->is_async)
        return acquire_run_here(spec, completion->err);
    struct acquire_call *call = calloc(1, sizeof(*call));
    if (!call)
        return hli_no_memory(NULL);
    hli_async_init(&call->async, &call->acquire.wait, acquire_call_freed);
    HLI_PART_IS(&call->async, struct acquire_call, async);
    call->async.settle = acquire_call_settle;
    call->async.completion = *completion;
    int rc = hli_acquire_init(&call->acquire, spec, &call->async.err);
    if (rc < 0) {
        hli_fail(NULL, rc, "%s", call->async.err.text);
        hli_async_unref(&call->async);
        return rc;
    }
    return hli_async_begin(&call->async, acquire_call_start);
}
