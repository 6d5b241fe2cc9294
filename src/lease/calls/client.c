/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The client as its names see it: entering and leaving, references, log lines and events. */
#include "lease/calls/client.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/calls/async.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

atomic_uint hli_generation;

int hli_client_check(const hl_client *client)
{
    if (!client)
        return HL_EINVAL;
    if (client->generation != atomic_load(&hli_generation))
        return HL_EFORKED;
    return atomic_load(&client->is_closed) ? HL_ECLOSED : 0;
}

/* Counts first and checks afterwards: a close that this check misses sees the count. */
int hli_client_enter(hl_client *client)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return rc;
    hli_cancelability_enter();
    hli_client_ref(client);
    atomic_fetch_add(&client->inside, 1);
    if (!atomic_load(&client->is_closed))
        return 0;
    hli_client_leave(client);
    return HL_ECLOSED;
}

/* As above: a close that this check misses waits for the visitor. */
bool hli_client_visit(hl_client *client)
{
    hli_cancelability_enter();
    hli_client_ref(client);
    atomic_fetch_add(&client->inside, 1);
    if (!atomic_load(&client->has_ended))
        return true;
    hli_client_leave(client);
    return false;
}

int hli_client_enter_call(hl_client *client, const struct hli_completion *completion)
{
    if (completion->is_async && !completion->done && !completion->counted && !completion->token &&
        !completion->inspected && !completion->replied)
        return hli_fail(completion->err, HL_EINVAL, "done is NULL");
    int rc = hli_client_enter(client);
    return rc == 0 ? 0
                   : hli_fail(completion->err, rc, "%s",
                              client ? hl_err_text(rc) : "the client is NULL");
}

void hli_client_leave(hl_client *client)
{
    if (atomic_fetch_sub(&client->inside, 1) == 1 && atomic_load(&client->is_closed))
        hli_gate_nudge(&client->inside_gate);
    hli_client_unref(client);
    hli_cancelability_leave();
}

void hli_client_set_wording(hl_client *client, const struct hli_wording *wording)
{
    atomic_store(&client->wording, wording);
}

uint64_t hli_client_next_number(hl_client *client)
{
    return atomic_fetch_add_explicit(&client->tenure_numbers, 1, memory_order_relaxed) + 1;
}

struct hli_link *hli_client_link(const hl_client *client, unsigned slot, unsigned lane)
{
    struct hli_link *first = atomic_load_explicit(&client->links[slot], memory_order_acquire);

    return lane == 0 ? first : hli_link_lane(first, lane);
}

void hli_settings_strings(hl_client_options *settings, const char **ret_text[HLI_SETTINGS_STRINGS])
{
    const char **text[HLI_SETTINGS_STRINGS] = {&settings->client_name,
                                               &settings->name_prefix,
                                               &settings->tls_ca_file,
                                               &settings->tls_ca_dir,
                                               &settings->tls_cert_file,
                                               &settings->tls_key_file,
                                               &settings->tls_server_name,
                                               &settings->password_file,
                                               &settings->sentinel_password_file,
                                               &settings->sentinel_tls_server_name};

    memcpy(ret_text, text, sizeof(text));
}

void hli_settings_deinit(hl_client_options *settings)
{
    const char **text[HLI_SETTINGS_STRINGS];

    hli_settings_strings(settings, text);
    for (int i = 0; i < HLI_SETTINGS_STRINGS; i++) {
        free((char *)*text[i]);
        *text[i] = NULL;
    }
}

void hli_client_ref(hl_client *client)
{
    hli_ref_take(&client->ref);
}

void hli_client_unref(hl_client *client)
{
    if (!client || !hli_ref_drop(&client->ref))
        return;
    client->engine->free_watchdog(client->watchdog);
    hli_topology_free(client->topology);
    hli_loop_free(client->loop);
    hli_callbacks_deinit(&client->callbacks);
    hli_map_deinit(&client->names);
    hli_mutex_deinit(&client->names_mutex);
    hli_mutex_deinit(&client->waits_mutex);
    hli_mutex_deinit(&client->calls_mutex);
    hli_settings_deinit(&client->settings);
    free(client);
}

void hli_count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void hli_uncount(atomic_uint_fast64_t *counter)
{
    atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

void hli_count_failure(hl_client *client, hl_call call, int code, hl_reason reason)
{
    hli_count(&client->counters.failures[call][reason]);
    if (call == HL_CALL_RELEASE && code == HL_EINDOUBT)
        hli_count(&client->counters.in_doubt);
}

struct client_line {
    struct hli_callback callback;
    hl_client *client; /* borrowed: the queue is emptied before the client is freed */
    hl_log_level level;
    char text[256];
};

static void client_tell_line(struct hli_callback *callback)
{
    struct client_line *line = HLI_PART_OF(callback, struct client_line, callback);

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
    HLI_PART_IS(&line->callback, struct client_line, callback);
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
    char reason[256], from[HLI_WHERE_SIZE], to[HLI_WHERE_SIZE];
};

static void client_tell_event(struct hli_callback *callback)
{
    struct client_event *posted = HLI_PART_OF(callback, struct client_event, callback);
    const hl_event event = {.size = sizeof(event),
                            .kind = posted->kind,
                            .reason = posted->reason,
                            .from = posted->from[0] ? posted->from : NULL,
                            .to = posted->to[0] ? posted->to : NULL};

    posted->client->settings.on_event(&event, posted->client->settings.arg);
    free(posted);
}

void hli_client_tell(hl_client *client, const hl_event *event)
{
    if (!client->settings.on_event)
        return;
    struct client_event *posted = calloc(1, sizeof(*posted));
    if (!posted)
        return;
    HLI_PART_IS(&posted->callback, struct client_event, callback);
    posted->callback.run = client_tell_event;
    posted->client = client;
    posted->kind = event->kind;
    snprintf(posted->reason, sizeof(posted->reason), "%s", event->reason);
    snprintf(posted->from, sizeof(posted->from), "%s", event->from ? event->from : "");
    snprintf(posted->to, sizeof(posted->to), "%s", event->to ? event->to : "");
    hli_callbacks_post(&client->callbacks, &posted->callback);
}
