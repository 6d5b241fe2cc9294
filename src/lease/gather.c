/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Gathering. Whatever happens to one of the names ends in gather_kick(), and that in gather_step(),
 * which looks at where the call stands and does the next thing. Only parts before `next` are held
 * while one is waited for; whatever else was taken with a request is given back.
 */
#include "lease/gather.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/command.h"

enum { GATHER_SOON_MS = 1 }; /* when to look again while nothing is waited for */

static void gather_step(struct hli_gather *gather);

void hli_gather_ref(struct hli_gather *gather)
{
    hli_ref_take(&gather->ref);
}

void hli_gather_unref(struct hli_gather *gather)
{
    if (!hli_ref_drop(&gather->ref))
        return;
    for (size_t i = 0; i < gather->count; i++)
        hli_acquire_deinit(&gather->parts[i].acquire);
    hli_bundle_deinit(&gather->bundle);
    pthread_mutex_destroy(&gather->mutex);
    free(gather);
}

static enum hli_part_state part_state(const struct hli_part *part)
{
    return (enum hli_part_state)atomic_load(&part->state);
}

static bool part_is_held(const struct hli_part *part)
{
    return part_state(part) == HLI_PART_TOLD && hli_part_code(part) == HL_OK;
}

static bool part_has_failed(const struct hli_part *part)
{
    return part_state(part) == HLI_PART_TOLD && hli_part_code(part) < 0;
}

/* One step for each kick; with the caller's reference. */
static void gather_kick(struct hli_gather *gather)
{
    unsigned pending = 1;

    if (atomic_fetch_add(&gather->kicks, 1) > 0)
        return;
    do {
        gather_step(gather);
        pending = atomic_fetch_sub(&gather->kicks, pending) - pending;
    } while (pending > 0);
}

static void gather_part_finished(struct hli_wait *wait)
{
    struct hli_part *part =
        HLI_OF(HLI_OF(wait, struct hli_acquire, wait), struct hli_part, acquire);
    struct hli_gather *gather = part->gather;

    atomic_store(&part->state, HLI_PART_TOLD);
    gather_kick(gather);
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
    gather->is_over = true;
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
        if (part_state(part) == HLI_PART_ASKS)
            is_quiet = gather_take_back(gather, part) && is_quiet;
        else if (part_is_held(part))
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
        if (part_has_failed(&gather->parts[i]))
            return &gather->parts[i];
    return NULL;
}

/* A bundle's answers are told. One of its parts may ask again nevertheless (its answer came too
 * late): then what is behind that is given back. False: one of those is still about to be told. */
static bool gather_trim(struct hli_gather *gather)
{
    bool is_trimmed = true;

    while (gather->next < gather->bundle_end && part_is_held(&gather->parts[gather->next]))
        gather->next++;
    for (size_t i = gather->bundle_end; i-- > gather->next + 1;) {
        struct hli_part *part = &gather->parts[i];
        if (part_state(part) == HLI_PART_ASKS)
            is_trimmed = gather_take_back(gather, part) && is_trimmed;
        else if (part_is_held(part))
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
            if (i > gather->next && part_state(part) == HLI_PART_ASKS)
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
    } else if (part_state(part) == HLI_PART_RESTS) {
        gather_part_asks(gather, part);
        hli_acquire_start_part(&part->acquire);
    }
}

static void gather_step(struct hli_gather *gather)
{
    if (gather->is_over)
        return;
    if (gather->stop_code < 0) {
        gather_stop(gather);
        return;
    }
    if (!gather_is_settled(gather))
        return;
    while (gather->next < gather->count && part_is_held(&gather->parts[gather->next]))
        gather->next++;
    atomic_store(&gather->current, gather->next);
    struct hli_part *part = gather->next < gather->count ? &gather->parts[gather->next] : NULL;
    if (!part)
        gather_end(gather, HL_OK);
    else if (part_has_failed(part))
        gather_fail(gather, part);
    else if (part_state(part) == HLI_PART_RESTS)
        gather_go_on(gather);
    else if (!part->is_nested)
        gather_tame(gather);
}

static struct hli_gather *gather_of(struct hli_bundle *bundle)
{
    return HLI_OF(bundle, struct hli_gather, bundle);
}

/* A fields's TAKE is not repeated behind its release: so not once the call has stopped. */
static bool gather_wants_bundle(struct hli_bundle *bundle)
{
    struct hli_gather *gather = gather_of(bundle);
    size_t end = gather->bundle_end;

    for (size_t i = end - bundle->count; i < end; i++)
        if (part_state(&gather->parts[i]) != HLI_PART_ASKS)
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
    gather_kick(gather);
    hli_gather_unref(gather); /* the bundle's */
}

/* It ends when the part that it waits for does. */
static bool gather_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_gather *gather = HLI_OF(wait, struct hli_gather, wait);
    size_t current = atomic_load(&gather->current);
    struct hli_part *part = current < gather->count ? &gather->parts[current] : NULL;

    wait->look_at = hli_after_ms(now, GATHER_SOON_MS);
    if (part && part_state(part) == HLI_PART_ASKS) {
        part->acquire.wait.look(&part->acquire.wait, now);
        wait->look_at = part->acquire.wait.look_at;
    }
    pthread_mutex_lock(&gather->mutex);
    bool goes_on = !wait->is_finished;
    pthread_mutex_unlock(&gather->mutex);
    return goes_on;
}

static bool gather_awaits_message(struct hli_wait *wait)
{
    struct hli_gather *gather = HLI_OF(wait, struct hli_gather, wait);
    size_t current = atomic_load(&gather->current);
    struct hli_part *part = current < gather->count ? &gather->parts[current] : NULL;

    return part && part_state(part) == HLI_PART_ASKS &&
           part->acquire.wait.awaits_message(&part->acquire.wait);
}

static void gather_init(struct hli_gather *gather, hl_client *client,
                        const hl_acquire_options *options, hl_error *err)
{
    bool is_try = options->wait_ms == HL_NO_WAIT;

    hli_ref_init(&gather->ref); /* the call's */
    pthread_mutex_init(&gather->mutex, NULL);
    gather->options = *options;
    hli_wait_init(&gather->wait, client, is_try ? HL_WAIT_FOREVER : options->wait_ms, err);
    gather->wait.look = gather_look;
    gather->wait.awaits_message = gather_awaits_message;
    gather->wait.look_at = gather->wait.first_look_at =
        hli_earlier(gather->wait.deadline,
                    hli_after_ms(gather->wait.started, client->settings.outage_timeout_ms));
}

static int gather_init_bundle(struct hli_gather *gather, size_t count)
{
    struct hli_bundle *bundle = &gather->bundle;

    if (hli_bundle_init(bundle, gather->wait.client->link, count) < 0)
        return hli_fail(gather->wait.err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    bundle->is_wanted = gather_wants_bundle;
    bundle->tell = gather_tell;
    bundle->told = gather_told;
    return 0;
}

/* The hold's own times begin when the call returns. */
static int gather_add_part(struct hli_gather *gather, const struct hli_gather_item *item)
{
    struct hli_part *part = &gather->parts[gather->count];
    hl_acquire_options options = gather->options;

    options.max_hold_ms = options.min_hold_ms = 0;
    int rc = hli_acquire_init(&part->acquire, item->name, &item->way, &options, gather->wait.err);
    if (rc < 0)
        return rc;
    part->gather = gather;
    part->acquire.wait.err = &part->err;
    part->acquire.wait.deadline = gather->wait.deadline;
    part->acquire.wait.cancel = options.cancel; /* fired, it is ours that is made to look */
    part->acquire.wait.finished = gather_part_finished;
    part->acquire.wait.is_finished = true; /* it is not begun */
    gather->lease_ms = part->acquire.lease_ms;
    gather->count++;
    return 0;
}

/* A nested call that fails in any case ends the whole one: so that comes first. One that does not
 * fail needs no waiting: so it comes last, and its hold is not touched before all others are held.
 */
enum gather_rank { GATHER_FAILS, GATHER_FRESH, GATHER_NESTED, GATHER_RANKS };

static enum gather_rank gather_rank_of(const struct hli_gather_item *item,
                                       const struct hl_owner *owner)
{
    bool is_lost = false, has_outer = hli_part_look_at_outer(item->name, owner, &is_lost);

    if (!has_outer)
        return GATHER_FRESH;
    return is_lost || item->way.is_flat ? GATHER_FAILS : GATHER_NESTED;
}

static int gather_add_parts(struct hli_gather *gather, const struct hli_gathering *what)
{
    const hl_acquire_options *options = what->options;
    const struct hl_owner *owner = options->owner ? options->owner : hli_owner_of_thread();
    enum gather_rank rank[HLI_GATHER_LIMIT];

    for (size_t i = 0; i < what->count; i++)
        rank[i] = gather_rank_of(&what->items[i], owner);
    for (int next = 0; next < GATHER_RANKS; next++)
        for (size_t i = 0; i < what->count; i++) {
            if ((int)rank[i] != next)
                continue;
            int rc = gather_add_part(gather, &what->items[i]);
            if (rc < 0)
                return rc;
            gather->parts[gather->count - 1].is_nested = rank[i] != GATHER_FRESH;
        }
    return 0;
}

int hli_gather_new(const struct hli_gathering *what, struct hli_gather **ret_gather, hl_error *err)
{
    hl_client *client = what->items[0].name->client;
    struct hli_gather *gather = calloc(1, sizeof(*gather) + what->count * sizeof(struct hli_part));

    if (!gather)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    gather_init(gather, client, what->options, err);
    int rc = gather_init_bundle(gather, what->count);
    if (rc == 0)
        rc = gather_add_parts(gather, what);
    if (rc < 0)
        hli_gather_unref(gather);
    else
        *ret_gather = gather;
    return rc;
}

void hli_gather_make_way(struct hli_gather *gather)
{
    for (size_t i = 0; i < gather->count; i++)
        hli_acquire_make_way(&gather->parts[i].acquire);
}

void hli_gather_start(struct hli_gather *gather)
{
    gather_kick(gather);
}

/* What was taken is held no more, or the answer lay in the socket for too long: once more from the
 * beginning. */
static int gather_restart(struct hli_gather *gather)
{
    gather->next = 0;
    atomic_store(&gather->current, 0);
    pthread_mutex_lock(&gather->mutex);
    gather->wait.is_finished = false;
    pthread_mutex_unlock(&gather->mutex);
    atomic_store(&gather->wait.gate.state, HLI_GATE_SHUT);
    gather->wait.look_at = hli_now(); /* its wait time may be over too */
    gather->is_over = false;
    gather_kick(gather);
    return 1;
}

/* The first that is not held any more; with all of them accepted, if there is none. */
static struct hli_part *gather_accept(struct hli_gather *gather)
{
    for (size_t i = 0; i < gather->count; i++)
        if (!hli_part_is_valid(&gather->parts[i]))
            return &gather->parts[i];
    for (size_t i = 0; i < gather->count; i++)
        if (!hli_part_accept(&gather->parts[i], &gather->options))
            return &gather->parts[i];
    return NULL;
}

/* A name that serves for one tenure has served. */
static bool gather_may_restart(const struct hli_gather *gather)
{
    for (size_t i = 0; i < gather->count; i++)
        if (gather->parts[i].acquire.name->kind->is_used_once)
            return false;
    return true;
}

int hli_gather_settle(struct hli_gather *gather)
{
    if (gather->wait.code < 0)
        return gather->wait.code;
    struct hli_part *late = gather_accept(gather);
    if (!late)
        return HL_OK;
    bool was_outer = late->is_nested;
    for (size_t i = gather->count; i-- > 0;)
        if (part_is_held(&gather->parts[i]))
            hli_part_give_back(&gather->parts[i]);
    if (was_outer)
        return hli_fail(gather->wait.err, HL_ELOST, "the outer hold ended before its release");
    if (!gather_may_restart(gather))
        return hli_fail(gather->wait.err, HL_ELOST,
                        "what was taken first was lost while others were waited for");
    return gather_restart(gather);
}

int hli_gather_block(struct hli_gather *gather)
{
    int code;

    do {
        hli_wait_block(&gather->wait);
    } while ((code = hli_gather_settle(gather)) == 1);
    return code;
}
