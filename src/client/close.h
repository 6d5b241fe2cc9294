/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Closing a client, also after a failed open. */
#ifndef HLI_CLIENT_CLOSE_H
#define HLI_CLIENT_CLOSE_H

#include "lease/calls/client.h"

/* Ends everything in order; the last reference frees the memory. */
void hli_client_stop(hl_client *client);

#endif
