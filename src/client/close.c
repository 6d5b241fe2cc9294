/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Closing, in order: no new call begins; every wait ends, and every hold is lost or released;
 * releases in flight get one request timeout; then the watchdog, the links, the thread of logins,
 * the loop and the callbacks stop. The close changes names on the loop thread only.
 */
#include "client/close.h"

#include "base/error.h"
#include "client/clients.h"
#include "lease/acquire/acquire.h"
#include "lease/acquire/grant.h"
#include "lease/calls/call.h"
#include "lease/hold/hold.h"
#include "lease/hold/loss.h"
#include "lease/hold/release.h"
#include "lease/hold/watchdog.h"
#include "lease/state/contention.h"

struct close_step {
    struct hli_task task;
    struct hli_gate gate;
    hl_client *client;
};

/* True for a hold that the close releases: its owner was never told of it, or the client releases
 * all on close. */
static bool close_lets_go_of(const struct hli_tenure *tenure)
{
    return !tenure->hold.is_accepted ||
           (tenure->name->client->settings.flags & HL_CLIENT_RELEASE_ON_CLOSE);
}

static void close_name(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_acquire_cancel_all(&turn);
    struct hli_tenure *tenure = name->current;
    if (tenure && tenure->state == HLI_TENURE_OWN && close_lets_go_of(tenure))
        hli_releasing_begin(&turn, tenure);
    else if (hli_tenure_has_key(tenure))
        hli_loss_declare(&turn, tenure, "closed");
    hli_turn_end(&turn);
}

/* Step 1: ends all waits and holds. */
static void close_names(void *arg)
{
    struct close_step *step = arg;

    hli_names_visit(step->client, close_name, NULL);
    hli_calls_fail(step->client, NULL, HL_ECANCELED, "the client is closed");
    hli_gate_open(&step->gate);
}

static void close_end_name(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_release_end_all(&turn);
    hli_turn_end(&turn);
    if (name->contention)
        hli_contention_stop_listening(name->contention);
}

/* Step 2: no further answer will come. */
static void close_links(void *arg)
{
    struct close_step *step = arg;

    hli_topology_stop(step->client->topology);
    hli_grants_stop_listening(step->client);
    hli_names_visit(step->client, close_end_name, NULL);
    hli_calls_fail(step->client, NULL, HL_ECANCELED, "the client is closed");
    hli_gate_open(&step->gate);
}

static void close_run(hl_client *client, void (*run)(void *arg))
{
    struct close_step step = {.task = {.run = run, .arg = &step}, .client = client};

    hli_loop_post(client->loop, &step.task);
    hli_gate_wait(&step.gate, HLI_NEVER);
}

/* Before the first link nothing can be in Redis, and so no answer is worth waiting for. */
static void close_await_releases(hl_client *client)
{
    hli_ns deadline = hli_after_ms(hli_now(), client->settings.request_timeout_ms);

    if (!atomic_load(&client->was_up))
        return;
    while (atomic_load(&client->dying) > 0)
        if (hli_gate_wait(&client->releasing_gate, deadline) == HLI_GATE_SHUT)
            return;
}

/* Calls that began before the close are about to end, because all waits have ended. The loop and
 * the callbacks must still run for the tasks that these calls post. */
static void close_await_calls(hl_client *client)
{
    while (atomic_load(&client->inside) > 0)
        hli_gate_wait(&client->inside_gate, HLI_NEVER);
}

void hli_client_stop(hl_client *client)
{
    atomic_store(&client->is_closed, true);
    if (client->topology) {
        close_run(client, close_names);
        hli_wakefd_fire_all(); /* the loops of other clients end the calls that this one shares */
        close_await_releases(client);
    }
    hli_watchdog_stop(client->watchdog);
    if (client->topology) {
        close_run(client, close_links);
        hli_topology_join(client->topology);
        atomic_store(&client->has_ended, true); /* other clients' threads stay away from now on */
        close_await_calls(client);
        hli_calls_fail(client, NULL, HL_ECANCELED,
                       "the client is closed"); /* calls that they queued */
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
        return hli_fail(NULL, HL_EFORKED, "%s", hl_err_text(HL_EFORKED));
    if (hli_callbacks_are_running_here(&client->callbacks) ||
        hli_topology_asks_here(client->topology) || hli_loop_is_current(client->loop))
        return hli_fail(NULL, HL_EDEADLK, "hl_client_close() inside a callback of the client");
    int cancelability = hli_cancelability_off();
    hli_client_stop(client);
    hli_clients_remove(
        client); /* not before: a child that is forked meanwhile must find it there */
    hli_client_unref(client);
    hli_cancelability_restore(cancelability);
    return 0;
}
