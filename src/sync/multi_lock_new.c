/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Handles of multi-locks: members put in order, each once, and their common name. */
#include "base/check.h"
#include "base/error.h"
#include "lease/gather.h"
#include "sync/multi_lock.h"
#include "sync/named.h"

#include <stdlib.h>
#include <string.h>

/* Its verbs are its members'. */
const struct hli_lock_type hli_multi_type = {.kind = &hli_kind_lock};

void hli_multi_ref(struct hli_multi *multi)
{
    hli_ref_take(&multi->ref);
}

static void multi_free(struct hli_multi *multi)
{
    for (size_t i = 0; i < multi->count; i++)
        hli_named_put(multi->members[i].name);
    free(multi->member_of);
    free(multi->name);
    free(multi);
}

void hli_multi_unref(struct hli_multi *multi)
{
    if (multi && hli_ref_drop(&multi->ref))
        multi_free(multi);
}

const char *hli_multi_name(const struct hli_multi *multi, size_t *ret_length)
{
    if (ret_length)
        *ret_length = multi->name_length;
    return multi->name;
}

static int multi_check_members(hl_lock *const *members, size_t count, hl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!members[i])
            return hli_fail(err, HL_EINVAL, "a member is NULL");
        if (hli_multi_of(members[i]))
            return hli_fail(err, HL_EINVAL, "a member is a multi-lock itself");
        if (members[i]->name->client != members[0]->name->client)
            return hli_fail(err, HL_EINVAL, "the members belong to several clients");
    }
    return 0;
}

/* By the names' bytes. */
static int multi_compare(const hl_lock *one, const hl_lock *other)
{
    size_t length = one->name->length, others = other->name->length;
    int order = memcmp(one->name->bytes, other->name->bytes, length < others ? length : others);

    return order != 0 ? order : (length > others) - (length < others);
}

/* Where it is among those that are in order already, or where it belongs. */
static size_t multi_place(const struct hli_multi *multi, const hl_lock *member, bool *ret_is_there)
{
    size_t at = 0;
    int order = 1;

    while (at < multi->count && (order = multi_compare(member, &multi->members[at])) > 0)
        at++;
    *ret_is_there = at < multi->count && order == 0;
    return at;
}

/* False: it is there already as a lock of another kind. */
static bool multi_insert(struct hli_multi *multi, const hl_lock *member)
{
    bool is_there = false;
    size_t at = multi_place(multi, member, &is_there);

    if (is_there)
        return multi->members[at].name->kind == member->name->kind;
    memmove(&multi->members[at + 1], &multi->members[at],
            (multi->count - at) * sizeof(multi->members[0]));
    multi->members[at] = *member;
    hli_name_ref(member->name);
    multi->count++;
    return true;
}

/* With commas between them. */
static int multi_join_names(struct hli_multi *multi)
{
    size_t size = 1, used = 0;

    HLI_CHECK(multi->count > 0);
    for (size_t i = 0; i < multi->count; i++)
        size += multi->members[i].name->length + 1;
    multi->name = malloc(size);
    if (!multi->name)
        return HL_ENOMEM;
    for (size_t i = 0; i < multi->count; i++) {
        const struct hli_name *name = multi->members[i].name;
        memcpy(multi->name + used, name->bytes, name->length);
        used += name->length;
        multi->name[used++] = i + 1 < multi->count ? ',' : '\0';
    }
    multi->name_length = used - 1;
    return 0;
}

static int multi_fill(struct hli_multi *multi, hl_lock *const *members, hl_error *err)
{
    bool is_there;

    for (size_t i = 0; i < multi->given; i++)
        if (!multi_insert(multi, members[i]))
            return hli_fail(err, HL_EINVAL, "a name is given as two kinds of locks");
    multi->member_of = calloc(multi->given, sizeof(size_t));
    if (!multi->member_of || multi_join_names(multi) < 0)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    for (size_t i = 0; i < multi->given; i++)
        multi->member_of[i] = multi_place(multi, members[i], &is_there);
    return 0;
}

static int multi_new(hl_lock *const *members, size_t count, struct hli_multi **ret_multi,
                     hl_error *err)
{
    struct hli_multi *multi = calloc(1, sizeof(*multi) + count * sizeof(struct hl_lock));

    if (!multi)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_ref_init(&multi->ref); /* the handle's */
    multi->given = count;
    int rc = multi_fill(multi, members, err);
    if (rc < 0)
        multi_free(multi);
    else
        *ret_multi = multi;
    return rc;
}

static int multi_read_options(const struct hli_multi *multi, const hl_lock_options *passed,
                              hl_lock_options *ret, hl_error *err)
{
    for (size_t i = 0; i < multi->count; i++) {
        int rc = hli_lock_read_options(multi->members[i].type, passed, ret, err);
        if (rc < 0)
            return rc;
    }
    if (ret->name_length > 0)
        return hli_fail(err, HL_EINVAL, "a multi-lock has no name of its own");
    return 0;
}

/* What is said of the handle is said of each member, which stays what it is besides. */
static void multi_set_options(struct hli_multi_lock *handle, const hl_lock_options *options)
{
    hli_lock_set_options(&handle->lock, options);
    for (size_t i = 0; i < handle->multi->count; i++) {
        hl_lock *member = &handle->multi->members[i];
        bool is_flat = member->is_flat;
        hli_lock_set_options(member, options);
        member->is_flat = is_flat || handle->lock.is_flat;
    }
}

static int multi_make(hl_lock *const *members, size_t count, const hl_lock_options *passed,
                      hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    struct hli_multi *multi = NULL;
    struct hli_multi_lock *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = multi_new(members, count, &multi, err);
    if (multi)
        rc = multi_read_options(multi, passed, &options, err);
    if (!multi || rc < 0) {
        hli_multi_unref(multi);
        free(handle);
        return rc;
    }
    handle->multi = multi;
    handle->lock.type = &hli_multi_type;
    handle->lock.name = multi->members[0].name;
    hli_name_ref(handle->lock.name);
    multi_set_options(handle, &options);
    *ret_lock = &handle->lock;
    return 0;
}

int hl_multi_lock_new(hl_lock *const *members, size_t count, const hl_lock_options *options,
                      hl_lock **ret_lock, hl_error *err)
{
    if (!members || !ret_lock)
        return hli_fail(err, HL_EINVAL, "the members or ret_lock is NULL");
    if (count < 1 || count > HLI_GATHER_LIMIT)
        return hli_fail(err, HL_EINVAL, "a multi-lock has 1 to %d members", HLI_GATHER_LIMIT);
    int rc = multi_check_members(members, count, err);
    if (rc == 0)
        rc = hli_lock_check(members[0], err);
    return rc < 0 ? rc : multi_make(members, count, options, ret_lock, err);
}
