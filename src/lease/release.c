/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Releasing. From the moment a release is called the hold is over for this process, whatever the
 * answer; the release is repeated behind until the server answers or the lease is over by itself.
 * Repeating it is harmless, for its field is never used again.
 */
#include "lease/release.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/keep.h"
#include "lease/loss.h"
#include "lease/notice.h"
#include "lease/write.h"

#include <stdio.h>

void hli_tenure_bury(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_name *name = turn->name;

    if (tenure->state == HLI_TENURE_DYING && atomic_fetch_sub(&name->client->dying, 1) == 1)
        turn->is_last_dying = true;
    if (name->current == tenure)
        name->current = NULL;
    else
        TAILQ_REMOVE(&name->past, tenure, link);
    hli_tenure_move(tenure, HLI_TENURE_DEAD);
    atomic_store_explicit(&name->is_spent, true, memory_order_relaxed);
    hli_turn_unref(turn, tenure); /* the name's */
}

bool hli_release_is_in_the_way(const struct hli_name *name)
{
    bool has_strangers = name->contest && name->contest->has_strangers;
    const struct hli_tenure *tenure;

    TAILQ_FOREACH (tenure, &name->past, link)
        if (tenure->is_releasing && (!tenure->is_posted || has_strangers))
            return true;
    return false;
}

static int64_t release_rest_ms(const struct hli_tenure *tenure, hli_ns now)
{
    hli_ns left = tenure->hold.rests_until - now;

    return left > 0 ? left / 1000000 + 1 : 0;
}

static int release_format(struct hli_tenure *tenure, hli_ns now)
{
    /* A hold that is lost has no say any more about how long the key rests. */
    const struct hli_kind *kind = tenure->name->kind;
    const struct hli_leaving leaving = {
        .count = tenure->keeps,
        .rest_ms = tenure->was_alive ? release_rest_ms(tenure, now) : 0,
        .is_courteous = kind->is_handed_on && hli_contest_is_courteous(tenure->name, now),
        .is_silent = tenure->is_silent,
        .write = tenure->write,
    };

    tenure->is_release_courteous = leaving.is_courteous;
    tenure->release.done = hli_release_done;
    return kind->leave(tenure, &tenure->release, &leaving);
}

/* A TAKE that is still in flight runs before it. Without memory it is tried again by the timer. */
void hli_release_send(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (tenure->is_releasing)
        return;
    /* A key that rests does so until a fixed time: a repeated release has less to say. */
    bool is_stale = tenure->hold.rests_until > 0 || !tenure->release.bytes;
    if (is_stale && release_format(tenure, turn->now) < 0 && !tenure->release.bytes) {
        tenure->retry_at = hli_after_ms(turn->now, HLI_RELEASE_RETRY_MS);
        hli_turn_timer(turn, tenure->retry_at);
        return;
    }
    tenure->is_releasing = true;
    hli_turn_send(turn, tenure, &tenure->release);
}

/* Into `past` as DYING; its key is gone by itself after the longest lease that it was asked for. */
static void release_begin_dying(struct hli_turn *turn, struct hli_tenure *tenure)
{
    struct hli_name *name = turn->name;
    int64_t lease_ms = tenure->longest_lease_ms;

    if (hli_tenure_is_kept(tenure))
        hli_turn_unwatch(turn, tenure);
    if (tenure->state == HLI_TENURE_OWN)
        tenure->was_alive = tenure->hold.is_accepted && turn->now < hli_hold_validity(tenure);
    if (name->current == tenure) {
        name->current = NULL;
        TAILQ_INSERT_TAIL(&name->past, tenure, link);
    }
    tenure->give_up_at = hli_later(tenure->valid_until, hli_after_ms(turn->now, lease_ms)) +
                         hli_lease_margin(lease_ms);
    hli_tenure_move(tenure, HLI_TENURE_DYING);
    atomic_store_explicit(&name->is_spent, true, memory_order_relaxed);
    hli_count(&name->client->dying);
}

void hli_release_quietly(struct hli_turn *turn, struct hli_tenure *tenure)
{
    release_begin_dying(turn, tenure);
    hli_release_send(turn, tenure);
}

void hli_release_ghost(struct hli_turn *turn, uint64_t number)
{
    struct hli_tenure *tenure = hli_tenure_new(turn->name);

    if (!tenure)
        return; /* it is met again with the next busy answer */
    tenure->number = number;
    tenure->longest_lease_ms = turn->name->client->settings.watchdog_timeout_ms;
    TAILQ_INSERT_TAIL(&turn->name->past, tenure, link);
    hli_release_quietly(turn, tenure);
}

/* One level less of a hold that goes on. */
static void release_level(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_wait *wait)
{
    tenure->hold.count--;
    hli_turn_finish(turn, wait, HL_OK);
    hli_deepen_go(turn, tenure);
}

/* A lost hold: the caller is told so for each of its levels, and with the last one the release goes
 * out all the same. */
static void release_lost(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_wait *wait)
{
    hli_turn_finish(
        turn, wait,
        hli_release_fail(wait->err, turn->name, HL_ELOST, "the hold ended before its release"));
    if (--tenure->hold.count == 0)
        hli_release_quietly(turn, tenure);
}

/* The last level, and the lock is let go of. Formatted first: without memory nothing is changed. */
static void release_hold(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_release_way *way, struct hli_wait *wait)
{
    tenure->was_alive = true;
    tenure->is_silent = way->is_silent;
    tenure->write = way->write;
    if (way->write)
        hli_write_by(way->write, tenure->hold.token);
    if (release_format(tenure, turn->now) < 0) {
        tenure->was_alive = false;
        tenure->write = NULL;
        hli_turn_finish(
            turn, wait,
            hli_release_fail(wait->err, turn->name, HL_ENOMEM, "out of memory; still held"));
        return;
    }
    if (way->write)
        hli_write_ref(way->write); /* the tenure's */
    hli_hold_end(tenure, turn->now);
    tenure->is_posted = way->is_posted;
    if (way->is_posted)
        hli_turn_finish(turn, wait, HL_OK);
    else
        tenure->releaser = wait;
    hli_release_quietly(turn, tenure);
}

/* A hold that is alive, by one level. What is to be written goes to the server with the last one.
 */
static void release_live(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_release_way *way, struct hli_wait *wait)
{
    if (tenure->hold.count > 1 && way->write)
        hli_turn_finish(turn, wait,
                        hli_release_fail(wait->err, turn->name, HL_EINVAL,
                                         "only the last level is written with; still held"));
    else if (tenure->hold.count > 1)
        release_level(turn, tenure, wait);
    else if (!way->write &&
             (hli_keep_pass(turn, tenure) || hli_keep_linger(turn, tenure, way->linger_ms)))
        hli_turn_finish(turn, wait, HL_OK);
    else
        release_hold(turn, tenure, way, wait);
}

static void release_begin(struct hli_turn *turn, struct hl_owner *owner,
                          const struct hli_release_way *way, struct hli_wait *wait)
{
    struct hli_name *name = turn->name;
    struct hli_tenure *tenure = hli_name_hold_of(name, owner);

    if (tenure && tenure->state == HLI_TENURE_OWN && turn->now >= hli_hold_validity(tenure))
        hli_loss_declare(turn, tenure, "expired");
    if (!tenure || !tenure->hold.is_accepted)
        hli_turn_finish(turn, wait,
                        hli_release_fail(wait->err, name, HL_ENOTOWNER, hl_err_text(HL_ENOTOWNER)));
    else if (tenure->deepener)
        hli_turn_finish(
            turn, wait,
            hli_release_fail(wait->err, name, HL_EINVAL, "its owner has another call under way"));
    else if (tenure->state == HLI_TENURE_LOST)
        release_lost(turn, tenure, wait);
    else
        release_live(turn, tenure, way, wait);
}

void hli_release_start(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_way *way, struct hli_wait *wait)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    release_begin(&turn, owner, way, wait);
    hli_turn_end(&turn);
}

/* As far as is known here nobody waits, and the key does not rest. */
static bool release_is_simple(const struct hli_turn *turn, const struct hli_op *op)
{
    const struct hli_contest *contest = turn->name->contest;

    if (op->done != hli_release_done)
        return false;
    const struct hli_tenure *tenure = HLI_OF(op, struct hli_tenure, release);
    return turn->name->kind->is_bundled && !tenure->is_wanted && !tenure->is_silent &&
           tenure->hold.rests_until <= turn->now && !(contest && contest->has_strangers);
}

struct hli_op *hli_release_start_together(struct hli_name *name, struct hl_owner *owner,
                                          const struct hli_release_way *way, struct hli_wait *wait)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    release_begin(&turn, owner, way, wait);
    struct hli_op *op = TAILQ_FIRST(&turn.send);
    if (op && release_is_simple(&turn, op))
        TAILQ_REMOVE(&turn.send, op, link);
    else
        op = NULL;
    hli_turn_end(&turn);
    return op;
}

/* LOST, and of a thread that has gone, or a permit that was to end by itself: nobody will release
 * it. */
static bool release_is_orphan(const struct hli_tenure *tenure)
{
    return tenure->state == HLI_TENURE_LOST &&
           (tenure->name->kind->is_forgotten || atomic_load(&tenure->hold.owner->has_exited));
}

static void release_retry_one(struct hli_turn *turn, struct hli_tenure *tenure, bool link_came_up)
{
    if (turn->now >= tenure->give_up_at &&
        (tenure->state == HLI_TENURE_DYING || release_is_orphan(tenure))) {
        if (tenure->is_releasing || tenure->asking != HLI_ASKING_NOTHING)
            return; /* its answer comes, and the link's patience is shorter than a lease */
        hli_release_tell(turn, tenure, HL_EUNKNOWN, "no answer while the lease lasted");
        hli_tenure_bury(turn, tenure);
    } else if (tenure->state == HLI_TENURE_DYING &&
               (link_came_up || turn->now >= tenure->retry_at)) {
        hli_release_send(turn, tenure);
    } else if (tenure->state == HLI_TENURE_DYING && tenure->retry_at > turn->now) {
        hli_turn_timer(turn, tenure->retry_at);
    } else if (release_is_orphan(tenure)) {
        hli_turn_timer(turn, tenure->give_up_at);
    }
}

void hli_release_retry(struct hli_turn *turn, bool link_came_up)
{
    struct hli_tenure *tenure = TAILQ_FIRST(&turn->name->past);

    while (tenure) {
        struct hli_tenure *next = TAILQ_NEXT(tenure, link);
        if (tenure->state == HLI_TENURE_DYING)
            hli_turn_timer(
                turn, hli_later(tenure->give_up_at, hli_after_ms(turn->now, HLI_RELEASE_RETRY_MS)));
        release_retry_one(turn, tenure, link_came_up);
        tenure = next;
    }
}

void hli_release_bury_all(struct hli_turn *turn)
{
    struct hli_tenure *tenure;

    while ((tenure = TAILQ_FIRST(&turn->name->past))) {
        hli_release_tell(turn, tenure, HL_EUNKNOWN, "the client was closed before the answer");
        hli_tenure_bury(turn, tenure);
    }
}
