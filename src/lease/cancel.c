/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The cancel: a flag, and the bells of all loops. */
#include "base/bell.h"
#include "base/check.h"
#include "lease/wait.h"

int hl_cancel_new(hl_cancel **ret_cancel)
{
    if (!ret_cancel)
        return HL_EINVAL;
    hl_cancel *cancel = calloc(1, sizeof(*cancel));
    if (!cancel)
        return HL_ENOMEM;
    *ret_cancel = cancel;
    return 0;
}

void hl_cancel_fire(hl_cancel *cancel)
{
    if (!cancel)
        return;
    int cancelability = hli_cancelability_off(); /* ringing writes */
    atomic_store(&cancel->is_fired, true);
    hli_bell_ring_all();
    hli_cancelability_restore(cancelability);
}

void hl_cancel_free(hl_cancel *cancel)
{
    free(cancel);
}
