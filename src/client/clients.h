/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The list of all clients of the process. It is needed when the process forks, since the clients
 * stay with the parent, and when a thread ends that still holds locks. */
#ifndef HLI_CLIENT_CLIENTS_H
#define HLI_CLIENT_CLIENTS_H

#include "lease/calls/client.h"

void hli_clients_add(hl_client *client);
void hli_clients_remove(hl_client *client);

#endif
