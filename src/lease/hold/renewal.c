/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Renewals: the batch's request, and the effect of its answer on each hold. */
#include "lease/hold/renewal.h"

#include "base/check.h"
#include "base/probe.h"
#include "lease/calls/replicas.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/hold/renewal_queue.h"
#include "lease/state/command.h"
#include "lease/state/grace.h"
#include "lease/state/notice.h"
#include "route/slots.h"

#include <inttypes.h>
#include <stdio.h>

static void renewal_send(void *arg);
static bool renewal_op_is_wanted(const struct hli_op *op);
static void renewal_answered(struct hli_op *op, const struct hli_answer *answer);

void hli_renewal_init(struct hli_renewal *renewal, hl_client *client,
                      struct hli_renewal_queue *queue, void (*done)(struct hli_renewal *renewal))
{
    *renewal = (struct hli_renewal){.client = client, .queue = queue, .done = done};
    renewal->task = (struct hli_task){.run = renewal_send, .arg = renewal};
    HLI_PART_IS(&renewal->op, struct hli_renewal, op);
    renewal->op.done = renewal_answered;
    renewal->op.is_wanted = renewal_op_is_wanted;
    STAILQ_INIT(&renewal->tenures);
}

void hli_renewal_deinit(struct hli_renewal *renewal)
{
    HLI_CHECK(STAILQ_EMPTY(&renewal->tenures));
    hli_op_deinit(&renewal->op);
}

int64_t hli_renewal_group(const struct hli_tenure *tenure)
{
    int64_t script = tenure->renew_lease_ms * HLI_SCRIPT_COUNT + tenure->name->kind->renew;

    return script * HLI_SLOTS + tenure->name->slot;
}

bool hli_renewal_add(struct hli_renewal *renewal, struct hli_tenure *tenure)
{
    const struct hli_tenure *first = STAILQ_FIRST(&renewal->tenures);

    if (first && (renewal->count == HLI_RENEWAL_HOLDS || first->renews_alone ||
                  tenure->renews_alone || hli_renewal_group(first) != hli_renewal_group(tenure) ||
                  !hli_name_shares_lane(first->name, tenure->name)))
        return false;
    STAILQ_INSERT_TAIL(&renewal->tenures, tenure, renewal_link);
    renewal->count++;
    return true;
}

struct hli_tenure *hli_renewal_pop(struct hli_renewal *renewal)
{
    struct hli_tenure *tenure = STAILQ_FIRST(&renewal->tenures);

    if (tenure)
        STAILQ_REMOVE_HEAD(&renewal->tenures, renewal_link);
    return tenure;
}

/* Is the hold to be written anew, if the server lacks it? Name mutex. */
static bool renewal_is_written(const struct hli_tenure *tenure)
{
    return tenure->state == HLI_TENURE_OWN && !tenure->is_final &&
           hli_now() < hli_hold_validity(tenure) && !hli_grace_is_met(tenure);
}

/* The field of its owner in the other half of a read-write lock, or "". */
static void renewal_write_beside(const struct hli_tenure *tenure, char text[HLI_FIELD_SIZE])
{
    struct hli_name *name = tenure->name;
    struct hl_owner *owner = NULL;

    text[0] = '\0';
    if (!name->kind->sibling)
        return;
    hli_mutex_lock(&name->mutex);
    if (renewal_is_written(tenure))
        owner = tenure->hold.owner;
    if (owner)
        hli_owner_ref(owner);
    hli_mutex_unlock(&name->mutex);
    if (!owner)
        return;
    struct hli_beside beside;
    if (hli_hold_beside(name, owner, &beside))
        snprintf(text, HLI_FIELD_SIZE, "%s:%" PRIu64 "%s", name->client->id, beside.number,
                 name->kind->sibling->field_suffix);
    hli_owner_unref(owner);
}

/* How many levels are to be written, 0: the hold is only renewed; and until when. Name mutex. */
static void renewal_add_levels(const struct hli_tenure *tenure, struct hli_args *args)
{
    bool is_written = renewal_is_written(tenure);

    hli_args_number(args, is_written ? tenure->hold.count : 0);
    hli_args_number(
        args,
        is_written ? hli_grace_lasts_ms(tenure->name, hli_hold_validity(tenure), hli_now()) : 0);
}

static void renewal_add_hold(struct hli_renewal *renewal, const struct hli_tenure *tenure,
                             struct hli_args *args)
{
    struct hli_name *name = tenure->name;
    char beside[HLI_FIELD_SIZE];

    if (renewal->reclaims_until != 0)
        renewal_write_beside(tenure, beside);
    hli_mutex_lock(&name->mutex);
    if (tenure->hold.replicas > 0)
        renewal->op.replicas = hli_replicas_more(renewal->op.replicas, tenure->hold.replicas);
    if (name->kind->renewed)
        name->kind->renewed(tenure, args);
    else
        hli_command_field(args, tenure);
    if (renewal->reclaims_until != 0)
        renewal_add_levels(tenure, args);
    hli_mutex_unlock(&name->mutex);
    if (renewal->reclaims_until != 0)
        hli_args_text(args, beside);
}

/* The term comes first: the grace may be that of a later one, and then this is not sent. */
static void renewal_note_term(struct hli_renewal *renewal, const struct hli_name *name)
{
    renewal->op.term = hli_grace_term(name);
    renewal->reclaims_until = hli_grace_until(name, hli_now());
}

static int renewal_format(struct hli_renewal *renewal)
{
    const struct hli_tenure *first = STAILQ_FIRST(&renewal->tenures), *tenure;
    struct hli_args args;
    const struct hli_kind *kind = first->name->kind;

    renewal->op.replicas = 0;
    if (HLI_GRACE_IS_ON(renewal->client))
        renewal_note_term(renewal, first->name);
    bool is_reclaim = renewal->reclaims_until != 0;
    hli_args_begin_script(&args, is_reclaim ? kind->reclaim : kind->renew, renewal->count);
    STAILQ_FOREACH (tenure, &renewal->tenures, renewal_link)
        hli_command_name(&args, tenure->name);
    STAILQ_FOREACH (tenure, &renewal->tenures, renewal_link)
        hli_command_declare_renewed(&args, tenure);
    hli_args_number(&args, first->renew_lease_ms);
    STAILQ_FOREACH (tenure, &renewal->tenures, renewal_link)
        renewal_add_hold(renewal, tenure, &args);
    return hli_args_end(&args, &renewal->op);
}

static void renewal_send_formatted(struct hli_renewal *renewal)
{
    renewal->sent_to = hli_name_link(STAILQ_FIRST(&renewal->tenures)->name);
    hli_link_send(renewal->sent_to, &renewal->op);
}

/* Is a reclaim still to be sent? It must not write a hold anew behind its release, which another
 * thread may have sent since this was formatted. */
static bool renewal_op_is_wanted(const struct hli_op *op)
{
    const struct hli_renewal *renewal = HLI_PART_OF(op, struct hli_renewal, op);
    const struct hli_tenure *tenure;

    STAILQ_FOREACH (tenure, &renewal->tenures, renewal_link)
        if (renewal->reclaims_until != 0 && !hli_tenure_has_key(tenure))
            return false;
    return true;
}

/* On the loop thread. */
static void renewal_send(void *arg)
{
    static const struct hli_answer no_memory = {
        .verdict = HLI_REFUSED, .code = HL_ENOMEM, .text = "out of memory"};
    struct hli_renewal *renewal = arg;

    if (renewal_format(renewal) < 0)
        renewal_answered(&renewal->op, &no_memory);
    else
        renewal_send_formatted(renewal);
}

/* A third of the renewal's lease. A hold with a lease time, whose rest gets shorter with each
 * renewal, is renewed as often as the watchdog's holds. */
static int64_t renewal_period_ms(const struct hli_tenure *tenure)
{
    const hl_client_options *settings = &tenure->name->client->settings;

    return (tenure->hold.is_watched ? tenure->renew_lease_ms : settings->watchdog_timeout_ms) / 3;
}

/* When the hold is due next. In a cluster only the holds of one slot share a request. So a hold
 * comes earlier once, to go with others of its slot from then on. What is due within the slack goes
 * along with this renewal, and is no moment to wait for. */
static hli_ns renewal_next_at(const struct hli_renewal *renewal, const struct hli_tenure *tenure)
{
    const hl_client_options *settings = &tenure->name->client->settings;
    hli_ns sent_at = renewal->op.sent_at;
    hli_ns latest = sent_at + HLI_MS(renewal_period_ms(tenure));

    if (!renewal->queue->moments)
        return latest;
    struct hli_renewal_moment *moment = &renewal->queue->moments[tenure->name->slot];
    hli_ns at = atomic_load(&moment->at);
    if (at <= sent_at + hli_lease_slack(settings->watchdog_timeout_ms)) {
        atomic_store(&moment->lease_ms, tenure->renew_lease_ms);
        atomic_store(&moment->at, latest);
        return latest;
    }
    return atomic_load(&moment->lease_ms) == tenure->renew_lease_ms ? hli_earlier(at, latest)
                                                                    : latest;
}

/* Was the renewal begun before its hold got its present lease time? (The hold had a shorter one
 * while its call waited for other names.) */
static bool renewal_is_short(const struct hli_renewal *renewal, const struct hli_tenure *tenure)
{
    hli_ns ends = tenure->hold.ends;

    return !tenure->hold.is_watched && ends > tenure->valid_until &&
           ends > hli_after_ms(renewal->op.sent_at, tenure->renew_lease_ms);
}

static void renewal_succeeded(struct hli_turn *turn, const struct hli_renewal *renewal,
                              struct hli_tenure *tenure)
{
    struct hli_counters *counters = &turn->name->client->counters;
    hli_ns sent_at = renewal->op.sent_at;
    int64_t lease_ms = tenure->renew_lease_ms;

    hli_count(&counters->renewals);
    if (renewal->reclaims_until != 0 && !hli_grace_is_met(tenure))
        hli_count(&counters->reclaims);
    hli_histogram_add(&counters->renewal_lag, turn->now - tenure->renew_at);
    HLI_PROBE2(renew, turn->name->bytes, turn->now - tenure->renew_at);
    hli_tenure_extend(tenure, sent_at, lease_ms, renewal->confirmed, renewal->op.term);
    bool is_doubt = tenure->hold.replicas > 0 &&
                    hli_hold_confirm(turn, tenure,
                                     hli_replicas_cover(renewal->confirmed, tenure->hold.replicas));
    bool is_short = renewal_is_short(renewal, tenure);
    bool is_older = tenure->doubted_at >= sent_at; /* than news, of which it cannot tell */
    tenure->renew_at = is_short || is_older ? turn->now : renewal_next_at(renewal, tenure);
    tenure->renew_failures = 0;
    tenure->is_doubted =
        is_short || is_older || (turn->name->kind->is_always_renewed && !tenure->hold.is_watched);
    if (tenure->longest_lease_ms < lease_ms)
        tenure->longest_lease_ms = lease_ms;
    if (turn->name->kind->changed)
        hli_turn_change(turn, tenure, hli_hold_validity(tenure));
    if (is_doubt)
        return; /* a tenure tells one thing at a time: SAFE comes with the next renewal */
    if (tenure->in_jeopardy)
        hli_notice_warning(turn, tenure, HL_EVENT_SAFE);
    tenure->in_jeopardy = false;
}

/* Plans the next try: at once, and then every request timeout (or more often, if the lease is
 * short), until the validity ends. One failed renewal is no loss. */
static void renewal_failed(struct hli_turn *turn, struct hli_tenure *tenure, hl_reason reason)
{
    const hl_client_options *settings = &turn->name->client->settings;
    bool is_first = tenure->renew_failures == 0;
    int64_t pause_ms = renewal_period_ms(tenure) / 4;

    if (pause_ms > settings->request_timeout_ms)
        pause_ms = settings->request_timeout_ms;
    hli_count_failure(turn->name->client, HL_CALL_RENEWAL, HL_OK, reason);
    tenure->renew_failures++;
    tenure->renew_at = hli_after_ms(turn->now, is_first ? 0 : pause_ms);
}

/* Have fewer replicas the renewal than the hold needs, and does it count for nothing then? */
static bool renewal_lacks_replicas(const struct hli_renewal *renewal,
                                   const struct hli_tenure *tenure)
{
    if (tenure->hold.replicas == 0 || hli_replicas_cover(renewal->confirmed, tenure->hold.replicas))
        return false;
    hli_count(&tenure->name->client->counters.unconfirmed);
    return !tenure->hold.is_kept_anyway;
}

/* Applies the answer to one tenure. `count` is the count in Redis, -1: the key is gone; NULL: the
 * renewal failed. A tenure that is no longer held, or over by the clock, does not come back. */
static void renewal_apply(const struct hli_renewal *renewal, struct hli_tenure *tenure,
                          const int64_t *count)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_renewing = tenure->renews_alone = false;
    if (hli_tenure_has_key(tenure) && !tenure->is_final && turn.now < hli_hold_validity(tenure)) {
        if (count && *count < 0)
            hli_loss_declare(&turn, tenure, "gone");
        else if (!count)
            renewal_failed(&turn, tenure, renewal->reason);
        else if (renewal_lacks_replicas(renewal, tenure))
            renewal_failed(&turn, tenure, HL_REASON_REPLICAS);
        else
            renewal_succeeded(&turn, renewal, tenure);
    }
    if (hli_tenure_has_key(tenure) && count && *count > 0)
        tenure->least_count = tenure->most_count = (uint32_t)*count;
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the batch's */
}

/* The reply names only the holds whose count is not 1, in order: position and count. */
static void renewal_apply_reply(struct hli_renewal *renewal, const struct hli_reply *reply)
{
    struct hli_tenure *tenure;
    size_t next = 0;

    for (int64_t i = 1; (tenure = hli_renewal_pop(renewal)); i++) {
        int64_t position = 0, count = 1;
        if (hli_reply_integer_at(reply, next, &position) && position == i &&
            hli_reply_integer_at(reply, next + 1, &count))
            next += 2;
        renewal_apply(renewal, tenure, &count);
    }
}

/* Does the reply name holds of this batch, in order? If not, it is the answer of another request.
 */
static bool renewal_is_meant(const struct hli_renewal *renewal, const struct hli_reply *reply)
{
    int64_t last = 0, position = 0;

    for (size_t i = 0; i < reply->length; i += 2, last = position)
        if (!hli_reply_integer_at(reply, i, &position) || position <= last ||
            position > (int64_t)renewal->count)
            return false;
    return true;
}

static bool renewal_is_wanted(struct hli_tenure *tenure, bool alone)
{
    hli_mutex_lock(&tenure->name->mutex);
    bool is_wanted = hli_tenure_has_key(tenure);
    tenure->is_renewing = is_wanted;
    tenure->renews_alone = alone;
    hli_mutex_unlock(&tenure->name->mutex);
    return is_wanted;
}

/* Leaves in the batch the tenures that are still held: they are to be sent again. True if these are
 * all. */
static bool renewal_keep_wanted(struct hli_renewal *renewal, bool alone)
{
    bool are_all = true;

    for (size_t i = 0; i < renewal->count; i++) {
        struct hli_tenure *tenure = hli_renewal_pop(renewal);
        bool is_wanted = renewal_is_wanted(tenure, alone);
        are_all = are_all && is_wanted;
        if (is_wanted)
            STAILQ_INSERT_TAIL(&renewal->tenures, tenure, renewal_link);
        else
            hli_tenure_unref(tenure); /* the batch's */
    }
    return are_all;
}

static void renewal_fail_all(struct hli_renewal *renewal)
{
    struct hli_tenure *tenure;

    while ((tenure = hli_renewal_pop(renewal)))
        renewal_apply(renewal, tenure, NULL);
}

/* Was the batch refused as a whole, for what may be the fault of one name? */
static bool renewal_is_split(const struct hli_renewal *renewal, const struct hli_answer *answer)
{
    return renewal->count > 1 &&
           (answer->verdict == HLI_FAILED ||
            (answer->verdict == HLI_REFUSED && hli_answer_is(answer, "TRYAGAIN")));
}

/* A bounced batch did not run. It is sent again now, in one write with the SCRIPT LOAD that waits
 * in the outbox: the server runs both back to back, so that no SCRIPT FLUSH can come between them.
 * A batch that was refused for good did not run either; one name may be the cause (a key without
 * permission, or in another slot), so each hold is asked for alone; as after a TRYAGAIN, if a slot
 * moves and the keys are at two nodes. */
static void renewal_answered(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_renewal *renewal = HLI_PART_OF(op, struct hli_renewal, op);
    bool is_meant = answer->verdict == HLI_REPLIED && renewal_is_meant(renewal, answer->reply);

    if (answer->verdict == HLI_REPLIED && !is_meant)
        hli_lanes_drop(renewal->sent_to, "an answer that the script does not give");
    if (answer->verdict == HLI_BOUNCED && renewal_keep_wanted(renewal, false)) {
        renewal_send(renewal);
        return;
    }
    renewal->confirmed = op->replicas > 0 ? hli_op_confirmed(op, answer) : 0;
    renewal->reason = answer->verdict == HLI_REPLIED
                          ? HL_REASON_SERVER
                          : hli_answer_reason(answer->code, answer->text);
    if (is_meant)
        renewal_apply_reply(renewal, answer->reply);
    else if (renewal_is_split(renewal, answer))
        renewal_keep_wanted(renewal, true);
    else if (answer->verdict != HLI_BOUNCED)
        renewal_fail_all(renewal);
    renewal->done(renewal);
}
