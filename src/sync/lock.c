/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock: the blocking calls. */
#include "sync/lock.h"

#include "base/error.h"
#include "lease/shortcut.h"
#include "sync/multi_lock.h"
#include "sync/released.h"
#include "sync/request.h"

int hli_lock_check(const hl_lock *lock, hl_error *err)
{
    int rc = lock ? hli_client_check(lock->name->client) : HL_EINVAL;

    return rc == 0 ? 0 : hli_fail(err, rc, "%s", lock ? hl_err_text(rc) : "the lock is NULL");
}

int hli_lock_enter(hl_lock *lock, hl_error *err)
{
    int rc = lock ? hli_client_enter(lock->name->client) : HL_EINVAL;

    return rc == 0 ? 0 : hli_fail(err, rc, "%s", lock ? hl_err_text(rc) : "the lock is NULL");
}

void hli_lock_leave(hl_lock *lock)
{
    hli_client_leave(lock->name->client);
}

static int lock_acquire(hl_lock *lock, const hl_acquire_options *options, hl_error *err)
{
    struct hli_lock_acquire said;

    if (hli_multi_of(lock))
        return hli_multi_acquire(lock, options, err);
    int rc = hli_lock_prepare(lock, options, &said, err);
    if (rc < 0)
        return rc;
    rc = hli_request_block(&(struct hli_request){said.name, &said.way, &said.options}, err);
    hli_name_unref(said.name);
    return rc;
}

int hl_lock_acquire_with(hl_lock *lock, const hl_acquire_options *options, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = lock_acquire(lock, options, err);
    hli_lock_leave(lock);
    return rc;
}

/* Without a request, if that is possible. */
static bool lock_acquire_shortly(const hl_lock *lock)
{
    if (hli_lock_check(lock, NULL) < 0 || hli_multi_of(lock))
        return false;
    const struct hli_acquire_way way = hli_lock_acquire_way(lock);
    return hli_shortcut_acquire(lock->name, &way);
}

int hl_lock_acquire_for(hl_lock *lock, int64_t wait_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    if (wait_ms >= HL_WAIT_FOREVER && lock_acquire_shortly(lock))
        return HL_OK;
    options.wait_ms = wait_ms;
    return hl_lock_acquire_with(lock, &options, err);
}

int hl_lock_acquire(hl_lock *lock, hl_error *err)
{
    return hl_lock_acquire_for(lock, HL_WAIT_FOREVER, err);
}

int hl_lock_try_acquire(hl_lock *lock, hl_error *err)
{
    return hl_lock_acquire_for(lock, HL_NO_WAIT, err);
}

int hli_lock_release(hl_lock *lock, hl_owner *owner, const struct hli_release_way *way,
                     hl_error *err)
{
    int rc = hli_request_check_owner(lock->name->client, owner, err);

    if (rc < 0)
        return rc;
    struct hl_owner *mine = owner ? owner : hli_owner_of_thread();
    if (!mine)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    if (hli_multi_of(lock))
        return hli_multi_release(lock, mine, NULL, err);
    struct hli_name *name = hli_lock_find_name(lock, mine);
    if (!name)
        return hli_release_fail(err, lock->name, HL_ENOTOWNER, hl_err_text(HL_ENOTOWNER));
    rc = hli_released_block(name, mine, way, err);
    hli_name_unref(name);
    return rc;
}

int hl_lock_release_as(hl_lock *lock, hl_owner *owner, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    const struct hli_release_way way = hli_lock_release_way(lock);
    rc = hli_lock_release(lock, owner, &way, err);
    hli_lock_leave(lock);
    return rc;
}

static bool lock_release_shortly(const hl_lock *lock)
{
    const struct hl_owner *mine = hli_owner_of_thread_if_any();

    if (!mine || hli_lock_check(lock, NULL) < 0 || hli_multi_of(lock))
        return false;
    const struct hli_release_way way = hli_lock_release_way(lock);
    return hli_shortcut_release(lock->name, mine, &way);
}

int hl_lock_release(hl_lock *lock, hl_error *err)
{
    return lock_release_shortly(lock) ? HL_OK : hl_lock_release_as(lock, NULL, err);
}
