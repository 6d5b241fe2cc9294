/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The async twins of acquire and release: the same calls, whose end goes to the callbacks. */
#include "sync/lock.h"
#include "sync/multi_lock.h"
#include "sync/released.h"
#include "sync/request.h"

static int lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                              void *arg)
{
    struct hli_lock_acquire said;
    int rc = hli_lock_prepare(lock, options, &said, NULL);

    if (rc < 0)
        return rc;
    rc = said.options.owner
             ? hli_request_post(&(struct hli_request){said.name, &said.way, &said.options}, done,
                                arg)
             : HL_EINVAL;
    hli_name_unref(said.name);
    return rc;
}

int hl_lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                          void *arg)
{
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    rc = hli_multi_of(lock) ? hli_multi_acquire_async(lock, options, done, arg)
                            : lock_acquire_async(lock, options, done, arg);
    hli_client_leave(client);
    return rc;
}

/* Where nothing is held there may be no name: then one is made, to be told so. */
int hli_lock_release_begin(hl_lock *lock, const struct hli_release_way *way, hl_owner *owner,
                           hl_done_cb done, void *arg)
{
    struct hli_name *name;
    int rc = hli_request_check_owner(lock->name->client, owner, NULL);

    if (rc < 0 || !done || !owner)
        return HL_EINVAL;
    if (hli_lock_name_for(lock, owner, &name) < 0)
        return HL_ENOMEM;
    rc = hli_released_post(name, owner, way, &(struct hli_release_told){done, arg});
    hli_name_unref(name);
    return rc;
}

int hl_lock_release_async(hl_lock *lock, hl_owner *owner, hl_done_cb done, void *arg)
{
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    const struct hli_release_way way = hli_lock_release_way(lock);
    rc = hli_multi_of(lock) ? hli_multi_release_async(lock, owner, NULL, done, arg)
                            : hli_lock_release_begin(lock, &way, owner, done, arg);
    hli_client_leave(client);
    return rc;
}
