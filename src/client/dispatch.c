/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Callbacks in the user's own loop. */
#include "base/thread.h"
#include "lease/client.h"

int hl_client_fd(const hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    return client->callbacks.by_dispatch ? atomic_load(&client->callbacks.fd) : HL_EINVAL;
}

int hl_client_dispatch(hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    if (!client->callbacks.by_dispatch)
        return HL_EINVAL;
    if (hli_callbacks_are_running_here(&client->callbacks))
        return HL_EDEADLK;
    int cancelability = hli_cancelability_off(); /* the callbacks behind this one would be lost */
    int ran = hli_callbacks_dispatch(&client->callbacks);
    hli_cancelability_restore(cancelability);
    return ran;
}
