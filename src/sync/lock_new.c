/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Handles of locks: made, freed, and whose name stands behind them. */
#include "base/error.h"
#include "base/versioned.h"
#include "lease/keep.h"
#include "lease/tag.h"
#include "sync/lock.h"
#include "sync/multi_lock.h"
#include "sync/named.h"
#include "sync/request.h"

#include <stdlib.h>

enum {
    LOCK_MAX_LINGER_MS = 1000,
    LOCK_FLAGS = HL_LOCK_POSTED_RELEASE | HL_LOCK_NON_REENTRANT,
};

static int lock_inspect_format(const struct hli_name *name, struct hli_op *op)
{
    char tag[HLI_CHANNEL_SIZE];
    const struct hli_bytes key = {name->bytes, name->length};
    const struct hli_bytes arg = hli_tag_key(name, tag);

    return hli_op_script(op, HLI_SCRIPT_LOCK_INSPECT,
                         &(struct hli_script_words){&key, 1, &arg, arg.length > 0});
}

static int lock_force_format(const struct hli_name *name, struct hli_op *op)
{
    char channel[HLI_CHANNEL_SIZE];
    const struct hli_bytes key = {name->bytes, name->length};
    const struct hli_bytes args[] = {{channel, hli_name_write_channel(name, channel)},
                                     hli_bytes_of("PUBLISH")};

    return hli_op_script(op, HLI_SCRIPT_LOCK_FORCE_RELEASE,
                         &(struct hli_script_words){&key, 1, args, 2});
}

const struct hli_lock_type hli_lock_type = {
    .kind = &hli_kind_lock,
    .inspect = lock_inspect_format,
    .force = lock_force_format,
};

static int lock_check_options(const struct hli_lock_type *type, const hl_lock_options *options,
                              hl_error *err)
{
    unsigned flags = LOCK_FLAGS | type->flags;

    if (options->flags & ~flags)
        return hli_fail(err, HL_EINVAL,
                        "flags hold what this version, or this kind of lock, does not know");
    if (options->linger_ms < 0 || options->linger_ms > LOCK_MAX_LINGER_MS)
        return hli_fail(err, HL_EINVAL, "linger_ms is not from 0 to %d", LOCK_MAX_LINGER_MS);
    if (options->linger_ms > 0 && !type->kind->is_handed_on)
        return hli_fail(err, HL_EINVAL, "this kind of lock does not linger");
    return 0;
}

/* What lingers is kept by a short lease, for it outlives its process. */
static int64_t lock_watch_ms(const hl_lock *lock)
{
    int64_t watchdog_ms = lock->name->client->settings.watchdog_timeout_ms;
    bool is_short = lock->linger_ms > 0 && watchdog_ms > HLI_LINGER_LEASE_MS;

    return is_short ? HLI_LINGER_LEASE_MS : watchdog_ms;
}

struct hli_acquire_way hli_lock_acquire_way(const hl_lock *lock)
{
    return (struct hli_acquire_way){
        .watch_ms = lock_watch_ms(lock),
        .is_flat = lock->is_flat,
        .is_fenced = lock->is_fenced,
        .lingers = lock->linger_ms > 0,
        .listens = lock->listens,
        .goes_first = lock->goes_first,
        .backoff_ms = lock->backoff_min_ms,
        .backoff_max_ms = lock->backoff_max_ms,
    };
}

struct hli_release_way hli_lock_release_way(const hl_lock *lock)
{
    return (struct hli_release_way){
        .is_posted = lock->is_posted,
        .is_silent = lock->is_silent,
        .linger_ms = lock->linger_ms,
    };
}

void hli_lock_set_options(hl_lock *lock, const hl_lock_options *options)
{
    lock->is_posted = (options->flags & HL_LOCK_POSTED_RELEASE) != 0;
    lock->is_flat = (options->flags & HL_LOCK_NON_REENTRANT) != 0;
    lock->linger_ms = (uint16_t)options->linger_ms;
}

static int lock_make(hl_client *client, const struct hli_lock_said *said,
                     const hl_lock_options *options, hl_lock **ret_lock, hl_error *err)
{
    const struct hli_named named = {said->type->kind, said->name, options->name_length};
    hl_lock *lock = calloc(1, sizeof(*lock));

    if (!lock)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_named_get(client, &named, &lock->name, err);
    if (rc < 0) {
        free(lock);
        return rc;
    }
    lock->type = said->type;
    hli_lock_set_options(lock, options);
    *ret_lock = lock;
    return 0;
}

int hli_lock_read_options(const struct hli_lock_type *type, const hl_lock_options *passed,
                          hl_lock_options *ret, hl_error *err)
{
    *ret = (hl_lock_options)HL_LOCK_OPTIONS_INIT;
    if (passed && !hli_versioned_read(ret, sizeof(*ret), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    return lock_check_options(type, ret, err);
}

int hli_lock_new(hl_client *client, const struct hli_lock_said *said, hl_lock **ret_lock,
                 hl_error *err)
{
    hl_lock_options options;
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!said->name || !ret_lock)
        return hli_fail(err, HL_EINVAL, "the name or ret_lock is NULL");
    rc = hli_lock_read_options(said->type, said->options, &options, err);
    return rc < 0 ? rc : lock_make(client, said, &options, ret_lock, err);
}

int hl_lock_new_with(hl_client *client, const void *name, const hl_lock_options *options,
                     hl_lock **ret_lock, hl_error *err)
{
    return hli_lock_new(client, &(struct hli_lock_said){&hli_lock_type, name, options}, ret_lock,
                        err);
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

void hl_lock_free(hl_lock *lock)
{
    if (!lock)
        return;
    hli_multi_unref(hli_multi_of(lock));
    hli_named_put(lock->name);
    free(lock);
}

const char *hl_lock_name(const hl_lock *lock, size_t *ret_length)
{
    if (!lock)
        return NULL;
    if (hli_multi_of(lock))
        return hli_multi_name(hli_multi_of(lock), ret_length);
    if (ret_length)
        *ret_length = lock->name->length;
    return lock->name->bytes;
}

static struct hli_name_key lock_key_of(const hl_lock *lock, const struct hl_owner *owner)
{
    return (struct hli_name_key){.kind = lock->type->kind,
                                 .bytes = lock->name->bytes,
                                 .length = lock->name->length,
                                 .lane = {{owner->number}}};
}

int hli_lock_name_for(const hl_lock *lock, const struct hl_owner *owner, struct hli_name **ret_name)
{
    if (lock->type->kind->is_per_owner) {
        const struct hli_name_key key = lock_key_of(lock, owner);
        return hli_name_get(lock->name->client, &key, ret_name);
    }
    hli_name_ref(lock->name);
    *ret_name = lock->name;
    return 0;
}

struct hli_name *hli_lock_find_name(const hl_lock *lock, const struct hl_owner *owner)
{
    if (lock->type->kind->is_per_owner) {
        const struct hli_name_key key = lock_key_of(lock, owner);
        return hli_name_find(lock->name->client, &key);
    }
    hli_name_ref(lock->name);
    return lock->name;
}

int hli_lock_prepare(const hl_lock *lock, const hl_acquire_options *passed,
                     struct hli_lock_acquire *ret, hl_error *err)
{
    int rc = hli_request_read_options(lock->name->client, passed, &ret->options, err);

    if (rc < 0)
        return rc;
    struct hl_owner *owner = ret->options.owner ? ret->options.owner : hli_owner_of_thread();
    ret->way = hli_lock_acquire_way(lock);
    if (!owner)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    rc = lock->type->prepare ? lock->type->prepare(lock, owner, &ret->way, err) : 0;
    if (rc < 0)
        return rc;
    rc = hli_lock_name_for(lock, owner, &ret->name);
    return rc < 0 ? hli_fail(err, rc, "%s", hl_err_text(rc)) : 0;
}
