/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The semaphore: its handle, and taking permits. */
#include "sync/semaphore.h"

#include "base/check.h"
#include "base/error.h"

int hl_semaphore_new(hl_client *client, const char *name, hl_semaphore **ret_semaphore,
                     hl_error *err)
{
    const struct hli_named named = {.kind = &hli_kind_semaphore, .bytes = name};
    struct hli_handle *handle;

    if (!ret_semaphore)
        return hli_fail(err, HL_EINVAL, "ret_semaphore is NULL");
    int rc = hli_handle_new(client, &named, &handle, err);
    if (rc == 0)
        *ret_semaphore = HLI_OF(handle, hl_semaphore, handle);
    return rc;
}

void hl_semaphore_free(hl_semaphore *semaphore)
{
    if (semaphore)
        hli_handle_free(&semaphore->handle);
}

const char *hl_semaphore_name(const hl_semaphore *semaphore)
{
    return semaphore ? semaphore->handle.name->bytes : NULL;
}

int hli_semaphore_check_permits(int64_t permits, int64_t least, hl_error *err)
{
    if (permits < least || permits > INT32_MAX)
        return hli_fail(err, HL_EINVAL, "permits are not from %lld to 2147483647",
                        (long long)least);
    return 0;
}

int hl_semaphore_acquire_with(hl_semaphore *semaphore, int64_t permits,
                              const hl_acquire_options *options, hl_error *err)
{
    int rc = hli_semaphore_check_permits(permits, 1, err);

    return rc < 0
               ? rc
               : hli_noted_wait(hli_semaphore_handle(semaphore), (uint32_t)permits, options, err);
}

int hl_semaphore_acquire_for(hl_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                             hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_semaphore_acquire_with(semaphore, permits, &options, err);
}

int hl_semaphore_acquire(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return hl_semaphore_acquire_for(semaphore, permits, HL_WAIT_FOREVER, err);
}

int hl_semaphore_try_acquire(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return hl_semaphore_acquire_for(semaphore, permits, HL_NO_WAIT, err);
}

int hl_semaphore_acquire_async(hl_semaphore *semaphore, int64_t permits,
                               const hl_acquire_options *options, hl_done_cb done, void *arg)
{
    int rc = hli_semaphore_check_permits(permits, 1, NULL);

    return rc < 0 ? rc
                  : hli_noted_wait_post(hli_semaphore_handle(semaphore), (uint32_t)permits, options,
                                        done, arg);
}
