/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Waits: blocking, async, and cancelled. The cancel: a flag, and a wake of all loops. */
#include "lease/calls/wait.h"

#include "base/error.h"
#include "lease/calls/async.h"
#include "lease/calls/client.h"

#include <stdlib.h>

static void wait_on_timer(void *arg);
static void wait_on_timer_orphaned(void *arg);

void hli_wait_init(struct hli_wait *wait, hl_client *client, int64_t wait_ms, hl_error *err)
{
    hli_ns now = hli_now();

    *wait = (struct hli_wait){
        .client = client, .started = now, .deadline = hli_after_ms(now, wait_ms), .err = err};
    wait->check_at = wait->first_check_at = wait->deadline;
    wait->timer =
        (struct hli_timer){.run = wait_on_timer, .orphaned = wait_on_timer_orphaned, .arg = wait};
}

void hli_wait_attach(struct hli_wait *wait, hl_cancel *cancel)
{
    if (!cancel)
        return;
    wait->has_cancel = true;
    wait->cancel = cancel;
    hli_mutex_lock(&wait->client->waits_mutex);
    TAILQ_INSERT_TAIL(&wait->client->waits, wait, cancel_link);
    hli_mutex_unlock(&wait->client->waits_mutex);
}

void hli_wait_detach(struct hli_wait *wait)
{
    if (!wait->cancel)
        return;
    hli_mutex_lock(&wait->client->waits_mutex);
    TAILQ_REMOVE(&wait->client->waits, wait, cancel_link);
    hli_mutex_unlock(&wait->client->waits_mutex);
    wait->cancel = NULL;
}

void hli_wait_lead(struct hli_wait *wait, struct hli_link *link)
{
    wait->link = link;
    hli_link_lead_begin(link);
}

int hli_wait_block(struct hli_wait *wait)
{
    if (wait->link)
        hli_link_lead(wait->link, &wait->gate, wait->check_at);
    while (!hli_gate_is_open(&wait->gate)) {
        if (wait->link && wait->awaits_message && wait->awaits_message(wait))
            hli_link_listen(wait->link, &wait->gate, wait->check_at);
        if (hli_gate_wait(&wait->gate, wait->check_at) != HLI_GATE_OPEN &&
            !wait->check(wait, hli_now()))
            wait->check_at = HLI_NEVER; /* it has ended: the gate is about to open */
    }
    return wait->code;
}

bool hli_wait_is_cancelled(const struct hli_wait *wait)
{
    return wait->cancel && atomic_load(&wait->cancel->is_fired);
}

/* With a cancel the first check comes at once, because the cancel may have been fired before the
 * timer was there. A call that has ended by now does not keep its timer. A call that goes on while
 * the client closes gets no timer, because the loop has stopped. */
bool hli_wait_start_timer(struct hli_wait *wait)
{
    struct hli_loop *loop = wait->client->loop;

    if (atomic_exchange(&wait->has_timer, true))
        return false;
    if (!hli_timer_set_earlier(loop, &wait->timer, wait->has_cancel ? 0 : wait->first_check_at))
        return false;
    return !(atomic_load(&wait->has_ended) && hli_timer_clear(loop, &wait->timer));
}

bool hli_wait_end(struct hli_wait *wait)
{
    hli_wait_detach(wait);
    atomic_store(&wait->has_ended, true);
    return hli_timer_clear(wait->client->loop, &wait->timer);
}

/*
 * Checks an async wait. Loop thread. The second check is needed because a call that had ended may
 * have begun to wait again before has_timer was cleared.
 */
static void wait_on_timer(void *arg)
{
    struct hli_wait *wait = arg;
    bool goes_on = wait->check(wait, hli_now());

    if (!goes_on) {
        atomic_store(&wait->has_timer, false);
        goes_on = wait->check(wait, hli_now()) && !atomic_exchange(&wait->has_timer, true);
    }
    if (goes_on)
        hli_timer_set(wait->client->loop, &wait->timer, wait->check_at);
    else
        hli_async_unref(wait->async); /* the timer's */
}

static void wait_on_timer_orphaned(void *arg)
{
    struct hli_wait *wait = arg;

    hli_async_unref(wait->async); /* the timer's */
}

void hli_wait_wake(struct hli_wait *wait)
{
    if (wait->finished)
        wait->finished(wait);
    else
        hli_gate_open(&wait->gate);
}

/* A wait leaves the list before it is freed, so it may be nudged under the mutex. The timer of an
 * async wait is made to fire soon: the one place where the loop's mutex is taken inside another. A
 * timer that is not set yet is left alone: it will be set for a first check at once, and has its
 * reference only then. */
void hli_waits_check(hl_client *client)
{
    struct hli_wait *wait;

    hli_mutex_lock(&client->waits_mutex);
    TAILQ_FOREACH (wait, &client->waits, cancel_link) {
        if (!hli_wait_is_cancelled(wait))
            continue;
        if (!wait->finished)
            hli_gate_nudge(&wait->gate);
        else
            hli_timer_fire_soon(client->loop, &wait->timer);
    }
    hli_mutex_unlock(&client->waits_mutex);
}

int hl_cancel_new(hl_cancel **ret_cancel)
{
    if (!ret_cancel)
        return hli_fail(NULL, HL_EINVAL, "ret_cancel is NULL");
    hl_cancel *cancel = calloc(1, sizeof(*cancel));
    if (!cancel)
        return hli_no_memory(NULL);
    *ret_cancel = cancel;
    return 0;
}

void hl_cancel_fire(hl_cancel *cancel)
{
    if (!cancel)
        return;
    int cancelability = hli_cancelability_off(); /* the wake-up calls write() */
    atomic_store(&cancel->is_fired, true);
    hli_wakefd_fire_all();
    hli_cancelability_restore(cancelability);
}

void hl_cancel_free(hl_cancel *cancel)
{
    free(cancel);
}
