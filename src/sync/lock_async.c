/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The async twins of acquire and release: the same calls, whose end goes to the callbacks. */
#include "base/check.h"
#include "base/error.h"
#include "lease/release.h"
#include "sync/lock.h"
#include "sync/request.h"

#include <stdlib.h>

struct lock_release_request {
    struct hli_ref ref; /* the completion's, and the timer's */
    struct hli_callback callback;
    hl_done_cb done;
    void *arg;
    hl_error err;
    struct hli_released released;
    struct hli_name *name; /* counted */
};

static int lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                              void *arg)
{
    struct hli_lock_acquire said;
    int rc = hli_lock_prepare(lock, options, &said, NULL);

    if (rc < 0)
        return rc;
    rc = said.options.owner
             ? hli_request_post(&(struct hli_request){said.name, &said.way, &said.options}, done,
                                arg)
             : HL_EINVAL;
    hli_name_unref(said.name);
    return rc;
}

int hl_lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                          void *arg)
{
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    rc = lock_acquire_async(lock, options, done, arg);
    hli_lock_leave(lock);
    return rc;
}

static void release_request_unref(struct lock_release_request *request)
{
    if (!hli_ref_drop(&request->ref))
        return;
    hli_name_unref(request->name);
    free(request);
}

static struct lock_release_request *release_request_of(struct hli_wait *wait)
{
    return HLI_OF(HLI_OF(wait, struct hli_released, wait), struct lock_release_request, released);
}

static void release_request_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &release_request_of(wait)->callback);
}

static void release_request_looked(struct hli_wait *wait)
{
    release_request_unref(release_request_of(wait)); /* the timer's */
}

static void release_request_run(struct hli_callback *callback)
{
    struct lock_release_request *request = HLI_OF(callback, struct lock_release_request, callback);
    int code = request->released.wait.code;

    hli_released_count(&request->released);
    if (hli_wait_end(&request->released.wait))
        release_request_unref(request); /* the timer's */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    request->done(code, code < 0 ? &request->err : NULL, request->arg);
    release_request_unref(request); /* the completion's */
}

/* Consumes the reference on the name. */
static struct lock_release_request *release_request_new(struct hli_name *name, hl_done_cb done,
                                                        void *arg)
{
    struct lock_release_request *request = calloc(1, sizeof(*request));

    if (!request) {
        hli_name_unref(name);
        return NULL;
    }
    hli_ref_init(&request->ref); /* the completion's */
    request->callback.run = release_request_run;
    request->done = done;
    request->arg = arg;
    request->name = name;
    hli_released_init(&request->released, name, &request->err);
    request->released.wait.finished = release_request_finished;
    request->released.wait.looked = release_request_looked;
    return request;
}

/* Where nothing is held there may be no name: then one is made, to be told so. */
static int release_request_start(hl_lock *lock, hl_owner *owner, hl_done_cb done, void *arg)
{
    struct hli_name *name;
    int rc = hli_request_check_owner(lock->name->client, owner, NULL);

    if (rc < 0 || !done || !owner)
        return HL_EINVAL;
    if (hli_callbacks_want(&lock->name->client->callbacks) < 0 ||
        hli_lock_name_for(lock, owner, &name) < 0)
        return HL_ENOMEM;
    struct lock_release_request *request = release_request_new(name, done, arg);
    if (!request)
        return HL_ENOMEM;
    const struct hli_release_way way = hli_lock_release_way(lock);
    /* The timer's, and this call's: the release may be over at once. */
    hli_ref_take(&request->ref);
    hli_ref_take(&request->ref);
    hli_release_start(name, owner, &way, &request->released.wait);
    if (!hli_wait_look_after(&request->released.wait))
        release_request_unref(request);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    release_request_unref(request);
    return 0;
}

int hl_lock_release_async(hl_lock *lock, hl_owner *owner, hl_done_cb done, void *arg)
{
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    int cancelability = hli_cancelability_off();
    rc = release_request_start(lock, owner, done, arg);
    hli_cancelability_restore(cancelability);
    hli_lock_leave(lock);
    return rc;
}
