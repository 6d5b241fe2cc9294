/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Callbacks in the user's own loop. */
#include "base/error.h"
#include "base/thread.h"
#include "lease/calls/client.h"

static int dispatch_check(const hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(NULL, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!client->callbacks.by_dispatch)
        return hli_fail(NULL, HL_EINVAL, "the client was opened without HL_CLIENT_DISPATCH");
    return 0;
}

int hl_client_fd(const hl_client *client)
{
    int rc = dispatch_check(client);

    return rc < 0 ? rc : atomic_load(&client->callbacks.wakefd.fd);
}

int hl_client_dispatch(hl_client *client)
{
    int rc = dispatch_check(client);

    if (rc < 0)
        return rc;
    if (hli_callbacks_are_running_here(&client->callbacks))
        return hli_fail(NULL, HL_EDEADLK, "hl_client_dispatch() inside a callback");
    int cancelability = hli_cancelability_off(); /* cancelled, it would lose queued callbacks */
    int ran = hli_callbacks_dispatch(&client->callbacks);
    hli_cancelability_restore(cancelability);
    return ran;
}
