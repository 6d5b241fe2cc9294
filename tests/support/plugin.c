/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A plugin that uses the library once, to be unloaded afterwards. */

#include <hirelock/hirelock.h>

int plugin_use(const char *url);

int plugin_use(const char *url)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    int rc = hl_client_open(url, NULL, &client, NULL);

    if (rc == 0)
        rc = hl_lock_new(client, "plugin", &lock, NULL);
    if (rc == 0)
        rc = hl_lock_acquire(lock, NULL);
    if (rc == 0)
        rc = hl_lock_release(lock, NULL);
    hl_lock_free(lock);
    hl_client_close(client);
    return rc;
}
