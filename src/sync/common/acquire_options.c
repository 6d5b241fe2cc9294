/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Options of acquires. */
#include "sync/common/acquire_options.h"

#include "base/error.h"
#include "base/versioned.h"
#include "lease/acquire/acquire.h"

int hli_owner_read(const hl_client *client, hl_owner *passed,
                   const struct hli_completion *completion, hl_owner **ret_owner)
{
    if (passed && client && passed->client != client)
        return hli_fail(completion->err, HL_EINVAL, "the owner belongs to another client");
    if (!passed && completion->is_async)
        return hli_fail(completion->err, HL_EINVAL,
                        "an async call needs an explicit owner (hl_owner_new): no thread waits");
    *ret_owner = passed ? passed : hli_owner_of_thread();
    return *ret_owner ? 0 : hli_no_memory(completion->err);
}

int hli_acquire_options_read(const hl_client *client, const hl_acquire_options *passed,
                             const struct hli_completion *completion, hl_acquire_options *ret)
{
    *ret = (hl_acquire_options)HL_ACQUIRE_OPTIONS_INIT;
    int rc = hli_versioned_read(ret, sizeof(*ret), passed, "the options", completion->err);

    return rc < 0 ? rc : hli_owner_read(client, ret->owner, completion, &ret->owner);
}

int hli_wait_options_read(const hl_wait_options *passed, hl_acquire_options *ret, hl_error *err)
{
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    int rc = hli_versioned_read(&options, sizeof(options), passed, "the options", err);

    if (rc < 0)
        return rc;
    *ret = (hl_acquire_options)HL_ACQUIRE_OPTIONS_INIT;
    ret->wait_ms = options.wait_ms;
    ret->cancel = options.cancel;
    return hli_acquire_check(ret, err);
}
