/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A heap of deadlines: the earliest first. The nodes live inside the objects that wait, so no
 * function here allocates or fails (a pairing heap; M. Fredman et al., "The pairing heap", 1986).
 */
#ifndef HLI_BASE_HEAP_H
#define HLI_BASE_HEAP_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct hli_heap_node {
    struct hli_heap_node *child;
    struct hli_heap_node *next;
    struct hli_heap_node
        *prev; /* the sibling before, or the parent of a first child; itself for the root */
    hli_ns at;
};

struct hli_heap {
    struct hli_heap_node *root;
};

void hli_heap_insert(struct hli_heap *heap, struct hli_heap_node *node, hli_ns at);
void hli_heap_remove(struct hli_heap *heap, struct hli_heap_node *node);

/* Borrowed; NULL when the heap is empty. */
static inline struct hli_heap_node *hli_heap_first(const struct hli_heap *heap)
{
    return heap->root;
}

static inline bool hli_heap_has(const struct hli_heap_node *node)
{
    return node->prev != NULL;
}

#endif
