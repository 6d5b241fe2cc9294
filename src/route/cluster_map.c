/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The answer to CLUSTER SLOTS. */
#include "route/cluster_map.h"

#include "route/slots.h"

#include <stdlib.h>
#include <string.h>

void hli_cluster_map_free(struct hli_cluster_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->count; i++)
        hli_address_deinit(&map->range[i].address);
    free(map);
}

/* [first, last, [host, port, id ...], replicas ...] */
static int map_read_range(const struct hli_reply *entry, const char *asked_host,
                          struct hli_cluster_range *range)
{
    const struct hli_reply *master = hli_reply_item(entry, 2), *host = hli_reply_text_at(master, 0);
    int64_t first = -1, last = -1, port = 0;

    hli_reply_integer_at(entry, 0, &first);
    hli_reply_integer_at(entry, 1, &last);
    hli_reply_integer_at(master, 1, &port);
    if (first < 0 || last < first || last >= HLI_SLOTS || port < 1 || port > UINT16_MAX)
        return HL_EPROTO;
    bool is_asked = !host || host->length == 0 || strcmp(host->text, "?") == 0;
    range->first = (unsigned)first;
    range->last = (unsigned)last;
    int rc = hli_address_init(&range->address, is_asked ? asked_host : host->text, (uint16_t)port);
    return rc == HL_EINVAL ? HL_EPROTO : rc;
}

int hli_cluster_map_read(const struct hli_reply *slots, const char *asked_host,
                         struct hli_cluster_map **ret_map)
{
    if (slots->kind != HLI_REPLY_ARRAY || slots->length == 0)
        return HL_EPROTO;
    struct hli_cluster_map *map = calloc(1, sizeof(*map) + slots->length * sizeof(map->range[0]));
    if (!map)
        return HL_ENOMEM;
    int rc = 0;
    while (rc == 0 && map->count < slots->length) {
        rc = map_read_range(slots->item[map->count], asked_host, &map->range[map->count]);
        map->count++;
    }
    if (rc == 0)
        *ret_map = map;
    else
        hli_cluster_map_free(map);
    return rc;
}
