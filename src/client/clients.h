/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* All clients of the process: for a fork, after which they are the parent's alone, and for a thread
 * that ends while it holds. */
#ifndef HLI_CLIENT_CLIENTS_H
#define HLI_CLIENT_CLIENTS_H

#include "lease/client.h"

void hli_clients_add(hl_client *client);
void hli_clients_remove(hl_client *client);

#endif
