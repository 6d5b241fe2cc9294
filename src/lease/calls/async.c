/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Async calls: their begin, their timer, and their completion. */
#include "lease/calls/async.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/calls/client.h"

void hli_async_init(struct hli_async *async, struct hli_wait *wait,
                    void (*freed)(struct hli_async *async))
{
    hli_ref_init(&async->ref); /* the caller's */
    async->wait = wait;
    async->freed = freed;
}

void hli_async_ref(struct hli_async *async)
{
    hli_ref_take(&async->ref);
}

void hli_async_unref(struct hli_async *async)
{
    if (hli_ref_drop(&async->ref))
        async->freed(async);
}

void hli_async_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &wait->async->callback);
}

static void async_look_after(struct hli_async *async)
{
    hli_async_ref(async); /* the timer's */
    if (!hli_wait_start_timer(async->wait))
        hli_async_unref(async);
}

static void async_run(struct hli_callback *callback)
{
    struct hli_async *async = HLI_OF(callback, struct hli_async, callback);
    int code = async->settle ? async->settle(async) : async->wait->code;
    const hl_error *err = code < 0 ? &async->err : NULL;

    if (code == HLI_ASYNC_GOES_ON) {
        async_look_after(async);
        return;
    }
    if (hli_wait_end(async->wait))
        hli_async_unref(async); /* the timer's */
    if (async->tell)
        async->tell(async, code, err);
    else if (async->completion.done)
        async->completion.done(code, err, async->completion.arg);
    hli_async_unref(async); /* the completion's */
}

int hli_async_begin(struct hli_async *async, void (*start)(struct hli_async *async))
{
    struct hli_wait *wait = async->wait;

    if (hli_callbacks_want(&wait->client->callbacks) < 0) {
        hli_async_unref(async);
        return hli_no_memory(NULL);
    }
    wait->async = async;
    if (!wait->finished)
        wait->finished = hli_async_finished;
    async->callback.run = async_run;
    hli_async_ref(async); /* this function's: the call may be over before the timer is set */
    start(async);
    async_look_after(async);
    hli_async_unref(async);
    return 0;
}

int hli_async_run(struct hli_async *async, void (*start)(struct hli_async *async))
{
    int code;

    if (async->completion.is_async)
        return hli_async_begin(async, start);
    start(async);
    do {
        hli_wait_block(async->wait);
        code = async->settle(async);
    } while (code == HLI_ASYNC_GOES_ON);
    hli_wait_detach(async->wait);
    hli_async_unref(async);
    return code;
}
