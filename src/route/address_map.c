/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The program's address_map, and what it may give. */
#include "route/address_map.h"

#include "base/error.h"

#include <string.h>

/* Errors: HL_EINVAL for what is no address, HL_ENOMEM. */
static int map_copy(const hl_address *address, struct hli_address *ret_address)
{
    bool is_text = memchr(address->host, 0, sizeof(address->host)) != NULL;

    if (!is_text || address->port < 1 || address->port > UINT16_MAX)
        return HL_EINVAL;
    return hli_address_init(ret_address, address->host, (uint16_t)address->port);
}

int hli_address_map(const hl_client_options *settings, const char *host, uint16_t port,
                    struct hli_address *ret_address, hl_error *err)
{
    hl_address address = {.size = sizeof(address), .port = port};
    struct hli_address announced;
    char where[HLI_WHERE_SIZE];

    if (strlen(host) >= sizeof(address.host) || port == 0)
        return hli_fail(err, HL_EPROTO, "what was announced is no address");
    memcpy(address.host, host, strlen(host) + 1);
    int rc = map_copy(&address, &announced);
    if (rc < 0)
        return rc == HL_ENOMEM ? hli_no_memory(err)
                               : hli_fail(err, HL_EPROTO, "what was announced is no address");
    if (!settings->address_map) {
        *ret_address = announced;
        return 0;
    }
    hli_address_where(&announced, where);
    hli_address_deinit(&announced);
    settings->address_map(&address, settings->address_map_arg);
    rc = map_copy(&address, ret_address);
    if (rc == HL_EINVAL)
        return hli_fail(err, HL_ECONN, "address_map gave no address for %s: \"%.64s\", port %d",
                        where, address.host, address.port);
    return rc < 0 ? hli_no_memory(err) : 0;
}
