/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Shortcuts. */
#include "lease/acquire/shortcut.h"

#include "base/probe.h"
#include "lease/hold/keep.h"
#include "lease/hold/reenter.h"
#include "lease/hold/tag.h"

/* A close visits every name under its mutex after it has marked the client as closed; so a thread
 * that sees the client open here is found by that visit. */
static bool shortcut_is_open(const struct hli_name *name)
{
    return !atomic_load(&name->client->is_closed);
}

static bool shortcut_reenter(struct hli_tenure *tenure, const struct hli_acquire_mode *mode)
{
    struct hli_hold *hold = &tenure->hold;
    hli_ns now = hli_now();

    if (mode->is_nonreentrant || (mode->is_fenced && hold->token == 0) || !hold->is_accepted ||
        !hold->is_watched || (mode->replicas > 0 && !hli_reenter_has_replicas(hold, mode)) ||
        tenure->reentry || hold->count == UINT32_MAX || now >= hli_hold_validity(tenure) ||
        !hli_reenter_may_wait(tenure, hold->count + 1))
        return false;
    hold->count++;
    return true;
}

static bool shortcut_unnest(struct hli_tenure *tenure, hli_ns now)
{
    struct hli_hold *hold = &tenure->hold;

    if (!hold->is_accepted || tenure->reentry || now >= hli_hold_validity(tenure) ||
        !hli_reenter_may_wait(tenure, hold->count - 1))
        return false;
    hold->count--;
    return true;
}

bool hli_shortcut_acquire(struct hli_name *name, const struct hli_acquire_mode *mode)
{
    struct hl_owner *owner = hli_owner_of_thread_if_any();
    struct hli_counters *counters = &name->client->counters;
    bool is_nested = false, is_done = false;

    hli_mutex_lock(&name->mutex);
    struct hli_tenure *tenure = name->current;
    if (tenure && owner && shortcut_is_open(name)) {
        is_nested = tenure->state == HLI_TENURE_OWN && tenure->hold.owner == owner;
        if (is_nested)
            is_done = shortcut_reenter(tenure, mode);
        else if (tenure->state == HLI_TENURE_IDLE && !hli_tag_is_wanted(name))
            is_done = hli_keep_resume_fast(tenure, owner, mode);
    }
    hli_mutex_unlock(&name->mutex);
    if (is_done)
        hli_count(&counters->acquires);
    if (is_done && !is_nested) {
        hli_histogram_add(&counters->wait, 0);
        HLI_PROBE2(acquire, name->bytes, 0);
    }
    return is_done;
}

bool hli_shortcut_release(struct hli_name *name, const struct hl_owner *owner,
                          const struct hli_release_mode *mode)
{
    bool is_done = false;

    hli_mutex_lock(&name->mutex);
    struct hli_tenure *tenure = name->current;
    if (tenure && tenure->state == HLI_TENURE_OWN && tenure->hold.owner == owner) {
        if (tenure->hold.count > 1)
            is_done = shortcut_unnest(tenure, hli_now());
        else if (mode->retain_ms > 0)
            is_done = hli_keep_retain_fast(tenure, mode->retain_ms);
    }
    hli_mutex_unlock(&name->mutex);
    if (is_done)
        hli_count(&name->client->counters.releases);
    return is_done;
}
