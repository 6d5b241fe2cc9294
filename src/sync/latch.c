/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The latch: its handle, and waiting for it. */
#include "sync/latch.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

int hl_latch_new(hl_client *client, const char *name, hl_latch **ret_latch, hl_error *err)
{
    const struct hli_named named = {.kind = &hli_kind_latch, .bytes = name};
    struct hli_handle *handle;

    if (!ret_latch)
        return hli_fail(err, HL_EINVAL, "ret_latch is NULL");
    int rc = hli_handle_new(client, &named, &handle, err);
    if (rc < 0)
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
    if (latch)
        hli_handle_free(&latch->handle);
}

const char *hl_latch_name(const hl_latch *latch)
{
    return latch ? latch->handle.name->bytes : NULL;
}

int hl_latch_await_with(hl_latch *latch, const hl_acquire_options *options, hl_error *err)
{
    return hli_noted_wait(hli_latch_handle(latch), 1, options, err);
}

int hl_latch_await_for(hl_latch *latch, int64_t wait_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_latch_await_with(latch, &options, err);
}

int hl_latch_await(hl_latch *latch, hl_error *err)
{
    return hl_latch_await_for(latch, HL_WAIT_FOREVER, err);
}

int hl_latch_await_async(hl_latch *latch, const hl_acquire_options *options, hl_done_cb done,
                         void *arg)
{
    return hli_noted_wait_post(hli_latch_handle(latch), 1, options, done, arg);
}

/* Before anything is counted. */
static int latch_check_options(const hl_latch *latch, const hl_acquire_options *options,
                               hl_acquire_options *ret, hl_error *err)
{
    int rc = hli_handle_enter(hli_latch_handle(latch), err);

    if (rc < 0)
        return rc;
    rc = hli_request_read_wait(latch->handle.name->client, options, ret, err);
    hli_handle_leave(&latch->handle);
    return rc;
}

int hl_latch_count_down_and_await(hl_latch *latch, const hl_acquire_options *options, hl_error *err)
{
    hl_acquire_options read;
    int64_t is_open = 0;
    int rc = latch_check_options(latch, options, &read, err);

    if (rc == 0)
        rc = hli_noted_block(&latch->handle, &hli_latch_counts_down, &is_open, err);
    return rc < 0 || is_open ? rc : hl_latch_await_with(latch, &read, err);
}

/* An async call of two requests: the second is posted by the completion of the first. */
struct latch_meeting {
    struct hli_handle handle;
    hl_acquire_options options;
    hl_done_cb done;
    void *arg;
};

static void latch_meeting_free(struct latch_meeting *meeting)
{
    hli_named_put(meeting->handle.name);
    free(meeting);
}

static void latch_meeting_awaits(struct latch_meeting *meeting)
{
    int rc =
        hli_noted_wait_post(&meeting->handle, 1, &meeting->options, meeting->done, meeting->arg);
    hl_error err;

    if (rc < 0)
        meeting->done(hli_fail(&err, rc, "%s", hl_err_text(rc)), &err, meeting->arg);
}

static void latch_meeting_counted(int code, int64_t is_open, const hl_error *err, void *arg)
{
    struct latch_meeting *meeting = arg;

    if (code < 0 || is_open)
        meeting->done(code, err, meeting->arg);
    else
        latch_meeting_awaits(meeting);
    latch_meeting_free(meeting);
}

static int latch_meeting_begin(struct latch_meeting *meeting)
{
    const struct hli_told told = {.counted = latch_meeting_counted, .arg = meeting};
    int rc = hli_noted_post(&meeting->handle, &hli_latch_counts_down, &told);

    if (rc < 0)
        latch_meeting_free(meeting);
    return rc;
}

int hl_latch_count_down_and_await_async(hl_latch *latch, const hl_acquire_options *options,
                                        hl_done_cb done, void *arg)
{
    hl_acquire_options read;
    int rc = done ? latch_check_options(latch, options, &read, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    struct latch_meeting *meeting = malloc(sizeof(*meeting));
    if (!meeting)
        return HL_ENOMEM;
    hli_name_ref(latch->handle.name);
    *meeting = (struct latch_meeting){latch->handle, read, done, arg};
    return latch_meeting_begin(meeting);
}
