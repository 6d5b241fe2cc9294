/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The spin lock: a lock whose waiters ask again after a pause, and whose release publishes nothing.
 */
#include "base/error.h"
#include "sync/kinds/types.h"
#include "sync/lock/lock_kind.h"

enum { SPIN_MIN_MS = 1, SPIN_MAX_MS = 128, SPIN_LIMIT_MS = 60000 };

static int spin_read_backoff(hl_lock_options *options, hl_error *err)
{
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

const struct hli_lock_type hli_spin_type = {
    .kind = &hli_kind_lock,
    .flags = HL_LOCK_SUBSCRIBE,
    .is_silent = true,
    .read_backoff = spin_read_backoff,
};
