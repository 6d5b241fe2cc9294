/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Reconnects: the effect of a new link, or of a lost one, on all names of a client. */
#ifndef HLI_LEASE_ACQUIRE_RECONNECT_H
#define HLI_LEASE_ACQUIRE_RECONNECT_H

#include "lease/calls/client.h"

/* On the loop thread: the function of `sending_again`. */
void hli_client_send_again(void *client);

/* On the loop thread: the link came up, went down, or could not come up. */
void hli_client_link_up(hl_client *client, struct hli_link *link, bool is_again);
void hli_client_link_down(hl_client *client, struct hli_link *link, const hl_error *err);
void hli_client_link_failed(hl_client *client, struct hli_link *link, const hl_error *err);

/* On the loop thread: slots have other links (hli_topology_has_moved()). */
void hli_client_slots_moved(void *client);

#endif
