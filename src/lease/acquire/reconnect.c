/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Reconnects: the link's changes, logged, reported as events, and applied to every name. */
#include "lease/acquire/reconnect.h"

#include "lease/acquire/ask.h"
#include "lease/acquire/grant.h"
#include "lease/calls/call.h"
#include "lease/hold/hold.h"
#include "lease/hold/release.h"
#include "lease/hold/watchdog.h"
#include "lease/state/contention.h"

enum { RECONNECT_WARN_MS = 60 * 1000 };

/* A grant over the old link cannot be judged any more; a hold is renewed at once, because the
 * server may be another one; a retained tenure is released. */
static void reconnect_one(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->anchor_at = 0;
    tenure->busy_stamp = 0;
    tenure->ask_at = 0;
    tenure->is_unsure = false; /* the old link is dead at the server, too */
    if (tenure->state == HLI_TENURE_IDLE) {
        hli_releasing_begin(turn, tenure);
    } else if (tenure->state == HLI_TENURE_OWN) {
        tenure->no_waiters_at = 0;
        tenure->renew_at = turn->now;
    }
}

static void reconnect_name(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_release_on_link_up(&turn);
    if (name->current)
        reconnect_one(&turn, name->current);
    hli_turn_end(&turn);
}

static void reconnect_name_failed(struct hli_name *name, void *arg)
{
    const hl_error *err = arg;
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    if (!TAILQ_EMPTY(&name->waiters)) {
        hli_contention_note_problem(name, err->code, err->text);
        hli_ask_fail_for_now(&turn, err->code, err->text);
    }
    hli_turn_end(&turn);
}

static void reconnect_plan(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    (void)arg;
    hli_turn_begin(&turn, name);
    hli_turn_end(&turn);
}

void hli_client_send_again(void *arg)
{
    hl_client *client = arg;

    for (int sends = HLI_SENDS_NO_VALUES; sends >= HLI_SENDS_ALL; sends--) {
        atomic_store(&client->sends, sends);
        hli_names_visit(client, reconnect_plan, NULL);
    }
    hli_calls_retry(client);
}

/* One line tells how an outage begins, one a minute that it goes on, and one how it ended. */
static void reconnect_log_failure(hl_client *client, const char *text)
{
    hli_ns now = hli_now();
    bool warns = client->outage.attempts == 0 ||
                 now >= hli_after_ms(client->outage.warned_at, RECONNECT_WARN_MS);

    if (client->outage.since == 0)
        client->outage.since = now;
    client->outage.attempts++;
    if (warns)
        client->outage.warned_at = now;
    hli_log(client, warns ? HL_LOG_WARN : HL_LOG_DEBUG, "no connection: %s", text);
}

static void reconnect_log_up(hl_client *client)
{
    const char *where = hli_link_where(client->link);
    hli_ns since = client->outage.since;

    if (since == 0)
        hli_log(client, HL_LOG_INFO, "connected to %s", where);
    else
        hli_log(client, HL_LOG_WARN, "connected again to %s after %.1f s, attempts: %u", where,
                (double)(hli_now() - since) / 1e9, client->outage.attempts + 1);
    client->outage.since = 0;
    client->outage.attempts = 0;
}

void hli_client_link_up(hl_client *client)
{
    bool is_first = !atomic_exchange(&client->was_up, true);

    reconnect_log_up(client);
    if (client->settings.flags & HL_CLIENT_TLS_UNVERIFIED)
        hli_log(client, HL_LOG_WARN,
                "the server's certificate is not verified (HL_CLIENT_TLS_UNVERIFIED)");
    if (!is_first) {
        hli_count(&client->counters.reconnects);
        hli_client_tell(client, HL_EVENT_CONNECTED, "");
    }
    hli_grants_listen(client);
    if (!is_first) /* before the first link nothing can be held */
        atomic_store(&client->sends, HLI_SENDS_RENEWALS);
    hli_names_visit(client, reconnect_name, NULL);
    if (is_first)
        hli_client_send_again(client);
    else
        hli_watchdog_post_behind(client->watchdog, &client->sending_again);
}

void hli_client_link_down(hl_client *client, const hl_error *err)
{
    client->outage.since = hli_now();
    hli_log(client, HL_LOG_WARN, "connection lost: %s", err->text);
    hli_client_tell(client, HL_EVENT_DISCONNECTED, err->text);
}

void hli_client_link_failed(hl_client *client, const hl_error *err)
{
    hl_error problem = *err;

    reconnect_log_failure(client, err->text);
    hli_names_visit(client, reconnect_name_failed, &problem);
    if (err->code == HL_EDENIED)
        hli_calls_fail(client, err->code, err->text);
}
