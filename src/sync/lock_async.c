/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The async twins of acquire and release: the same calls, whose end goes to the callbacks. */
#include "base/check.h"
#include "base/error.h"
#include "lease/release.h"
#include "sync/lock.h"

struct lock_request {   /* what both have in common */
    struct hli_ref ref; /* the completion's, and the timer's */
    struct hli_callback callback;
    hl_done_cb done;
    void *arg;
    hl_error err;
};

struct lock_acquire_request {
    struct lock_request request;
    struct hli_acquire acquire;
};

struct lock_release_request {
    struct lock_request request;
    struct hli_released released;
    struct hli_name *name; /* counted */
};

static void request_init(struct lock_request *request, void (*run)(struct hli_callback *),
                         hl_done_cb done, void *arg)
{
    hli_ref_init(&request->ref); /* the completion's */
    request->callback.run = run;
    request->done = done;
    request->arg = arg;
}

static void request_tell(struct lock_request *request, int code)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    request->done(code, code < 0 ? &request->err : NULL, request->arg);
}

static void acquire_request_unref(struct lock_acquire_request *request)
{
    if (!hli_ref_drop(&request->request.ref))
        return;
    hli_acquire_deinit(&request->acquire);
    free(request);
}

static struct lock_acquire_request *acquire_request_of(struct hli_wait *wait)
{
    return HLI_OF(HLI_OF(wait, struct hli_acquire, wait), struct lock_acquire_request, acquire);
}

static void acquire_request_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &acquire_request_of(wait)->request.callback);
}

static void acquire_request_looked(struct hli_wait *wait)
{
    acquire_request_unref(acquire_request_of(wait)); /* the timer's */
}

static void acquire_request_look_after(struct lock_acquire_request *request)
{
    hli_ref_take(&request->request.ref); /* the timer's */
    if (!hli_wait_look_after(&request->acquire.wait))
        acquire_request_unref(request);
}

static void acquire_request_run(struct hli_callback *callback)
{
    struct lock_acquire_request *request =
        HLI_OF(callback, struct lock_acquire_request, request.callback);
    int code = hli_acquire_settle(&request->acquire);

    if (code == 1) {
        acquire_request_look_after(request);
        return;
    }
    if (hli_wait_end(&request->acquire.wait))
        acquire_request_unref(request); /* the timer's */
    request_tell(&request->request, code);
    acquire_request_unref(request); /* the completion's */
}

static int lock_check_async(const hl_lock *lock, hl_done_cb done, hl_owner *owner)
{
    int rc = hli_lock_check_owner(lock, owner, NULL);

    if (rc < 0 || !done || !owner)
        return rc < 0 ? rc : HL_EINVAL;
    return hli_callbacks_want(&lock->name->client->callbacks);
}

static int acquire_request_start(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                                 void *arg)
{
    hl_acquire_options known;
    int rc = hli_lock_read_options(lock, options, &known, NULL);

    if (rc < 0 || (rc = lock_check_async(lock, done, known.owner)) < 0)
        return rc;
    struct lock_acquire_request *request = calloc(1, sizeof(*request));
    if (!request)
        return HL_ENOMEM;
    rc = hli_acquire_init(&request->acquire, lock->name, hli_lock_watch_ms(lock), &known,
                          &request->request.err);
    if (rc < 0) {
        free(request);
        return rc;
    }
    request_init(&request->request, acquire_request_run, done, arg);
    request->acquire.wait.finished = acquire_request_finished;
    request->acquire.wait.looked = acquire_request_looked;
    hli_wait_attach(&request->acquire.wait, known.cancel);
    hli_ref_take(&request->request.ref); /* this call's: it may be over before the timer is set */
    hli_acquire_start(&request->acquire);
    acquire_request_look_after(request);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    acquire_request_unref(request);
    return 0;
}

int hl_lock_acquire_async(hl_lock *lock, const hl_acquire_options *options, hl_done_cb done,
                          void *arg)
{
    int rc = hli_lock_enter(lock, NULL);

    if (rc < 0)
        return rc;
    int cancelability = hli_cancelability_off();
    rc = acquire_request_start(lock, options, done, arg);
    hli_cancelability_restore(cancelability);
    hli_lock_leave(lock);
    return rc;
}

static void release_request_unref(struct lock_release_request *request)
{
    if (!hli_ref_drop(&request->request.ref))
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
    hli_callbacks_post(&wait->client->callbacks, &release_request_of(wait)->request.callback);
}

static void release_request_looked(struct hli_wait *wait)
{
    release_request_unref(release_request_of(wait)); /* the timer's */
}

static void release_request_run(struct hli_callback *callback)
{
    struct lock_release_request *request =
        HLI_OF(callback, struct lock_release_request, request.callback);

    hli_released_count(&request->released);
    if (hli_wait_end(&request->released.wait))
        release_request_unref(request); /* the timer's */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    request_tell(&request->request, request->released.wait.code);
    release_request_unref(request); /* the completion's */
}

static int release_request_start(hl_lock *lock, hl_owner *owner, hl_done_cb done, void *arg)
{
    int rc = lock_check_async(lock, done, owner);

    if (rc < 0)
        return rc;
    struct lock_release_request *request = calloc(1, sizeof(*request));
    if (!request)
        return HL_ENOMEM;
    request_init(&request->request, release_request_run, done, arg);
    hli_name_ref(lock->name);
    request->name = lock->name;
    hli_released_init(&request->released, lock->name, &request->request.err);
    request->released.wait.finished = release_request_finished;
    request->released.wait.looked = release_request_looked;
    /* The timer's, and this call's: the release may be over at once. */
    hli_ref_take(&request->request.ref);
    hli_ref_take(&request->request.ref);
    hli_release_start(lock->name, owner, &lock->way, &request->released.wait);
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
