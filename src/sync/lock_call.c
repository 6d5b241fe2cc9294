/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release: one request, one answer, blocking or async. */
#include "base/check.h"
#include "base/error.h"
#include "lease/tag.h"
#include "sync/lock.h"
#include "sync/multi_lock.h"
#include "sync/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lock_inspect {
    struct hli_query query;
    hl_lock_info info;
    hl_lock_info *ret_info; /* of a blocking call */
    hl_inspect_cb inspected;
};

static struct lock_inspect *lock_inspect_of(struct hli_query *query)
{
    return HLI_OF(query, struct lock_inspect, query);
}

/* {..., holder, count, tag, seconds, microseconds}; a count of 0 rests, and its holder has gone. */
static void inspect_read_tag(const struct hli_reply *reply, hl_lock_info *info)
{
    const struct hli_reply *owner = hli_reply_text_at(reply, 2), *tag = hli_reply_text_at(reply, 4);
    struct hli_holder holder = {.pid = 0};
    int64_t seconds = 0, microseconds = 0;

    hli_reply_integer_at(reply, 5, &seconds);
    hli_reply_integer_at(reply, 6, &microseconds);
    if (tag && info->hold_count > 0 &&
        hli_tag_read(tag->text, owner->text, seconds * 1000 + microseconds / 1000, &holder))
        hli_tag_tell(&holder, info);
}

static int inspect_read(struct hli_query *query, const struct hli_reply *reply)
{
    hl_lock_info *info = &lock_inspect_of(query)->info;
    const struct hli_reply *owner = hli_reply_text_at(reply, 2);
    const char *id = query->name->client->id;
    int64_t locked = 0, count = 0;

    if (!owner || !hli_reply_integer_at(reply, 0, &locked) ||
        !hli_reply_integer_at(reply, 3, &count) ||
        !hli_reply_integer_at(reply, 1, &info->lease_left_ms))
        return HL_ESERVER;
    info->locked = locked == 1;
    if (!info->locked)
        info->lease_left_ms = 0;
    info->hold_count = count < 0 || count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    const char *field = owner->text; /* the text is longer than its array: clang would object */
    info->mine = strncmp(field, id, HLI_UUID_LENGTH) == 0 && field[HLI_UUID_LENGTH] == ':';
    snprintf(info->owner, sizeof(info->owner), "%s", field);
    inspect_read_tag(reply, info);
    return HL_OK;
}

static void inspect_settle(struct hli_query *query, int code)
{
    struct lock_inspect *inspect = lock_inspect_of(query);
    hl_lock_info *to = inspect->ret_info;

    if (code < 0 || !to)
        return;
    inspect->info.size = to->size;
    memcpy(to, &inspect->info, to->size < sizeof(*to) ? to->size : sizeof(*to));
}

static void inspect_tell(struct hli_query *query, int code, const hl_error *err)
{
    struct lock_inspect *inspect = lock_inspect_of(query);

    inspect->inspected(code, code < 0 ? NULL : &inspect->info, err, query->told.arg);
}

static const struct hli_query_kind lock_inspect_kind = {
    .verb = "inspect",
    .is_repeatable = true,
    .read = inspect_read,
    .settle = inspect_settle,
    .tell = inspect_tell,
};

static struct lock_inspect *lock_inspect_new(const hl_lock *lock)
{
    struct hli_query *query =
        hli_query_new(&lock_inspect_kind, lock->name, sizeof(struct lock_inspect));

    if (query && lock->type->inspect(lock->name, &query->call.op) < 0) {
        hli_query_unref(query);
        return NULL;
    }
    if (!query)
        return NULL;
    lock_inspect_of(query)->info = (hl_lock_info)HL_LOCK_INFO_INIT;
    return lock_inspect_of(query);
}

static int force_read(struct hli_query *query, const struct hli_reply *reply)
{
    int64_t status = 0;

    (void)query;
    if (!hli_reply_integer_at(reply, 0, &status))
        return HL_ESERVER;
    return status == 1 ? HL_OK : HL_ENOTOWNER;
}

static void name_look_at_hold(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    if (name->current && name->current->state == HLI_TENURE_IDLE) {
        hli_release_quietly(&turn, name->current);
    } else if (name->current && name->current->state == HLI_TENURE_OWN) {
        name->current->is_doubted = true;
        name->current->renew_at = turn.now;
        hli_turn_watch(&turn, name->current, turn.now);
    }
    hli_turn_end(&turn);
}

static void name_look_if_sibling(struct hli_name *name, void *arg)
{
    const struct hli_name *other = arg;

    bool is_kin = name->kind == other->kind || name->kind == other->kind->sister;

    if (is_kin && name->length == other->length &&
        memcmp(name->bytes, other->bytes, name->length) == 0)
        name_look_at_hold(name);
}

struct lock_review {
    struct hli_task task;
    struct hli_name *name; /* counted */
};

static void lock_review_free(struct lock_review *review)
{
    hli_name_unref(review->name);
    free(review);
}

static void lock_review_run(void *arg)
{
    struct lock_review *review = arg;

    hli_names_visit(review->name->client, name_look_if_sibling, review->name);
    lock_review_free(review);
}

/* A hold of this process may be the one that was deleted: it is told at once, not with its next
 * renewal; and what lingers must not be taken up again. Where each owner has a name of his own, or
 * the other half of the lock goes with it, the loop looks for them; without memory they learn it by
 * their renewals. */
static void lock_look_at_hold(struct hli_name *name)
{
    if (!name->kind->is_per_owner)
        name_look_at_hold(name);
    if (!name->kind->is_per_owner && !name->kind->sister)
        return;
    struct lock_review *review = malloc(sizeof(*review));
    if (!review)
        return;
    hli_name_ref(name);
    *review = (struct lock_review){.task = {.run = lock_review_run, .arg = review}, .name = name};
    if (!hli_loop_post(name->client->loop, &review->task))
        lock_review_free(review); /* told by the close */
}

static void force_settle(struct hli_query *query, int code)
{
    if (code == HL_OK)
        lock_look_at_hold(query->name);
}

/* A repeated one could hit the next holder. */
static const struct hli_query_kind lock_force_kind = {
    .verb = "force release",
    .is_deed = true,
    .read = force_read,
    .settle = force_settle,
};

static struct hli_query *lock_force_new(const hl_lock *lock)
{
    struct hli_query *query = hli_query_new(&lock_force_kind, lock->name, sizeof(struct hli_query));

    if (query && lock->type->force(lock->name, &query->call.op) < 0) {
        hli_query_unref(query);
        return NULL;
    }
    return query;
}

static int lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    if (!info || info->size < sizeof(info->size))
        return hli_fail(err, HL_EINVAL, "info is NULL, or its size is not set");
    if (hli_multi_of(lock))
        return hli_multi_inspect(lock, info, err);
    struct lock_inspect *inspect = lock_inspect_new(lock);
    if (inspect)
        inspect->ret_info = info;
    return hli_query_block(inspect ? &inspect->query : NULL, NULL, err);
}

int hl_lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = lock_inspect(lock, info, err);
    hli_lock_leave(lock);
    return rc;
}

int hl_lock_force_release(hl_lock *lock, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = hli_multi_of(lock) ? hli_multi_force_release(lock, err)
                            : hli_query_block(lock_force_new(lock), NULL, err);
    hli_lock_leave(lock);
    return rc;
}

static int lock_inspect_post(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    if (hli_multi_of(lock))
        return hli_multi_inspect_async(lock, done, arg);
    struct lock_inspect *inspect = lock_inspect_new(lock);
    if (!inspect)
        return HL_ENOMEM;
    inspect->inspected = done;
    return hli_query_post(&inspect->query, &(struct hli_told){.arg = arg});
}

int hl_lock_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    int rc = done ? hli_lock_enter(lock, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    rc = lock_inspect_post(lock, done, arg);
    hli_client_leave(client);
    return rc;
}

int hl_lock_force_release_async(hl_lock *lock, hl_done_cb done, void *arg)
{
    int rc = done ? hli_lock_enter(lock, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    rc = hli_multi_of(lock)
             ? hli_multi_force_release_async(lock, done, arg)
             : hli_query_post(lock_force_new(lock), &(struct hli_told){.done = done, .arg = arg});
    hli_client_leave(client);
    return rc;
}
