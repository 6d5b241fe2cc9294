/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The hash map against an array of the keys that should be in it. */

#include "base/map.h"

#include "base/check.h"
#include "base/random.h"
#include "support/test.h"

#include <string.h>

enum { ITEMS = 500, ROUNDS = 20000 };

struct item {
    struct hli_map_node node;
    char key[8];
    bool is_in, is_seen;
};

static struct item items[ITEMS];

static void items_name(void)
{
    for (int i = 0; i < ITEMS; i++)
        memcpy(items[i].key, (const char[8]){'k', '\0', (char)(i % 256), (char)(i / 256)}, 8);
}

static void item_see(struct hli_map_node *node, void *arg)
{
    struct item *item = HLI_OF(node, struct item, node);
    check(item->is_in && !item->is_seen);
    item->is_seen = true;
    ++*(size_t *)arg;
}

static void item_change(struct hli_map *map, struct item *item)
{
    struct hli_map_node *found = hli_map_find(map, item->key, sizeof item->key);
    check(found == (item->is_in ? &item->node : NULL));
    if (item->is_in)
        hli_map_remove(map, &item->node);
    else
        check_int(hli_map_insert(map, &item->node, item->key, sizeof item->key), 0);
    item->is_in = !item->is_in;
}

Test(map, finds_what_is_in_it_and_nothing_else)
{
    struct hli_map map;
    size_t count = 0, seen = 0;
    hli_map_init(&map);
    items_name();
    for (int i = 0; i < ROUNDS; i++)
        item_change(&map, &items[hli_random_upto(ITEMS - 1)]);
    for (int i = 0; i < ITEMS; i++)
        count += items[i].is_in;
    check_int(map.count, count);
    hli_map_each(&map, item_see, &seen);
    check_int(seen, count);
    for (int i = 0; i < ITEMS; i++)
        if (items[i].is_in)
            item_change(&map, &items[i]);
    hli_map_deinit(&map);
}

Test(map, tells_keys_apart_by_all_their_bytes_and_their_length)
{
    struct hli_map map;
    struct hli_map_node node[3];
    hli_map_init(&map);
    check(hli_map_find(&map, "a", 1) == NULL);
    check_int(hli_map_insert(&map, &node[0], "a", 1), 0);
    check_int(hli_map_insert(&map, &node[1], "a\0", 2), 0);
    check_int(hli_map_insert(&map, &node[2], "a\0b", 3), 0);
    check(hli_map_find(&map, "a\0b", 1) == &node[0]);
    check(hli_map_find(&map, "a\0b", 2) == &node[1]);
    check(hli_map_find(&map, "a\0b", 3) == &node[2]);
    check(hli_map_find(&map, "a\0c", 3) == NULL);
    for (int i = 0; i < 3; i++)
        hli_map_remove(&map, &node[i]);
    hli_map_deinit(&map);
}
