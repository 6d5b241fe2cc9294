/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Waits: blocking, async, and cancelled. */
#include "lease/wait.h"

#include "base/check.h"
#include "lease/client.h"

static void wait_on_timer(void *arg);
static void wait_on_timer_orphaned(void *arg);

void hli_wait_init(struct hli_wait *wait, hl_client *client, int64_t wait_ms, hl_error *err)
{
    hli_ns now = hli_now();

    *wait = (struct hli_wait){
        .client = client, .started = now, .deadline = hli_after_ms(now, wait_ms), .err = err};
    wait->look_at = wait->first_look_at = wait->deadline;
    wait->timer =
        (struct hli_timer){.run = wait_on_timer, .orphaned = wait_on_timer_orphaned, .arg = wait};
}

void hli_wait_attach(struct hli_wait *wait, hl_cancel *cancel)
{
    if (!cancel)
        return;
    wait->has_cancel = true;
    wait->cancel = cancel;
    pthread_mutex_lock(&wait->client->waits_mutex);
    TAILQ_INSERT_TAIL(&wait->client->waits, wait, cancel_link);
    pthread_mutex_unlock(&wait->client->waits_mutex);
}

void hli_wait_detach(struct hli_wait *wait)
{
    if (!wait->cancel)
        return;
    pthread_mutex_lock(&wait->client->waits_mutex);
    TAILQ_REMOVE(&wait->client->waits, wait, cancel_link);
    pthread_mutex_unlock(&wait->client->waits_mutex);
    wait->cancel = NULL;
}

void hli_wait_will_block(struct hli_wait *wait)
{
    hli_link_promise(wait->client->link);
}

int hli_wait_block(struct hli_wait *wait)
{
    struct hli_link *link = wait->client->link;

    hli_link_lead(link, &wait->gate, wait->look_at);
    for (;;) {
        if (wait->awaits_message && wait->awaits_message(wait))
            hli_link_listen(link, &wait->gate, wait->look_at);
        if (hli_gate_wait(&wait->gate, wait->look_at) == HLI_GATE_OPEN)
            return wait->code;
        if (!wait->look(wait, hli_now()))
            wait->look_at = HLI_NEVER; /* it has ended: the gate is about to open */
    }
}

/* A call with a cancel is looked at once at the beginning, for its cancel may have been fired when
 * nobody could be moved by it yet. A call that has ended by now does not keep its timer; one that
 * goes on while the client closes gets none, for the loop has stopped. */
bool hli_wait_look_after(struct hli_wait *wait)
{
    struct hli_loop *loop = wait->client->loop;

    if (atomic_exchange(&wait->is_looked_after, true))
        return false;
    if (!hli_timer_set_earlier(loop, &wait->timer, wait->has_cancel ? 0 : wait->first_look_at))
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
 * An async wait's time to look around, on the loop thread. A call that has ended may have begun to
 * wait again before the flag says that nobody looks after it: hence the second look.
 */
static void wait_on_timer(void *arg)
{
    struct hli_wait *wait = arg;
    bool goes_on = wait->look(wait, hli_now());

    if (!goes_on) {
        atomic_store(&wait->is_looked_after, false);
        goes_on = wait->look(wait, hli_now()) && !atomic_exchange(&wait->is_looked_after, true);
    }
    if (goes_on)
        hli_timer_set(wait->client->loop, &wait->timer, wait->look_at);
    else
        wait->looked(wait);
}

static void wait_on_timer_orphaned(void *arg)
{
    struct hli_wait *wait = arg;

    wait->looked(wait);
}

void hli_wait_wake(struct hli_wait *wait)
{
    if (wait->finished)
        wait->finished(wait);
    else
        hli_gate_open(&wait->gate);
}

/* A wait leaves the list before it goes away, so what is in the list may be poked while the mutex
 * is held. Of an async one the timer is moved: the one place where the loop's mutex is taken inside
 * another. A timer that is not set is about to be, for a first look: it has a reference only then.
 */
void hli_waits_look(hl_client *client)
{
    struct hli_wait *wait;

    pthread_mutex_lock(&client->waits_mutex);
    TAILQ_FOREACH (wait, &client->waits, cancel_link) {
        if (!hli_wait_is_cancelled(wait))
            continue;
        if (!wait->finished)
            hli_gate_poke(&wait->gate);
        else
            hli_timer_hurry(client->loop, &wait->timer);
    }
    pthread_mutex_unlock(&client->waits_mutex);
}
