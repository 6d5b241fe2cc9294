/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Closing a client, also one that was never opened whole. */
#ifndef HLI_CLIENT_CLOSE_H
#define HLI_CLIENT_CLOSE_H

#include "lease/client.h"

/* Ends everything in order, and drops the user's reference. */
void hli_client_stop(hl_client *client);

#endif
