/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock: its handle, acquire and release. */
#include "sync/lock/lock.h"

#include "base/error.h"
#include "base/versioned.h"
#include "lease/acquire/shortcut.h"
#include "lease/calls/replicas.h"
#include "lease/hold/keep.h"
#include "lease/state/name.h"
#include "sync/common/acquire_options.h"
#include "sync/lock/lock_kind.h"

#include <stdlib.h>

enum {
    LOCK_MAX_RETAIN_MS = 1000,
    LOCK_FLAGS = HL_LOCK_ASYNC_RELEASE | HL_LOCK_NON_REENTRANT | HL_LOCK_KEEP_UNCONFIRMED,
};

const struct hli_lock_type hli_lock_type = {.kind = &hli_kind_lock};

static int lock_check_backoff(const struct hli_lock_type *type, hl_lock_options *options,
                              hl_error *err)
{
    if (type->read_backoff)
        return type->read_backoff(options, err);
    if (options->backoff_min_ms != 0 || options->backoff_max_ms != 0)
        return hli_fail(err, HL_EINVAL, "this kind of lock has no backoff");
    return 0;
}

int hli_lock_check_options(const struct hli_lock_type *type, hl_lock_options *options,
                           hl_error *err)
{
    unsigned flags = LOCK_FLAGS | type->flags;

    if (options->flags & ~flags)
        return hli_fail(err, HL_EINVAL,
                        "flags hold what this version, or this kind of lock, does not know");
    if (options->retain_ms < 0 || options->retain_ms > LOCK_MAX_RETAIN_MS)
        return hli_fail(err, HL_EINVAL, "retain_ms is not from 0 to %d", LOCK_MAX_RETAIN_MS);
    if (options->retain_ms > 0 && (!type->kind->is_handed_on || type->is_silent))
        return hli_fail(err, HL_EINVAL, "this kind of lock is not retained");
    return lock_check_backoff(type, options, err);
}

/* A lock that may be retained has a short lease, because the key outlives a dead process. */
static int64_t lock_watch_ms(const hl_lock *lock)
{
    int64_t watchdog_ms = lock->handle.name->client->settings.watchdog_timeout_ms;
    bool is_short = lock->retain_ms > 0 && watchdog_ms > HLI_RETAIN_LEASE_MS;

    return is_short ? HLI_RETAIN_LEASE_MS : watchdog_ms;
}

struct hli_acquire_mode hli_lock_acquire_mode(const hl_lock *lock)
{
    unsigned client_flags = lock->handle.name->client->settings.flags;

    return (struct hli_acquire_mode){
        .watch_ms = lock_watch_ms(lock),
        .is_nonreentrant = (lock->flags & HL_LOCK_NON_REENTRANT) != 0,
        .is_fenced = lock->type->is_fenced,
        .retains = lock->retain_ms > 0,
        .listens = (lock->flags & HL_LOCK_SUBSCRIBE) != 0,
        .goes_first = (lock->flags & HL_LOCK_PREFER_WRITERS) != 0,
        .backoff_ms = lock->backoff_min_ms,
        .backoff_max_ms = lock->backoff_max_ms,
        .replicas = lock->replicas,
        .is_kept_anyway = (lock->flags & HL_LOCK_KEEP_UNCONFIRMED) != 0 ||
                          (client_flags & HL_CLIENT_KEEP_UNCONFIRMED) != 0,
    };
}

struct hli_release_mode hli_lock_release_mode(const hl_lock *lock)
{
    return (struct hli_release_mode){
        .is_posted = (lock->flags & HL_LOCK_ASYNC_RELEASE) != 0,
        .is_silent = lock->type->is_silent,
        .retain_ms = lock->retain_ms,
    };
}

int hli_lock_read_options(const hl_lock_options *passed, hl_lock_options *ret, hl_error *err)
{
    *ret = (hl_lock_options)HL_LOCK_OPTIONS_INIT;
    return hli_versioned_read(ret, sizeof(*ret), passed, "the options", err);
}

/* A closed or forked client is refused later, with its own error. */
static int lock_check_replicas(const hl_client *client, int min_replicas, hl_error *err)
{
    if (min_replicas > 0 || min_replicas == HL_REPLICAS_MAJORITY) {
        if (client && hli_client_check(client) == 0 && client->settings.min_replicas == 0)
            return hli_fail(err, HL_EINVAL,
                            "min_replicas: the client needs one too, if only HL_REPLICAS_NONE");
    }
    return hli_replicas_check(min_replicas, err);
}

int hli_lock_make(hl_client *client, const struct hli_lock_type *type, hl_lock_options *options,
                  hl_lock **ret_lock, hl_error *err)
{
    int rc = hli_lock_check_options(type, options, err);

    if (rc == 0)
        rc = lock_check_replicas(client, options->min_replicas, err);
    if (rc < 0)
        return rc;
    hl_lock *lock = calloc(1, sizeof(*lock));
    if (!lock)
        return hli_no_memory(err);
    rc = hli_handle_init(&lock->handle, client, type->kind,
                         (struct hli_bytes){options->name, options->name_length}, err);
    if (rc < 0) {
        free(lock);
        return rc;
    }
    lock->type = type;
    lock->replicas = hli_replicas_of(client, options->min_replicas) & HLI_LOCK_REPLICAS;
    lock->flags = options->flags & HLI_LOCK_FLAGS;
    lock->retain_ms = (unsigned)options->retain_ms & HLI_LOCK_RETAIN_MS;
    lock->backoff_min_ms = (uint16_t)options->backoff_min_ms;
    lock->backoff_max_ms = (uint16_t)options->backoff_max_ms;
    *ret_lock = lock;
    return 0;
}

void hl_lock_free(hl_lock *lock)
{
    if (!lock)
        return;
    if (lock->type->several)
        lock->type->several->drop(lock);
    hli_handle_deinit(&lock->handle);
    free(lock);
}

const char *hl_lock_name(const hl_lock *lock, size_t *ret_length)
{
    if (!lock)
        return NULL;
    if (lock->type->several)
        return lock->type->several->name(lock, ret_length);
    return hli_handle_name(&lock->handle, ret_length);
}

struct hli_name *hli_lock_look_up(const hl_lock *lock, const struct hl_owner *owner,
                                  struct hli_name *(*look_up)(hl_client *client,
                                                              const struct hli_name_key *key))
{
    struct hli_name *name = lock->handle.name;

    if (name->kind->is_per_owner)
        return look_up(name->client, &(struct hli_name_key){.kind = name->kind,
                                                            .bytes = name->bytes,
                                                            .length = name->length,
                                                            .owner_key = {{owner->number}}});
    hli_name_ref(name);
    return name;
}

int hli_lock_prepare(const hl_lock *lock, const hl_acquire_options *options,
                     struct hli_acquire_spec *ret, hl_error *err)
{
    struct hl_owner *owner = options->owner;

    ret->options = options;
    ret->mode = hli_lock_acquire_mode(lock);
    int rc = lock->type->prepare ? lock->type->prepare(lock, owner, &ret->mode, err) : 0;
    if (rc < 0)
        return rc;
    ret->name = hli_lock_look_up(lock, owner, hli_name_get);
    return ret->name ? 0 : hli_no_memory(err);
}

static int lock_acquire_alone(const hl_lock *lock, const hl_acquire_options *options,
                              const struct hli_completion *completion)
{
    struct hli_acquire_spec spec;
    int rc = hli_lock_prepare(lock, options, &spec, completion->err);

    if (rc < 0)
        return rc;
    rc = hli_acquire_run(&spec, completion);
    hli_name_unref(spec.name);
    return rc;
}

static int lock_acquire_entered(const hl_lock *lock, const hl_acquire_options *passed,
                                const struct hli_completion *completion)
{
    bool is_span = lock->type->several && lock->type->several->is_span;
    const hl_client *client = is_span ? NULL : lock->handle.name->client;
    hl_acquire_options options;
    int rc = hli_acquire_options_read(client, passed, completion, &options);

    if (rc < 0)
        return rc;
    if (options.owner == hli_owner_of_thread_if_any() && hli_callbacks_are_running_here(NULL))
        return hli_fail(completion->err, HL_EINVAL,
                        "inside a callback set options.owner: all callbacks share one thread");
    return lock->type->several ? lock->type->several->acquire(lock, &options, completion)
                               : lock_acquire_alone(lock, &options, completion);
}

static int lock_acquire(const hl_lock *lock, const hl_acquire_options *options,
                        const struct hli_completion *completion)
{
    int rc = hli_handle_enter(HLI_HANDLE(lock), completion);

    if (rc < 0)
        return rc;
    hl_client *client = lock->handle.name->client;
    rc = lock_acquire_entered(lock, options, completion);
    hli_client_leave(client);
    return rc;
}

int hl_lock_acquire_with(hl_lock *lock, const hl_acquire_options *options, hl_error *err)
{
    return lock_acquire(lock, options, HLI_BLOCKING(err));
}

int hl_lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                          void *arg)
{
    return lock_acquire(lock, options, HLI_ASYNC_CALL(done, done, arg));
}

/* True if the handle may be used for calls without a request. */
static bool lock_is_usable(const hl_lock *lock)
{
    return lock && hli_client_check(lock->handle.name->client) == 0 && !lock->type->several;
}

/* Acquires without a request, if possible: by a further level, or by taking up a retained lock. */
static bool lock_acquire_fast(const hl_lock *lock)
{
    const struct hl_owner *mine = hli_owner_of_thread_if_any();

    if (!mine || !lock || (atomic_load(&mine->holds) == 0 && lock->retain_ms == 0) ||
        !lock_is_usable(lock) || hli_callbacks_are_running_here(NULL))
        return false;
    const struct hli_acquire_mode mode = hli_lock_acquire_mode(lock);
    return hli_shortcut_acquire(lock->handle.name, &mode);
}

int hl_lock_acquire_for(hl_lock *lock, int64_t wait_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    if (wait_ms >= HL_WAIT_FOREVER && lock_acquire_fast(lock))
        return HL_OK;
    options.wait_ms = wait_ms;
    return lock_acquire(lock, &options, HLI_BLOCKING(err));
}

int hl_lock_acquire(hl_lock *lock, hl_error *err)
{
    return hl_lock_acquire_for(lock, HL_WAIT_FOREVER, err);
}

int hl_lock_try_acquire(hl_lock *lock, hl_error *err)
{
    return hl_lock_acquire_for(lock, HL_NO_WAIT, err);
}

/* If nothing is held there may be no name; an async call makes one, through which its completion
 * reports the error. */
static int lock_release_alone(const hl_lock *lock, hl_owner *owner,
                              const struct hli_release_mode *mode,
                              const struct hli_completion *completion)
{
    struct hli_name *name =
        hli_lock_look_up(lock, owner, completion->is_async ? hli_name_get : hli_name_find);

    if (!name && completion->is_async)
        return hli_no_memory(NULL);
    if (!name)
        return hli_name_refuse(completion->err, HL_ENOTOWNER, lock->handle.name, HL_CALL_RELEASE,
                               hl_err_text(HL_ENOTOWNER));
    int rc = hli_release_run(name, owner, mode, completion);
    hli_name_unref(name);
    return rc;
}

int hli_lock_release(const hl_lock *lock, hl_owner *owner, const struct hli_release_mode *mode,
                     const struct hli_completion *completion)
{
    hl_owner *mine = NULL;

    if (lock && lock->type->several)
        return lock->type->several->release(lock, owner, completion);
    int rc = hli_handle_enter(HLI_HANDLE(lock), completion);
    if (rc < 0)
        return rc;
    hl_client *client = lock->handle.name->client;
    const struct hli_release_mode own_mode = hli_lock_release_mode(lock);
    rc = hli_owner_read(client, owner, completion, &mine);
    if (rc == 0)
        rc = lock_release_alone(lock, mine, mode ? mode : &own_mode, completion);
    hli_client_leave(client);
    return rc;
}

int hl_lock_release_as(hl_lock *lock, hl_owner *owner, hl_error *err)
{
    return hli_lock_release(lock, owner, NULL, HLI_BLOCKING(err));
}

int hl_lock_release_async(hl_lock *lock, hl_owner *owner, hl_done_cb done, void *arg)
{
    return hli_lock_release(lock, owner, NULL, HLI_ASYNC_CALL(done, done, arg));
}

static bool lock_release_fast(const hl_lock *lock)
{
    const struct hl_owner *mine = hli_owner_of_thread_if_any();

    if (!mine || !lock_is_usable(lock))
        return false;
    const struct hli_release_mode mode = hli_lock_release_mode(lock);
    return hli_shortcut_release(lock->handle.name, mine, &mode);
}

int hl_lock_release(hl_lock *lock, hl_error *err)
{
    return lock_release_fast(lock) ? HL_OK : hl_lock_release_as(lock, NULL, err);
}
