/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The permit semaphore: handles, and queries without a request. */
#include "sync/permits/permits.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/state/name.h"

int hl_permits_new(hl_client *client, const char *name, hl_permits **ret_semaphore, hl_error *err)
{
    struct hli_handle *handle = NULL;
    int rc = hli_handle_new(client, &hli_kind_permit, name, ret_semaphore ? &handle : NULL, err);

    if (handle)
        *ret_semaphore = HLI_OF(handle, hl_permits, handle);
    return rc;
}

void hl_permits_free(hl_permits *semaphore)
{
    hli_handle_free(HLI_HANDLE(semaphore));
}

const char *hl_permits_name(const hl_permits *semaphore, size_t *ret_length)
{
    return hli_handle_name(HLI_HANDLE(semaphore), ret_length);
}

int hli_permit_read_for(struct hli_call *call, const hl_permit *permit,
                        struct hli_permit_id *ret_id)
{
    return hli_permit_read(permit, ret_id)
               ? 0
               : hli_call_fail(call, HL_EINVAL, "a permit's id has 32 lower-case hex digits");
}

/* The end of the permit's validity for this client; 0 when this client does not hold it. */
static hli_ns permit_validity(const hl_permits *semaphore, const hl_permit *permit, hli_ns *ret_now)
{
    struct hli_permit_id id;
    hli_ns until = 0;

    if (!semaphore || hli_client_check(semaphore->handle.name->client) < 0 ||
        !hli_permit_read(permit, &id))
        return 0;
    struct hli_tenure *tenure = hli_permit_find(semaphore->handle.name, &id);
    if (!tenure)
        return 0;
    hli_mutex_lock(&tenure->name->mutex);
    *ret_now = hli_now();
    if (hli_hold_is_valid(tenure, *ret_now))
        until = hli_hold_validity(tenure);
    hli_mutex_unlock(&tenure->name->mutex);
    hli_tenure_unref(tenure);
    return until;
}

bool hl_permits_is_held(const hl_permits *semaphore, const hl_permit *permit)
{
    hli_ns now = 0;

    return permit_validity(semaphore, permit, &now) > 0;
}

int64_t hl_permits_validity_ms(const hl_permits *semaphore, const hl_permit *permit)
{
    hli_ns now = 0, until = permit_validity(semaphore, permit, &now);

    return until > 0 ? hli_ms_left(now, until) : 0;
}
