/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The links of a topology, for its kinds. */
#include "route/topology_kind.h"

#include <string.h>

struct hli_link *hli_topology_new_link(struct hli_topology *topology,
                                       const struct hli_address *address,
                                       const struct hli_link_listener *listener)
{
    const struct hli_link_setup setup = {.dialler = &topology->dialler,
                                         .settings = topology->setup.settings,
                                         .url = &topology->url,
                                         .logins = topology->logins,
                                         .address = address,
                                         .listener = *listener,
                                         .log = topology->setup.listener.log,
                                         .log_arg = topology->setup.listener.arg,
                                         .foreign_up = topology->setup.listener.foreign_up,
                                         .commands = topology->setup.commands,
                                         .ups = topology->setup.lanes_now,
                                         .first_ups = topology->setup.nodes_now};
    struct hli_link *link = hli_lanes_new(&setup);

    if (link && topology->setup.mailbox)
        hli_link_set_mailbox(link, topology->setup.mailbox);
    if (link)
        hli_link_pubsub(link)->is_sharded = topology->has_sharded_pubsub;
    return link;
}

struct hli_node_view hli_topology_view(struct hli_link *link)
{
    struct hli_node_view view = {.up_since = hli_link_up_since(link),
                                 .lanes = hli_link_connected_lanes(link)};
    hl_error problem = HL_ERROR_INIT;

    hli_link_where(link, view.where);
    hli_link_any_problem(link, &problem);
    memcpy(view.problem, problem.text, sizeof(view.problem));
    view.role = hli_link_was_up(link) ? HL_NODE_MASTER : HL_NODE_UNKNOWN;
    return view;
}
