/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A permit's lease: query and change. */
#include "base/check.h"
#include "base/error.h"
#include "lease/acquire/acquire.h"
#include "lease/hold/lease_change.h"
#include "lease/state/command.h"
#include "lease/state/grace.h"
#include "redis/lanes.h"
#include "sync/permits/permits.h"

static int permit_prepare_left(struct hli_call *call, struct hli_args *args, const void *what)
{
    struct hli_permit_id id;

    if (hli_permit_read_for(call, what, &id) < 0)
        return HL_EINVAL;
    hli_permit_begin(args, call->kind->script, call->name);
    hli_args_bytes(args, (struct hli_bytes){id.bytes, sizeof(id.bytes)});
    hli_command_publish(args, call->name);
    return 0;
}

static int permit_read_left(struct hli_call *call, const struct hli_reply *reply)
{
    int code = hli_call_read_done(call, reply);

    return code == HL_OK && !hli_reply_integer_at(reply, 1, &call->count) ? HL_ESERVER : code;
}

static const struct hli_call_kind left_kind = {.verb = "lease left",
                                               .script = HLI_SCRIPT_PERMIT_LEASE_LEFT,
                                               .no = HL_ENOENT,
                                               .no_text = "this permit is not out",
                                               .is_repeatable = true,
                                               .prepare = permit_prepare_left,
                                               .read = permit_read_left};

int hl_permits_lease_left(hl_permits *semaphore, const hl_permit *permit, int64_t *ret_ms,
                          hl_error *err)
{
    if (!ret_ms)
        return hli_fail(err, HL_EINVAL, "ret_ms is NULL");
    return hli_handle_run(HLI_HANDLE(semaphore), &left_kind, permit,
                          HLI_BLOCKING_COUNT(ret_ms, err));
}

int hl_permits_lease_left_async(hl_permits *semaphore, const hl_permit *permit, hl_count_cb done,
                                void *arg)
{
    return hli_handle_run(HLI_HANDLE(semaphore), &left_kind, permit,
                          HLI_ASYNC_CALL(counted, done, arg));
}

/* A call for a new lease; if this client does not hold the permit, no change begins. */
struct permit_update {
    struct hli_lease_update lease;
    struct hli_permit_id id;
};

/* The arguments of the public call. */
struct update_args {
    const hl_permit *permit;
    int64_t lease_ms;
};

static struct permit_update *update_of(struct hli_call *call)
{
    return HLI_OF(call, struct permit_update, lease.call);
}

static bool update_is_early(struct hli_call *call)
{
    return hli_lease_change_is_early(&update_of(call)->lease.change);
}

/* The replicas are to have the new lease, if they are to have the renewals. */
static void update_confirm(struct permit_update *update)
{
    struct hli_call *call = &update->lease.call;

    call->op.replicas = update->lease.change.replicas;
    if (call->op.replicas > 0)
        call->lane = HLI_LANE_CONFIRMED;
}

/* Prepares the hold, if this client has the permit. Errors: HL_EINVAL, HL_ELOST. */
static int update_begin(struct permit_update *update, int64_t lease_ms)
{
    struct hli_tenure *tenure = hli_permit_find(update->lease.call.name, &update->id);
    int rc = HL_ENOTOWNER;

    if (tenure) {
        struct hli_turn turn;
        hli_turn_begin(&turn, tenure->name);
        rc = hli_lease_change_begin(&turn, tenure, &update->lease.change);
        hli_turn_end(&turn);
        hli_tenure_unref(tenure);
    }
    if (rc == HL_ENOTOWNER && lease_ms != 0)
        return 0;
    return rc == HL_ENOTOWNER ? HL_EINVAL : rc;
}

static const char *update_refusal(int code)
{
    if (code == HL_ESERVER)
        return HLI_GRACE_IS_FINAL;
    return code == HL_EINVAL
               ? "lease_ms is 0, and the permit is not this client's; or another call "
                 "for this permit is under way"
               : hl_err_text(code);
}

static int update_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    const struct update_args *asked = what;
    struct permit_update *update = update_of(call);
    int64_t watchdog_ms = call->client->settings.watchdog_timeout_ms;
    int64_t lease_ms = asked->lease_ms > 0 ? asked->lease_ms : watchdog_ms;

    if (hli_permit_read_for(call, asked->permit, &update->id) < 0 ||
        hli_acquire_check_lease(asked->lease_ms, &call->async.err) < 0 ||
        hli_grace_check(call->client, "lease_ms", asked->lease_ms, &call->async.err) < 0)
        return HL_EINVAL;
    update->lease.change = (struct hli_lease_change){
        .how = HLI_LEASE_SET, .lease_ms = lease_ms, .is_watched = asked->lease_ms == 0};
    int rc = update_begin(update, asked->lease_ms);
    if (rc < 0)
        return hli_call_fail(call, rc, update_refusal(rc));
    update_confirm(update);
    hli_permit_begin(args, call->kind->script, call->name);
    hli_args_bytes(args, (struct hli_bytes){update->id.bytes, HLI_PERMIT_SIZE});
    hli_args_number(args, lease_ms);
    hli_command_publish(args, call->name);
    return 0;
}

static const struct hli_call_kind update_kind = {.verb = "update lease",
                                                 .script = HLI_SCRIPT_PERMIT_UPDATE_LEASE,
                                                 .size = sizeof(struct permit_update),
                                                 .no = HL_ENOENT,
                                                 .no_text = "this permit is not out",
                                                 .changes_data = true,
                                                 .is_repeatable = true,
                                                 .prepare = update_prepare,
                                                 .is_early = update_is_early,
                                                 .settle = hli_lease_update_settle};

static int permit_update_lease(hl_permits *semaphore, const hl_permit *permit, int64_t lease_ms,
                               const struct hli_completion *completion)
{
    const struct update_args asked = {permit, lease_ms};

    return hli_handle_run(HLI_HANDLE(semaphore), &update_kind, &asked, completion);
}

int hl_permits_update_lease(hl_permits *semaphore, const hl_permit *permit, int64_t lease_ms,
                            hl_error *err)
{
    return permit_update_lease(semaphore, permit, lease_ms, HLI_BLOCKING(err));
}

int hl_permits_update_lease_async(hl_permits *semaphore, const hl_permit *permit, int64_t lease_ms,
                                  hl_done_cb done, void *arg)
{
    return permit_update_lease(semaphore, permit, lease_ms, HLI_ASYNC_CALL(done, done, arg));
}
