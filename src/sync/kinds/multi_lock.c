/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The multi-lock: its handle; acquire and release. */
#include <hirelock/multi_lock.h>

#include "base/check.h"
#include "base/error.h"
#include "lease/several/acquire_all.h"
#include "lease/several/release_all.h"
#include "sync/common/acquire_options.h"
#include "sync/kinds/multi.h"
#include "sync/lock/lock_kind.h"

#include <stdlib.h>
#include <string.h>

/* The handle, with its members. */
struct multi_lock {
    struct hl_lock lock;     /* of the name that was given first, for its client */
    struct hli_multi *multi; /* counted */
};

/* The members if the handle is a multi-lock; else NULL. */
static struct hli_multi *multi_of(const hl_lock *lock)
{
    return lock->type->several ? ((const struct multi_lock *)lock)->multi : NULL;
}

static void multi_drop(hl_lock *lock)
{
    hli_multi_unref(multi_of(lock));
}

static const char *multi_name(const hl_lock *lock, size_t *ret_length)
{
    const struct hli_multi *multi = multi_of(lock);

    if (ret_length)
        *ret_length = multi->name_length;
    return multi->name;
}

static int multi_check_members(hl_lock *const *members, size_t count, hl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!members[i])
            return hli_fail(err, HL_EINVAL, "a member is NULL");
        if (multi_of(members[i]))
            return hli_fail(err, HL_EINVAL, "a member is a multi-lock itself");
        if (members[i]->type->stands_alone)
            return hli_fail(err, HL_EINVAL, "a member is a Redlock, which stands alone");
        int rc = hli_client_check(members[i]->handle.name->client);
        if (rc < 0)
            return hli_fail(err, rc, "%s", hl_err_text(rc));
    }
    return 0;
}

static int multi_read_options(const struct hli_multi *multi, const hl_lock_options *passed,
                              hl_lock_options *ret, hl_error *err)
{
    int rc = hli_lock_read_options(passed, ret, err);

    if (rc == 0 && (ret->name || ret->name_length > 0 || ret->kind != HL_LOCK_REENTRANT))
        rc = hli_fail(err, HL_EINVAL, "a multi-lock has no name and no kind of its own");
    if (rc == 0 && (ret->backoff_min_ms != 0 || ret->backoff_max_ms != 0))
        rc = hli_fail(err, HL_EINVAL, "a multi-lock has no backoff: its members may");
    for (size_t i = 0; rc == 0 && i < multi->count; i++) {
        hl_lock_options each = *ret;
        rc = hli_lock_check_options(multi->members[i].type, &each, err);
    }
    return rc;
}

/* Gives the handle's options to each member, which keeps its type. */
static void multi_set_options(struct multi_lock *handle, const hl_lock_options *options)
{
    handle->lock.flags = options->flags & HLI_LOCK_FLAGS;
    for (size_t i = 0; i < handle->multi->count; i++) {
        hl_lock *member = &handle->multi->members[i];
        unsigned own = member->flags & ~(unsigned)HL_LOCK_ASYNC_RELEASE;
        member->flags = (own | handle->lock.flags) & HLI_LOCK_FLAGS;
        member->retain_ms = (unsigned)options->retain_ms & HLI_LOCK_RETAIN_MS;
    }
}

/* The caller has entered all clients. */
static int multi_acquire(const hl_lock *lock, const hl_acquire_options *options,
                         const struct hli_completion *completion)
{
    const struct hli_multi *multi = multi_of(lock);
    struct hli_acquire_spec specs[HLI_SEVERAL_LIMIT];
    struct hli_acquire_all_spec what = {lock->handle.name->client, multi->span, specs, 0};
    int rc = 0;

    while (rc == 0 && what.count < multi->count) {
        const hl_lock *member = &multi->members[what.count];
        rc = hli_lock_prepare(member, options, &specs[what.count], completion->err);
        what.count += rc == 0;
    }
    if (rc == 0)
        rc = hli_acquire_all_run(&what, completion);
    while (what.count > 0)
        hli_name_unref(specs[--what.count].name);
    return rc;
}

/* An explicit owner of any of the clients may be that of all members. */
static int multi_check_owner(const struct hli_span *span, const hl_owner *owner, hl_error *err)
{
    if (!owner->client || hli_span_place(span, owner->client) < span->count)
        return 0;
    return hli_fail(err, HL_EINVAL, "the owner belongs to another client");
}

/* A completion may free the handle before this returns. */
static int multi_acquire_span(const hl_lock *lock, const hl_acquire_options *options,
                              const struct hli_completion *completion)
{
    struct hli_span *span = multi_of(lock)->span;
    int rc = multi_check_owner(span, options->owner, completion->err);

    if (rc < 0)
        return rc;
    rc = hli_span_enter(span);
    if (rc < 0)
        return hli_fail(completion->err, rc, "%s", hl_err_text(rc));
    hli_span_ref(span);
    rc = multi_acquire(lock, options, completion);
    hli_span_leave(span);
    hli_span_unref(span);
    return rc;
}

/* The members' names for this owner. A missing name is made, so that the release reports that its
 * lock is not held. */
static int multi_release_items(const struct hli_multi *multi, const struct hli_span *open,
                               const hl_owner *owner, struct hli_release_all_item *items,
                               size_t *ret_count)
{
    for (size_t i = 0; i < multi->count; i++) {
        const hl_lock *member = &multi->members[i];
        items[i].is_closed =
            open && hli_span_place(open, member->handle.name->client) == open->count;
        items[i].name = hli_lock_look_up(member, owner, hli_name_get);
        if (!items[i].name)
            return HL_ENOMEM;
        items[i].mode = hli_lock_release_mode(member);
        *ret_count = i + 1;
    }
    return 0;
}

/* open: those of the clients that are not closed; NULL if there is only one. */
static int multi_release_entered(const hl_lock *lock, hl_owner *owner, struct hli_span *open,
                                 const struct hli_completion *completion)
{
    const struct hli_multi *multi = multi_of(lock);
    struct hli_release_all_item items[HLI_SEVERAL_LIMIT] = {{.name = NULL}};
    struct hli_release_all_spec what = {
        .client = open ? open->clients[0] : lock->handle.name->client,
        .span = open,
        .owner = owner,
        .items = items,
        .codes = {.ret = completion->ret_codes, .count = multi->given}};
    int rc = multi_release_items(multi, open, owner, items, &what.count);

    memcpy(what.codes.item, multi->member_of, sizeof(multi->member_of));
    rc = rc < 0 ? hli_no_memory(completion->err) : hli_release_all_run(&what, completion);
    for (size_t i = 0; i < what.count; i++)
        hli_name_unref(items[i].name);
    return rc;
}

static int multi_release(const hl_lock *lock, hl_owner *passed,
                         const struct hli_completion *completion)
{
    hl_owner *owner = NULL;
    int rc = hli_handle_enter(&lock->handle, completion);

    if (rc < 0)
        return rc;
    hl_client *client = lock->handle.name->client;
    rc = hli_owner_read(client, passed, completion, &owner);
    if (rc == 0)
        rc = multi_release_entered(lock, owner, NULL, completion);
    hli_client_leave(client);
    return rc;
}

/* The members of open clients are released also when another client is closed. */
static int multi_release_span(const hl_lock *lock, hl_owner *passed,
                              const struct hli_completion *completion)
{
    struct hli_span *open = NULL;
    hl_owner *owner = NULL;

    if (completion->is_async && !completion->done)
        return hli_fail(completion->err, HL_EINVAL, "done is NULL");
    int rc = hli_span_enter_open(multi_of(lock)->span, &open);
    if (rc < 0)
        return hli_fail(completion->err, rc, "%s", hl_err_text(rc));
    rc = hli_owner_read(NULL, passed, completion, &owner);
    if (rc == 0)
        rc = multi_check_owner(multi_of(lock)->span, owner, completion->err);
    if (rc == 0)
        rc = multi_release_entered(lock, owner, open, completion);
    hli_span_leave(open);
    hli_span_unref(open);
    return rc;
}

/* The smallest value of each field over the members. A multi-lock has no token. */
static struct hli_lock_view multi_view(const hl_lock *lock, const hl_owner *owner)
{
    const struct hli_multi *multi = multi_of(lock);
    struct hli_lock_view least = hli_lock_view(&multi->members[0], owner);

    for (size_t i = 1; i < multi->count; i++) {
        const struct hli_lock_view view = hli_lock_view(&multi->members[i], owner);
        least.is_held = least.is_held && view.is_held;
        if (view.validity_ms < least.validity_ms)
            least.validity_ms = view.validity_ms;
        if (view.count < least.count)
            least.count = view.count;
    }
    least.token = 0;
    return least;
}

static int multi_inspect(const hl_lock *lock, const struct hli_completion *completion)
{
    return hli_multi_inspect(lock, multi_of(lock), completion);
}

static int multi_force_release(const hl_lock *lock, const struct hli_completion *completion)
{
    return hli_multi_force_release(lock, multi_of(lock), completion);
}

static const struct hli_lock_verbs multi_verbs = {
    .acquire = multi_acquire,
    .release = multi_release,
    .inspect = multi_inspect,
    .force_release = multi_force_release,
    .view = multi_view,
    .name = multi_name,
    .drop = multi_drop,
};

static const struct hli_lock_verbs multi_span_verbs = {
    .is_span = true,
    .acquire = multi_acquire_span,
    .release = multi_release_span,
    .inspect = multi_inspect,
    .force_release = multi_force_release,
    .view = multi_view,
    .name = multi_name,
    .drop = multi_drop,
};

static const struct hli_lock_type multi_type = {.kind = &hli_kind_lock, .several = &multi_verbs};
static const struct hli_lock_type multi_span_type = {.kind = &hli_kind_lock,
                                                     .several = &multi_span_verbs};

static int multi_make(hl_lock *const *members, size_t count, const hl_lock_options *passed,
                      hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    struct hli_multi *multi = NULL;
    struct multi_lock *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return hli_no_memory(err);
    int rc = hli_multi_new(members, count, &multi, err);
    if (multi)
        rc = multi_read_options(multi, passed, &options, err);
    if (!multi || rc < 0) {
        hli_multi_unref(multi);
        free(handle);
        return rc;
    }
    handle->multi = multi;
    handle->lock.type = multi->span ? &multi_span_type : &multi_type;
    handle->lock.handle.name = members[0]->handle.name;
    hli_name_ref(handle->lock.handle.name);
    multi_set_options(handle, &options);
    *ret_lock = &handle->lock;
    return 0;
}

int hl_multi_lock_new(hl_lock *const *members, size_t count, const hl_lock_options *options,
                      hl_lock **ret_lock, hl_error *err)
{
    if (!members || !ret_lock)
        return hli_fail(err, HL_EINVAL, "the members or ret_lock is NULL");
    if (count < 1 || count > HLI_SEVERAL_LIMIT)
        return hli_fail(err, HL_EINVAL, "a multi-lock has 1 to %d members", HLI_SEVERAL_LIMIT);
    int rc = multi_check_members(members, count, err);
    return rc < 0 ? rc : multi_make(members, count, options, ret_lock, err);
}

/* If the release does not begin, each member gets the code of the whole call. */
int hl_multi_lock_release_each(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_error *err)
{
    enum { UNTOLD = 1 };
    const struct hli_multi *multi = lock ? multi_of(lock) : NULL;

    if (!multi || !ret_codes)
        return hli_fail(err, HL_EINVAL, "%s",
                        ret_codes ? "the lock is no multi-lock" : "ret_codes is NULL");
    for (size_t i = 0; i < multi->given; i++)
        ret_codes[i] = UNTOLD;
    int rc = hli_lock_release(lock, owner, NULL,
                              &(struct hli_completion){.err = err, .ret_codes = ret_codes});
    for (size_t i = 0; i < multi->given; i++)
        if (ret_codes[i] == UNTOLD)
            ret_codes[i] = rc;
    return rc;
}

/* A release that has begun fills the codes before its completion runs. */
struct multi_release_each {
    hl_codes_cb done;
    void *arg;
    size_t count;
    int codes[];
};

static void multi_each_released(int code, const hl_error *err, void *arg)
{
    struct multi_release_each *each = arg;

    each->done(code, each->codes, each->count, err, each->arg);
    free(each);
}

int hl_multi_lock_release_each_async(hl_lock *lock, hl_owner *owner, hl_codes_cb done, void *arg)
{
    const struct hli_multi *multi = lock ? multi_of(lock) : NULL;

    if (!multi || !done)
        return hli_fail(NULL, HL_EINVAL, "%s", done ? "the lock is no multi-lock" : "done is NULL");
    struct multi_release_each *each = malloc(sizeof(*each) + multi->given * sizeof(int));
    if (!each)
        return hli_no_memory(NULL);
    *each = (struct multi_release_each){done, arg, multi->given};
    int rc = hli_lock_release(
        lock, owner, NULL,
        &(struct hli_completion){
            .is_async = true, .ret_codes = each->codes, .done = multi_each_released, .arg = each});
    if (rc < 0)
        free(each);
    return rc;
}
