/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a link knows of its server: which one it is, since when it runs and has its data, its
 * replicas and its term; and by CONFIG GET, once for each connection that somebody wants to know it
 * of, what it keeps over a restart. */
#include "base/check.h"
#include "redis/link_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void link_note_majority(struct hli_link *link, const struct hli_handshake *said)
{
    unsigned majority = said->offset >= 0 ? said->replicas / 2 + 1 : 0;

    hli_conn_set_majority(&link->conn[HLI_LINK_COMMANDS], majority);
}

static void link_meet_term(struct hli_link *link)
{
    if (link->settings->failover_grace_ms == 0)
        return;
    hli_term_meet(&link->term, &link->first->term, &link->handshake[HLI_LINK_COMMANDS].term);
    hli_conn_set_term(&link->conn[HLI_LINK_COMMANDS], atomic_load(&link->term.number),
                      atomic_load(&link->term.grace_until));
}

/* Redis tells the difference of two times, each cut to whole seconds: the uptime may be up to a
 * second less. Thirty years are no uptime. */
static hli_ns link_began(hli_ns now, int64_t uptime_s)
{
    if (uptime_s < 0 || uptime_s > INT64_C(1000000000))
        return HLI_NEVER;
    return uptime_s == 0 ? now : now - (uptime_s - 1) * 1000000000;
}

bool hli_link_is_meant(struct hli_link *link, hl_error *ret_err)
{
    const struct hli_handshake *said = &link->handshake[HLI_LINK_COMMANDS];
    const struct hli_link_met server = {.node = &said->now.node,
                                        .run_id = said->now.run_id,
                                        .began = link_began(hli_now(), said->uptime_s)};

    return !hli_link_is_first(link) || !link->listener.met ||
           link->listener.met(link, &server, ret_err, link->listener.arg);
}

/* The first 16 of the 40 digits of a run id tell servers apart. */
static void link_note_server(struct hli_link *link, const struct hli_handshake *said)
{
    char digits[17];

    snprintf(digits, sizeof(digits), "%s", said->now.run_id);
    atomic_store(&link->server, strtoull(digits, NULL, 16));
    atomic_store(&link->keeps, HLI_KEEPS_UNKNOWN); /* before who asks can see that it is young */
    atomic_store(&link->data_began, 0);
    atomic_store(&link->server_began, link_began(link->up_since, said->uptime_s));
}

void hli_link_meet_server(struct hli_link *link)
{
    link_note_server(link, &link->handshake[HLI_LINK_COMMANDS]);
    link_note_majority(link, &link->handshake[HLI_LINK_COMMANDS]);
    link_meet_term(link);
}

void hli_link_tell_offsets(struct hli_link *link, const struct hli_handshake *said)
{
    if (said->offset >= 0)
        link_note_majority(link, said);
    if (link->listener.replicated && hli_link_is_first(link) && said->offset >= 0)
        link->listener.replicated(link, said->offset, said->replica_offset, link->listener.arg);
}

hli_ns hli_link_server_began(const struct hli_link *link)
{
    return atomic_load(&link->server_began);
}

hli_ns hli_link_data_began(const struct hli_link *link)
{
    return atomic_load(&link->data_began);
}

void hli_link_note_data(struct hli_link *link, hli_ns began)
{
    atomic_store(&link->data_began, began);
}

uint64_t hli_link_server(const struct hli_link *link)
{
    return atomic_load(&link->server);
}

/* {appendonly, yes, appendfsync, always, no-appendfsync-on-rewrite, no, ...}. With the last one at
 * "yes" the server does not wait for its disk while a child saves (redis.conf). */
static bool keeps_all(const struct hli_reply *reply)
{
    const struct hli_reply *key, *value;
    bool has_file = false, is_synced = false, is_always = false;

    for (size_t i = 0; (key = hli_reply_text_at(reply, i)) != NULL &&
                       (value = hli_reply_text_at(reply, i + 1)) != NULL;
         i += 2) {
        bool is_file = strcmp(key->text, "appendonly") == 0;
        bool is_sync = strcmp(key->text, "appendfsync") == 0;
        bool is_rewrite = strcmp(key->text, "no-appendfsync-on-rewrite") == 0;
        has_file = has_file || (is_file && strcmp(value->text, "yes") == 0);
        is_synced = is_synced || (is_sync && strcmp(value->text, "always") == 0);
        is_always = is_always || (is_rewrite && strcmp(value->text, "no") == 0);
    }
    return has_file && is_synced && is_always;
}

/* A server that does not say so (ACL) may forget. */
static void keeps_answered(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_link *link = HLI_PART_OF(op, struct hli_link, keeps_op);
    bool is_lost = answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT;
    bool is_all = answer->verdict == HLI_REPLIED && keeps_all(answer->reply);

    atomic_store(&link->keeps, is_lost  ? HLI_KEEPS_UNKNOWN
                               : is_all ? HLI_KEEPS_ALL
                                        : HLI_KEEPS_SOME);
}

static void keeps_ask(void *arg)
{
    static const char *const words[] = {"CONFIG", "GET", "*append*", NULL};
    struct hli_link *link = arg;

    if (link->state != HLI_LINK_UP || hli_op_texts(&link->keeps_op, words) < 0 ||
        !hli_conn_send(&link->conn[HLI_LINK_COMMANDS], &link->keeps_op, HLI_CONN_IF_READY))
        atomic_store(&link->keeps, HLI_KEEPS_UNKNOWN);
}

void hli_link_init_keeps(struct hli_link *link)
{
    link->ask_keeps = (struct hli_task){.run = keeps_ask, .arg = link};
    HLI_PART_IS(&link->keeps_op, struct hli_link, keeps_op);
    link->keeps_op.done = keeps_answered;
    link->keeps_op.script = -1;
    atomic_init(&link->keeps, HLI_KEEPS_UNKNOWN);
}

enum hli_link_keeps hli_link_keeps(struct hli_link *link)
{
    int keeps = HLI_KEEPS_UNKNOWN;

    if (atomic_compare_exchange_strong(&link->keeps, &keeps, HLI_KEEPS_ASKED))
        hli_loop_post(link->loop, &link->ask_keeps);
    return (enum hli_link_keeps)keeps;
}
