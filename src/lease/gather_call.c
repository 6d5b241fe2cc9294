/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Gathers as calls: how one is made, looked after while it is waited for, and settled. */
#include "base/check.h"
#include "base/error.h"
#include "lease/gather.h"

enum { GATHER_SOON_MS = 1 }; /* when to look again while nothing is waited for */

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

/* It ends when the part that it waits for does. */
static bool gather_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_gather *gather = HLI_OF(wait, struct hli_gather, wait);
    size_t current = atomic_load(&gather->current);
    struct hli_part *part = current < gather->count ? &gather->parts[current] : NULL;

    wait->look_at = hli_after_ms(now, GATHER_SOON_MS);
    if (part && hli_part_state_of(part) == HLI_PART_ASKS) {
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

    return part && hli_part_state_of(part) == HLI_PART_ASKS &&
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
    part->acquire.wait.finished = hli_gather_part_finished;
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
    int rc = hli_gather_init_bundle(gather, what->count);
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
    hli_gather_kick(gather);
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
    gather->wait.look_at = hli_now();      /* its wait time may be over too */
    atomic_store(&gather->is_over, false); /* a late kick may make the first step */
    hli_gather_kick(gather);
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

static int gather_fail_lost(const struct hli_part *late, const char *text)
{
    const struct hli_name *name = late->acquire.name;
    char shown[96];

    return hli_fail(late->gather->wait.err, HL_ELOST, "acquire '%s': %s",
                    hli_error_escape(shown, sizeof(shown), name->bytes, name->length), text);
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
        if (hli_part_is_held(&gather->parts[i]))
            hli_part_give_back(&gather->parts[i]);
    if (was_outer)
        return gather_fail_lost(late, "the outer hold ended before its release");
    if (!gather_may_restart(gather))
        return gather_fail_lost(late, "it was lost while others were waited for");
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
