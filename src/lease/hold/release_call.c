/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Releases as calls: blocking and async differ only in how the end is reported. */
#include "lease/hold/release_call.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

static bool release_call_check(struct hli_wait *wait, hli_ns now)
{
    struct hli_release_wait *released = HLI_PART_OF(wait, struct hli_release_wait, wait);
    struct hli_turn turn;

    hli_turn_begin(&turn, released->name);
    if (!wait->is_finished && now >= wait->deadline)
        hli_release_leave(&turn, wait);
    bool goes_on = !wait->is_finished;
    hli_turn_end(&turn);
    return goes_on;
}

void hli_release_wait_init(struct hli_release_wait *released, struct hli_name *name, hl_error *err)
{
    released->name = name;
    released->problem[0] = '\0';
    hli_wait_init(&released->wait, name->client, name->client->settings.request_timeout_ms, err);
    HLI_PART_IS(&released->wait, struct hli_release_wait, wait);
    released->wait.check = release_call_check;
}

void hli_release_wait_count(const struct hli_release_wait *released)
{
    if (released->wait.code == HL_OK)
        hli_count(&released->name->client->counters.releases);
}

static void release_start_at_masters(struct hli_release_wait *released, struct hl_owner *owner,
                                     const struct hli_release_mode *mode)
{
    struct hli_name *name = released->name;
    struct hli_quorum_lead lead;

    name->kind->quorum->lead_begin(name, &lead);
    hli_release_start(name, owner, mode, &released->wait, NULL);
    name->kind->quorum->lead(name, &lead, &released->wait);
}

static int release_run_here(struct hli_name *name, struct hl_owner *owner,
                            const struct hli_release_mode *mode, hl_error *err)
{
    struct hli_release_wait released;

    hli_release_wait_init(&released, name, err);
    if (name->kind->quorum && !mode->is_posted) {
        release_start_at_masters(&released, owner, mode);
    } else {
        if (!mode->is_posted)
            hli_wait_lead(&released.wait, hli_name_link(name));
        hli_release_start(name, owner, mode, &released.wait, NULL);
    }
    int rc = hli_wait_block(&released.wait);
    hli_release_wait_count(&released);
    return rc;
}

struct release_call {
    struct hli_async async;
    struct hli_release_wait released;    /* its name is counted */
    struct hl_owner *owner;              /* borrowed until it is started */
    const struct hli_release_mode *mode; /* the same */
};

static struct release_call *release_call_of(struct hli_async *async)
{
    return HLI_PART_OF(async, struct release_call, async);
}

static void release_call_freed(struct hli_async *async)
{
    hli_name_unref(release_call_of(async)->released.name);
    free(release_call_of(async));
}

static int release_call_settle(struct hli_async *async)
{
    hli_release_wait_count(&release_call_of(async)->released);
    return async->wait->code;
}

static void release_call_start(struct hli_async *async)
{
    struct release_call *call = release_call_of(async);

    hli_release_start(call->released.name, call->owner, call->mode, &call->released.wait, NULL);
}

int hli_release_run(struct hli_name *name, struct hl_owner *owner,
                    const struct hli_release_mode *mode, const struct hli_completion *completion)
{
    if (!completion->is_async)
        return release_run_here(name, owner, mode, completion->err);
    struct release_call *call = calloc(1, sizeof(*call));
    if (!call)
        return hli_no_memory(NULL);
    hli_async_init(&call->async, &call->released.wait, release_call_freed);
    HLI_PART_IS(&call->async, struct release_call, async);
    call->async.settle = release_call_settle;
    call->async.completion = *completion;
    hli_release_wait_init(&call->released, name, &call->async.err);
    hli_name_ref(name);
    call->owner = owner;
    call->mode = mode;
    return hli_async_begin(&call->async, release_call_start);
}
