/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Gathering. Whatever happens to one of the names ends in hli_gather_kick(), and that in
 * gather_step(), which looks at where the call stands and does the next thing. Only parts before
 * `next` are held while one is waited for; whatever else was taken with a request is given back.
 */
#include "lease/gather.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/command.h"

static void gather_step(struct hli_gather *gather);

/* One step for each kick; with the caller's reference. */
void hli_gather_kick(struct hli_gather *gather)
{
    unsigned pending = 1;

    if (atomic_fetch_add(&gather->kicks, 1) > 0)
        return;
    do {
        gather_step(gather);
        pending = atomic_fetch_sub(&gather->kicks, pending) - pending;
    } while (pending > 0);
}

void hli_gather_part_finished(struct hli_wait *wait)
{
    struct hli_part *part =
        HLI_OF(HLI_OF(wait, struct hli_acquire, wait), struct hli_part, acquire);
    struct hli_gather *gather = part->gather;

    atomic_store(&part->state, HLI_PART_TOLD);
    hli_gather_kick(gather);
    hli_gather_unref(gather); /* the part's */
}

/* Takes the acquire of a part back that asks; false: it is about to be told. */
static bool gather_take_back(struct hli_gather *gather, struct hli_part *part)
{
    if (!hli_part_leave(part))
        return false;
    hli_gather_unref(gather); /* the part's */
    return true;
}

static void gather_end(struct hli_gather *gather, int code)
{
    atomic_store(&gather->is_over, true);
    pthread_mutex_lock(&gather->mutex);
    gather->wait.is_finished = true;
    gather->wait.code = code;
    pthread_mutex_unlock(&gather->mutex);
    hli_wait_wake(&gather->wait); /* the call goes on in its own thread from here */
}

/* Gives back what is held, in the order in which it was not taken, once nothing is asked for. */
static void gather_stop(struct hli_gather *gather)
{
    bool is_quiet = true;

    for (size_t i = gather->count; i-- > 0;) {
        struct hli_part *part = &gather->parts[i];
        if (hli_part_state_of(part) == HLI_PART_ASKS)
            is_quiet = gather_take_back(gather, part) && is_quiet;
        else if (hli_part_is_held(part))
            hli_part_give_back(part);
    }
    if (is_quiet)
        gather_end(gather, gather->stop_code);
}

static void gather_fail(struct hli_gather *gather, const struct hli_part *part)
{
    gather->stop_code = hli_part_code(part);
    if (gather->wait.err)
        *gather->wait.err = part->err;
    gather_stop(gather);
}

/* Does one of these say that the call is over? */
static struct hli_part *gather_find_failed(struct hli_gather *gather, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++)
        if (hli_part_has_failed(&gather->parts[i]))
            return &gather->parts[i];
    return NULL;
}

/* A bundle's answers are told. One of its parts may ask again nevertheless (its answer came too
 * late): then what is behind that is given back. False: one of those is still about to be told. */
static bool gather_trim(struct hli_gather *gather)
{
    bool is_trimmed = true;

    while (gather->next < gather->bundle_end && hli_part_is_held(&gather->parts[gather->next]))
        gather->next++;
    for (size_t i = gather->bundle_end; i-- > gather->next + 1;) {
        struct hli_part *part = &gather->parts[i];
        if (hli_part_state_of(part) == HLI_PART_ASKS)
            is_trimmed = gather_take_back(gather, part) && is_trimmed;
        else if (hli_part_is_held(part))
            hli_part_give_back(part);
    }
    if (is_trimmed)
        atomic_store(&gather->bundle_state, HLI_BUNDLE_NONE);
    return is_trimmed;
}

/* True when the next part may be looked at. */
static bool gather_is_settled(struct hli_gather *gather)
{
    switch (atomic_load(&gather->bundle_state)) {
    case HLI_BUNDLE_SENT: {
        struct hli_part *failed = gather_find_failed(gather, gather->next, gather->bundle_end);
        if (failed)
            gather_fail(gather, failed);
        return false;
    }
    case HLI_BUNDLE_TELLING:
        return false;
    case HLI_BUNDLE_TOLD: {
        struct hli_part *failed = gather_find_failed(gather, gather->next, gather->bundle_end);
        if (failed)
            gather_fail(gather, failed);
        return !failed && gather_trim(gather);
    }
    default:
        return true;
    }
}

/* Leases do not run while the call waits: until it returns, the watchdog renews what it has. For so
 * long that who was granted a name has time to come, and no longer than a lease without a lease
 * time. */
static void gather_tame(struct hli_gather *gather)
{
    const hl_client *client = gather->wait.client;
    int64_t claim_ms = hli_command_claim_ms(client);
    int64_t lease_ms = gather->lease_ms > claim_ms ? gather->lease_ms : claim_ms;

    if (gather->options.lease_ms == 0)
        return;
    if (lease_ms > client->settings.watchdog_timeout_ms)
        lease_ms = client->settings.watchdog_timeout_ms;
    for (size_t i = 0; i < gather->next; i++)
        hli_part_tame(&gather->parts[i], lease_ms);
}

/* The one place that decides which names can be asked for by one request: those whose kind is made
 * for it, that share a server, and in a cluster a slot. A client speaks to one server today. */
static bool gather_may_bundle(const struct hli_gather *gather, const struct hli_part *part)
{
    const struct hli_acquire *acquire = &part->acquire;

    return !gather->alone && !part->is_nested && acquire->name->kind->is_bundled &&
           !acquire->way.is_fenced && acquire->way.backoff_ms == 0;
}

static void gather_part_asks(struct hli_gather *gather, struct hli_part *part)
{
    hli_gather_ref(gather); /* the part's */
    atomic_store(&part->state, HLI_PART_ASKS);
}

/* Begins a part whose first request can go out now. Gives that, or NULL: then there is none, and
 * the part asks or rests. */
static struct hli_op *gather_begin_together(struct hli_gather *gather, struct hli_part *part)
{
    struct hli_op *op = NULL;

    gather_part_asks(gather, part);
    if (!hli_acquire_start_together(&part->acquire, &op)) {
        atomic_store(&part->state, HLI_PART_RESTS);
        hli_gather_unref(gather); /* the part's */
    }
    return op;
}

/* As many as can be asked for now, from the next on. */
static void gather_collect(struct hli_gather *gather)
{
    struct hli_bundle *bundle = &gather->bundle;
    struct hli_op *op;

    bundle->count = 0;
    for (size_t i = gather->next; i < gather->count; i++) {
        struct hli_part *part = &gather->parts[i];
        if (i > gather->next && !gather_may_bundle(gather, part))
            return;
        if (part->is_nested || !(op = gather_begin_together(gather, part))) {
            if (i > gather->next && hli_part_state_of(part) == HLI_PART_ASKS)
                gather_take_back(gather, part);
            return;
        }
        bundle->ops[bundle->count++] = op;
        if (!gather_may_bundle(gather, part))
            return;
    }
}

/* No memory for the bundle's request: the first goes alone, the others come later. */
static void gather_unbundle(struct hli_gather *gather)
{
    static const struct hli_answer unsent = {
        .verdict = HLI_BOUNCED, .code = HL_ENOMEM, .text = "out of memory"};
    struct hli_bundle *bundle = &gather->bundle;

    for (size_t i = 1; i < bundle->count; i++)
        if (hli_part_leave_answered(&gather->parts[gather->next + i], bundle->ops[i], &unsent))
            hli_gather_unref(gather); /* the part's */
    hli_link_send(gather->wait.client->link, bundle->ops[0]);
}

static void gather_send(struct hli_gather *gather)
{
    struct hli_bundle *bundle = &gather->bundle;
    bool waits = gather->options.wait_ms != HL_NO_WAIT;

    if (bundle->count == 1) {
        hli_link_send(gather->wait.client->link, bundle->ops[0]);
    } else if (hli_bundle_acquire(bundle, gather->lease_ms, waits) < 0) {
        gather_unbundle(gather);
    } else {
        gather->bundle_end = gather->next + bundle->count;
        atomic_store(&gather->bundle_state, HLI_BUNDLE_SENT);
        hli_gather_ref(gather); /* the bundle's */
        hli_bundle_send(bundle);
    }
}

static void gather_go_on(struct hli_gather *gather)
{
    struct hli_part *part = &gather->parts[gather->next];

    if (!part->is_nested)
        gather_tame(gather);
    gather_collect(gather);
    if (gather->bundle.count > 0) {
        gather_send(gather);
    } else if (hli_part_state_of(part) == HLI_PART_RESTS) {
        gather_part_asks(gather, part);
        hli_acquire_start_part(&part->acquire);
    }
}

static void gather_step(struct hli_gather *gather)
{
    if (atomic_load(&gather->is_over))
        return;
    if (gather->stop_code < 0) {
        gather_stop(gather);
        return;
    }
    if (!gather_is_settled(gather))
        return;
    while (gather->next < gather->count && hli_part_is_held(&gather->parts[gather->next]))
        gather->next++;
    atomic_store(&gather->current, gather->next);
    struct hli_part *part = gather->next < gather->count ? &gather->parts[gather->next] : NULL;
    if (!part)
        gather_end(gather, HL_OK);
    else if (hli_part_has_failed(part))
        gather_fail(gather, part);
    else if (hli_part_state_of(part) == HLI_PART_RESTS)
        gather_go_on(gather);
    else if (!part->is_nested)
        gather_tame(gather);
}

static struct hli_gather *gather_of(struct hli_bundle *bundle)
{
    return HLI_OF(bundle, struct hli_gather, bundle);
}

/* A field's TAKE is not repeated behind its release: so not once the call has stopped. */
static bool gather_wants_bundle(struct hli_bundle *bundle)
{
    struct hli_gather *gather = gather_of(bundle);
    size_t end = gather->bundle_end;

    for (size_t i = end - bundle->count; i < end; i++)
        if (hli_part_state_of(&gather->parts[i]) != HLI_PART_ASKS)
            return false;
    return true;
}

/* One part goes on with its answer; the others that were not taken rest. */
static void gather_tell(struct hli_bundle *bundle, size_t index, const struct hli_answer *answer,
                        bool kept)
{
    struct hli_gather *gather = gather_of(bundle);
    struct hli_part *part = &gather->parts[gather->bundle_end - bundle->count + index];
    struct hli_answer own = *answer;

    atomic_store(&gather->bundle_state, HLI_BUNDLE_TELLING);
    if (answer->verdict == HLI_FAILED) {
        gather->alone = true;
        own.verdict = kept ? HLI_BOUNCED : HLI_REFUSED; /* finds out alone; or may stand */
    }
    if (own.verdict == HLI_REPLIED || kept)
        bundle->ops[index]->done(bundle->ops[index], &own);
    else if (hli_part_leave_answered(part, bundle->ops[index], &own))
        hli_gather_unref(gather); /* the part's */
}

static void gather_told(struct hli_bundle *bundle)
{
    struct hli_gather *gather = gather_of(bundle);

    atomic_store(&gather->bundle_state, HLI_BUNDLE_TOLD);
    hli_gather_kick(gather);
    hli_gather_unref(gather); /* the bundle's */
}

int hli_gather_init_bundle(struct hli_gather *gather, size_t count)
{
    struct hli_bundle *bundle = &gather->bundle;

    if (hli_bundle_init(bundle, gather->wait.client->link, count) < 0)
        return hli_fail(gather->wait.err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    bundle->is_wanted = gather_wants_bundle;
    bundle->tell = gather_tell;
    bundle->told = gather_told;
    return 0;
}
