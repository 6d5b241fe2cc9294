/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A new lease for a hold: one renewal of its own, whose answer is the result of the call. */
#include "base/check.h"
#include "base/error.h"
#include "lease/hold/lease_change.h"
#include "lease/hold/loss.h"
#include "lease/state/command.h"
#include "lease/state/grace.h"
#include "sync/common/acquire_options.h"
#include "sync/lock/lock.h"

/* The arguments of the public call. */
struct update_args {
    const hl_lock *lock;
    hl_owner *owner;
    int64_t lease_ms;
};

/* {}, or {1, count} if the count is not 1; -1: the hold is gone. */
static int update_read(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t position = 0, count = 1;

    (void)call;
    if (reply->length > 0 && (!hli_reply_integer_at(reply, 0, &position) || position != 1 ||
                              !hli_reply_integer_at(reply, 1, &count)))
        return HL_ESERVER;
    return count > 0 ? HL_OK : HL_ELOST;
}

/* Errors: HL_ENOTOWNER, HL_ELOST, HL_EINVAL. */
static int update_begin(struct hli_lease_update *update, struct hli_name *name,
                        const struct hl_owner *owner)
{
    struct hli_call *call = &update->call;
    const char *not_owner = NULL;
    char why[HLI_LOSS_SIZE] = "";
    struct hli_turn turn;
    int rc = HL_ENOTOWNER;
    int64_t left_ms = 0;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    if (tenure && tenure->hold.is_accepted)
        rc = tenure->reentry ? HL_EINVAL : hli_lease_change_begin(&turn, tenure, &update->change);
    if (rc == 0)
        left_ms = hli_ms_left(turn.now, hli_hold_validity(tenure));
    if (rc == HL_ELOST)
        hli_loss_write(tenure, turn.now, "", why);
    if (rc == HL_ENOTOWNER)
        not_owner = hli_name_not_owner(name);
    hli_turn_end(&turn);
    if (rc == 0)
        hli_call_set_timeout(call, left_ms + 1); /* no answer can revive an expired hold */
    else
        hli_call_fail(call, rc,
                      rc == HL_ELOST     ? why
                      : rc == HL_ESERVER ? HLI_GRACE_IS_FINAL
                      : rc == HL_EINVAL  ? HLI_NAME_IN_USE
                                         : not_owner);
    return rc;
}

static int update_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    struct hli_lease_update *update = HLI_OF(call, struct hli_lease_update, call);
    const struct update_args *asked = what;
    const hl_lock *lock = asked->lock;
    struct hli_name *name = hli_lock_look_up(lock, asked->owner, hli_name_find);

    if (!name)
        return hli_call_fail(call, HL_ENOTOWNER, hl_err_text(HL_ENOTOWNER));
    update->change = (struct hli_lease_change){
        .how = HLI_LEASE_EXTEND,
        .lease_ms = asked->lease_ms > 0 ? asked->lease_ms : hli_lock_acquire_mode(lock).watch_ms,
        .is_watched = asked->lease_ms == 0};
    int rc = update_begin(update, name, asked->owner);
    if (rc == 0) {
        call->op.replicas = update->change.replicas;
        hli_command_begin(args, name->kind->renew, name);
        hli_command_declare_renewed(args, update->change.tenure);
        hli_args_number(args, update->change.lease_ms);
        hli_command_field(args, update->change.tenure);
    }
    hli_name_unref(name);
    return rc;
}

static bool update_is_early(struct hli_call *call)
{
    return hli_lease_change_is_early(&HLI_OF(call, struct hli_lease_update, call)->change);
}

static const struct hli_call_kind update_kind = {.verb = "update lease",
                                                 .size = sizeof(struct hli_lease_update),
                                                 .changes_data = true,
                                                 .is_repeatable = true,
                                                 .prepare = update_prepare,
                                                 .is_early = update_is_early,
                                                 .read = update_read,
                                                 .settle = hli_lease_update_settle};

static int lock_update_lease(const hl_lock *lock, hl_owner *passed, int64_t lease_ms,
                             const struct hli_completion *completion)
{
    struct update_args asked = {.lock = lock, .lease_ms = lease_ms};
    int rc = hli_acquire_check_lease(lease_ms, completion->err);

    if (rc == 0 && lock)
        rc = hli_grace_check(lock->handle.name->client, "lease_ms", lease_ms, completion->err);
    if (rc == 0 && lock && lock->type->several)
        rc = hli_fail(completion->err, HL_ENOTSUP,
                      "a multi-lock has no lease: update that of each member, by its own handle");
    if (rc == 0 && lock && lock->handle.name->kind->quorum)
        rc = hli_fail(completion->err, HL_ENOTSUP,
                      "a Redlock on several masters keeps the lease of its acquire");
    if (rc == 0 && lock && lock->type->longest_lease)
        rc = hli_acquire_check_longest("lease_ms", lease_ms, lock->type->longest_lease(lock),
                                       completion->err);
    if (rc == 0 && lock)
        rc = hli_owner_read(lock->handle.name->client, passed, completion, &asked.owner);
    return rc < 0 ? rc : hli_handle_run(HLI_HANDLE(lock), &update_kind, &asked, completion);
}

int hl_lock_update_lease(hl_lock *lock, hl_owner *owner, int64_t lease_ms, hl_error *err)
{
    return lock_update_lease(lock, owner, lease_ms, HLI_BLOCKING(err));
}

int hl_lock_update_lease_async(hl_lock *lock, hl_owner *owner, int64_t lease_ms, hl_done_cb done,
                               void *arg)
{
    return lock_update_lease(lock, owner, lease_ms, HLI_ASYNC_CALL(done, done, arg));
}
