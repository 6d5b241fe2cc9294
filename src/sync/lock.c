/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock: handles, and the blocking calls. */
#include "sync/lock.h"

#include "base/error.h"
#include "base/versioned.h"
#include "lease/keep.h"
#include "lease/release.h"
#include "lease/shortcut.h"

#include <string.h>

enum {
    LOCK_MAX_LINGER_MS = 1000,
};

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

int hli_lock_check_owner(const hl_lock *lock, const hl_owner *owner, hl_error *err)
{
    int rc = hli_lock_check(lock, err);

    if (rc == 0 && owner && owner->client != lock->name->client)
        return hli_fail(err, HL_EINVAL, "the owner belongs to another client");
    return rc;
}

int64_t hli_lock_watch_ms(const hl_lock *lock)
{
    int64_t watchdog_ms = lock->name->client->settings.watchdog_timeout_ms;

    return lock->way.linger_ms > 0 && watchdog_ms > HLI_LINGER_LEASE_MS ? HLI_LINGER_LEASE_MS
                                                                        : watchdog_ms;
}

int hli_lock_read_options(const hl_lock *lock, const hl_acquire_options *passed,
                          hl_acquire_options *ret, hl_error *err)
{
    *ret = (hl_acquire_options)HL_ACQUIRE_OPTIONS_INIT;
    if (passed && !hli_versioned_read(ret, sizeof(*ret), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    return hli_lock_check_owner(lock, ret->owner, err);
}

static int lock_join_name(hl_client *client, const void *name, size_t length, char *ret_bytes,
                          size_t *ret_length)
{
    const char *prefix = client->settings.name_prefix ? client->settings.name_prefix : "";
    size_t before = strlen(prefix);

    if (length > HLI_NAME_LIMIT || before + length > HLI_NAME_LIMIT)
        return HL_EINVAL;
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes and a length */
    memcpy(ret_bytes, prefix, before);
    memcpy(ret_bytes + before, name, length);
    *ret_length = before + length;
    return length > 0 && hli_name_is_valid(ret_bytes, *ret_length) ? 0 : HL_EINVAL;
}

static int lock_check_options(const hl_lock_options *options, hl_error *err)
{
    if (options->flags & ~(unsigned)HL_LOCK_POSTED_RELEASE)
        return hli_fail(err, HL_EINVAL, "flags hold what this version does not know");
    if (options->linger_ms < 0 || options->linger_ms > LOCK_MAX_LINGER_MS)
        return hli_fail(err, HL_EINVAL, "linger_ms is not from 0 to %d", LOCK_MAX_LINGER_MS);
    return 0;
}

static int lock_make(hl_client *client, const void *name, const hl_lock_options *options,
                     hl_lock **ret_lock, hl_error *err)
{
    size_t length = options->name_length > 0 ? options->name_length : strlen(name);
    char bytes[HLI_NAME_LIMIT];
    size_t total = 0;

    if (lock_join_name(client, name, length, bytes, &total) < 0)
        return hli_fail(err, HL_EINVAL,
                        "a lock's name has 1 to %d bytes, no braces that split its slot, and does "
                        "not begin with hirelock_queue:",
                        HLI_NAME_LIMIT);
    hl_lock *lock = malloc(sizeof(*lock));
    if (!lock || hli_name_get(client, bytes, total, &lock->name) < 0) {
        free(lock);
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    }
    lock->way = (struct hli_release_way){
        .is_posted = (options->flags & HL_LOCK_POSTED_RELEASE) != 0,
        .linger_ms = options->linger_ms,
    };
    *ret_lock = lock;
    return 0;
}

int hl_lock_new_with(hl_client *client, const void *name, const hl_lock_options *passed,
                     hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!name || !ret_lock)
        return hli_fail(err, HL_EINVAL, "the name or ret_lock is NULL");
    if (passed && !hli_versioned_read(&options, sizeof(options), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    rc = lock_check_options(&options, err);
    return rc < 0 ? rc : lock_make(client, name, &options, ret_lock, err);
}

/* A length of 0 is that of an empty name here, and not a C string's. */
int hl_lock_new_bytes(hl_client *client, const void *name, size_t length, hl_lock **ret_lock,
                      hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    options.name_length = length;
    return hl_lock_new_with(client, name && length == 0 ? "" : name, &options, ret_lock, err);
}

int hl_lock_new(hl_client *client, const char *name, hl_lock **ret_lock, hl_error *err)
{
    return hl_lock_new_with(client, name, NULL, ret_lock, err);
}

/* In a forked child only the handle itself is freed: the rest is the parent's, and its mutexes may
 * be locked for ever. */
void hl_lock_free(hl_lock *lock)
{
    if (!lock)
        return;
    int cancelability = hli_cancelability_off(); /* the last one frees a closed client */
    if (hli_client_check(lock->name->client) != HL_EFORKED)
        hli_name_unref(lock->name);
    free(lock);
    hli_cancelability_restore(cancelability);
}

const char *hl_lock_name(const hl_lock *lock, size_t *ret_length)
{
    if (!lock)
        return NULL;
    if (ret_length)
        *ret_length = lock->name->length;
    return lock->name->bytes;
}

static int lock_acquire(hl_lock *lock, const hl_acquire_options *options, hl_error *err)
{
    struct hli_acquire acquire;
    int rc = hli_acquire_init(&acquire, lock->name, hli_lock_watch_ms(lock), options, err);

    if (rc < 0)
        return rc;
    int cancelability = hli_cancelability_off();
    hli_wait_attach(&acquire.wait, options->cancel);
    hli_acquire_make_way(&acquire);
    hli_wait_will_block(&acquire.wait);
    hli_acquire_start(&acquire);
    rc = hli_acquire_block(&acquire);
    hli_wait_detach(&acquire.wait);
    hli_acquire_deinit(&acquire);
    hli_cancelability_restore(cancelability);
    return rc;
}

int hl_lock_acquire_with(hl_lock *lock, const hl_acquire_options *options, hl_error *err)
{
    hl_acquire_options known;
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = hli_lock_read_options(lock, options, &known, err);
    if (rc == 0)
        rc = lock_acquire(lock, &known, err);
    hli_lock_leave(lock);
    return rc;
}

int hl_lock_acquire_for(hl_lock *lock, int64_t wait_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    if (wait_ms >= HL_WAIT_FOREVER && hli_lock_check(lock, NULL) == 0 &&
        hli_shortcut_acquire(lock->name, hli_lock_watch_ms(lock)))
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

static int lock_release(hl_lock *lock, hl_owner *owner, hl_error *err)
{
    struct hli_released released;
    int rc = hli_lock_check_owner(lock, owner, err);

    if (rc < 0)
        return rc;
    struct hl_owner *mine = owner ? owner : hli_owner_of_thread();
    if (!mine)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int cancelability = hli_cancelability_off();
    hli_released_init(&released, lock->name, err);
    if (!lock->way.is_posted)
        hli_wait_will_block(&released.wait);
    hli_release_start(lock->name, mine, &lock->way, &released.wait);
    rc = hli_wait_block(&released.wait);
    hli_released_count(&released);
    hli_cancelability_restore(cancelability);
    return rc;
}

int hl_lock_release_as(hl_lock *lock, hl_owner *owner, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = lock_release(lock, owner, err);
    hli_lock_leave(lock);
    return rc;
}

int hl_lock_release(hl_lock *lock, hl_error *err)
{
    const struct hl_owner *mine = hli_owner_of_thread_if_any();

    if (mine && hli_lock_check(lock, NULL) == 0 &&
        hli_shortcut_release(lock->name, mine, &lock->way))
        return HL_OK;
    return hl_lock_release_as(lock, NULL, err);
}
