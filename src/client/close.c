/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Closing, in order: no new calls; every wait ends and every hold is lost or released; the releases
 * that are under way get one request timeout; then the watchdog, the link, the loop and the
 * callbacks stop. What names know is changed on the loop only.
 */
#include "client/close.h"

#include "client/clients.h"
#include "lease/acquire.h"
#include "lease/call.h"
#include "lease/contest.h"
#include "lease/grant.h"
#include "lease/hold.h"
#include "lease/loss.h"
#include "lease/release.h"
#include "lease/watchdog.h"

struct close_step {
    struct hli_task task;
    struct hli_gate gate;
    hl_client *client;
};

static void close_name(struct hli_name *name, void *arg)
{
    hl_client *client = name->client;
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_acquire_cancel_all(&turn);
    struct hli_tenure *tenure = name->current;
    if (tenure && tenure->state == HLI_TENURE_IDLE) {
        hli_release_quietly(&turn, tenure);
    } else if (tenure && tenure->state == HLI_TENURE_OWN &&
               (client->settings.flags & HL_CLIENT_RELEASE_ON_CLOSE)) {
        hli_hold_end(tenure, turn.now);
        hli_release_quietly(&turn, tenure);
    } else if (tenure && tenure->state == HLI_TENURE_OWN) {
        hli_loss_declare(&turn, tenure, "closed");
    }
    hli_turn_end(&turn);
}

/* Step 1: ends all waits and holds. */
static void close_names(void *arg)
{
    struct close_step *step = arg;

    hli_names_visit(step->client, close_name, NULL);
    hli_calls_fail(step->client, HL_ECANCELED, "the client is closed");
    hli_gate_open(&step->gate);
}

static void close_bury_name(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_release_bury_all(&turn);
    hli_turn_end(&turn);
    if (name->contest)
        hli_contest_stop_listening(name->contest);
}

/* Step 2: nothing more will be answered. */
static void close_link(void *arg)
{
    struct close_step *step = arg;

    hli_link_stop(step->client->link);
    hli_grants_stop_listening(step->client);
    hli_names_visit(step->client, close_bury_name, NULL);
    hli_calls_fail(step->client, HL_ECANCELED, "the client is closed");
    hli_gate_open(&step->gate);
}

static void close_run(hl_client *client, void (*run)(void *arg))
{
    struct close_step step = {.task = {.run = run, .arg = &step}, .client = client};

    hli_loop_post(client->loop, &step.task);
    hli_gate_wait(&step.gate, HLI_NEVER);
}

static void close_await_releases(hl_client *client)
{
    hli_ns deadline = hli_after_ms(hli_now(), client->settings.request_timeout_ms);

    while (atomic_load(&client->dying) > 0)
        if (hli_gate_wait(&client->dying_gate, deadline) == HLI_GATE_SHUT)
            return;
}

/* Calls that began before the close are about to end, for nothing that they wait for is left. What
 * they still post must find the loop and the callbacks at work. */
static void close_await_calls(hl_client *client)
{
    while (atomic_load(&client->inside) > 0)
        hli_gate_wait(&client->inside_gate, HLI_NEVER);
}

void hli_client_stop(hl_client *client)
{
    atomic_store(&client->is_closed, true);
    if (client->link) {
        close_run(client, close_names);
        close_await_releases(client);
    }
    hli_watchdog_stop(client->watchdog);
    if (client->link) {
        close_run(client, close_link);
        close_await_calls(client);
        hli_calls_fail(client, HL_ECANCELED, "the client is closed"); /* those they left behind */
    }
    hli_loop_stop(client->loop);
    hli_callbacks_stop(&client->callbacks);
    hli_loop_close(client->loop); /* a completion may have woken it */
}

int hl_client_close(hl_client *client)
{
    if (!client)
        return 0;
    if (hli_client_check(client) == HL_EFORKED)
        return HL_EFORKED;
    if (hli_callbacks_are_running_here(&client->callbacks))
        return HL_EDEADLK;
    int cancelability = hli_cancelability_off();
    hli_client_stop(client);
    hli_clients_remove(
        client); /* not before: a child that is forked meanwhile must find it there */
    hli_client_unref(client);
    hli_cancelability_restore(cancelability);
    return 0;
}
