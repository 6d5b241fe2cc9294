/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the names of a client share: its life, its log, and the link's ups and downs passed on to
 * every name. */
#include "lease/client.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"
#include "lease/grant.h"
#include "lease/wake.h"
#include "lease/watchdog.h"

#include <stdarg.h>
#include <stdio.h>

atomic_uint hli_generation;

int hli_client_check(const hl_client *client)
{
    if (!client)
        return HL_EINVAL;
    if (client->generation != atomic_load(&hli_generation))
        return HL_EFORKED;
    return atomic_load(&client->is_closed) ? HL_ECLOSED : 0;
}

/* Counted first and looked at afterwards: a close that is not seen here sees the count. */
int hli_client_enter(hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    hli_cancelability_enter();
    hli_client_ref(client);
    atomic_fetch_add(&client->inside, 1);
    rc = hli_client_check(client);
    if (rc < 0)
        hli_client_leave(client);
    return rc;
}

void hli_client_leave(hl_client *client)
{
    if (atomic_fetch_sub(&client->inside, 1) == 1 && atomic_load(&client->is_closed))
        hli_gate_poke(&client->inside_gate);
    hli_client_unref(client);
    hli_cancelability_leave();
}

void hli_client_ref(hl_client *client)
{
    hli_ref_take(&client->ref);
}

void hli_client_unref(hl_client *client)
{
    if (!client || !hli_ref_drop(&client->ref))
        return;
    hli_watchdog_free(client->watchdog);
    hli_link_free(client->link);
    hli_loop_free(client->loop);
    hli_callbacks_deinit(&client->callbacks);
    hli_map_deinit(&client->names);
    pthread_mutex_destroy(&client->names_mutex);
    pthread_mutex_destroy(&client->waits_mutex);
    pthread_mutex_destroy(&client->calls_mutex);
    free(client->settings.name_prefix);
    free(client);
}

struct client_line {
    struct hli_callback callback;
    hl_client *client; /* borrowed: the callbacks are worked off before it goes */
    hl_log_level level;
    char text[256];
};

static void client_tell_line(struct hli_callback *callback)
{
    struct client_line *line = HLI_OF(callback, struct client_line, callback);

    line->client->settings.on_log(line->level, line->text, line->client->settings.arg);
    free(line);
}

void hli_log(hl_client *client, hl_log_level level, const char *format, ...)
{
    va_list args;

    if (!client->settings.on_log || level > client->settings.log_level)
        return;
    struct client_line *line = calloc(1, sizeof(*line));
    if (!line)
        return;
    line->callback.run = client_tell_line;
    line->client = client;
    line->level = level;
    va_start(args, format);
    vsnprintf(line->text, sizeof(line->text), format, args);
    va_end(args);
    hli_callbacks_post(&client->callbacks, &line->callback);
}

struct client_event {
    struct hli_callback callback;
    hl_client *client; /* borrowed, as above */
    hl_event_kind kind;
    char reason[256];
};

static void client_tell_event(struct hli_callback *callback)
{
    struct client_event *told = HLI_OF(callback, struct client_event, callback);
    const hl_event event = {.size = sizeof(event), .kind = told->kind, .reason = told->reason};

    told->client->settings.on_event(&event, told->client->settings.arg);
    free(told);
}

void hli_client_tell(hl_client *client, hl_event_kind kind, const char *reason)
{
    if (!client->settings.on_event)
        return;
    struct client_event *told = calloc(1, sizeof(*told));
    if (!told)
        return;
    told->callback.run = client_tell_event;
    told->client = client;
    told->kind = kind;
    snprintf(told->reason, sizeof(told->reason), "%s", reason);
    hli_callbacks_post(&client->callbacks, &told->callback);
}

static void client_name_up(struct hli_name *name, void *arg)
{
    (void)arg;
    hli_wake_on_link_up(name);
}

void hli_client_link_up(hl_client *client)
{
    bool is_first = !atomic_exchange(&client->was_up, true);

    hli_log(client, HL_LOG_INFO, "connected to %s", hli_link_where(client->link));
    if (!is_first) {
        hli_count(&client->counters.reconnects);
        hli_client_tell(client, HL_EVENT_CONNECTED, "");
    }
    hli_grants_listen(client);
    hli_names_visit(client, client_name_up, NULL);
    hli_calls_retry(client);
}

static void client_name_starved(struct hli_name *name, void *arg)
{
    (void)arg;
    hli_wake_on_timer(name);
}

void hli_client_feed(void *arg)
{
    hli_names_visit(arg, client_name_starved, NULL);
}

void hli_client_link_down(hl_client *client, const hl_error *err)
{
    hli_log(client, HL_LOG_WARN, "connection lost: %s", err->text);
    hli_client_tell(client, HL_EVENT_DISCONNECTED, err->text);
}

static void client_name_failed(struct hli_name *name, void *arg)
{
    const hl_error *err = arg;

    hli_wake_on_link_failed(name, err);
}

void hli_client_link_failed(hl_client *client, const hl_error *err)
{
    hl_error told = *err;

    hli_log(client, HL_LOG_WARN, "no connection: %s", err->text);
    hli_names_visit(client, client_name_failed, &told);
    if (err->code == HL_EDENIED)
        hli_calls_fail(client, err->code, err->text);
}
