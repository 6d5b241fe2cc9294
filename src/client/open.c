/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Opening: the parts are made in order, and then the first connection is waited for. */
#include "base/error.h"
#include "client/clients.h"
#include "client/close.h"
#include "client/options.h"
#include "lease/call.h"
#include "lease/grant.h"
#include "lease/tag.h"
#include "lease/watchdog.h"

#include <errno.h>
#include <string.h>

static void client_on_bell(void *arg)
{
    hli_waits_look(arg);
}

static void client_on_calls_timer(void *arg)
{
    hli_calls_retry(arg);
}

/* A server that is not ready yet will be: opening waits for it. Everything else is told at once. */
static bool client_is_worth_waiting(const hl_error *err)
{
    static const char *const passing[] = {": LOADING", ": BUSY", ": MASTERDOWN"};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (err->code == HL_ESERVER && strstr(err->text, passing[i]))
            return true;
    return false;
}

static void client_on_up(void *arg)
{
    hl_client *client = arg;

    if (!hli_gate_is_open(&client->opening)) {
        client->opening_err.code = HL_OK;
        hli_gate_open(&client->opening);
    }
    hli_client_link_up(client);
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

static void client_init(hl_client *client, const struct hli_settings *settings)
{
    hli_ref_init(&client->ref); /* the user's, dropped in close */
    client->generation = atomic_load(&hli_generation);
    client->settings = *settings;
    hli_random_uuid(client->id);
    hli_tag_write_self(client->self, sizeof(client->self));
    pthread_mutex_init(&client->names_mutex, NULL);
    pthread_mutex_init(&client->waits_mutex, NULL);
    pthread_mutex_init(&client->calls_mutex, NULL);
    hli_map_init(&client->names);
    TAILQ_INIT(&client->waits);
    TAILQ_INIT(&client->calls);
    client->calls_timer = (struct hli_timer){.run = client_on_calls_timer, .arg = client};
    client->starved = (struct hli_timer){.run = hli_client_feed, .arg = client};
}

/* Consumes the link's settings. */
static int client_start(hl_client *client, struct hli_link_settings *link)
{
    const struct hli_link_listener listener = {
        .up = client_on_up, .down = client_on_down, .failed = client_on_failed, .arg = client};
    bool wants_callbacks = client->settings.on_event || client->settings.on_log;
    int rc = hli_callbacks_init(&client->callbacks, client->settings.flags & HL_CLIENT_DISPATCH);

    if (rc == 0 && wants_callbacks)
        rc = hli_callbacks_want(&client->callbacks);
    if (rc == 0)
        rc = hli_loop_start(&client->loop, client_on_bell, client);
    if (rc < 0) {
        hli_options_deinit(&client->settings, link);
        return rc;
    }
    rc = hli_link_new(client->loop, link, &listener, &client->counters.commands, &client->link);
    if (rc < 0)
        return rc;
    hli_grants_init(client);
    return hli_watchdog_start(client, &client->watchdog);
}

/* Without an answer until the outage timeout, the link's last problem is the reason. */
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
    struct hli_settings settings;
    struct hli_link_settings link;

    if (!url || !ret_client)
        return hli_fail(err, HL_EINVAL, "the URL or ret_client is NULL");
    int rc = hli_options_read(url, options, &settings, &link, err);
    if (rc < 0)
        return rc;
    hl_client *client = calloc(1, sizeof(*client));
    if (!client) {
        hli_options_deinit(&settings, &link);
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    }
    client_init(client, &settings);
    rc = client_start(client, &link);
    if (rc < 0) {
        int reason = errno; /* memory, descriptors or threads have run out: errno says which */
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
