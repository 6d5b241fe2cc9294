/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release: one request, one answer, blocking or async. */
#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"
#include "sync/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lock_call {
    struct hli_call call;
    struct hli_name *name; /* counted */
    hl_lock_info info;
    hl_done_cb done; /* of an async call, one of the two */
    hl_inspect_cb inspected;
    void *arg;
};

static struct lock_call *lock_call_of(struct hli_call *call)
{
    return HLI_OF(call, struct lock_call, call);
}

static void lock_call_freed(struct hli_call *call)
{
    hli_name_unref(lock_call_of(call)->name);
    free(lock_call_of(call));
}

static int inspect_read(struct hli_call *call, const struct hli_reply *reply)
{
    hl_lock_info *info = &lock_call_of(call)->info;
    const struct hli_reply *owner = hli_reply_text_at(reply, 2);
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
    info->mine =
        strncmp(field, call->client->id, HLI_UUID_LENGTH) == 0 && field[HLI_UUID_LENGTH] == ':';
    snprintf(info->owner, sizeof(info->owner), "%s", field);
    return HL_OK;
}

static int force_read(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t status = 0;

    (void)call;
    if (!hli_reply_integer_at(reply, 0, &status))
        return HL_ESERVER;
    return status == 1 ? HL_OK : HL_ENOTOWNER;
}

/* A repeated inspect is harmless; a repeated force-release could hit the next holder. */
static struct lock_call *lock_call_new(const hl_lock *lock, bool is_inspect)
{
    int (*format)(const struct hli_name *, struct hli_op *) =
        is_inspect ? lock->type->inspect : lock->type->force;
    struct lock_call *call = calloc(1, sizeof(*call));

    if (!call)
        return NULL;
    hli_name_ref(lock->name);
    call->name = lock->name;
    call->info = (hl_lock_info)HL_LOCK_INFO_INIT;
    hli_call_init(&call->call, lock->name->client, is_inspect ? "inspect" : "force release", -1);
    call->call.is_repeatable = is_inspect;
    call->call.read = is_inspect ? inspect_read : force_read;
    call->call.freed = lock_call_freed;
    if (format(lock->name, &call->call.op) < 0) {
        hli_call_unref(&call->call);
        return NULL;
    }
    return call;
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

    if (name->kind == other->kind && name->length == other->length &&
        memcmp(name->bytes, other->bytes, name->length) == 0)
        name_look_at_hold(name);
}

struct lock_review {
    struct hli_task task;
    struct hli_name *name; /* counted */
};

static void lock_review_run(void *arg)
{
    struct lock_review *review = arg;

    hli_names_visit(review->name->client, name_look_if_sibling, review->name);
    hli_name_unref(review->name);
    free(review);
}

/* A hold of this process may be the one that was deleted: it is told at once, not with its next
 * renewal; and what lingers must not be taken up again. Where each owner has a name of his own, the
 * loop looks for them; without memory they learn it by their renewals. */
static void lock_look_at_hold(struct hli_name *name)
{
    if (!name->kind->is_per_owner) {
        name_look_at_hold(name);
        return;
    }
    struct lock_review *review = malloc(sizeof(*review));
    if (!review)
        return;
    hli_name_ref(name);
    *review = (struct lock_review){.task = {.run = lock_review_run, .arg = review}, .name = name};
    hli_loop_post(name->client->loop, &review->task);
}

static int lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    if (!info || info->size < sizeof(info->size))
        return hli_fail(err, HL_EINVAL, "info is NULL, or its size is not set");
    struct lock_call *call = lock_call_new(lock, true);
    if (!call)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_call_block(&call->call, err);
    if (rc == HL_OK) {
        call->info.size = info->size;
        memcpy(info, &call->info, info->size < sizeof(*info) ? info->size : sizeof(*info));
    }
    hli_call_unref(&call->call);
    return rc;
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

static int lock_force_release(hl_lock *lock, hl_error *err)
{
    struct lock_call *call = lock_call_new(lock, false);

    if (!call)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_call_block(&call->call, err);
    if (rc == HL_OK)
        lock_look_at_hold(lock->name);
    hli_call_unref(&call->call);
    return rc;
}

int hl_lock_force_release(hl_lock *lock, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = lock_force_release(lock, err);
    hli_lock_leave(lock);
    return rc;
}

static void inspect_tell(struct hli_call *call)
{
    struct lock_call *inspect = lock_call_of(call);
    int code = call->wait.code;

    inspect->inspected(code, code < 0 ? NULL : &inspect->info, hli_call_error(call), inspect->arg);
}

static void force_tell(struct hli_call *call)
{
    struct lock_call *force = lock_call_of(call);

    if (call->wait.code == HL_OK)
        lock_look_at_hold(force->name);
    force->done(call->wait.code, hli_call_error(call), force->arg);
}

static int inspect_begin(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    struct lock_call *call = lock_call_new(lock, true);

    if (!call)
        return HL_ENOMEM;
    call->inspected = done;
    call->arg = arg;
    return hli_call_begin(&call->call, inspect_tell);
}

int hl_lock_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    int rc = done ? hli_lock_enter(lock, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    rc = inspect_begin(lock, done, arg);
    hli_lock_leave(lock);
    return rc;
}

static int force_begin(hl_lock *lock, hl_done_cb done, void *arg)
{
    struct lock_call *call = lock_call_new(lock, false);

    if (!call)
        return HL_ENOMEM;
    call->done = done;
    call->arg = arg;
    return hli_call_begin(&call->call, force_tell);
}

int hl_lock_force_release_async(hl_lock *lock, hl_done_cb done, void *arg)
{
    int rc = done ? hli_lock_enter(lock, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    rc = force_begin(lock, done, arg);
    hli_lock_leave(lock);
    return rc;
}
