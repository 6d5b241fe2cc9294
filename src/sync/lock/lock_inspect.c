/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release: one request, one answer, blocking or async. */
#include "base/check.h"
#include "base/error.h"
#include "base/versioned.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/hold/tag.h"
#include "sync/lock/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORCE_AGAIN_MS = 10000 }; /* no script asks for a later look */

struct lock_inspect {
    struct hli_call call;
    hl_lock_info info;
};

static struct lock_inspect *lock_inspect_of(struct hli_call *call)
{
    return HLI_OF(call, struct lock_inspect, call);
}

/* {..., holder, count, tag, seconds, microseconds}. With a count of 0 the holder has left, and the
 * key only stays for its minimum time. */
static void inspect_read_tag(const struct hli_reply *reply, hl_lock_info *info)
{
    const struct hli_reply *owner = hli_reply_text_at(reply, 2), *tag = hli_reply_text_at(reply, 4);
    int64_t seconds = 0, microseconds = 0;

    hli_reply_integer_at(reply, 5, &seconds);
    hli_reply_integer_at(reply, 6, &microseconds);
    if (tag && info->hold_count > 0)
        hli_tag_read(tag->text, owner->text, seconds * 1000 + microseconds / 1000, info);
}

static int inspect_read(struct hli_call *call, const struct hli_reply *reply)
{
    hl_lock_info *info = &lock_inspect_of(call)->info;
    const struct hli_reply *owner = hli_reply_text_at(reply, 2);
    const char *id = call->client->id;
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

static void inspect_settle(struct hli_call *call, int code)
{
    const hl_lock_info *info = &lock_inspect_of(call)->info;
    hl_lock_info *ret_info = call->async.completion.ret_info;

    if (code == 0 && ret_info)
        hli_versioned_write(ret_info, sizeof(*info), info);
}

static void inspect_tell(struct hli_async *async, int code, const hl_error *err)
{
    struct lock_inspect *inspect = lock_inspect_of(HLI_PART_OF(async, struct hli_call, async));

    async->completion.inspected(code, code < 0 ? NULL : &inspect->info, err, async->completion.arg);
}

static int inspect_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    hli_call_set_timeout(call, *(const int64_t *)what);
    lock_inspect_of(call)->info = (hl_lock_info)HL_LOCK_INFO_INIT;
    call->async.tell = inspect_tell;
    call->name->kind->inspect(call->name, args);
    return 0;
}

static const struct hli_call_kind inspect_kind = {.verb = "inspect",
                                                  .size = sizeof(struct lock_inspect),
                                                  .is_repeatable = true,
                                                  .prepare = inspect_prepare,
                                                  .read = inspect_read,
                                                  .settle = inspect_settle};

/* A force release has deleted this lock's key, by a request sent at `sent_at`. */
struct lock_forced {
    struct hli_task task;
    struct hli_gate gate;
    const struct hli_name *name; /* borrowed */
    hli_ns sent_at;
};

/* Ends a hold that was acquired before the request was sent, and a retained lock. For a later hold
 * a renewal finds out; also for the other half of a read-write lock, if that may still be held. */
static void forced_hold(const struct lock_forced *forced, struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = name->current;
    bool goes_too = name->kind == forced->name->kind || !forced->name->kind->is_per_owner;
    bool is_over = tenure && (tenure->state == HLI_TENURE_IDLE ||
                              (goes_too && tenure->hold.began < forced->sent_at));
    bool has_key = tenure && hli_tenure_has_key(tenure);
    if (has_key && is_over) {
        hli_loss_declare(&turn, tenure, "gone");
    } else if (has_key) {
        hli_hold_doubt(&turn, tenure, turn.now);
    }
    hli_turn_end(&turn);
}

static void forced_visit(struct hli_name *name, void *arg)
{
    const struct lock_forced *forced = arg;
    const struct hli_name *other = forced->name;
    bool is_kin = name->kind == other->kind || name->kind == other->kind->sibling;

    if (is_kin && name->length == other->length &&
        memcmp(name->bytes, other->bytes, name->length) == 0)
        forced_hold(forced, name);
}

static void forced_run(void *arg)
{
    struct lock_forced *forced = arg;

    hli_names_visit(forced->name->client, forced_visit, forced);
    hli_gate_open(&forced->gate);
}

/* {1[, again_ms]} */
static int force_read(struct hli_call *call, const struct hli_reply *reply)
{
    const struct hli_reply *again = hli_reply_text_at(reply, 1);

    call->count = again ? strtoll(again->text, NULL, 10) : 0;
    return hli_call_read_done(call, reply);
}

/* The head of a fair lock's queue does not listen. A release of a field that nobody had passes it
 * over if it is dead by then, as a holder's would that looks again. */
static void force_look_again(const struct hli_call *call)
{
    struct hli_turn turn;

    if (call->count < 1 || call->count > FORCE_AGAIN_MS)
        return;
    hli_turn_begin(&turn, call->name);
    hli_releasing_orphan_at(&turn, hli_tenure_next_number(call->name),
                            hli_after_ms(turn.now, call->count));
    hli_turn_end(&turn);
}

/* The deleted hold may be one of this client's. If each owner has a name of its own, or the lock
 * has another half, the loop visits all these names, and the call waits for that. */
static void force_settle(struct hli_call *call, int code)
{
    struct hli_name *name = call->name;
    struct hli_loop *loop = name->client->loop;
    struct lock_forced forced = {.name = name, .sent_at = call->op.sent_at};

    if (code != HL_OK)
        return;
    force_look_again(call);
    forced.task = (struct hli_task){.run = forced_run, .arg = &forced};
    if (!name->kind->is_per_owner && !name->kind->sibling)
        forced_hold(&forced, name);
    else if (hli_loop_is_current(loop))
        forced_run(&forced);
    else if (hli_loop_post(loop, &forced.task)) /* else the close ends the holds */
        while (hli_gate_wait(&forced.gate, HLI_NEVER) != HLI_GATE_OPEN)
            continue;
}

static int force_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    hli_call_set_timeout(call, *(const int64_t *)what);
    call->name->kind->force(call->name, args);
    return 0;
}

/* Not repeatable: a second copy could delete the next holder's lock. */
static const struct hli_call_kind force_kind = {.verb = "force release",
                                                .no = HL_ENOENT,
                                                .no_text = "nobody holds it",
                                                .changes_data = true,
                                                .prepare = force_prepare,
                                                .read = force_read,
                                                .settle = force_settle};

int hli_lock_inspect_within(const hl_lock *lock, int64_t timeout_ms,
                            const struct hli_completion *completion)
{
    return hli_handle_run(HLI_HANDLE(lock), &inspect_kind, &timeout_ms, completion);
}

static int lock_inspect(const hl_lock *lock, const struct hli_completion *completion)
{
    const hl_lock_info *info = completion->ret_info;

    if (!completion->is_async && (!info || info->size < sizeof(info->size)))
        return hli_fail(completion->err, HL_EINVAL, "info is NULL, or its size is not set");
    if (lock && lock->type->several)
        return lock->type->several->inspect(lock, completion);
    return lock && lock->type->inspect ? lock->type->inspect(lock, completion)
                                       : hli_lock_inspect_within(lock, -1, completion);
}

int hl_lock_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    return lock_inspect(lock, &(struct hli_completion){.err = err, .ret_info = info});
}

int hl_lock_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    return lock_inspect(lock, HLI_ASYNC_CALL(inspected, done, arg));
}

int hli_lock_force_within(const hl_lock *lock, int64_t timeout_ms,
                          const struct hli_completion *completion)
{
    return hli_handle_run(HLI_HANDLE(lock), &force_kind, &timeout_ms, completion);
}

static int lock_force_release(const hl_lock *lock, const struct hli_completion *completion)
{
    if (lock && lock->type->several)
        return lock->type->several->force_release(lock, completion);
    return lock && lock->type->force_release ? lock->type->force_release(lock, completion)
                                             : hli_lock_force_within(lock, -1, completion);
}

int hl_lock_force_release(hl_lock *lock, hl_error *err)
{
    return lock_force_release(lock, HLI_BLOCKING(err));
}

int hl_lock_force_release_async(hl_lock *lock, hl_done_cb done, void *arg)
{
    return lock_force_release(lock, HLI_ASYNC_CALL(done, done, arg));
}
