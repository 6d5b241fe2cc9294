/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/scan.h"

#include "cli/look.h"

#include <stdio.h>
#include <string.h>

enum { SCAN_COUNT = 500 }; /* of a step; its answer is to stay within the library's bounds */

struct scan_nodes {
    hl_node_cb visit;
    void *arg;
    bool has_slots; /* it is a cluster */
};

static void scan_note_slots(const hl_node *node, void *arg)
{
    struct scan_nodes *nodes = arg;

    nodes->has_slots = nodes->has_slots || node->slots > 0;
}

static void scan_visit(const hl_node *node, void *arg)
{
    const struct scan_nodes *nodes = arg;

    if (node->role != HL_NODE_SENTINEL && (node->slots > 0 || !nodes->has_slots))
        nodes->visit(node, nodes->arg);
}

int cli_nodes_each(hl_client *client, hl_node_cb visit, void *arg)
{
    struct scan_nodes nodes = {visit, arg, false};
    int rc = hl_client_nodes(client, scan_note_slots, &nodes);

    if (rc >= 0)
        rc = hl_client_nodes(client, scan_visit, &nodes);
    return rc < 0 ? rc : 0;
}

static void scan_note_node(const hl_node *node, void *arg)
{
    struct cli_nodes *nodes = arg;

    if (nodes->count == CLI_NODES)
        nodes->are_too_many = true;
    else
        snprintf(nodes->where[nodes->count++], CLI_WHERE, "%s", node->address);
}

int cli_nodes_note(struct cli_nodes *nodes, hl_client *client, hl_error *err)
{
    nodes->count = 0;
    nodes->are_too_many = false;
    if (cli_nodes_each(client, scan_note_node, nodes) < 0)
        *err = *hl_err_last();
    else if (nodes->are_too_many)
        *err = (hl_error){.code = HL_ENOTSUP, .text = "the cluster has too many nodes"};
    return err->code;
}

struct cli_scan cli_scan_of(hl_client *client, const char *where, const char *type)
{
    return (struct cli_scan){.client = client,
                             .where = where,
                             .type = type,
                             .pattern = "*",
                             .cursor = "0",
                             .count = SCAN_COUNT};
}

static int scan_ask(const struct cli_scan *scan, hl_reply **ret_reply, hl_error *err)
{
    char number[16];
    const char *words[] = {"SCAN",  scan->cursor, "MATCH", scan->pattern,
                           "COUNT", number,       "TYPE",  scan->type};
    hl_command command = HL_COMMAND_INIT;

    snprintf(number, sizeof(number), "%u", scan->count);
    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = sizeof(words) / sizeof(words[0]);
    command.node = scan->where;
    return hl_client_command(scan->client, &command, ret_reply, err);
}

/* Long keys make an answer too big: then it asks for fewer. */
int cli_scan_next(struct cli_scan *scan, hl_reply **ret_reply, hl_error *err)
{
    hl_reply *reply = NULL;
    int rc = scan_ask(scan, &reply, err);

    *ret_reply = NULL;
    if (rc == HL_EPROTO && scan->count > 1) {
        scan->count = scan->count > 3 ? scan->count / 4 : 1;
        return 0;
    }
    scan->is_over = true;
    if (rc < 0)
        return rc;
    const hl_reply *next = cli_reply_text(reply, 0);
    if (!next || reply->element_count < 2) {
        hl_reply_free(reply);
        *err = (hl_error){.code = HL_EPROTO, .text = "an answer that is no SCAN's"};
        return HL_EPROTO;
    }
    snprintf(scan->cursor, sizeof(scan->cursor), "%s", next->text);
    scan->is_over = strcmp(scan->cursor, "0") == 0;
    *ret_reply = reply;
    return 0;
}
