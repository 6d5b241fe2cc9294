/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The number of permits: queries and changes. */
#include "base/error.h"
#include "lease/state/command.h"
#include "sync/permits/permits.h"

static int count_prepare(struct hli_call *call, struct hli_args *args, const void *what);
static int count_read(struct hli_call *call, const struct hli_reply *reply);

static const struct hli_call_kind count_available = {
    .verb = "available", .is_repeatable = true, .prepare = count_prepare, .read = count_read};
static const struct hli_call_kind count_acquired = {
    .verb = "acquired", .is_repeatable = true, .prepare = count_prepare, .read = count_read};
static const struct hli_call_kind count_total = {
    .verb = "total", .is_repeatable = true, .prepare = count_prepare, .read = count_read};

/* Neither is repeatable: a copy of the first would delete what another client has set meanwhile,
 * and a copy of the second would find the value that the first copy set. */
static const struct hli_call_kind set_delete = {.verb = "delete",
                                                .no = HL_ENOENT,
                                                .no_text = "it is not there",
                                                .changes_data = true,
                                                .prepare = count_prepare};
static const struct hli_call_kind set_if_new = {.verb = "set permits",
                                                .no = HL_EEXIST,
                                                .no_text = "it is there already",
                                                .changes_data = true,
                                                .prepare = count_prepare};
static const struct hli_call_kind set_always = {
    .verb = "set permits", .changes_data = true, .is_repeatable = true, .prepare = count_prepare};
static const struct hli_call_kind set_more = {
    .verb = "add permits", .changes_data = true, .prepare = count_prepare};

static const int64_t count_max_ttl_ms = INT64_C(100000000000); /* as of all times */

/* The arguments of the public call; 0 where it has none. */
struct count_words {
    int64_t count, ttl_ms;
};

static int count_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    const struct hli_call_kind *kind = call->kind;
    const struct count_words *words = what;
    int64_t count = words->count, least = kind == &set_more ? -HL_PERMITS_MAX : 0;
    hli_script_id script = kind == &set_delete                          ? HLI_SCRIPT_PERMIT_DELETE
                           : kind == &set_more                          ? HLI_SCRIPT_PERMIT_ADD
                           : kind == &set_if_new || kind == &set_always ? HLI_SCRIPT_PERMIT_SET
                                                                        : HLI_SCRIPT_PERMIT_INSPECT;

    if (count < least || count > HL_PERMITS_MAX)
        return hli_call_fail(call, HL_EINVAL, "the number of permits is out of range");
    if (words->ttl_ms < 0 || words->ttl_ms > count_max_ttl_ms)
        return hli_call_fail(call, HL_EINVAL, "ttl_ms is not from 0 to 10^11");
    hli_permit_begin(args, script, call->name);
    if (script == HLI_SCRIPT_PERMIT_ADD || script == HLI_SCRIPT_PERMIT_SET)
        hli_args_number(args, count);
    if (script == HLI_SCRIPT_PERMIT_SET) {
        hli_args_number(args, kind == &set_if_new);
        hli_args_number(args, words->ttl_ms);
    }
    hli_command_publish(args, call->name);
    return 0;
}

/* {1, available, acquired} */
static int count_read(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t available, acquired;

    if (!hli_reply_integer_at(reply, 1, &available) || !hli_reply_integer_at(reply, 2, &acquired))
        return HL_ESERVER;
    call->count = call->kind == &count_available  ? available
                  : call->kind == &count_acquired ? acquired
                                                  : available + acquired;
    return HL_OK;
}

static int count_run(const hl_permits *semaphore, const struct hli_call_kind *kind, int64_t count,
                     const struct hli_completion *completion)
{
    const struct count_words words = {.count = count};

    return hli_handle_run(HLI_HANDLE(semaphore), kind, &words, completion);
}

static int count_set(const hl_permits *semaphore, const struct hli_call_kind *kind,
                     const struct count_words *words, const struct hli_completion *completion)
{
    return hli_handle_run(HLI_HANDLE(semaphore), kind, words, completion);
}

static int count_block(const hl_permits *semaphore, const struct hli_call_kind *kind,
                       int64_t *ret_count, hl_error *err)
{
    if (!ret_count)
        return hli_fail(err, HL_EINVAL, "ret_count is NULL");
    return count_run(semaphore, kind, 0, HLI_BLOCKING_COUNT(ret_count, err));
}

int hl_permits_available(hl_permits *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_available, ret_count, err);
}

int hl_permits_available_async(hl_permits *semaphore, hl_count_cb done, void *arg)
{
    return count_run(semaphore, &count_available, 0, HLI_ASYNC_CALL(counted, done, arg));
}

int hl_permits_acquired(hl_permits *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_acquired, ret_count, err);
}

int hl_permits_acquired_async(hl_permits *semaphore, hl_count_cb done, void *arg)
{
    return count_run(semaphore, &count_acquired, 0, HLI_ASYNC_CALL(counted, done, arg));
}

int hl_permits_total(hl_permits *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_total, ret_count, err);
}

int hl_permits_total_async(hl_permits *semaphore, hl_count_cb done, void *arg)
{
    return count_run(semaphore, &count_total, 0, HLI_ASYNC_CALL(counted, done, arg));
}

int hl_permits_try_set_total(hl_permits *semaphore, int64_t count, int64_t ttl_ms, hl_error *err)
{
    return count_set(semaphore, &set_if_new, &(const struct count_words){count, ttl_ms},
                     HLI_BLOCKING(err));
}

int hl_permits_try_set_total_async(hl_permits *semaphore, int64_t count, int64_t ttl_ms,
                                   hl_done_cb done, void *arg)
{
    return count_set(semaphore, &set_if_new, &(const struct count_words){count, ttl_ms},
                     HLI_ASYNC_CALL(done, done, arg));
}

int hl_permits_set_total(hl_permits *semaphore, int64_t count, int64_t ttl_ms, hl_error *err)
{
    return count_set(semaphore, &set_always, &(const struct count_words){count, ttl_ms},
                     HLI_BLOCKING(err));
}

int hl_permits_set_total_async(hl_permits *semaphore, int64_t count, int64_t ttl_ms,
                               hl_done_cb done, void *arg)
{
    return count_set(semaphore, &set_always, &(const struct count_words){count, ttl_ms},
                     HLI_ASYNC_CALL(done, done, arg));
}

int hl_permits_add(hl_permits *semaphore, int64_t more, hl_error *err)
{
    return count_run(semaphore, &set_more, more, HLI_BLOCKING(err));
}

int hl_permits_add_async(hl_permits *semaphore, int64_t more, hl_done_cb done, void *arg)
{
    return count_run(semaphore, &set_more, more, HLI_ASYNC_CALL(done, done, arg));
}

int hl_permits_delete(hl_permits *semaphore, hl_error *err)
{
    return count_run(semaphore, &set_delete, 0, HLI_BLOCKING(err));
}

int hl_permits_delete_async(hl_permits *semaphore, hl_done_cb done, void *arg)
{
    return count_run(semaphore, &set_delete, 0, HLI_ASYNC_CALL(done, done, arg));
}
