/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Async calls: their begin, their timer, and their completion. */
#include "lease/calls/async.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/calls/client.h"

void hli_async_ref(struct hli_async *async)
{
    hli_ref_take(&async->ref);
}

void hli_async_unref(struct hli_async *async)
{
    if (hli_ref_drop(&async->ref))
        async->freed(async);
}

static struct hli_async *async_of(const struct hli_wait *wait)
{
    return HLI_OF(wait->timer, struct hli_async, timer);
}

void hli_async_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &async_of(wait)->callback);
}

/* On the loop thread. The second check is needed because a call that had ended may have begun to
 * wait again before has_timer was cleared. */
static void async_on_timer(void *arg)
{
    struct hli_async *async = arg;
    struct hli_wait *wait = async->wait;
    bool goes_on = wait->check(wait, hli_now());

    if (!goes_on) {
        atomic_store(&async->has_timer, false);
        goes_on = wait->check(wait, hli_now()) && !atomic_exchange(&async->has_timer, true);
    }
    if (goes_on)
        hli_timer_set(wait->client->loop, &async->timer, wait->check_at);
    else
        hli_async_unref(async); /* the timer's */
}

static void async_on_timer_orphaned(void *arg)
{
    hli_async_unref(arg); /* the timer's */
}

/* With a cancel the first check comes at once, because the cancel may have been fired before the
 * timer was there. A call that has ended by now does not keep its timer. A call that goes on while
 * the client closes gets no timer, because the loop has stopped. True: the timer runs. */
static bool async_start_timer(struct hli_async *async)
{
    const struct hli_wait *wait = async->wait;
    struct hli_loop *loop = wait->client->loop;

    if (atomic_exchange(&async->has_timer, true))
        return false;
    if (!hli_timer_set_earlier(loop, &async->timer, wait->has_cancel ? 0 : wait->first_check_at))
        return false;
    return !(atomic_load(&async->has_ended) && hli_timer_clear(loop, &async->timer));
}

void hli_async_look_after(struct hli_async *async)
{
    hli_async_ref(async); /* the timer's */
    if (!async_start_timer(async))
        hli_async_unref(async);
}

/* True: the timer will not run, and its reference is the caller's. */
static bool async_end_timer(struct hli_async *async)
{
    atomic_store(&async->has_ended, true);
    return hli_timer_clear(async->wait->client->loop, &async->timer);
}

void hli_async_init(struct hli_async *async, struct hli_wait *wait,
                    void (*freed)(struct hli_async *async))
{
    hli_ref_init(&async->ref); /* the caller's */
    async->wait = wait;
    async->freed = freed;
    async->timer = (struct hli_timer){
        .run = async_on_timer, .orphaned = async_on_timer_orphaned, .arg = async};
}

static void async_run(struct hli_callback *callback)
{
    struct hli_async *async = HLI_PART_OF(callback, struct hli_async, callback);
    int code = async->settle ? async->settle(async) : async->wait->code;
    const hl_error *err = code < 0 ? &async->err : NULL;

    if (code == HLI_ASYNC_GOES_ON) {
        hli_async_look_after(async);
        return;
    }
    hli_wait_detach(async->wait);
    if (async_end_timer(async))
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
    wait->timer = &async->timer;
    if (!wait->finished)
        wait->finished = hli_async_finished;
    HLI_PART_IS(&async->callback, struct hli_async, callback);
    async->callback.run = async_run;
    hli_async_ref(async); /* this function's: the call may be over before the timer is set */
    start(async);
    hli_async_look_after(async);
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
