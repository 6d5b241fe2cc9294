/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the files of the latch share. */
#ifndef HLI_SYNC_LATCH_H
#define HLI_SYNC_LATCH_H

#include "sync/noted.h"

#include <hirelock/latch.h>

struct hl_latch {
    struct hli_handle handle;
};

extern const struct hli_kind hli_kind_latch; /* in latch_kind.c */

/* Its count is 1 when the latch is open now. */
extern const struct hli_noted_call hli_latch_counts_down; /* in latch_call.c */

/* NULL for NULL. */
static inline const struct hli_handle *hli_latch_handle(const hl_latch *latch)
{
    return latch ? &latch->handle : NULL;
}

#endif
