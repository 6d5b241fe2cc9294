/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Refusals: the error of a call that gets nothing. */
#include "base/error.h"
#include "lease/acquire/acquire.h"
#include "lease/hold/tag.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool refusal_is_behind_ours(const struct hli_name *name, const struct hli_acquire *acquire)
{
    return name->current && name->current->state == HLI_TENURE_OWN && !acquire->got;
}

/* Does the call know of a holder? Not before the answer to its first request. */
static bool refusal_has_heard(const struct hli_name *name, const struct hli_acquire *acquire)
{
    return refusal_is_behind_ours(name, acquire) ||
           (name->contention && name->contention->busy.at >= acquire->wait.started);
}

/* The holder that the call knows of. */
static void refusal_note_busy(const struct hli_turn *turn, hl_lock_info *info)
{
    const struct hli_tenure *tenure = turn->name->current;
    const struct hli_contention *contention = turn->name->contention;

    if (tenure && tenure->state == HLI_TENURE_OWN) {
        info->locked = info->mine = true;
        info->hold_count = tenure->hold.count;
        info->lease_left_ms = hli_ms_left(turn->now, tenure->valid_until);
        hli_tenure_field(tenure, info->owner);
        if (tenure->tag)
            hli_tag_read_own(tenure, turn->now, info);
    } else if (contention) {
        *info = contention->busy.info;
        if (info->pid != 0)
            info->held_ms += (turn->now - contention->busy.at) / 1000000;
    }
}

/* "held by vm, process 3842, thread 'probe', for 601 ms": the words come from another process, so
 * they are escaped. */
static void refusal_write_holder(const hl_lock_info *info, char *text, size_t size)
{
    char host[sizeof(info->host)], thread[4 * sizeof(info->thread)];

    hli_error_escape(host, sizeof(host), info->host, strlen(info->host));
    hli_error_escape(thread, sizeof(thread), info->thread, strlen(info->thread));
    snprintf(text, size, "held by %s, process %" PRId64 "%s%s%s, for %" PRId64 " ms", host,
             info->pid, thread[0] ? ", thread '" : "", thread, thread[0] ? "'" : "", info->held_ms);
}

/* Writes the reason why the lock is busy. */
static void refusal_write_obstacle(const struct hli_turn *turn, const hl_lock_info *info,
                                   char *text, size_t size)
{
    const struct hli_name *name = turn->name;
    hli_ns grace_until = hli_grace_until(name, turn->now);

    if (grace_until != 0 && !info->locked)
        snprintf(text, size,
                 "the server has failed over or started, and nobody acquires for %" PRId64
                 " ms more",
                 hli_ms_left(turn->now, grace_until));
    else if (name->kind->lacks)
        snprintf(text, size, "%s", name->kind->lacks);
    else if (name->kind->quorum && name->kind->quorum->tally(name)[0] &&
             !(name->current && name->current->state == HLI_TENURE_OWN))
        snprintf(text, size, "%s", name->kind->quorum->tally(name));
    else if (info->pid != 0)
        refusal_write_holder(info, text, size);
    else if (name->current && name->current->state == HLI_TENURE_OWN)
        snprintf(text, size, "held by another owner of this client");
    else if (info->owner[0] && info->hold_count == 0 && info->lease_left_ms >= 0)
        snprintf(text, size,
                 "it rests for %.1f s more, for its last hold was shorter than min_hold_ms",
                 (double)hli_ms_left(turn->now,
                                     hli_after_ms(name->contention->busy.at, info->lease_left_ms)) /
                     1000);
    else
        snprintf(text, size, "held by %s", info->owner[0] ? info->owner : "another owner");
}

void hli_acquire_fail_busy(struct hli_turn *turn, struct hli_acquire *acquire, int code)
{
    char obstacle[192] = "no answer came by then", text[224];

    hl_lock_info busy = HL_LOCK_INFO_INIT;

    if (refusal_has_heard(turn->name, acquire))
        refusal_note_busy(turn, &busy);
    if (code == HL_EBUSY || busy.locked || hli_grace_until(turn->name, turn->now) != 0)
        refusal_write_obstacle(turn, &busy, obstacle, sizeof(obstacle));
    snprintf(text, sizeof(text), "%s%s", code == HL_EBUSY ? "" : "the wait time is over; ",
             obstacle);
    hli_waiters_fail(turn, acquire, code, text);
    if (acquire->wait.err)
        acquire->wait.err->busy = busy;
}

static int refusal_problem(const struct hli_name *name)
{
    return name->contention ? name->contention->problem : 0;
}

/* No answer came: gives the reason, if it is known. */
void hli_acquire_fail_unheard(struct hli_turn *turn, struct hli_acquire *acquire)
{
    const struct hli_name *name = turn->name;
    char text[HLI_WHERE_SIZE + 64], where[HLI_WHERE_SIZE];

    if (refusal_problem(name) < 0) {
        hli_waiters_fail(turn, acquire, name->contention->problem, name->contention->problem_text);
        return;
    }
    hli_link_where(hli_name_link(name), where);
    snprintf(text, sizeof(text), "no answer from %s within %lld ms", where,
             (long long)((turn->now - acquire->wait.started) / 1000000));
    hli_waiters_fail(turn, acquire, HL_ECONN, text);
}

/* The one place that tells the end of a wait time from a fault. A fault is a connection that was
 * lost or could not be made, or the server's refusal. A missing answer alone is no fault: until the
 * link's patience is over, the connection counts as up. */
void hli_acquire_time_out(struct hli_turn *turn, struct hli_acquire *acquire)
{
    if (refusal_problem(turn->name) == 0 || refusal_is_behind_ours(turn->name, acquire))
        hli_acquire_fail_busy(turn, acquire, HL_ETIMEDOUT);
    else
        hli_acquire_fail_unheard(turn, acquire);
}
