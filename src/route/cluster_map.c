/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The answer to CLUSTER SLOTS. */
#include "route/cluster_map.h"

#include "base/error.h"
#include "route/slots.h"

#include <stdlib.h>
#include <string.h>

void hli_cluster_map_free(struct hli_cluster_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->count; i++)
        hli_address_deinit(&map->range[i].address);
    free(map->id);
    free(map);
}

/* --- ids --- */

static int map_order(const void *id, const void *other)
{
    return strcmp(((const struct hli_id *)id)->text, ((const struct hli_id *)other)->text);
}

bool hli_cluster_map_knows(const struct hli_cluster_map *map, const struct hli_id *id)
{
    return map->ids > 0 && bsearch(id, map->id, map->ids, sizeof(*id), map_order) != NULL;
}

bool hli_cluster_map_is_kin(const struct hli_cluster_map *map, const struct hli_cluster_map *other)
{
    bool is_kin = map->ids == 0 || other->ids == 0;

    for (size_t i = 0; i < other->ids && !is_kin; i++)
        is_kin = hli_cluster_map_knows(map, &other->id[i]);
    return is_kin;
}

/* Of [host, port, id ...]. Servers before Redis 4 tell none. */
static struct hli_id map_id_of(const struct hli_reply *node)
{
    return hli_reply_id(hli_reply_text_at(node, 2));
}

/* Those of one entry; most of a map's entries repeat a few. */
static void map_add_ids(struct hli_cluster_map *map, const struct hli_reply *entry)
{
    const struct hli_reply *node;

    for (size_t i = 2; (node = hli_reply_item(entry, i)) != NULL; i++) {
        struct hli_id id = map_id_of(node);
        if (id.text[0])
            map->id[map->ids++] = id;
    }
}

static size_t map_count_nodes(const struct hli_reply *slots)
{
    size_t count = 0;

    for (size_t i = 0; i < slots->length; i++)
        if (slots->item[i]->kind == HLI_REPLY_ARRAY)
            count += slots->item[i]->length;
    return count;
}

static int map_read_ids(struct hli_cluster_map *map, const struct hli_reply *slots)
{
    size_t count = 0;

    map->id = calloc(map_count_nodes(slots) + 1, sizeof(*map->id));
    if (!map->id)
        return HL_ENOMEM;
    for (size_t i = 0; i < slots->length; i++)
        map_add_ids(map, slots->item[i]);
    qsort(map->id, map->ids, sizeof(*map->id), map_order);
    for (size_t i = 0; i < map->ids; i++)
        if (count == 0 || !hli_id_is(&map->id[i], &map->id[count - 1]))
            map->id[count++] = map->id[i];
    map->ids = count;
    return 0;
}

/* --- ranges --- */

/* Of [host, port, id, [name, value ...]]; NULL: there is none that is of use. */
static const char *map_host_of(const struct hli_reply *master, const char *asked_host)
{
    const struct hli_reply *host = hli_reply_text_at(master, 0);

    if (host && strcmp(host->text, "?") == 0) {
        host = hli_reply_field(hli_reply_item(master, 3), "ip");
        if (!host)
            return NULL;
    }
    return host && host->length > 0 ? host->text : asked_host;
}

static void map_note(struct hli_cluster_map *map, const struct hli_cluster_range *range,
                     const struct hli_reply *master, int64_t port)
{
    const struct hli_reply *host = hli_reply_text_at(master, 0);
    char text[64];

    hli_error_escape(text, sizeof(text), host ? host->text : "", host ? host->length : 0);
    if (map->problem.code == 0)
        hli_fail(&map->problem, HL_ECONN,
                 "slots %u-%u have no node: \"%s\", port %lld, which is announced of node %.8s, is "
                 "no address",
                 range->first, range->last, text, (long long)port, range->id.text);
}

/* The numbers of its slots. False: they are none. */
static bool map_read_slots(const struct hli_reply *entry, struct hli_cluster_range *range)
{
    int64_t first = -1, last = -1;

    hli_reply_integer_at(entry, 0, &first);
    hli_reply_integer_at(entry, 1, &last);
    if (first < 0 || last < first || last >= HLI_SLOTS)
        return false;
    range->first = (unsigned)first;
    range->last = (unsigned)last;
    return true;
}

/* [first, last, [host, port, id ...], replicas ...]. Errors: HL_ENOMEM. */
static int map_read_range(struct hli_cluster_map *map, const struct hli_reply *entry,
                          const char *asked_host)
{
    const struct hli_reply *master = hli_reply_item(entry, 2);
    struct hli_cluster_range *range = &map->range[map->count];
    int64_t port = 0;
    int rc = HL_EINVAL;

    if (!map_read_slots(entry, range)) {
        if (map->problem.code == 0)
            hli_fail(&map->problem, HL_EPROTO, "the map of the cluster has an entry without slots");
        return 0;
    }
    hli_reply_integer_at(master, 1, &port);
    range->id = map_id_of(master);
    const char *host = map_host_of(master, asked_host);
    if (host && port >= 1 && port <= UINT16_MAX)
        rc = hli_address_init(&range->address, host, (uint16_t)port);
    if (rc == HL_ENOMEM)
        return rc;
    if (rc < 0)
        map_note(map, range, master, port);
    map->count++;
    return 0;
}

static bool map_is_of_use(const struct hli_cluster_map *map)
{
    for (size_t i = 0; i < map->count; i++)
        if (map->range[i].address.host)
            return true;
    return false;
}

int hli_cluster_map_read(const struct hli_reply *slots, const char *asked_host,
                         struct hli_cluster_map **ret_map)
{
    if (slots->kind != HLI_REPLY_ARRAY || slots->length == 0)
        return HL_EPROTO;
    struct hli_cluster_map *map = calloc(1, sizeof(*map) + slots->length * sizeof(map->range[0]));
    if (!map)
        return HL_ENOMEM;
    int rc = map_read_ids(map, slots);
    for (size_t i = 0; i < slots->length && rc == 0; i++)
        rc = map_read_range(map, slots->item[i], asked_host);
    if (rc == 0 && !map_is_of_use(map))
        rc = HL_EPROTO;
    if (rc == 0)
        *ret_map = map;
    else
        hli_cluster_map_free(map);
    return rc;
}
