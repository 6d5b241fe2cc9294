/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Closing a client, also one that was never opened whole. */
#ifndef HLI_CLIENT_CLOSE_H
#define HLI_CLIENT_CLOSE_H

#include "lease/client.h"

/* Ends everything in order; the memory stays until the last reference is dropped. */
void hli_client_stop(hl_client *client);

#endif
