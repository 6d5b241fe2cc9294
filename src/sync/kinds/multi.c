/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The members of a multi-lock: in order, each once. */
#include "sync/kinds/multi.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/state/name.h"

#include <stdlib.h>
#include <string.h>

static void multi_free(struct hli_multi *multi)
{
    for (size_t i = 0; i < multi->count; i++)
        hli_handle_deinit(&multi->members[i].handle);
    free(multi->name);
    hli_span_unref(multi->span);
    free(multi);
}

void hli_multi_unref(struct hli_multi *multi)
{
    if (multi && hli_ref_drop(&multi->ref))
        multi_free(multi);
}

/* By the slots, which are all 0 but in a cluster, and then by the names' bytes: the members that
 * one request can acquire stand together. All processes have this order; it does not know servers,
 * as processes may know one server by different addresses. */
static int multi_compare(const hl_lock *one, const hl_lock *other)
{
    int slots = (int)one->handle.name->slot - (int)other->handle.name->slot;

    if (slots != 0)
        return slots;
    size_t length = one->handle.name->length, others = other->handle.name->length;
    int order = memcmp(one->handle.name->bytes, other->handle.name->bytes,
                       length < others ? length : others);

    return order != 0 ? order : (length > others) - (length < others);
}

/* The place of this member among the sorted ones, or the place where it belongs: behind those of
 * the same name at other servers that were given before. */
static size_t multi_place(const struct hli_multi *multi, const hl_lock *member, bool *ret_is_there)
{
    size_t at = 0;
    int order;

    *ret_is_there = false;
    while (at < multi->count && (order = multi_compare(member, &multi->members[at])) >= 0) {
        *ret_is_there =
            order == 0 && member->handle.name->client == multi->members[at].handle.name->client;
        if (*ret_is_there)
            break;
        at++;
    }
    return at;
}

/* False: the name is there already as a lock of another kind. */
static bool multi_insert(struct hli_multi *multi, const hl_lock *member)
{
    bool is_there = false;
    size_t at = multi_place(multi, member, &is_there);

    if (is_there)
        return multi->members[at].handle.name->kind == member->handle.name->kind;
    memmove(&multi->members[at + 1], &multi->members[at],
            (multi->count - at) * sizeof(multi->members[0]));
    multi->members[at] = *member;
    hli_name_ref(member->handle.name);
    multi->count++;
    return true;
}

/* Joins the members' names with commas. */
static int multi_join_names(struct hli_multi *multi)
{
    size_t size = 1, used = 0;

    HLI_CHECK(multi->count > 0);
    for (size_t i = 0; i < multi->count; i++)
        size += multi->members[i].handle.name->length + 1;
    multi->name = malloc(size);
    if (!multi->name)
        return hli_no_memory(NULL);
    for (size_t i = 0; i < multi->count; i++) {
        const struct hli_name *name = multi->members[i].handle.name;
        memcpy(multi->name + used, name->bytes, name->length);
        used += name->length;
        multi->name[used++] = i + 1 < multi->count ? ',' : '\0';
    }
    multi->name_length = used - 1;
    return 0;
}

/* One client needs no span. */
static int multi_fill_span(struct hli_multi *multi, hl_lock *const *members)
{
    struct hli_span *span = hli_span_new(multi->given);

    if (!span)
        return HL_ENOMEM;
    for (size_t i = 0; i < multi->given; i++)
        hli_span_add(span, members[i]->handle.name->client);
    if (span->count > 1)
        multi->span = span;
    else
        hli_span_unref(span);
    return 0;
}

static int multi_fill(struct hli_multi *multi, hl_lock *const *members, hl_error *err)
{
    bool is_there;

    for (size_t i = 0; i < multi->given; i++)
        if (!multi_insert(multi, members[i]))
            return hli_fail(err, HL_EINVAL, "a name is given as two kinds of locks");
    if (multi_fill_span(multi, members) < 0 || multi_join_names(multi) < 0)
        return hli_no_memory(err);
    for (size_t i = 0; i < multi->given; i++)
        multi->member_of[i] = (unsigned char)multi_place(multi, members[i], &is_there);
    return 0;
}

int hli_multi_new(hl_lock *const *members, size_t count, struct hli_multi **ret_multi,
                  hl_error *err)
{
    struct hli_multi *multi = calloc(1, sizeof(*multi) + count * sizeof(struct hl_lock));

    if (!multi)
        return hli_no_memory(err);
    hli_ref_init(&multi->ref); /* the handle's */
    multi->given = count;
    int rc = multi_fill(multi, members, err);
    if (rc < 0)
        multi_free(multi);
    else
        *ret_multi = multi;
    return rc;
}
