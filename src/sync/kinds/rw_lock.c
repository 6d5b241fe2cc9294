/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The read-write lock: two handles of two kinds with the same keys in Redis; and the rules for an
 * owner that holds one of them and acquires the other. In the read kind each owner has a name, a
 * tenure and requests of its own, since many owners may read at once; in the write kind all owners
 * share one name.
 */
#include "lease/acquire/acquire.h"
#include "lease/hold/hold.h"
#include "lease/hold/tag.h"
#include "lease/state/command.h"
#include "sync/kinds/types.h"

#include <inttypes.h>
#include <stdio.h>

#define RW_CHANNEL "redisson_rwlock:"
#define RW_WRITE_SUFFIX ":write"

enum {
    RW_PREFER_POLLS = 3, /* lifetime of the key in polls; the writer renews it with each poll */
    RW_LEVELS = 1000,    /* levels with a hold key, as in rw.lua */
};

static const struct hli_kind rw_kind_read, rw_kind_write;

/* Adds the field under which the asking reader holds the write lock, or "". */
static void rw_add_under(struct hli_args *args, const struct hli_name *name)
{
    const struct hli_acquire *acquire = TAILQ_FIRST(&name->waiters);
    char text[HLI_FIELD_SIZE] = "";

    if (acquire && acquire->mode.under != 0)
        snprintf(text, sizeof(text), "%s:%" PRIu64 RW_WRITE_SUFFIX, name->client->id,
                 acquire->mode.under);
    hli_args_text(args, text);
}

/* Declares the hold keys of a reader's first levels. */
static void rw_declare_levels(struct hli_args *args, const struct hli_tenure *tenure,
                              uint32_t levels)
{
    char field[HLI_FIELD_SIZE], suffix[HLI_FIELD_SIZE + 40];

    hli_tenure_field(tenure, field);
    for (uint32_t level = 1; level <= levels && level <= RW_LEVELS; level++) {
        snprintf(suffix, sizeof(suffix), ":%s:rwlock_timeout:%" PRIu32, field, level);
        hli_command_declare_suffixed(args, tenure->name, suffix);
    }
}

/* As many levels as Redis can show of this reader. */
static void rw_declare_holds(const struct hli_tenure *tenure, struct hli_args *args)
{
    uint32_t levels =
        tenure->most_count > tenure->hold.count ? tenure->most_count : tenure->hold.count;

    rw_declare_levels(args, tenure, levels > tenure->asked_count ? levels : tenure->asked_count);
}

/* The hold key of a reader that was released before its minimum time. */
static void rw_declare_rest(struct hli_args *args, const struct hli_tenure *tenure)
{
    char field[HLI_FIELD_SIZE], suffix[HLI_FIELD_SIZE + 40];

    snprintf(suffix, sizeof(suffix), ":%s:rest:rwlock_timeout:1", hli_tenure_field(tenure, field));
    hli_command_declare_suffixed(args, tenure->name, suffix);
}

static void rw_declare_acquire(struct hli_args *args, hli_script_id script,
                               const struct hli_tenure *tenure,
                               const struct hli_acquire_request *request)
{
    hli_command_declare(args, tenure->name, HLI_NAME_WRITER);
    hli_command_declare(args, tenure->name, HLI_NAME_QUEUE);
    hli_tag_declare(tenure->name, args);
    if (script == HLI_SCRIPT_RW_READ_ACQUIRE)
        rw_declare_levels(args, tenure,
                          request->count > tenure->most_count ? request->count
                                                              : tenure->most_count);
}

/* The words that begin each acquire. */
static void rw_begin_acquire(struct hli_args *args, hli_script_id script,
                             const struct hli_tenure *tenure,
                             const struct hli_acquire_request *request)
{
    hli_command_begin(args, script, tenure->name);
    if (tenure->name->client->wording->is_for_cluster)
        rw_declare_acquire(args, script, tenure, request);
    hli_command_field(args, tenure);
    hli_args_number(args, request->lease_ms);
    hli_args_number(args, request->count);
    hli_command_derived(args, tenure->name, HLI_NAME_WRITER);
}

/* And those that end it. */
static void rw_end_acquire(struct hli_args *args, const struct hli_name *name,
                           const struct hli_acquire_request *request)
{
    if (hli_tag_is_asked(name))
        hli_command_derived(args, name, HLI_NAME_TAG);
    else
        hli_args_text(args, "");
    hli_command_turn(args, name, request);
}

static int rw_format_read_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                                  const struct hli_acquire_request *request)
{
    struct hli_args args;

    rw_begin_acquire(&args, HLI_SCRIPT_RW_READ_ACQUIRE, tenure, request);
    rw_add_under(&args, tenure->name);
    rw_end_acquire(&args, tenure->name, request);
    return hli_args_end(&args, op);
}

/* How long new readers must stay away: 0 unless a waiting writer asked for preference. A try does
 * not count, since it ends with its answer. */
static int64_t rw_prefer_ms(const struct hli_name *name)
{
    const struct hli_acquire *acquire;

    TAILQ_FOREACH (acquire, &name->waiters, link)
        if (acquire->mode.goes_first && !acquire->is_try)
            return RW_PREFER_POLLS * name->client->settings.poll_ms;
    return 0;
}

static int rw_format_write_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                                   const struct hli_acquire_request *request)
{
    struct hli_args args;

    rw_begin_acquire(&args, HLI_SCRIPT_RW_WRITE_ACQUIRE, tenure, request);
    hli_args_number(&args, rw_prefer_ms(tenure->name));
    rw_end_acquire(&args, tenure->name, request);
    return hli_args_end(&args, op);
}

static void rw_declare_release(struct hli_args *args, const struct hli_tenure *tenure,
                               const struct hli_release_request *release_request)
{
    if (release_request->is_of_wait)
        hli_command_declare(args, tenure->name, HLI_NAME_QUEUE);
    if (tenure->name->kind == &rw_kind_write) {
        hli_command_declare(args, tenure->name, HLI_NAME_WRITER);
        return;
    }
    rw_declare_holds(tenure, args);
    if (release_request->min_hold_left_ms > 0)
        rw_declare_rest(args, tenure);
}

static int rw_format_release(const struct hli_tenure *tenure, struct hli_op *op,
                             const struct hli_release_request *release_request)
{
    bool is_write = tenure->name->kind == &rw_kind_write;
    struct hli_args args;

    hli_command_begin(&args, is_write ? HLI_SCRIPT_RW_WRITE_RELEASE : HLI_SCRIPT_RW_READ_RELEASE,
                      tenure->name);
    if (tenure->name->client->wording->is_for_cluster)
        rw_declare_release(&args, tenure, release_request);
    hli_command_field(&args, tenure);
    hli_args_number(&args, release_request->count);
    hli_args_number(&args, release_request->lease_ms);
    hli_args_number(&args, release_request->min_hold_left_ms);
    hli_command_publish(&args, tenure->name);
    if (is_write)
        hli_command_derived(&args, tenure->name, HLI_NAME_WRITER);
    if (release_request->is_of_wait)
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
    return hli_args_end(&args, op);
}

static const char *rw_mode(const struct hli_name *name)
{
    return name->kind == &rw_kind_write ? "write" : "read";
}

static void rw_say_inspect(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_RW_INSPECT, name);
    if (name->client->wording->is_for_cluster)
        hli_tag_declare(name, args);
    hli_args_text(args, rw_mode(name));
    hli_args_text(args, name->client->id);
    hli_tag_key(name, args);
}

static void rw_say_force(const struct hli_name *name, struct hli_args *args)
{
    hli_command_begin(args, HLI_SCRIPT_RW_FORCE_RELEASE, name);
    hli_args_text(args, rw_mode(name));
    hli_command_publish(args, name);
    hli_command_holders_mailbox(args, name);
}

/* Always renewed, because a renewal by Redisson may set a shorter expiry than our longest lease. */
static const struct hli_kind rw_kind_read = {
    .id = 'r',
    .is_per_owner = true,
    .is_always_renewed = true,
    .sibling = &rw_kind_write,
    .channel = RW_CHANNEL,
    .field_suffix = "",
    .renew = HLI_SCRIPT_RW_READ_RENEW,
    .reclaim = HLI_SCRIPT_RW_READ_RECLAIM,
    .declare = rw_declare_holds,
    .acquire = rw_format_read_acquire,
    .release = rw_format_release,
    .inspect = rw_say_inspect,
    .force = rw_say_force,
};

/* A write hold is one field of a hash with one lease, as a lock's is, and so is its renewal. */
static const struct hli_kind rw_kind_write = {
    .id = 'w',
    .is_tagged = true,
    .sibling = &rw_kind_read,
    .channel = RW_CHANNEL,
    .field_suffix = RW_WRITE_SUFFIX,
    .renew = HLI_SCRIPT_LOCK_RENEW,
    .reclaim = HLI_SCRIPT_LOCK_RECLAIM,
    .tag = HLI_SCRIPT_LOCK_TAG,
    .acquire = rw_format_write_acquire,
    .release = rw_format_release,
    .inspect = rw_say_inspect,
    .force = rw_say_force,
};

/* The number of the tenure that this owner certainly holds in that name; 0 when there is none. */
static uint64_t rw_number_held(struct hli_name *name, const struct hl_owner *owner)
{
    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    uint64_t number = tenure && hli_hold_is_valid(tenure, hli_now()) ? tenure->number : 0;
    hli_mutex_unlock(&name->mutex);
    return number;
}

/* An owner that writes may read as well. */
static int rw_read_prepare(const hl_lock *lock, struct hl_owner *owner,
                           struct hli_acquire_mode *mode, hl_error *err)
{
    struct hli_beside beside;

    (void)err;
    if (hli_hold_beside(lock->handle.name, owner, &beside)) {
        mode->under = beside.number;
        mode->under_term = beside.term;
    }
    return 0;
}

/* A reader cannot become a writer: it would wait for itself, and two readers for each other. An
 * owner that writes already reenters. */
static int rw_write_prepare(const hl_lock *lock, struct hl_owner *owner,
                            struct hli_acquire_mode *mode, hl_error *err)
{
    struct hli_beside beside;

    (void)mode;
    if (rw_number_held(lock->handle.name, owner) != 0 ||
        !hli_hold_beside(lock->handle.name, owner, &beside))
        return 0;
    return hli_name_refuse(err, HL_EDEADLK, lock->handle.name, HL_CALL_ACQUIRE,
                           "its owner reads, and would wait for itself: release the read first");
}

const struct hli_lock_type hli_read_type = {
    .kind = &rw_kind_read,
    .prepare = rw_read_prepare,
};

const struct hli_lock_type hli_write_type = {
    .kind = &rw_kind_write,
    .flags = HL_LOCK_PREFER_WRITERS,
    .prepare = rw_write_prepare,
};
