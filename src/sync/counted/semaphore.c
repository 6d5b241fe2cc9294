/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The semaphore: its kind, its handle, acquiring permits, and the calls of one request and one
 * answer. One request of a process asks for all its waiters, in the order of their arrival, and the
 * permits that it gets go to the first of them. The request's id is the tenure's number.
 */
#include "base/check.h"
#include "base/error.h"
#include "lease/acquire/ask.h"
#include "lease/hold/hold.h"
#include "lease/state/command.h"
#include "sync/counted/once.h"

#include <hirelock/semaphore.h>

/* {1, acquired}; a longer answer also has the items of a busy one. */
enum { SEMAPHORE_SERVED = 2 };

/* The number of waiters for which one request asks: the sum of their needs must fit in 32 bits. */
static unsigned semaphore_count_waiters(const struct hli_name *name)
{
    const struct hli_acquire *acquire;
    unsigned waiters = 0;
    int64_t needs = 0;

    TAILQ_FOREACH (acquire, &name->waiters, link) {
        needs += acquire->mode.need;
        if (waiters == HLI_ONCE_NEEDS || needs > UINT32_MAX)
            break;
        waiters++;
    }
    return waiters;
}

static void semaphore_begin(struct hli_args *args, hli_script_id script,
                            const struct hli_tenure *tenure)
{
    hli_once_begin_keys(args, script, tenure->name, tenure->number);
    if (tenure->name->client->wording->is_for_cluster)
        hli_command_declare(args, tenure->name, HLI_NAME_QUEUE);
    hli_once_begin_words(args, tenure->name, tenure->number);
}

static int semaphore_format_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                                    const struct hli_acquire_request *request)
{
    unsigned waiters = semaphore_count_waiters(tenure->name);
    struct hli_acquire *acquire;
    struct hli_args args;

    semaphore_begin(&args, HLI_SCRIPT_SEMAPHORE_ACQUIRE, tenure);
    hli_command_field(&args, tenure);
    hli_command_turn(&args, tenure->name, request);
    hli_args_number(&args, waiters);
    TAILQ_FOREACH (acquire, &tenure->name->waiters, link) {
        acquire->is_asked = waiters > 0;
        if (waiters == 0)
            continue;
        hli_args_number(&args, acquire->mode.need);
        waiters--;
    }
    hli_once_acked(&args, tenure->name);
    return hli_args_end(&args, op);
}

static int semaphore_format_undo(const struct hli_tenure *tenure, struct hli_op *op,
                                 const struct hli_release_request *release_request)
{
    struct hli_args args;

    semaphore_begin(&args, HLI_SCRIPT_SEMAPHORE_UNDO, tenure);
    hli_command_publish(&args, tenure->name);
    hli_command_field(&args, tenure);
    if (hli_command_is_deaf(tenure->name))
        hli_command_derived(&args, tenure->name, HLI_NAME_QUEUE);
    else
        hli_args_text(&args, "");
    hli_args_number(&args, release_request->count);
    hli_once_acked(&args, tenure->name);
    return hli_args_end(&args, op);
}

/* Waiters may have left and come since the request was sent: the permits go to the waiters of now,
 * in their order, and the rest is released. */
static void semaphore_served(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head;
    hli_ns sent_at = tenure->ask.sent_at;
    int64_t left = 0;

    hli_reply_integer_at(answer->reply, answer->reply->length - 1, &left);
    name->asked_at = 0;
    while ((head = TAILQ_FIRST(&name->waiters)) && head->mode.need <= left) {
        left -= head->mode.need;
        tenure->count_kept += head->mode.need;
        hli_waiters_serve(turn, head);
    }
    if (left > 0) {
        hli_releasing_begin(turn, tenure);
        return;
    }
    if (!tenure->may_stand) /* no copy of it is on its way */
        hli_ack(name, tenure->number);
    hli_releasing_end(turn, tenure);
    if (head && head->is_asked && answer->reply->length > SEMAPHORE_SERVED)
        hli_ask_wait_on(turn, answer, sent_at);
}

static const struct hli_kind semaphore_kind = {
    .id = 's',
    .has_no_owner = true,
    .is_counted = true,
    .channel = "redisson_sc:",
    .field_suffix = "",
    .lacks = "too few permits",
    .acquire = semaphore_format_acquire,
    .release = semaphore_format_undo,
    .served = semaphore_served,
};

struct hl_semaphore {
    struct hli_handle handle;
};

static const int64_t semaphore_max_ttl_ms = INT64_C(100000000000); /* as of all times */

int hl_semaphore_new(hl_client *client, const char *name, hl_semaphore **ret_semaphore,
                     hl_error *err)
{
    struct hli_handle *handle = NULL;
    int rc = hli_handle_new(client, &semaphore_kind, name, ret_semaphore ? &handle : NULL, err);

    if (handle)
        *ret_semaphore = HLI_OF(handle, hl_semaphore, handle);
    return rc;
}

void hl_semaphore_free(hl_semaphore *semaphore)
{
    hli_handle_free(HLI_HANDLE(semaphore));
}

const char *hl_semaphore_name(const hl_semaphore *semaphore, size_t *ret_length)
{
    return hli_handle_name(HLI_HANDLE(semaphore), ret_length);
}

/* From `least` to 2^31-1, as in Java. */
static int semaphore_check_permits(int64_t permits, int64_t least, hl_error *err)
{
    if (permits < least || permits > INT32_MAX)
        return hli_fail(err, HL_EINVAL, "permits are not from %lld to 2147483647",
                        (long long)least);
    return 0;
}

static int semaphore_acquire(const hl_semaphore *semaphore, int64_t permits,
                             const hl_wait_options *options,
                             const struct hli_completion *completion)
{
    int rc = semaphore_check_permits(permits, 1, completion->err);

    return rc < 0 ? rc
                  : hli_once_wait(HLI_HANDLE(semaphore), (uint32_t)permits, options, completion);
}

int hl_semaphore_acquire_with(hl_semaphore *semaphore, int64_t permits,
                              const hl_wait_options *options, hl_error *err)
{
    return semaphore_acquire(semaphore, permits, options, HLI_BLOCKING(err));
}

int hl_semaphore_acquire_async(hl_semaphore *semaphore, int64_t permits,
                               const hl_wait_options *options, hl_done_cb done, void *arg)
{
    return semaphore_acquire(semaphore, permits, options, HLI_ASYNC_CALL(done, done, arg));
}

int hl_semaphore_acquire_for(hl_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                             hl_error *err)
{
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_semaphore_acquire_with(semaphore, permits, &options, err);
}

int hl_semaphore_acquire(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return hl_semaphore_acquire_for(semaphore, permits, HL_WAIT_FOREVER, err);
}

int hl_semaphore_try_acquire(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return hl_semaphore_acquire_for(semaphore, permits, HL_NO_WAIT, err);
}

static int semaphore_release(const hl_semaphore *semaphore, int64_t permits, bool must_exist,
                             const struct hli_completion *completion)
{
    static const struct hli_once_verb verb = {
        .call = HLI_ONCE_CHANGE("release", HLI_SCRIPT_SEMAPHORE_ADD, HL_ENOENT, "it is not there"),
        .call.counts_as = HL_CALL_RELEASE,
        .publishes = true,
        .word_count = 2};
    int rc = semaphore_check_permits(permits, 1, completion->err);

    return rc < 0 ? rc
                  : hli_once_run(HLI_HANDLE(semaphore), &verb, permits, must_exist, completion);
}

int hl_semaphore_release(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return semaphore_release(semaphore, permits, false, HLI_BLOCKING(err));
}

int hl_semaphore_release_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done, void *arg)
{
    return semaphore_release(semaphore, permits, false, HLI_ASYNC_CALL(done, done, arg));
}

int hl_semaphore_release_if_exists(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return semaphore_release(semaphore, permits, true, HLI_BLOCKING(err));
}

int hl_semaphore_release_if_exists_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done,
                                         void *arg)
{
    return semaphore_release(semaphore, permits, true, HLI_ASYNC_CALL(done, done, arg));
}

static int semaphore_try_set(const hl_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                             const struct hli_completion *completion)
{
    static const struct hli_once_verb verb = {
        .call = HLI_ONCE_CHANGE("set permits", HLI_SCRIPT_SEMAPHORE_TRY_SET, HL_EEXIST,
                                "it is there already"),
        .publishes = true,
        .word_count = 2};

    if (ttl_ms < 0 || ttl_ms > semaphore_max_ttl_ms)
        return hli_fail(completion->err, HL_EINVAL, "ttl_ms is not from 0 to 10^11");
    int rc = semaphore_check_permits(permits, 0, completion->err);
    return rc < 0 ? rc : hli_once_run(HLI_HANDLE(semaphore), &verb, permits, ttl_ms, completion);
}

int hl_semaphore_try_set_permits(hl_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                 hl_error *err)
{
    return semaphore_try_set(semaphore, permits, ttl_ms, HLI_BLOCKING(err));
}

int hl_semaphore_try_set_permits_async(hl_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                       hl_done_cb done, void *arg)
{
    return semaphore_try_set(semaphore, permits, ttl_ms, HLI_ASYNC_CALL(done, done, arg));
}

static int semaphore_add(const hl_semaphore *semaphore, int64_t permits,
                         const struct hli_completion *completion)
{
    static const struct hli_once_verb verb = {
        .call = HLI_ONCE_CHANGE("add permits", HLI_SCRIPT_SEMAPHORE_ADD, HL_OK, NULL),
        .publishes = true,
        .word_count = 2};

    int rc = semaphore_check_permits(permits, -INT32_MAX, completion->err);
    /* With 0, a semaphore that is not there is not created. */
    return rc < 0 ? rc
                  : hli_once_run(HLI_HANDLE(semaphore), &verb, permits, permits == 0, completion);
}

int hl_semaphore_add_permits(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    return semaphore_add(semaphore, permits, HLI_BLOCKING(err));
}

int hl_semaphore_add_permits_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done,
                                   void *arg)
{
    return semaphore_add(semaphore, permits, HLI_ASYNC_CALL(done, done, arg));
}

static const struct hli_once_verb semaphore_drain = {
    .call = HLI_ONCE_CHANGE("drain", HLI_SCRIPT_SEMAPHORE_DRAIN, HL_OK, NULL)};
static const struct hli_once_verb semaphore_available = {
    .call = HLI_ONCE_QUERY("available permits", HLI_SCRIPT_SEMAPHORE_AVAILABLE)};

static int semaphore_count(const hl_semaphore *semaphore, const struct hli_once_verb *verb,
                           const struct hli_completion *completion)
{
    if (!completion->is_async && !completion->ret_count)
        return hli_fail(completion->err, HL_EINVAL, "ret_permits is NULL");
    return hli_once_run(HLI_HANDLE(semaphore), verb, 0, 0, completion);
}

int hl_semaphore_drain(hl_semaphore *semaphore, int64_t *ret_permits, hl_error *err)
{
    return semaphore_count(semaphore, &semaphore_drain, HLI_BLOCKING_COUNT(ret_permits, err));
}

int hl_semaphore_drain_async(hl_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return semaphore_count(semaphore, &semaphore_drain, HLI_ASYNC_CALL(counted, done, arg));
}

int hl_semaphore_available(hl_semaphore *semaphore, int64_t *ret_permits, hl_error *err)
{
    return semaphore_count(semaphore, &semaphore_available, HLI_BLOCKING_COUNT(ret_permits, err));
}

int hl_semaphore_available_async(hl_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return semaphore_count(semaphore, &semaphore_available, HLI_ASYNC_CALL(counted, done, arg));
}
