/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Opening: makes the parts of a client in order, and then waits for the first connection. */
#include "base/error.h"
#include "client/clients.h"
#include "client/close.h"
#include "client/options.h"
#include "lease/acquire/grant.h"
#include "lease/acquire/plan.h"
#include "lease/acquire/reconnect.h"
#include "lease/acquire/wake.h"
#include "lease/calls/call.h"
#include "lease/hold/tag.h"
#include "lease/hold/watchdog.h"
#include "sync/lock/lock_kind.h"

#include <errno.h>
#include <string.h>

static void client_on_fired(void *arg)
{
    hli_waits_check(arg);
}

static void client_on_calls_timer(void *arg)
{
    hli_calls_retry(arg);
}

/* True if the server is only not ready yet: then the open waits for it. Any other error is returned
 * at once. */
static bool client_is_worth_waiting(const hl_error *err)
{
    static const char *const passing[] = {": LOADING", ": BUSY", ": MASTERDOWN"};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (err->code == HL_ESERVER && strstr(err->text, passing[i]))
            return true;
    return false;
}

/* Subscribes to the mailbox before any caller can acquire a lock. */
static void client_on_up(void *arg)
{
    hl_client *client = arg;

    hli_client_link_up(client);
    if (!hli_gate_is_open(&client->opening)) {
        client->opening_err.code = HL_OK;
        hli_gate_open(&client->opening);
    }
}

static void client_on_down(const hl_error *err, void *arg)
{
    hli_client_link_down(arg, err);
}

static void client_on_failed(const hl_error *err, void *arg)
{
    hl_client *client = arg;

    if (!hli_gate_is_open(&client->opening) && !client_is_worth_waiting(err)) {
        client->opening_err = *err;
        hli_gate_open(&client->opening);
    }
    hli_client_link_failed(client, err);
}

static void client_init(hl_client *client, const hl_client_options *settings)
{
    hli_ref_init(&client->ref); /* the user's, dropped in close */
    client->generation = atomic_load(&hli_generation);
    client->settings = *settings;
    client->engine = &hli_engine;
    hli_random_uuid(client->id);
    hli_tag_write_self(client->self, sizeof(client->self));
    hli_mutex_init(&client->names_mutex);
    hli_mutex_init(&client->waits_mutex);
    hli_mutex_init(&client->calls_mutex);
    hli_map_init(&client->names);
    TAILQ_INIT(&client->waits);
    TAILQ_INIT(&client->calls);
    client->calls_timer = (struct hli_timer){.run = client_on_calls_timer, .arg = client};
    client->timerless = (struct hli_timer){.run = hli_client_wake_timerless, .arg = client};
    client->sending_again = (struct hli_task){.run = hli_client_send_again, .arg = client};
}

/* Takes over the URL, also on failure. */
static int client_start(hl_client *client, struct hli_url *url)
{
    const struct hli_link_listener listener = {
        .up = client_on_up, .down = client_on_down, .failed = client_on_failed, .arg = client};
    bool wants_callbacks = client->settings.on_event || client->settings.on_log;
    int rc = hli_callbacks_init(&client->callbacks, client->settings.flags & HL_CLIENT_DISPATCH);

    if (rc == 0 && wants_callbacks)
        rc = hli_callbacks_want(&client->callbacks);
    if (rc == 0)
        rc = hli_loop_start(&client->loop, client_on_fired, client);
    if (rc == 0)
        client->link = hli_link_new(client->loop, &client->settings, url, &listener,
                                    &client->counters.commands);
    if (!client->link) {
        hli_url_deinit(url);
        return HL_ENOMEM;
    }
    hli_grants_init(client, &hli_kind_lock);
    return hli_watchdog_start(client, &client->watchdog);
}

/* If there is no answer within the outage timeout, the error is the link's last problem. */
static int client_await_server(hl_client *client, hl_error *err)
{
    hli_ns deadline = hli_after_ms(hli_now(), client->settings.outage_timeout_ms);
    hl_error problem = HL_ERROR_INIT;

    if (hli_gate_wait(&client->opening, deadline) == HLI_GATE_OPEN)
        problem = client->opening_err;
    else if (hli_link_problem(client->link, &problem) == 0)
        hli_fail(&problem, HL_ECONN, "no answer from %s", hli_link_where(client->link));
    return problem.code == HL_OK ? 0 : hli_fail(err, problem.code, "%s", problem.text);
}

static int client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                       hl_error *err)
{
    hl_client_options settings;
    struct hli_url server;

    if (!url || !ret_client)
        return hli_fail(err, HL_EINVAL, "the URL or ret_client is NULL");
    int rc = hli_options_read(url, options, &settings, &server, err);
    if (rc < 0)
        return rc;
    hl_client *client = calloc(1, sizeof(*client));
    if (!client) {
        hli_options_deinit(&settings, &server);
        return hli_no_memory(err);
    }
    client_init(client, &settings);
    rc = client_start(client, &server);
    if (rc < 0) {
        int reason = errno; /* errno says whether memory, descriptors or threads ran out */
        hli_client_stop(client);
        hli_client_unref(client);
        return hli_fail(err, rc, "the client cannot start: %s", strerrordesc_np(reason));
    }
    hli_clients_add(client);
    hli_link_start(client->link);
    if (!(settings.flags & HL_CLIENT_LAZY) && (rc = client_await_server(client, err)) < 0) {
        hli_client_stop(client);
        hli_clients_remove(client);
        hli_client_unref(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

int hl_client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                   hl_error *err)
{
    int cancelability = hli_cancelability_off();
    int rc = client_open(url, options, ret_client, err);

    hli_cancelability_restore(cancelability);
    return rc;
}

const char *hl_client_id(const hl_client *client)
{
    return client ? client->id : NULL;
}
