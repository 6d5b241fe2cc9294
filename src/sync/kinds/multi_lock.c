/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The multi-lock: its handle; acquire and release; inspect and force-release, one member after the
 * other. */
#include <hirelock/multi_lock.h>

#include "base/check.h"
#include "base/error.h"
#include "base/versioned.h"
#include "lease/several/acquire_all.h"
#include "lease/several/release_all.h"
#include "sync/kinds/multi.h"
#include "sync/lock/lock_kind.h"

#include <stdlib.h>
#include <string.h>

/* The handle, with its members. */
struct multi_lock {
    struct hl_lock lock;     /* of the first member's name, for its client */
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
        if (members[i]->handle.name->client != members[0]->handle.name->client)
            return hli_fail(err, HL_EINVAL, "the members belong to several clients");
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
    handle->lock.flags = (uint16_t)options->flags;
    for (size_t i = 0; i < handle->multi->count; i++) {
        hl_lock *member = &handle->multi->members[i];
        member->flags = (uint16_t)((member->flags & ~HL_LOCK_ASYNC_RELEASE) | handle->lock.flags);
        member->retain_ms = (uint16_t)options->retain_ms;
    }
}

static int multi_acquire(const hl_lock *lock, const hl_acquire_options *options,
                         const struct hli_completion *completion)
{
    const struct hli_multi *multi = multi_of(lock);
    struct hli_acquire_spec specs[HLI_SEVERAL_LIMIT];
    size_t ready = 0;
    int rc = 0;

    while (rc == 0 && ready < multi->count) {
        rc = hli_lock_prepare(&multi->members[ready], options, &specs[ready], completion->err);
        ready += rc == 0;
    }
    if (rc == 0)
        rc = hli_acquire_all_run(specs, ready, completion);
    while (ready > 0)
        hli_name_unref(specs[--ready].name);
    return rc;
}

/* The members' names for this owner. A missing name is made, so that the release reports that its
 * lock is not held. */
static int multi_release_items(const struct hli_multi *multi, const hl_owner *owner,
                               struct hli_release_all_item *items, size_t *ret_count)
{
    for (size_t i = 0; i < multi->count; i++) {
        const hl_lock *member = &multi->members[i];
        items[i].name = hli_lock_look_up(member, owner, hli_name_get);
        if (!items[i].name)
            return HL_ENOMEM;
        items[i].mode = hli_lock_release_mode(member);
        *ret_count = i + 1;
    }
    return 0;
}

static int multi_release(const hl_lock *lock, hl_owner *owner,
                         const struct hli_completion *completion)
{
    const struct hli_multi *multi = multi_of(lock);
    struct hli_release_all_item items[HLI_SEVERAL_LIMIT] = {{.name = NULL}};
    struct hli_release_all_spec what = {
        .owner = owner,
        .items = items,
        .codes = {.ret = completion->ret_codes, .count = multi->given}};
    int rc = multi_release_items(multi, owner, items, &what.count);

    memcpy(what.codes.item, multi->member_of, sizeof(multi->member_of));
    rc = rc < 0 ? hli_no_memory(completion->err) : hli_release_all_run(&what, completion);
    for (size_t i = 0; i < what.count; i++)
        hli_name_unref(items[i].name);
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

/* Ranks what stops a caller: held by another client, then free, then held by this client. */
static int multi_info_rank(const hl_lock_info *info)
{
    return info->locked && !info->mine ? 2 : !info->locked ? 1 : 0;
}

/* Keeps the answer of the highest rank. True when no other answer can rank higher. */
static bool multi_info_keep(hl_lock_info *best, const hl_lock_info *info, bool is_first)
{
    if (is_first || multi_info_rank(info) > multi_info_rank(best))
        *best = *info;
    return multi_info_rank(best) == 2;
}

/* Combines the members' codes so far with another one: an error wins, then a release. */
static int multi_force_code(int code, int other)
{
    if (code == HL_ENOENT || other == HL_ENOENT)
        return code == HL_ENOENT ? other : code;
    return hli_release_all_worse(code, other);
}

/* A call's way through the members. */
struct multi_tour {
    struct hli_multi *multi; /* counted if the call is async */
    bool inspects;           /* else it releases */
    size_t next;
    int code;
    hl_error err;
    hl_lock_info best;
    struct hli_completion completion;
};

/* Notes the next member's answer. True: there is another one to ask. */
static bool multi_tour_answered(struct multi_tour *tour, int code, const hl_lock_info *info,
                                const hl_error *err)
{
    bool is_first = tour->next++ == 0, ends = false;
    int before = tour->code;

    tour->code = tour->inspects ? code : multi_force_code(before, code);
    if (tour->code < 0 && (tour->code != before || is_first))
        tour->err = *err;
    if (tour->inspects)
        ends = code < 0 || multi_info_keep(&tour->best, info, is_first);
    return !ends && tour->next < tour->multi->count;
}

static void multi_tour_end(struct multi_tour *tour)
{
    const hl_error *err = tour->code < 0 ? &tour->err : NULL;
    const struct hli_completion *completion = &tour->completion;

    if (tour->inspects)
        completion->inspected(tour->code, err ? NULL : &tour->best, err, completion->arg);
    else
        completion->done(tour->code, err, completion->arg);
    hli_multi_unref(tour->multi);
    free(tour);
}

static int multi_tour_post(struct multi_tour *tour);

/* The next member is asked in the completion of the one before. */
static void multi_tour_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    struct multi_tour *tour = arg;

    if (multi_tour_answered(tour, code, info, err)) {
        code = multi_tour_post(tour);
        if (code == 0)
            return;
        tour->code = hli_fail(&tour->err, code, "%s", hl_err_text(code));
    }
    multi_tour_end(tour);
}

static void multi_tour_forced(int code, const hl_error *err, void *arg)
{
    multi_tour_inspected(code, NULL, err, arg);
}

static int multi_tour_post(struct multi_tour *tour)
{
    hl_lock *member = &tour->multi->members[tour->next];

    return tour->inspects ? hl_lock_inspect_async(member, multi_tour_inspected, tour)
                          : hl_lock_force_release_async(member, multi_tour_forced, tour);
}

static int multi_tour_begin(const struct multi_tour *begun)
{
    struct multi_tour *tour = malloc(sizeof(*tour));

    if (!tour)
        return hli_no_memory(NULL);
    *tour = *begun;
    hli_ref_take(&tour->multi->ref);
    int rc = multi_tour_post(tour);
    if (rc < 0) {
        hli_multi_unref(tour->multi);
        free(tour);
    }
    return rc;
}

static int multi_tour_block(struct multi_tour *tour)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info;
    int code;

    do {
        hl_lock *member = &tour->multi->members[tour->next];
        info = (hl_lock_info)HL_LOCK_INFO_INIT;
        code = tour->inspects ? hl_lock_inspect(member, &info, &err)
                              : hl_lock_force_release(member, &err);
    } while (multi_tour_answered(tour, code, &info, &err));
    if (tour->code < 0 && tour->completion.err)
        *tour->completion.err = tour->err;
    return tour->code;
}

static int multi_tour_run(const hl_lock *lock, struct multi_tour *tour)
{
    int rc = hli_handle_enter(&lock->handle, &tour->completion);

    if (rc < 0)
        return rc;
    hl_client *client = lock->handle.name->client;
    rc = tour->completion.is_async ? multi_tour_begin(tour) : multi_tour_block(tour);
    hli_client_leave(client);
    return rc;
}

static int multi_inspect(const hl_lock *lock, const struct hli_completion *completion)
{
    struct multi_tour tour = {.multi = multi_of(lock), .inspects = true, .completion = *completion};
    int rc = multi_tour_run(lock, &tour);

    if (rc == 0 && completion->ret_info)
        hli_versioned_write(completion->ret_info, sizeof(tour.best), &tour.best);
    return rc;
}

static int multi_force_release(const hl_lock *lock, const struct hli_completion *completion)
{
    struct multi_tour tour = {
        .multi = multi_of(lock), .code = HL_ENOENT, .completion = *completion};

    return multi_tour_run(lock, &tour);
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

static const struct hli_lock_type multi_type = {.kind = &hli_kind_lock, .several = &multi_verbs};

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
    handle->lock.type = &multi_type;
    handle->lock.handle.name = multi->members[0].handle.name;
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
    if (rc < 0)
        return rc;
    rc = hli_client_check(members[0]->handle.name->client);
    return rc < 0 ? hli_fail(err, rc, "%s", hl_err_text(rc))
                  : multi_make(members, count, options, ret_lock, err);
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
