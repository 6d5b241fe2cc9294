/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the files of the semaphore share. */
#ifndef HLI_SYNC_SEMAPHORE_H
#define HLI_SYNC_SEMAPHORE_H

#include "sync/noted.h"

#include <hirelock/semaphore.h>

struct hl_semaphore {
    struct hli_handle handle;
};

extern const struct hli_kind hli_kind_semaphore; /* in semaphore_kind.c */

/* NULL for NULL. */
static inline const struct hli_handle *hli_semaphore_handle(const hl_semaphore *semaphore)
{
    return semaphore ? &semaphore->handle : NULL;
}

/* From `least` to 2^31-1, as in Java. Errors: HL_EINVAL. */
int hli_semaphore_check_permits(int64_t permits, int64_t least, hl_error *err);

#endif
