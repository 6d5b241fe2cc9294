/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The latch: its kind, its handle, the wait, and the calls of one request and one answer. */
#include "base/check.h"
#include "base/error.h"
#include "lease/acquire/ask.h"
#include "lease/hold/hold.h"
#include "lease/state/command.h"
#include "sync/common/acquire_options.h"
#include "sync/counted/once.h"

#include <hirelock/latch.h>

#include <stdlib.h>
#include <string.h>

/* One request of a process asks for all its waiters whether the latch is open. It acquires nothing,
 * so there is nothing to release. */
static int latch_format_query(const struct hli_tenure *tenure, struct hli_op *op,
                              const struct hli_acquire_request *request)
{
    struct hli_args args;

    (void)request;
    hli_command_begin(&args, HLI_SCRIPT_LATCH_COUNT, tenure->name);
    return hli_args_end(&args, op);
}

/* Serves only waiters that came before the request was sent: the latch may have been closed again
 * since. */
static void latch_served(struct hli_turn *turn, struct hli_tenure *tenure,
                         const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *acquire = TAILQ_FIRST(&name->waiters);

    (void)answer;
    name->asked_at = 0;
    while (acquire) {
        struct hli_acquire *next = TAILQ_NEXT(acquire, link);
        if (acquire->wait.started <= tenure->ask.sent_at)
            hli_waiters_serve(turn, acquire);
        acquire = next;
    }
    hli_releasing_end(turn, tenure);
}

static const struct hli_kind latch_kind = {
    .id = 'c',
    .has_no_owner = true,
    .channel = "redisson_countdownlatch__channel__",
    .field_suffix = "",
    .lacks = "the latch is closed",
    .verb = "await",
    .acquire = latch_format_query,
    .served = latch_served,
};

struct hl_latch {
    struct hli_handle handle;
};

int hl_latch_new(hl_client *client, const char *name, hl_latch **ret_latch, hl_error *err)
{
    struct hli_handle *handle = NULL;
    int rc = hli_handle_new(client, &latch_kind, name, ret_latch ? &handle : NULL, err);

    if (!handle)
        return rc;
    if (strchr(handle->name->bytes, '{')) {
        hli_handle_free(handle);
        return hli_fail(err, HL_EINVAL, "a latch's name has no \"{\"");
    }
    *ret_latch = HLI_OF(handle, hl_latch, handle);
    return 0;
}

void hl_latch_free(hl_latch *latch)
{
    hli_handle_free(HLI_HANDLE(latch));
}

const char *hl_latch_name(const hl_latch *latch, size_t *ret_length)
{
    return hli_handle_name(HLI_HANDLE(latch), ret_length);
}

int hl_latch_await_with(hl_latch *latch, const hl_wait_options *options, hl_error *err)
{
    return hli_once_wait(HLI_HANDLE(latch), 1, options, HLI_BLOCKING(err));
}

int hl_latch_await_async(hl_latch *latch, const hl_wait_options *options, hl_done_cb done,
                         void *arg)
{
    return hli_once_wait(HLI_HANDLE(latch), 1, options, HLI_ASYNC_CALL(done, done, arg));
}

int hl_latch_await_for(hl_latch *latch, int64_t wait_ms, hl_error *err)
{
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_latch_await_with(latch, &options, err);
}

int hl_latch_await(hl_latch *latch, hl_error *err)
{
    return hl_latch_await_for(latch, HL_WAIT_FOREVER, err);
}

static const struct hli_once_verb latch_set = {
    .call = HLI_ONCE_CHANGE("set count", HLI_SCRIPT_LATCH_SET_COUNT, HL_EEXIST,
                            "the latch is closed already"),
    .publishes = true,
    .word_count = 1};
static const struct hli_once_verb latch_count_down = {
    .call = HLI_ONCE_CHANGE("count down", HLI_SCRIPT_LATCH_COUNT_DOWN, HL_OK, NULL),
    .publishes = true};
static const struct hli_once_verb latch_delete = {
    .call = HLI_ONCE_CHANGE("delete", HLI_SCRIPT_LATCH_DELETE, HL_ENOENT, "the latch is open"),
    .publishes = true};
static const struct hli_once_verb latch_count = {
    .call = HLI_ONCE_QUERY("count", HLI_SCRIPT_LATCH_COUNT)};

static int latch_run(const hl_latch *latch, const struct hli_once_verb *verb,
                     const struct hli_completion *completion)
{
    return hli_once_run(HLI_HANDLE(latch), verb, 0, 0, completion);
}

static int latch_try_set_count(const hl_latch *latch, int64_t count,
                               const struct hli_completion *completion)
{
    if (count < 1)
        return hli_fail(completion->err, HL_EINVAL, "the count is less than 1");
    return hli_once_run(HLI_HANDLE(latch), &latch_set, count, 0, completion);
}

int hl_latch_try_set_count(hl_latch *latch, int64_t count, hl_error *err)
{
    return latch_try_set_count(latch, count, HLI_BLOCKING(err));
}

int hl_latch_try_set_count_async(hl_latch *latch, int64_t count, hl_done_cb done, void *arg)
{
    return latch_try_set_count(latch, count, HLI_ASYNC_CALL(done, done, arg));
}

int hl_latch_count_down(hl_latch *latch, hl_error *err)
{
    return latch_run(latch, &latch_count_down, HLI_BLOCKING(err));
}

int hl_latch_count_down_async(hl_latch *latch, hl_done_cb done, void *arg)
{
    return latch_run(latch, &latch_count_down, HLI_ASYNC_CALL(done, done, arg));
}

int hl_latch_count(hl_latch *latch, int64_t *ret_count, hl_error *err)
{
    if (!ret_count)
        return hli_fail(err, HL_EINVAL, "ret_count is NULL");
    return latch_run(latch, &latch_count, HLI_BLOCKING_COUNT(ret_count, err));
}

int hl_latch_count_async(hl_latch *latch, hl_count_cb done, void *arg)
{
    return latch_run(latch, &latch_count, HLI_ASYNC_CALL(counted, done, arg));
}

int hl_latch_delete(hl_latch *latch, hl_error *err)
{
    return latch_run(latch, &latch_delete, HLI_BLOCKING(err));
}

int hl_latch_delete_async(hl_latch *latch, hl_done_cb done, void *arg)
{
    return latch_run(latch, &latch_delete, HLI_ASYNC_CALL(done, done, arg));
}
