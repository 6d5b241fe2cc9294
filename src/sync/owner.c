/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Handles of explicit owners. */
#include "lease/owner.h"
#include "base/error.h"
#include "lease/client.h"

int hl_owner_new(hl_client *client, hl_owner **ret_owner)
{
    int rc = hli_client_check(client);

    if (rc < 0 || !ret_owner)
        return rc < 0 ? rc : HL_EINVAL;
    struct hl_owner *owner = hli_owner_new(client);
    if (!owner)
        return HL_ENOMEM;
    hli_client_ref(client); /* the handle's */
    *ret_owner = owner;
    return 0;
}

void hl_owner_free(hl_owner *owner)
{
    if (!owner)
        return;
    hl_client *client = owner->client;
    int cancelability = hli_cancelability_off(); /* the last one frees a closed client */
    bool is_forked = hli_client_check(client) == HL_EFORKED;
    hli_owner_unref(owner);
    if (!is_forked)
        hli_client_unref(client);
    hli_cancelability_restore(cancelability);
}
