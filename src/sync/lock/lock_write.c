/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A release that writes: the same release, with data that the script writes first. */
#include "base/error.h"
#include "lease/hold/write.h"
#include "sync/lock/lock.h"

#include <string.h>

static bool lock_write_hits_lock(const hl_lock *lock, const struct hli_write *write)
{
    return write->key.length == lock->handle.name->length &&
           memcmp(write->key.data, lock->handle.name->bytes, lock->handle.name->length) == 0;
}

/* The handle's release mode, with the data to write; the caller frees it. */
static int lock_write_prepare(const hl_lock *lock, const hl_fenced_write *passed,
                              struct hli_release_mode *ret_mode, hl_error *err)
{
    struct hli_write *write = NULL;

    if (!lock->type->kind->writes || lock->type->several)
        return hli_fail(err, HL_ENOTSUP, "this kind of lock does not write as it is released");
    int rc = hli_write_new(passed, &write, err);
    if (rc < 0)
        return rc;
    if (lock_write_hits_lock(lock, write)) {
        hli_write_unref(write);
        return hli_fail(err, HL_EINVAL, "the key is the lock's own");
    }
    *ret_mode = (struct hli_release_mode){.is_silent = hli_lock_release_mode(lock).is_silent,
                                          .write = write};
    return 0;
}

static int lock_set_and_release(const hl_lock *lock, hl_owner *owner, const hl_fenced_write *write,
                                const struct hli_completion *completion)
{
    struct hli_release_mode mode = {.write = NULL};
    int rc = lock ? lock_write_prepare(lock, write, &mode, completion->err) : 0;

    if (rc == 0)
        rc = hli_lock_release(lock, owner, &mode, completion);
    hli_write_unref(mode.write);
    return rc;
}

int hl_lock_set_and_release(hl_lock *lock, hl_owner *owner, const hl_fenced_write *write,
                            hl_error *err)
{
    return lock_set_and_release(lock, owner, write, HLI_BLOCKING(err));
}

int hl_lock_set_and_release_async(hl_lock *lock, hl_owner *owner, const hl_fenced_write *write,
                                  hl_done_cb done, void *arg)
{
    return lock_set_and_release(lock, owner, write, HLI_ASYNC_CALL(done, done, arg));
}
