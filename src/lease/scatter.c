/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Scattering: every part is begun, and none waits for another. */
#include "lease/scatter.h"

#include "base/check.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

void hli_scatter_ref(struct hli_scatter *scatter)
{
    hli_ref_take(&scatter->ref);
}

void hli_scatter_unref(struct hli_scatter *scatter)
{
    if (!hli_ref_drop(&scatter->ref))
        return;
    for (size_t i = 0; i < scatter->count; i++)
        hli_name_unref(scatter->parts[i].released.name);
    hli_bundle_deinit(&scatter->bundle);
    pthread_mutex_destroy(&scatter->mutex);
    free(scatter);
}

/* Nothing was held; not known to be free; refused; somebody else may have been inside; and what is
 * still held, or was not done at all. */
static int scatter_rank(int code)
{
    static const int ranks[] = {HL_OK, HL_ENOTOWNER, HL_EUNKNOWN, HL_ESERVER, HL_EDENIED, HL_ELOST};
    enum { RANKS = sizeof(ranks) / sizeof(ranks[0]) };

    for (int i = 0; i < RANKS; i++)
        if (ranks[i] == code)
            return i;
    return RANKS;
}

int hli_scatter_worse(int code, int other)
{
    return scatter_rank(other) > scatter_rank(code) ? other : code;
}

int hli_scatter_code(const struct hli_scatter *scatter, size_t index)
{
    return scatter->parts[index].released.wait.code;
}

/* "release 'a': ...; release 'c': ...", as far as there is room. */
static void scatter_write_error(const struct hli_scatter *scatter, int code, hl_error *err)
{
    size_t used = 0;

    if (!err)
        return;
    err->code = code;
    for (size_t i = 0; i < scatter->count && used < sizeof(err->text); i++)
        if (hli_scatter_code(scatter, i) < 0)
            used += (size_t)snprintf(err->text + used, sizeof(err->text) - used, "%s%s",
                                     used > 0 ? "; " : "", scatter->parts[i].err.text);
}

static void scatter_end(struct hli_scatter *scatter)
{
    int code = HL_OK;

    for (size_t i = 0; i < scatter->count; i++) {
        hli_released_count(&scatter->parts[i].released);
        code = hli_scatter_worse(code, hli_scatter_code(scatter, i));
    }
    if (code < 0)
        scatter_write_error(scatter, code, scatter->wait.err);
    pthread_mutex_lock(&scatter->mutex);
    scatter->wait.is_finished = true;
    scatter->wait.code = code;
    pthread_mutex_unlock(&scatter->mutex);
    hli_wait_wake(&scatter->wait);
}

static void scatter_has_one_less(struct hli_scatter *scatter)
{
    if (atomic_fetch_sub(&scatter->pending, 1) == 1)
        scatter_end(scatter);
}

static void scatter_part_finished(struct hli_wait *wait)
{
    struct hli_scatter_part *part =
        HLI_OF(HLI_OF(wait, struct hli_released, wait), struct hli_scatter_part, released);
    struct hli_scatter *scatter = part->scatter;

    scatter_has_one_less(scatter);
    hli_scatter_unref(scatter); /* the part's */
}

/* All have the same deadline. */
static bool scatter_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_scatter *scatter = HLI_OF(wait, struct hli_scatter, wait);

    for (size_t i = 0; i < scatter->count; i++) {
        struct hli_wait *part = &scatter->parts[i].released.wait;
        part->look(part, now < wait->deadline ? now : hli_later(now, part->deadline));
    }
    pthread_mutex_lock(&scatter->mutex);
    bool goes_on = !wait->is_finished;
    pthread_mutex_unlock(&scatter->mutex);
    return goes_on;
}

static bool scatter_wants_bundle(struct hli_bundle *bundle)
{
    (void)bundle;
    return true; /* it did not run, and is still to be done */
}

/* What it left as it is, or was refused for good, is asked for alone. */
static void scatter_tell(struct hli_bundle *bundle, size_t index, const struct hli_answer *answer,
                         bool kept)
{
    struct hli_answer own = *answer;

    (void)kept;
    if (own.verdict == HLI_FAILED)
        own.verdict = HLI_BOUNCED;
    bundle->ops[index]->done(bundle->ops[index], &own);
}

static void scatter_told(struct hli_bundle *bundle)
{
    hli_scatter_unref(HLI_OF(bundle, struct hli_scatter, bundle)); /* the bundle's */
}

int hli_scatter_new(const struct hli_scatter_item *items, size_t count, hl_error *err,
                    struct hli_scatter **ret_scatter)
{
    hl_client *client = items[0].name->client;
    struct hli_scatter *scatter =
        calloc(1, sizeof(*scatter) + count * sizeof(struct hli_scatter_part));

    if (!scatter || hli_bundle_init(&scatter->bundle, client->link, count) < 0) {
        free(scatter);
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    }
    hli_ref_init(&scatter->ref); /* the call's */
    pthread_mutex_init(&scatter->mutex, NULL);
    hli_wait_init(&scatter->wait, client, client->settings.request_timeout_ms, err);
    scatter->wait.look = scatter_look;
    scatter->bundle.is_wanted = scatter_wants_bundle;
    scatter->bundle.tell = scatter_tell;
    scatter->bundle.told = scatter_told;
    scatter->count = count;
    for (size_t i = 0; i < count; i++) {
        struct hli_scatter_part *part = &scatter->parts[i];
        hli_name_ref(items[i].name);
        part->scatter = scatter;
        part->way = items[i].way;
        hli_released_init(&part->released, items[i].name, &part->err);
        part->released.wait.finished = scatter_part_finished;
    }
    *ret_scatter = scatter;
    return 0;
}

/* Without memory for a bundle each goes alone. */
static void scatter_send(struct hli_scatter *scatter)
{
    struct hli_bundle *bundle = &scatter->bundle;

    if (bundle->count >= 2 && hli_bundle_release(bundle) == 0) {
        hli_scatter_ref(scatter); /* the bundle's */
        hli_bundle_send(bundle);
        return;
    }
    for (size_t i = 0; i < bundle->count; i++)
        hli_link_send(bundle->link, bundle->ops[i]);
}

void hli_scatter_start(struct hli_scatter *scatter, struct hl_owner *owner)
{
    struct hli_bundle *bundle = &scatter->bundle;

    atomic_store(&scatter->pending, scatter->count + 1);
    for (size_t i = 0; i < scatter->count; i++) {
        struct hli_scatter_part *part = &scatter->parts[i];
        hli_scatter_ref(scatter); /* the part's */
        struct hli_op *op = hli_release_start_together(part->released.name, owner, &part->way,
                                                       &part->released.wait);
        if (op)
            bundle->ops[bundle->count++] = op;
    }
    scatter_send(scatter);
    scatter_has_one_less(scatter);
}
