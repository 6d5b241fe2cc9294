/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Waits: their block and their end. The cancel: a flag, and a wake of all loops. */
#include "lease/calls/wait.h"

#include "base/error.h"
#include "lease/calls/client.h"

#include <stdlib.h>

void hli_wait_init(struct hli_wait *wait, hl_client *client, int64_t wait_ms, hl_error *err)
{
    hli_ns now = hli_now();

    *wait = (struct hli_wait){
        .client = client, .started = now, .deadline = hli_after_ms(now, wait_ms), .err = err};
    wait->check_at = wait->first_check_at = wait->deadline;
}

void hli_wait_attach(struct hli_wait *wait, hl_cancel *cancel)
{
    if (!cancel && !wait->span)
        return;
    wait->has_cancel = true;
    wait->cancel = cancel;
    hli_mutex_lock(&wait->client->waits_mutex);
    TAILQ_INSERT_TAIL(&wait->client->waits, wait, cancel_link);
    hli_mutex_unlock(&wait->client->waits_mutex);
}

void hli_wait_detach(struct hli_wait *wait)
{
    if (!wait->cancel && !wait->span)
        return;
    hli_mutex_lock(&wait->client->waits_mutex);
    TAILQ_REMOVE(&wait->client->waits, wait, cancel_link);
    wait->cancel = NULL;
    wait->span = NULL;
    hli_mutex_unlock(&wait->client->waits_mutex);
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
    return (wait->cancel && atomic_load(&wait->cancel->is_fired)) ||
           (wait->span && hli_span_is_closing(wait->span));
}

bool hli_wait_is_attached_and_cancelled(struct hli_wait *wait)
{
    if (!wait->has_cancel)
        return false;
    hli_mutex_lock(&wait->client->waits_mutex);
    bool is_cancelled = hli_wait_is_cancelled(wait);
    hli_mutex_unlock(&wait->client->waits_mutex);
    return is_cancelled;
}

const char *hli_wait_why_cancelled(const struct hli_wait *wait)
{
    return wait->cancel && atomic_load(&wait->cancel->is_fired) ? "cancelled"
                                                                : "the client is closed";
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
        if (wait->timer)
            hli_timer_fire_soon(client->loop, wait->timer);
        else if (!wait->finished)
            hli_gate_nudge(&wait->gate);
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
