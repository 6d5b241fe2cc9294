/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Reconnects: the link's changes, reported as events, and applied to every name. */
#include "lease/acquire/reconnect.h"

#include "base/probe.h"
#include "lease/acquire/ask.h"
#include "lease/acquire/grant.h"
#include "lease/calls/call.h"
#include "lease/hold/hold.h"
#include "lease/hold/release.h"
#include "lease/hold/watchdog.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

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
        if (HLI_GRACE_IS_ON(turn->name->client))
            hli_grace_meet(turn, tenure);
    }
}

static void reconnect_name(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    hli_release_on_link_up(&turn);
    if (name->current)
        reconnect_one(&turn, name->current);
    hli_turn_end(&turn);
}

/* The link with the subscriptions was lost for a while, but not the name's own: no grant came, and
 * nobody could ask for a retained lock. */
static void reconnect_deaf_name(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = name->current;
    if (tenure && tenure->state == HLI_TENURE_IDLE)
        hli_releasing_begin(&turn, tenure);
    else if (tenure)
        tenure->anchor_at = tenure->no_waiters_at = 0;
    hli_turn_end(&turn);
}

/* arg: the link that is up. */
static void reconnect_name_of(struct hli_name *name, void *arg)
{
    struct hli_link *link = hli_name_link(name);

    if (link == arg)
        reconnect_name(name);
    else if (hli_link_first(link) == arg)
        reconnect_deaf_name(name);
}

struct reconnect_failure {
    struct hli_link *link;
    hl_error err;
};

/* A lane that has failed alone is closed: its names go on by the first one. */
static void reconnect_name_failed(struct hli_name *name, void *arg)
{
    const struct reconnect_failure *failure = arg;
    const hl_error *err = &failure->err;
    struct hli_turn turn;

    if (name->kind->quorum) /* one master is not all */
        return;
    if (hli_name_forget_lane(name))
        reconnect_name(name);
    if (!hli_link_fails_with(hli_name_link(name), failure->link))
        return;
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

static void reconnect_tell_grace(hl_client *client, struct hli_link *link)
{
    char where[HLI_WHERE_SIZE], reason[HLI_WHERE_SIZE + 40];
    int64_t left_ms = link == hli_link_first(link) ? hli_link_take_grace_ms(link) : 0;

    if (left_ms == 0)
        return;
    hli_count(&client->counters.graces);
    hli_link_where(link, where);
    snprintf(reason, sizeof(reason), "the data of %s are of a new term", where);
    hli_log(client, HL_LOG_WARN, "%s: for %lld ms nobody acquires what is free there", reason,
            (long long)left_ms);
    hli_client_tell(client, &(const hl_event){
                                .kind = HL_EVENT_GRACE, .validity_ms = left_ms, .reason = reason});
}

void hli_client_link_up(hl_client *client, struct hli_link *link, bool is_again)
{
    bool is_first = !atomic_exchange(&client->was_up, true);

    if (client->settings.flags & HL_CLIENT_TLS_UNVERIFIED)
        hli_log(client, HL_LOG_WARN,
                "the server's certificate is not verified (HL_CLIENT_TLS_UNVERIFIED)");
    if (HLI_GRACE_IS_ON(client))
        reconnect_tell_grace(client, link);
    if (is_again && hli_link_is_whole(link)) {
        hli_count(&client->counters.reconnects);
        HLI_PROBE1(reconnect, client->id);
        hli_client_tell(client, &(const hl_event){.kind = HL_EVENT_CONNECTED, .reason = ""});
    }
    hli_grants_listen(client);
    if (is_again) /* before that nothing of it can be held */
        atomic_store(&client->sends, HLI_SENDS_RENEWALS);
    hli_names_visit(client, reconnect_name_of, link);
    if (is_first)
        hli_client_send_again(client);
    else if (is_again)
        hli_watchdog_post_behind(client->watchdog, &client->sending_again);
    else
        hli_calls_retry(client);
}

/* The requests that were under way when their slot left this link have ended with it, and its
 * return would not tell their names. */
static void reconnect_strayed_name(struct hli_name *name, void *arg)
{
    struct hli_turn turn;

    if (hli_link_first(hli_name_link(name)) == hli_link_first(arg))
        return;
    hli_turn_begin(&turn, name);
    hli_release_on_link_up(&turn);
    if (name->current && name->current->is_unsure)
        hli_tenure_ask_soon(name->current);
    hli_turn_end(&turn);
}

void hli_client_link_down(hl_client *client, struct hli_link *link, const hl_error *err)
{
    if (hli_link_is_whole(link))
        hli_client_tell(client,
                        &(const hl_event){.kind = HL_EVENT_DISCONNECTED, .reason = err->text});
    hli_names_visit(client, reconnect_strayed_name, link);
}

void hli_client_link_failed(hl_client *client, struct hli_link *link, const hl_error *err)
{
    struct reconnect_failure failure = {.link = link, .err = *err};

    hli_names_visit(client, reconnect_name_failed, &failure);
    if (err->code == HL_EDENIED)
        hli_calls_fail(client, link, err->code, err->text);
}

/* A subscription at the old node hears no more of the name, and is not counted at the new one. */
static void reconnect_moved_name(struct hli_name *name, void *arg)
{
    const hl_client *client = arg;

    if (!hli_topology_has_moved(client->topology, name->slot))
        return;
    atomic_store(&name->alone_until, 0); /* its keys are together again */
    hli_mutex_lock(&name->mutex);
    struct hli_contention *contention = name->contention;
    hli_mutex_unlock(&name->mutex);
    if (contention && contention->listener) {
        hli_contention_stop_listening(contention);
        client->engine->on_moved(name);
    }
    reconnect_name(name);
}

/* A call that TRYAGAIN has refused need not wait for the end of its pause. */
void hli_client_slots_moved(void *arg)
{
    hli_names_visit(arg, reconnect_moved_name, arg);
    hli_calls_retry(arg);
}
