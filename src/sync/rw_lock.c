/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The read-write lock: two handles, and what an owner that holds one of them may do with the other.
 */
#include <hirelock/rw_lock.h>

#include "base/error.h"
#include "base/versioned.h"
#include "sync/lock.h"
#include "sync/rw_command.h"

/* What this owner holds in that name for certain; 0 when it is nothing. */
static uint64_t rw_number_held(struct hli_name *name, const struct hl_owner *owner)
{
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    bool is_held =
        tenure && tenure->state == HLI_TENURE_OWN && hli_now() < hli_hold_validity(tenure);
    uint64_t number = is_held ? tenure->number : 0;
    pthread_mutex_unlock(&name->mutex);
    return number;
}

/* The same for the other half of the lock. */
static uint64_t rw_number_held_beside(const hl_lock *lock, const struct hl_owner *owner)
{
    const struct hli_kind *kind = lock->type->kind->sister;
    struct hli_name_key key = {
        .kind = kind, .bytes = lock->name->bytes, .length = lock->name->length};

    if (kind->is_per_owner)
        key.lane.half[0] = owner->number;
    struct hli_name *name = hli_name_find(lock->name->client, &key);
    uint64_t number = name ? rw_number_held(name, owner) : 0;
    if (name)
        hli_name_unref(name);
    return number;
}

/* Who writes may read as well. */
static int rw_read_prepare(const hl_lock *lock, struct hl_owner *owner, struct hli_acquire_way *way,
                           hl_error *err)
{
    (void)err;
    way->under = rw_number_held_beside(lock, owner);
    return 0;
}

/* Who reads cannot become a writer: two that tried would wait for each other, and one alone for
 * itself. Who writes already goes deeper. */
static int rw_write_prepare(const hl_lock *lock, struct hl_owner *owner,
                            struct hli_acquire_way *way, hl_error *err)
{
    char shown[96];

    (void)way;
    if (rw_number_held(lock->name, owner) != 0 || rw_number_held_beside(lock, owner) == 0)
        return 0;
    return hli_fail(err, HL_EDEADLK, "acquire '%s': its owner reads, and would wait for itself",
                    hli_error_escape(shown, sizeof(shown), lock->name->bytes, lock->name->length));
}

static const struct hli_lock_type rw_read_type = {
    .kind = &hli_kind_read,
    .flags = HL_LOCK_PREFER_WRITERS,
    .prepare = rw_read_prepare,
    .inspect = hli_rw_inspect_format,
    .force = hli_rw_force_format,
};

static const struct hli_lock_type rw_write_type = {
    .kind = &hli_kind_write,
    .flags = HL_LOCK_PREFER_WRITERS,
    .prepare = rw_write_prepare,
    .inspect = hli_rw_inspect_format,
    .force = hli_rw_force_format,
};

static bool rw_prefers_writers(const hl_lock_options *passed)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    return passed && hli_versioned_read(&options, sizeof(options), passed) &&
           (options.flags & HL_LOCK_PREFER_WRITERS) != 0;
}

/* NOLINTNEXTLINE(readability-function-size): one call makes both, or neither */
int hl_rw_lock_new(hl_client *client, const char *name, const hl_lock_options *options,
                   hl_lock **ret_read, hl_lock **ret_write, hl_error *err)
{
    hl_lock *read = NULL, *write = NULL;

    if (!ret_read || !ret_write)
        return hli_fail(err, HL_EINVAL, "ret_read or ret_write is NULL");
    int rc =
        hli_lock_new(client, &(struct hli_lock_said){&rw_read_type, name, options}, &read, err);
    if (rc == 0)
        rc = hli_lock_new(client, &(struct hli_lock_said){&rw_write_type, name, options}, &write,
                          err);
    if (!write) {
        hl_lock_free(read);
        return rc;
    }
    write->goes_first = rw_prefers_writers(options);
    *ret_read = read;
    *ret_write = write;
    return 0;
}
