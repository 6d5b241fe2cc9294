/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* From the addresses that servers announce to those that the client connects to. */
#ifndef HLI_ROUTE_ADDRESS_MAP_H
#define HLI_ROUTE_ADDRESS_MAP_H

#include "redis/url.h"

#include <hirelock/client.h>

/* What the program's address_map makes of this address; without one, the same. Loop thread.
 * Errors, each with err: HL_EPROTO (this is no address), HL_ECONN (the result is none),
 * HL_ENOMEM. */
int hli_address_map(const hl_client_options *settings, const char *host, uint16_t port,
                    struct hli_address *ret_address, hl_error *err);

#endif
