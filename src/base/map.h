/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A hash map from bytes to the objects that embed its nodes. It allocates only to grow, and still
 * works, slower, when it cannot grow. */
#ifndef HLI_BASE_MAP_H
#define HLI_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct hli_map_node {
    struct hli_map_node *next;
    uint64_t hash;
    const void *key; /* borrowed from the object that embeds the node */
    size_t length;
};

struct hli_map {
    struct hli_map_node **bucket;
    size_t buckets; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
};

void hli_map_init(struct hli_map *map);
/* The map must be empty: it does not own its nodes. */
void hli_map_deinit(struct hli_map *map);

/* Borrowed; NULL if the key is not in the map. */
struct hli_map_node *hli_map_find(const struct hli_map *map, const void *key, size_t length);

/* The key must not be in the map. Errors: HL_ENOMEM, for the first node only. */
int hli_map_insert(struct hli_map *map, struct hli_map_node *node, const void *key, size_t length);
void hli_map_remove(struct hli_map *map, struct hli_map_node *node);

/* Calls visit for every node; visit must not change the map. */
void hli_map_each(const struct hli_map *map, void (*visit)(struct hli_map_node *node, void *arg),
                  void *arg);

#endif
