/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Requests: one acquire, blocking or async; they differ only in how the end is told. */
#include "sync/request.h"

#include "base/check.h"
#include "base/error.h"
#include "base/versioned.h"

#include <stdlib.h>

int hli_request_check_owner(const hl_client *client, const hl_owner *owner, hl_error *err)
{
    if (owner && owner->client != client)
        return hli_fail(err, HL_EINVAL, "the owner belongs to another client");
    return 0;
}

int hli_request_read_options(const hl_client *client, const hl_acquire_options *passed,
                             hl_acquire_options *ret, hl_error *err)
{
    *ret = (hl_acquire_options)HL_ACQUIRE_OPTIONS_INIT;
    if (passed && !hli_versioned_read(ret, sizeof(*ret), passed))
        return hli_fail(
            err, HL_EINVAL,
            "the options' size is not set, or they hold what this version does not know");
    return hli_request_check_owner(client, ret->owner, err);
}

int hli_request_read_wait(const hl_client *client, const hl_acquire_options *passed,
                          hl_acquire_options *ret, hl_error *err)
{
    int rc = hli_request_read_options(client, passed, ret, err);

    if (rc < 0)
        return rc;
    if (ret->owner || ret->lease_ms != 0 || ret->max_hold_ms != 0 || ret->min_hold_ms != 0 ||
        ret->on_event || ret->ret_busy)
        return hli_fail(err, HL_EINVAL, "of the options only wait_ms and cancel are of use here");
    return hli_acquire_check(&(struct hli_acquire_way){0}, ret, err);
}

static int request_block(struct hli_acquire *acquire, hl_cancel *cancel)
{
    hli_wait_attach(&acquire->wait, cancel);
    hli_acquire_make_way(acquire);
    hli_wait_will_block(&acquire->wait);
    hli_acquire_start(acquire);
    int rc = hli_acquire_block(acquire);
    hli_wait_detach(&acquire->wait);
    return rc;
}

/* As often as what it gets is over before it hears of it. */
static int request_block_anew(struct hli_acquire *late, hl_cancel *cancel, hl_error *err)
{
    struct hli_acquire acquire;
    int rc = hli_acquire_init_anew(&acquire, late, err);

    if (rc < 0)
        return rc;
    rc = request_block(&acquire, cancel);
    hli_acquire_deinit(late);
    *late = acquire;
    return rc;
}

int hli_request_block(const struct hli_request *request, hl_error *err)
{
    struct hli_acquire acquire;
    int rc = hli_acquire_init(&acquire, request->name, request->way, request->options, err);

    if (rc < 0)
        return rc;
    rc = request_block(&acquire, request->options->cancel);
    while (rc == HLI_ACQUIRE_ANEW)
        rc = request_block_anew(&acquire, request->options->cancel, err);
    hli_acquire_deinit(&acquire);
    return rc;
}

struct posted {
    struct hli_ref ref; /* the completion's, and the timer's */
    struct hli_callback callback;
    hl_done_cb done;
    void *arg;
    hl_error err;
    struct hli_acquire acquire;
};

static void posted_unref(struct posted *posted)
{
    if (!hli_ref_drop(&posted->ref))
        return;
    hli_acquire_deinit(&posted->acquire);
    free(posted);
}

static struct posted *posted_of(struct hli_wait *wait)
{
    return HLI_OF(HLI_OF(wait, struct hli_acquire, wait), struct posted, acquire);
}

static void posted_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &posted_of(wait)->callback);
}

static void posted_looked(struct hli_wait *wait)
{
    posted_unref(posted_of(wait)); /* the timer's */
}

static void posted_look_after(struct posted *posted)
{
    hli_ref_take(&posted->ref); /* the timer's */
    if (!hli_wait_look_after(&posted->acquire.wait))
        posted_unref(posted);
}

static void posted_run(struct hli_callback *callback);

static struct posted *posted_new(hl_done_cb done, void *arg)
{
    struct posted *posted = calloc(1, sizeof(*posted));

    if (!posted)
        return NULL;
    hli_ref_init(&posted->ref); /* the completion's */
    posted->callback.run = posted_run;
    posted->done = done;
    posted->arg = arg;
    return posted;
}

/* Its acquire has been initialised. */
static void posted_begin(struct posted *posted, hl_cancel *cancel)
{
    posted->acquire.wait.finished = posted_finished;
    posted->acquire.wait.looked = posted_looked;
    hli_wait_attach(&posted->acquire.wait, cancel);
    hli_ref_take(&posted->ref); /* this call's: it may be over before the timer is set */
    hli_acquire_start(&posted->acquire);
    posted_look_after(posted);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    posted_unref(posted);
}

/* Another takes its place, which will run its completion. */
static int posted_begin_anew(struct posted *late)
{
    struct posted *posted = posted_new(late->done, late->arg);

    if (!posted)
        return hli_fail(&late->err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_acquire_init_anew(&posted->acquire, &late->acquire, &posted->err);
    if (rc < 0) {
        late->err = posted->err;
        free(posted);
        return rc;
    }
    late->done = NULL;
    posted_begin(posted, late->acquire.wait.cancel);
    return rc;
}

static void posted_run(struct hli_callback *callback)
{
    struct posted *posted = HLI_OF(callback, struct posted, callback);
    int code = hli_acquire_settle(&posted->acquire);

    if (code == HLI_ACQUIRE_GOES_ON) {
        posted_look_after(posted);
        return;
    }
    if (code == HLI_ACQUIRE_ANEW)
        code = posted_begin_anew(posted);
    if (hli_wait_end(&posted->acquire.wait))
        posted_unref(posted); /* the timer's */
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): it does not count references */
    if (posted->done)
        posted->done(code, code < 0 ? &posted->err : NULL, posted->arg);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    posted_unref(posted); /* the completion's */
}

static int posted_start(const struct hli_request *request, hl_done_cb done, void *arg)
{
    struct posted *posted = posted_new(done, arg);

    if (!posted)
        return HL_ENOMEM;
    int rc = hli_acquire_init(&posted->acquire, request->name, request->way, request->options,
                              &posted->err);
    if (rc < 0) {
        free(posted);
        return rc;
    }
    posted_begin(posted, request->options->cancel);
    return 0;
}

int hli_request_post(const struct hli_request *request, hl_done_cb done, void *arg)
{
    if (!done)
        return HL_EINVAL;
    int rc = hli_callbacks_want(&request->name->client->callbacks);
    if (rc < 0)
        return rc;
    rc = posted_start(request, done, arg);
    return rc;
}
