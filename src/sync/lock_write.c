/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A release that writes: the same release, whose script has data to write first. */
#include "base/error.h"
#include "lease/write.h"
#include "sync/lock.h"
#include "sync/multi_lock.h"

#include <string.h>

static bool lock_write_hits_lock(const hl_lock *lock, const struct hli_write *write)
{
    return write->key.length == lock->name->length &&
           memcmp(write->key.data, lock->name->bytes, lock->name->length) == 0;
}

/* How the handle lets go, and what is written then; to be freed by the caller. */
static int lock_write_prepare(const hl_lock *lock, const hl_write *passed,
                              struct hli_release_way *ret_way, hl_error *err)
{
    struct hli_write *write = NULL;

    if (!lock->type->kind->writes || hli_multi_of(lock))
        return hli_fail(err, HL_ENOTSUP, "this kind of lock does not write as it is released");
    int rc = hli_write_new(passed, &write, err);
    if (rc < 0)
        return rc;
    if (lock_write_hits_lock(lock, write)) {
        hli_write_unref(write);
        return hli_fail(err, HL_EINVAL, "the key is the lock's own");
    }
    *ret_way =
        (struct hli_release_way){.is_silent = hli_lock_release_way(lock).is_silent, .write = write};
    return 0;
}

int hl_lock_set_and_release(hl_lock *lock, hl_owner *owner, const hl_write *write, hl_error *err)
{
    struct hli_release_way way = {.write = NULL};
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = lock_write_prepare(lock, write, &way, err);
    if (rc == 0) {
        rc = hli_lock_release(lock, owner, &way, err);
        hli_write_unref(way.write);
    }
    hli_lock_leave(lock);
    return rc;
}

int hl_lock_set_and_release_async(hl_lock *lock, hl_owner *owner, const hl_write *write,
                                  hl_done_cb done, void *arg)
{
    struct hli_release_way way = {.write = NULL};
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    rc = lock_write_prepare(lock, write, &way, NULL);
    if (rc == 0) {
        rc = hli_lock_release_begin(lock, &way, owner, done, arg);
        hli_write_unref(way.write);
    }
    hli_client_leave(client);
    return rc;
}
