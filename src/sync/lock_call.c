/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release: one request, one answer, blocking or async. */
#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"
#include "sync/lock.h"

#include <stdio.h>
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

static int lock_call_format(struct lock_call *call, hli_script_id script)
{
    const struct hli_name *name = call->name;
    const struct hli_bytes key = {name->bytes, name->length};
    char channel[HLI_CHANNEL_SIZE];
    size_t length = hli_name_write(name, HLI_NAME_REDISSON_CHANNEL, channel);
    const struct hli_bytes args[] = {{channel, length}, hli_bytes_of("PUBLISH")};

    const struct hli_script_words said = {&key, 1, args,
                                          script == HLI_SCRIPT_LOCK_FORCE_RELEASE ? 2 : 0};

    return hli_op_script(&call->call.op, script, &said);
}

/* A repeated inspect is harmless; a repeated force-release could hit the next holder. */
static struct lock_call *lock_call_new(const hl_lock *lock, hli_script_id script)
{
    bool is_inspect = script == HLI_SCRIPT_LOCK_INSPECT;
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
    if (lock_call_format(call, script) < 0) {
        hli_call_unref(&call->call);
        return NULL;
    }
    return call;
}

/* A hold of this process may be the one that was deleted: it is told at once, not with its next
 * renewal; and what lingers must not be taken up again. */
static void lock_look_at_hold(struct hli_name *name)
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

static int lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    if (!info || info->size < sizeof(info->size))
        return hli_fail(err, HL_EINVAL, "info is NULL, or its size is not set");
    struct lock_call *call = lock_call_new(lock, HLI_SCRIPT_LOCK_INSPECT);
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
    struct lock_call *call = lock_call_new(lock, HLI_SCRIPT_LOCK_FORCE_RELEASE);

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
    struct lock_call *call = lock_call_new(lock, HLI_SCRIPT_LOCK_INSPECT);

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
    struct lock_call *call = lock_call_new(lock, HLI_SCRIPT_LOCK_FORCE_RELEASE);

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
