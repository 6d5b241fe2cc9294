/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The async twins of a multi-lock's acquire and release. */
#include "base/check.h"
#include "base/error.h"
#include "lease/gather.h"
#include "lease/scatter.h"
#include "sync/multi_lock.h"
#include "sync/request.h"

#include <stdlib.h>

struct multi_request {
    struct hli_ref ref; /* the completion's, and the timer's */
    struct hli_callback callback;
    struct hli_multi *multi; /* counted */
    hl_done_cb done;
    void *arg;
    hl_error err;
    struct hli_gather *gather; /* counted, as the next; one of the two */
    struct hli_scatter *scatter;
    int *ret_codes;
};

static struct hli_wait *multi_request_wait(const struct multi_request *request)
{
    return request->gather ? &request->gather->wait : &request->scatter->wait;
}

static void multi_request_unref(struct multi_request *request)
{
    if (!hli_ref_drop(&request->ref))
        return;
    if (request->gather)
        hli_gather_unref(request->gather);
    if (request->scatter)
        hli_scatter_unref(request->scatter);
    hli_multi_unref(request->multi);
    free(request);
}

static void multi_request_post(struct multi_request *request)
{
    hli_callbacks_post(&multi_request_wait(request)->client->callbacks, &request->callback);
}

static struct multi_request *multi_request_of_gather(struct hli_wait *wait)
{
    return HLI_OF(wait, struct hli_gather, wait)->arg;
}

static void multi_request_gathered(struct hli_wait *wait)
{
    multi_request_post(multi_request_of_gather(wait));
}

static void multi_request_gather_looked(struct hli_wait *wait)
{
    multi_request_unref(multi_request_of_gather(wait)); /* the timer's */
}

static struct multi_request *multi_request_of_scatter(struct hli_wait *wait)
{
    return HLI_OF(wait, struct hli_scatter, wait)->arg;
}

static void multi_request_scattered(struct hli_wait *wait)
{
    multi_request_post(multi_request_of_scatter(wait));
}

static void multi_request_scatter_looked(struct hli_wait *wait)
{
    multi_request_unref(multi_request_of_scatter(wait)); /* the timer's */
}

static void multi_request_look_after(struct multi_request *request)
{
    hli_ref_take(&request->ref); /* the timer's */
    if (!hli_wait_look_after(multi_request_wait(request)))
        multi_request_unref(request);
}

static void multi_request_run(struct hli_callback *callback)
{
    struct multi_request *request = HLI_OF(callback, struct multi_request, callback);
    int code = request->gather ? hli_gather_settle(request->gather) : request->scatter->wait.code;

    if (code == 1) {
        multi_request_look_after(request);
        return;
    }
    if (request->scatter)
        hli_multi_write_codes(request->multi, request->scatter, request->ret_codes);
    if (hli_wait_end(multi_request_wait(request)))
        multi_request_unref(request); /* the timer's */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    request->done(code, code < 0 ? &request->err : NULL, request->arg);
    multi_request_unref(request); /* the completion's */
}

static struct multi_request *multi_request_new(struct hli_multi *multi, hl_done_cb done, void *arg)
{
    struct multi_request *request = calloc(1, sizeof(*request));

    if (!request)
        return NULL;
    hli_ref_init(&request->ref); /* the completion's */
    hli_multi_ref(multi);
    request->callback.run = multi_request_run;
    request->multi = multi;
    request->done = done;
    request->arg = arg;
    return request;
}

/* The call may be over before the timer is set: with a reference of its own. */
static void multi_request_start_gather(struct multi_request *request)
{
    struct hli_gather *gather = request->gather;

    gather->arg = request;
    gather->wait.finished = multi_request_gathered;
    gather->wait.looked = multi_request_gather_looked;
    hli_wait_attach(&gather->wait, gather->options.cancel);
    hli_ref_take(&request->ref); /* this call's */
    hli_gather_start(gather);
    multi_request_look_after(request);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    multi_request_unref(request);
}

int hli_multi_acquire_async(hl_lock *lock, const hl_acquire_options *passed, hl_done_cb done,
                            void *arg)
{
    if (!done)
        return HL_EINVAL;
    struct multi_request *request = multi_request_new(hli_multi_of(lock), done, arg);
    if (!request)
        return HL_ENOMEM;
    int rc = hli_multi_gather_new(lock, passed, &request->gather, &request->err);
    if (rc == 0 && !request->gather->options.owner)
        rc = HL_EINVAL;
    if (rc == 0)
        rc = hli_callbacks_want(&lock->name->client->callbacks);
    if (rc < 0)
        multi_request_unref(request);
    else
        multi_request_start_gather(request);
    return rc;
}

static void multi_request_start_scatter(struct multi_request *request, hl_owner *owner)
{
    struct hli_scatter *scatter = request->scatter;

    scatter->arg = request;
    scatter->wait.finished = multi_request_scattered;
    scatter->wait.looked = multi_request_scatter_looked;
    hli_ref_take(&request->ref); /* this call's */
    hli_scatter_start(scatter, owner);
    multi_request_look_after(request);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    multi_request_unref(request);
}

int hli_multi_release_async(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_done_cb done,
                            void *arg)
{
    int rc = hli_request_check_owner(lock->name->client, owner, NULL);

    if (rc < 0 || !done || !owner)
        return HL_EINVAL;
    struct multi_request *request = multi_request_new(hli_multi_of(lock), done, arg);
    if (!request)
        return HL_ENOMEM;
    request->ret_codes = ret_codes;
    rc = hli_multi_scatter_new(lock, owner, &request->scatter, &request->err);
    if (rc == 0)
        rc = hli_callbacks_want(&lock->name->client->callbacks);
    if (rc < 0)
        multi_request_unref(request);
    else
        multi_request_start_scatter(request, owner);
    return rc;
}

int hl_multi_lock_release_each_async(hl_lock *lock, hl_owner *owner, int *ret_codes,
                                     hl_done_cb done, void *arg)
{
    int rc = lock && hli_multi_of(lock) ? hli_lock_enter(lock, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = lock->name->client;
    rc = hli_multi_release_async(lock, owner, ret_codes, done, arg);
    hli_client_leave(client);
    return rc;
}
