/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The servers that a client uses, as the loop sees them. */
#include "base/error.h"
#include "lease/calls/client.h"

#include <stdlib.h>

struct nodes_look {
    struct hli_task task;
    struct hli_gate gate;
    hl_client *client;
    struct hli_node_view *views; /* owned by the caller's thread */
    size_t count;
    bool lacks_memory;
};

static void nodes_add(const struct hli_node_view *view, void *arg)
{
    struct nodes_look *look = arg;
    struct hli_node_view *views = realloc(look->views, (look->count + 1) * sizeof(*views));

    look->lacks_memory = look->lacks_memory || !views;
    if (!views)
        return;
    views[look->count++] = *view;
    look->views = views;
}

static void nodes_look_run(void *arg)
{
    struct nodes_look *look = arg;

    hli_topology_look(look->client->topology, nodes_add, look);
    hli_gate_open(&look->gate);
}

static void nodes_tell(const struct nodes_look *look, hl_node_cb visit, void *arg)
{
    hli_ns now = hli_now();

    for (size_t i = 0; i < look->count; i++) {
        const struct hli_node_view *view = &look->views[i];
        bool is_up = view->up_since > 0;
        const hl_node node = {.size = sizeof(node),
                              .address = view->where,
                              .role = view->role,
                              .is_connected = is_up,
                              .problem = is_up ? NULL : view->problem,
                              .since_ms = is_up ? (now - view->up_since) / 1000000 : -1,
                              .lanes = view->lanes,
                              .slots = view->slots};
        visit(&node, arg);
    }
}

int hl_client_nodes(hl_client *client, hl_node_cb visit, void *arg)
{
    struct nodes_look look = {.task = {.run = nodes_look_run, .arg = &look}, .client = client};
    int rc = hli_client_enter(client);

    if (rc < 0)
        return hli_fail(NULL, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!visit)
        rc = hli_fail(NULL, HL_EINVAL, "visit is NULL");
    else if (!hli_loop_post(client->loop, &look.task))
        rc = HL_ECLOSED;
    else
        hli_gate_wait(&look.gate, HLI_NEVER);
    if (rc == 0 && look.lacks_memory)
        rc = hli_no_memory(NULL);
    if (rc == 0)
        nodes_tell(&look, visit, arg);
    free(look.views);
    hli_client_leave(client);
    return rc < 0 ? rc : (int)look.count;
}
