/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Renewals: the batch's words, and what its answer means for each hold. */
#include "lease/renewal.h"

#include "base/check.h"
#include "lease/deepen.h"
#include "lease/hold.h"
#include "lease/loss.h"
#include "lease/notice.h"

#include <inttypes.h>
#include <stdio.h>

enum { NUMBER_SIZE = 24, RENEWAL_WORDS = 3, RENEWAL_SLACKS = 300 /* in a lease */ };

static void renewal_send(void *arg);
static void renewal_answered(struct hli_op *op, const struct hli_answer *answer);

hli_ns hli_renewal_slack(const hl_client *client)
{
    return HLI_MS(client->settings.watchdog_timeout_ms) / RENEWAL_SLACKS;
}

void hli_renewal_init(struct hli_renewal *renewal, hl_client *client,
                      void (*done)(struct hli_renewal *renewal))
{
    *renewal = (struct hli_renewal){.client = client, .done = done};
    renewal->task = (struct hli_task){.run = renewal_send, .arg = renewal};
    renewal->op.done = renewal_answered;
}

void hli_renewal_deinit(struct hli_renewal *renewal)
{
    HLI_CHECK(renewal->count == 0);
    hli_op_deinit(&renewal->op);
}

bool hli_renewal_add(struct hli_renewal *renewal, struct hli_tenure *tenure)
{
    hli_script_id script = tenure->name->kind->renew;

    if (renewal->count == 0) {
        renewal->lease_ms = tenure->renew_lease_ms;
        renewal->script = script;
    }
    if (renewal->count == HLI_RENEWAL_HOLDS || renewal->lease_ms != tenure->renew_lease_ms ||
        renewal->script != script)
        return false;
    renewal->item[renewal->count++] = (struct hli_renewal_item){.tenure = tenure};
    return true;
}

void hli_renewal_post(struct hli_renewal *renewal)
{
    hli_loop_post(renewal->client->loop, &renewal->task);
}

static void renewal_write_item(struct hli_renewal_item *item, char field[HLI_FIELD_SIZE],
                               struct hli_bytes *key, struct hli_bytes *arg)
{
    struct hli_name *name = item->tenure->name;

    pthread_mutex_lock(&name->mutex);
    item->due = item->tenure->renew_at;
    *arg = name->kind->renewed ? name->kind->renewed(item->tenure, field)
                               : hli_bytes_of(hli_tenure_field(item->tenure, field));
    pthread_mutex_unlock(&name->mutex);
    *key = (struct hli_bytes){name->bytes, name->length};
}

static int renewal_format(struct hli_renewal *renewal)
{
    char field[HLI_RENEWAL_HOLDS][HLI_FIELD_SIZE], lease[NUMBER_SIZE];
    struct hli_bytes keys[HLI_RENEWAL_HOLDS], args[1 + HLI_RENEWAL_HOLDS];

    snprintf(lease, sizeof(lease), "%" PRId64, renewal->lease_ms);
    args[0] = hli_bytes_of(lease);
    for (size_t i = 0; i < renewal->count; i++)
        renewal_write_item(&renewal->item[i], field[i], &keys[i], &args[1 + i]);
    const struct hli_script_words said = {keys, renewal->count, args, 1 + renewal->count};
    return hli_op_script(&renewal->op, renewal->script, &said);
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
        hli_link_send(renewal->client->link, &renewal->op);
}

/* A third of the lease. One that only is kept up, and so gets shorter with each renewal, is renewed
 * as often as the watchdog's are. */
static int64_t renewal_period_ms(const struct hli_tenure *tenure, int64_t lease_ms)
{
    const struct hli_settings *settings = &tenure->name->client->settings;

    return (tenure->hold.is_watched ? lease_ms : settings->watchdog_timeout_ms) / 3;
}

/* Was it begun before its hold got the lease time that it has now? (The hold had a shorter one
 * while its call waited for other names.) */
static bool renewal_is_short(const struct hli_renewal *renewal, const struct hli_tenure *tenure)
{
    hli_ns ends = tenure->hold.ends;

    return !tenure->hold.is_watched && ends > tenure->valid_until &&
           ends > hli_after_ms(renewal->op.sent_at, renewal->lease_ms);
}

static void renewal_succeeded(struct hli_turn *turn, const struct hli_renewal *renewal,
                              const struct hli_renewal_item *item)
{
    struct hli_tenure *tenure = item->tenure;
    hli_ns sent_at = renewal->op.sent_at;

    hli_tenure_extend(tenure, sent_at, renewal->lease_ms);
    bool is_short = renewal_is_short(renewal, tenure);
    tenure->renew_at =
        is_short ? turn->now : sent_at + HLI_MS(renewal_period_ms(tenure, renewal->lease_ms));
    tenure->renew_failures = 0;
    tenure->is_doubted = is_short || (turn->name->kind->is_kept_up && !tenure->hold.is_watched);
    if (tenure->longest_lease_ms < renewal->lease_ms)
        tenure->longest_lease_ms = renewal->lease_ms;
    if (tenure->in_jeopardy)
        hli_notice_warning(turn, tenure, HL_EVENT_SAFE);
    tenure->in_jeopardy = false;
    hli_count(&turn->name->client->counters.renewals);
    hli_histogram_add(&turn->name->client->counters.renewal_lag, turn->now - item->due);
}

/* Again at once, and then every request timeout (or more often, if the lease is short), until the
 * validity ends: one failed renewal is no loss. */
static void renewal_failed(struct hli_turn *turn, struct hli_tenure *tenure)
{
    const struct hli_settings *settings = &turn->name->client->settings;
    bool is_first = tenure->renew_failures == 0;
    int64_t pause_ms = settings->watchdog_timeout_ms / 12;

    if (pause_ms > settings->request_timeout_ms)
        pause_ms = settings->request_timeout_ms;
    tenure->renew_failures++;
    tenure->renew_at = hli_after_ms(turn->now, is_first ? 0 : pause_ms);
}

/* `count` is what stands in Redis, -1 for gone. What is no longer held, or over by the clock, does
 * not come back. */
static void renewal_apply(const struct hli_renewal *renewal, const struct hli_renewal_item *item,
                          const int64_t *count)
{
    struct hli_tenure *tenure = item->tenure;
    struct hli_turn turn;

    hli_turn_begin(&turn, tenure->name);
    tenure->is_renewing = false;
    if (hli_tenure_is_kept(tenure) && turn.now < hli_hold_validity(tenure)) {
        if (!count)
            renewal_failed(&turn, tenure);
        else if (*count < 0)
            hli_loss_of_key(&turn, tenure);
        else
            renewal_succeeded(&turn, renewal, item);
    }
    if (hli_tenure_is_kept(tenure)) {
        if (count && *count > 0)
            tenure->least_count = tenure->most_count = (uint32_t)*count;
        hli_deepen_go(&turn, tenure);
        hli_turn_watch(&turn, tenure, hli_hold_due(tenure));
    }
    hli_turn_end(&turn);
    hli_tenure_unref(tenure); /* the batch's */
}

/* The reply names only those whose count is not 1, in order: their position and their count. */
static void renewal_apply_reply(struct hli_renewal *renewal, const struct hli_reply *reply)
{
    size_t next = 0;

    for (size_t i = 0; i < renewal->count; i++) {
        int64_t position = 0, count = 1;
        if (hli_reply_integer_at(reply, next, &position) && position == (int64_t)i + 1 &&
            hli_reply_integer_at(reply, next + 1, &count))
            next += 2;
        renewal_apply(renewal, &renewal->item[i], &count);
    }
}

/* Does the reply speak of holds of this batch, in order? If not, it answers something else. */
static bool renewal_is_meant(const struct hli_renewal *renewal, const struct hli_reply *reply)
{
    int64_t last = 0, position = 0;

    for (size_t i = 0; i < reply->length; i += 2, last = position)
        if (!hli_reply_integer_at(reply, i, &position) || position <= last ||
            position > (int64_t)renewal->count)
            return false;
    return true;
}

static bool renewal_is_current(struct hli_tenure *tenure)
{
    pthread_mutex_lock(&tenure->name->mutex);
    bool is_current = hli_tenure_is_kept(tenure);
    tenure->is_renewing = is_current;
    pthread_mutex_unlock(&tenure->name->mutex);
    return is_current;
}

/* The batch bounced: it did not run, and its script is being loaded by a command that is ahead of
 * whatever is sent now. So it is sent anew at once, for those that are still held. */
static void renewal_bounced(struct hli_renewal *renewal)
{
    size_t kept = 0;

    for (size_t i = 0; i < renewal->count; i++) {
        struct hli_tenure *tenure = renewal->item[i].tenure;
        if (renewal_is_current(tenure))
            renewal->item[kept++].tenure = tenure;
        else
            hli_tenure_unref(tenure); /* the batch's */
    }
    renewal->count = kept;
    if (kept > 0)
        renewal_send(renewal);
    else
        renewal->done(renewal);
}

static void renewal_answered(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_renewal *renewal = HLI_OF(op, struct hli_renewal, op);
    bool is_meant = answer->verdict == HLI_REPLIED && renewal_is_meant(renewal, answer->reply);

    if (answer->verdict == HLI_BOUNCED) {
        renewal_bounced(renewal);
        return;
    }
    if (answer->verdict == HLI_REPLIED && !is_meant)
        hli_link_distrust(renewal->client->link, "an answer that the script does not give");
    if (is_meant)
        renewal_apply_reply(renewal, answer->reply);
    else
        for (size_t i = 0; i < renewal->count; i++)
            renewal_apply(renewal, &renewal->item[i], NULL);
    if (hli_answer_is(answer, "READONLY"))
        hli_link_distrust(renewal->client->link, "READONLY the server has become a replica");
    renewal->count = 0;
    renewal->done(renewal);
}
