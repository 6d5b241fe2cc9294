/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the nodes of a cluster say of slots: MOVED, ASK and CLUSTERDOWN. */
#include "route/cluster_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDIRECT_BOUNCES = 8 }; /* in a row; then the request waits as a refused one */

/* "MOVED 3999 127.0.0.1:6381". An empty host is that of the one that said it; "?" is none (see
 * hli_cluster_map_read()), and only a map has more. */
static bool redirect_read(const char *text, char host[256], uint16_t *ret_port, unsigned *ret_slot)
{
    const char *at = strchr(text, ' '), *colon = strrchr(text, ':');
    char *end;

    if (!at || !colon)
        return false;
    unsigned long slot = strtoul(at + 1, &end, 10), port = strtoul(colon + 1, NULL, 10);
    if (*end != ' ' || end > colon || slot >= HLI_SLOTS || port < 1 || port > UINT16_MAX ||
        colon - end - 1 >= 256)
        return false;
    bool is_bracketed = end[1] == '[' && colon[-1] == ']'; /* IPv6, which Redis leaves bare */
    int length = (int)(colon - end - 1) - (is_bracketed ? 2 : 0);
    snprintf(host, 256, "%.*s", length, end + 1 + (is_bracketed ? 1 : 0));
    *ret_port = (uint16_t)port;
    *ret_slot = (unsigned)slot;
    return true;
}

/* NULL: the answer, which says why, goes to the caller. */
static struct hli_cluster_node *redirect_node(const struct hli_cluster_node *from,
                                              struct hli_answer *answer, unsigned *ret_slot)
{
    struct hli_cluster *cluster = from->cluster;
    struct hli_cluster_node *node = NULL;
    char host[256];
    uint16_t port;
    hl_error err;

    if (!redirect_read(answer->text, host, &port, ret_slot))
        return NULL;
    if (strcmp(host, "?") == 0)
        return NULL;
    int rc = hli_cluster_find_node(cluster, host[0] ? host : from->address.host, port, &node, &err);
    if (rc == HL_ECONN || rc == HL_ESERVER) {
        hli_cluster_note(cluster, &cluster->unmapped, &err);
        answer->text = cluster->unmapped.text;
    }
    return node;
}

/* It may be new, and not in a map yet. A node that has slots is kept by the map, and is left with
 * it when a replica takes its place. */
static void redirect_keep(struct hli_cluster_node *node)
{
    if (node->slots == 0)
        node->wanted_at = hli_now();
}

/* It did not run: its sender decides anew, and sends it to the slot's new node. */
static bool redirect_moved(struct hli_cluster_node *from, const struct hli_op *op,
                           struct hli_answer *answer)
{
    unsigned slot;
    struct hli_cluster_node *node = redirect_node(from, answer, &slot);

    hli_cluster_refresh_in(from->cluster, 0);
    if (!node || op->bounces > REDIRECT_BOUNCES) {
        answer->verdict = HLI_REFUSED;
        return false;
    }
    if (node == from && !hli_cluster_is_there(from)) /* another one is where it was before */
        hli_lanes_drop(from->link, "the node is announced at another address");
    redirect_keep(node);
    hli_cluster_set_slot(from->cluster, slot, node->link);
    answer->verdict = HLI_BOUNCED;
    return false;
}

/* It did not run: the key is at the importing node by now, or is to be made there. */
static bool redirect_ask(struct hli_cluster_node *from, const struct hli_link *link,
                         struct hli_op *op, struct hli_answer *answer)
{
    unsigned slot;
    struct hli_cluster_node *node = redirect_node(from, answer, &slot);

    if (node)
        redirect_keep(node);
    else
        hli_cluster_refresh_in(from->cluster, 0);
    bool may_go = node && op->bounces <= REDIRECT_BOUNCES;
    struct hli_link *lane = may_go ? hli_link_counterpart(node->link, link) : NULL;
    if (lane && hli_link_send_asking(lane, op))
        return true;
    if (!may_go || hli_op_is_wanted(op))
        answer->verdict = HLI_REFUSED;
    return false;
}

bool hli_cluster_redirect(struct hli_link *link, struct hli_op *op, struct hli_answer *answer,
                          void *arg)
{
    struct hli_cluster_node *node = arg;

    const struct hli_topology_listener *listener = hli_cluster_listener(node->cluster);

    if (hli_answer_is(answer, "CLUSTERDOWN")) {
        hli_cluster_refresh_in(node->cluster, 0);
        return false;
    }
    listener->redirected(listener->arg);
    if (hli_link_is_foreign(link) && hli_answer_is(answer, "MOVED")) {
        hli_cluster_refresh_in(node->cluster, 0); /* a script of the program may say anything */
        return false;
    }
    return hli_answer_is(answer, "ASK") ? redirect_ask(node, link, op, answer)
                                        : redirect_moved(node, op, answer);
}
