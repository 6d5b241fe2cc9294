/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The hash map: chains, grown at a load of one. The seed is random, since names may come from
 * untrusted input. */
#include "base/map.h"

#include "base/check.h"
#include "base/random.h"

#include <hirelock/error.h>

#include <stdlib.h>
#include <string.h>

enum { MAP_FIRST_BUCKETS = 16 };

void hli_map_init(struct hli_map *map)
{
    *map = (struct hli_map){.seed = hli_random_u64()};
}

void hli_map_deinit(struct hli_map *map)
{
    HLI_CHECK(map->count == 0);
    free(map->bucket);
}

/* FNV-1a: names are short. */
static uint64_t map_hash(const struct hli_map *map, const void *key, size_t length)
{
    const unsigned char *byte = key;
    uint64_t hash = map->seed ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

static struct hli_map_node **map_bucket(const struct hli_map *map, uint64_t hash)
{
    return &map->bucket[hash & (map->buckets - 1)];
}

struct hli_map_node *hli_map_find(const struct hli_map *map, const void *key, size_t length)
{
    if (map->buckets == 0)
        return NULL;
    uint64_t hash = map_hash(map, key, length);
    struct hli_map_node *node = *map_bucket(map, hash);
    while (node &&
           (node->hash != hash || node->length != length || memcmp(node->key, key, length) != 0))
        node = node->next;
    return node;
}

static void map_link(struct hli_map *map, struct hli_map_node *node)
{
    struct hli_map_node **bucket = map_bucket(map, node->hash);

    node->next = *bucket;
    *bucket = node;
}

static int map_grow(struct hli_map *map)
{
    struct hli_map old = *map;
    size_t buckets = old.buckets ? old.buckets * 2 : MAP_FIRST_BUCKETS;
    struct hli_map_node **bucket = calloc(buckets, sizeof(*bucket));

    if (!bucket)
        return old.buckets ? 0 : HL_ENOMEM;
    map->bucket = bucket;
    map->buckets = buckets;
    for (size_t i = 0; i < old.buckets; i++) {
        for (struct hli_map_node *node = old.bucket[i], *next; node; node = next) {
            next = node->next;
            map_link(map, node);
        }
    }
    free(old.bucket);
    return 0;
}

int hli_map_insert(struct hli_map *map, struct hli_map_node *node, const void *key, size_t length)
{
    if (map->count >= map->buckets && map_grow(map) < 0)
        return HL_ENOMEM;
    node->hash = map_hash(map, key, length);
    node->key = key;
    node->length = length;
    map_link(map, node);
    map->count++;
    return 0;
}

void hli_map_remove(struct hli_map *map, struct hli_map_node *node)
{
    struct hli_map_node **at = map_bucket(map, node->hash);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    map->count--;
}

void hli_map_each(const struct hli_map *map, void (*visit)(struct hli_map_node *node, void *arg),
                  void *arg)
{
    for (size_t i = 0; i < map->buckets; i++)
        for (struct hli_map_node *node = map->bucket[i]; node; node = node->next)
            visit(node, arg);
}
