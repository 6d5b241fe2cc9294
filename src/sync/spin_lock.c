/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The spin lock: a lock that looks in every now and then, and tells nobody. */
#include <hirelock/spin_lock.h>

#include "base/error.h"
#include "base/versioned.h"
#include "sync/lock.h"

enum { SPIN_MIN_MS = 1, SPIN_MAX_MS = 128, SPIN_LIMIT_MS = 60000 };

static int spin_check_options(hl_spin_lock_options *options, hl_error *err)
{
    if (options->flags & ~(unsigned)HL_SPIN_LOCK_LISTEN)
        return hli_fail(err, HL_EINVAL, "flags hold what this version does not know");
    if (options->backoff_min_ms == 0)
        options->backoff_min_ms = SPIN_MIN_MS;
    if (options->backoff_max_ms == 0)
        options->backoff_max_ms =
            options->backoff_min_ms > SPIN_MAX_MS ? options->backoff_min_ms : SPIN_MAX_MS;
    if (options->backoff_min_ms < 1 || options->backoff_min_ms > SPIN_LIMIT_MS)
        return hli_fail(err, HL_EINVAL, "backoff_min_ms is not from 1 to %d", SPIN_LIMIT_MS);
    if (options->backoff_max_ms < options->backoff_min_ms ||
        options->backoff_max_ms > SPIN_LIMIT_MS)
        return hli_fail(err, HL_EINVAL, "backoff_max_ms is not from backoff_min_ms to %d",
                        SPIN_LIMIT_MS);
    return 0;
}

int hl_spin_lock_new(hl_client *client, const char *name, const hl_spin_lock_options *passed,
                     hl_lock **ret_lock, hl_error *err)
{
    hl_spin_lock_options options = HL_SPIN_LOCK_OPTIONS_INIT;
    const struct hli_lock_said said = {&hli_lock_type, name, NULL};

    if (passed && !hli_versioned_read(&options, sizeof(options), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    int rc = spin_check_options(&options, err);
    if (rc == 0)
        rc = hli_lock_new(client, &said, ret_lock, err);
    if (rc < 0)
        return rc;
    (*ret_lock)->backoff_min_ms = (uint16_t)options.backoff_min_ms;
    (*ret_lock)->backoff_max_ms = (uint16_t)options.backoff_max_ms;
    (*ret_lock)->listens = (options.flags & HL_SPIN_LOCK_LISTEN) != 0;
    (*ret_lock)->is_silent = true;
    return 0;
}
