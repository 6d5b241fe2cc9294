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

/* A server of names to which a connection is still to be made, and none has failed. */
static void opening_look(const struct hli_node_view *view, void *arg)
{
    bool *is_pending = arg;

    if (view->has_names && view->up_since == 0 && view->problem[0] == '\0')
        *is_pending = true;
}

/* An open waits for all nodes of a cluster, and for the lane of confirmed requests (lanes.h), as
 * far as they can be reached: else a call without a wait would fail because the connection for its
 * name is only about to be made. */
static void opening_judge(hl_client *client)
{
    bool is_pending = false;

    if (hli_gate_is_open(&client->opening) || !atomic_load(&client->has_met))
        return;
    hli_topology_look(client->topology, opening_look, &is_pending);
    if (is_pending)
        return;
    client->opening_err.code = HL_OK;
    hli_gate_open(&client->opening);
}

/* Subscribes to the mailbox before any caller can acquire a lock. */
static void client_on_up(struct hli_link *link, bool is_again, void *arg)
{
    hl_client *client = arg;

    hli_client_link_up(client, link, is_again);
    atomic_store(&client->has_met, true);
    opening_judge(client);
}

static void client_on_down(struct hli_link *link, const hl_error *err, void *arg)
{
    hli_client_link_down(arg, link, err);
    opening_judge(arg); /* the node may have left the cluster */
}

static void client_on_failed(struct hli_link *link, const hl_error *err, void *arg)
{
    hl_client *client = arg;

    if (!hli_gate_is_open(&client->opening) && !atomic_load(&client->has_met) &&
        !client_is_worth_waiting(err)) {
        client->opening_err = *err;
        hli_gate_open(&client->opening);
    }
    hli_client_link_failed(client, link, err);
    opening_judge(client);
}

static void client_on_changed(const char *from, const char *to, const char *why, void *arg)
{
    hl_client *client = arg;

    hli_count(&client->counters.master_changes);
    hli_log(client, HL_LOG_WARN, "the master is %s, no longer %s: %s", to, from, why);
    hli_client_tell(
        client,
        &(const hl_event){.kind = HL_EVENT_MASTER_CHANGED, .reason = why, .from = from, .to = to});
}

static void client_on_isolated(bool is_isolated, const char *why, void *arg)
{
    hl_client *client = arg;
    hl_event_kind kind = is_isolated ? HL_EVENT_MASTER_ISOLATED : HL_EVENT_MASTER_CONFIRMED;

    hli_log(client, HL_LOG_WARN, "the master %s: %s",
            is_isolated ? "may have been replaced" : "is confirmed", why);
    hli_client_tell(client, &(const hl_event){.kind = kind, .reason = why});
}

static void client_on_found(bool has_sharded_pubsub, void *arg)
{
    hli_client_set_wording(arg, has_sharded_pubsub ? &hli_wording_sharded : &hli_wording_cluster);
}

static void client_on_redirected(void *arg)
{
    hli_count(&((hl_client *)arg)->counters.redirects);
}

static void client_on_foreign_up(void *arg)
{
    hli_calls_retry(arg);
}

static void client_on_log(hl_log_level level, const char *text, void *arg)
{
    hli_log(arg, level, "%s", text);
}

static void client_init(hl_client *client, const hl_client_options *settings)
{
    hli_ref_init(&client->ref); /* the user's, dropped in close */
    client->generation = atomic_load(&hli_generation);
    client->settings = *settings;
    atomic_init(&client->wording, &hli_wording_plain);
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

/* errno says whether memory, descriptors or threads ran out. */
static int client_cannot_start(hl_error *err)
{
    return hli_fail(err, HL_ENOMEM, "the client cannot start: %s", strerrordesc_np(errno));
}

/* The topology takes over the URL and the context of TLS; without one they are freed. */
static int client_make_topology(hl_client *client, struct hli_topology_setup *setup,
                                struct hli_url *url, hl_error *err)
{
    int rc = url->has_tls ? hli_tls_context_new(&client->settings, &setup->tls, err) : 0;

    if (rc == 0 && !(client->topology = hli_topology_new(setup, url)))
        rc = client_cannot_start(err);
    if (!client->topology) {
        hli_tls_context_free(setup->tls);
        hli_url_deinit(url);
    }
    return rc;
}

/* Takes over the URL, also on failure. */
static int client_start(hl_client *client, struct hli_url *url, hl_error *err)
{
    struct hli_topology_setup setup = {.settings = &client->settings,
                                       .listener = {.up = client_on_up,
                                                    .down = client_on_down,
                                                    .failed = client_on_failed,
                                                    .changed = client_on_changed,
                                                    .isolated = client_on_isolated,
                                                    .found = client_on_found,
                                                    .redirected = client_on_redirected,
                                                    .moved = hli_client_slots_moved,
                                                    .foreign_up = client_on_foreign_up,
                                                    .log = client_on_log,
                                                    .arg = client},
                                       .mailbox = &client->mailbox,
                                       .commands = &client->counters.commands,
                                       .nodes_now = &client->counters.nodes_now,
                                       .lanes_now = &client->counters.lanes_now};
    bool wants_callbacks = client->settings.on_event || client->settings.on_log;
    int rc = hli_callbacks_init(&client->callbacks, client->settings.flags & HL_CLIENT_DISPATCH);

    if (rc == 0 && wants_callbacks)
        rc = hli_callbacks_want(&client->callbacks);
    if (rc == 0)
        rc = hli_loop_start(&client->loop, client_on_fired, client);
    hli_grants_init(client, &hli_kind_lock);
    if (url->kind == HLI_URL_CLUSTER)
        client_on_found(true, client); /* until a node has told */
    setup.loop = client->loop;
    if (rc < 0) {
        hli_url_deinit(url);
        return client_cannot_start(err);
    }
    rc = client_make_topology(client, &setup, url, err);
    if (rc < 0)
        return rc;
    client->links = hli_topology_links(client->topology);
    return hli_watchdog_start(client, &client->watchdog) < 0 ? client_cannot_start(err) : 0;
}

/* If no server has answered within the outage timeout, the error is the link's last problem. */
static int client_await_server(hl_client *client, hl_error *err)
{
    hli_ns deadline = hli_after_ms(hli_now(), client->settings.outage_timeout_ms);
    struct hli_link *link = hli_client_link(client, 0, 0);
    hl_error problem = HL_ERROR_INIT;
    char where[HLI_WHERE_SIZE];

    hli_link_where(link, where);
    if (hli_gate_wait(&client->opening, deadline) == HLI_GATE_OPEN)
        problem = client->opening_err;
    else if (!atomic_load(&client->has_met) && hli_link_problem(link, &problem) == 0)
        hli_fail(&problem, HL_ECONN, "no answer from %s", where[0] ? where : "the sentinels");
    return problem.code == HL_OK ? 0 : hli_fail(err, problem.code, "%s", problem.text);
}

static int client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                       hl_error *err)
{
    hl_client_options settings;
    struct hli_url server;

    if (!ret_client)
        return hli_fail(err, HL_EINVAL, "ret_client is NULL");
    int rc = hli_options_read(url, options, &settings, &server, err);
    if (rc < 0)
        return rc;
    hl_client *client = calloc(1, sizeof(*client));
    if (!client) {
        hli_options_deinit(&settings, &server);
        return hli_no_memory(err);
    }
    client_init(client, &settings);
    rc = client_start(client, &server, err);
    if (rc < 0) {
        hli_client_stop(client);
        hli_client_unref(client);
        return rc;
    }
    hli_clients_add(client);
    hli_topology_start(client->topology);
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
