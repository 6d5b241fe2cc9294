/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The pairing heap of deadlines. */
#include "base/heap.h"

#include <stddef.h>

/* Makes the later of two roots the first child of the earlier one. */
static struct hli_heap_node *heap_meld(struct hli_heap_node *a, struct hli_heap_node *b)
{
    if (b->at < a->at) {
        struct hli_heap_node *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    a->child = b;
    a->next = NULL;
    return a;
}

/* Two passes over siblings, without recursion: pair them from left to right, then meld the pairs
 * from right to left. */
static struct hli_heap_node *heap_combine(struct hli_heap_node *first)
{
    struct hli_heap_node *pairs = NULL;

    while (first) {
        struct hli_heap_node *a = first, *b = first->next;
        first = b ? b->next : NULL;
        a->next = NULL;
        if (b) {
            b->next = NULL;
            a = heap_meld(a, b);
        }
        a->next = pairs;
        pairs = a;
    }
    while (pairs && pairs->next) {
        struct hli_heap_node *a = pairs, *b = pairs->next, *rest = b->next;
        a = heap_meld(a, b);
        a->next = rest;
        pairs = a;
    }
    return pairs;
}

static void heap_set_root(struct hli_heap *heap, struct hli_heap_node *root)
{
    heap->root = root;
    if (root)
        root->prev = root;
}

void hli_heap_insert(struct hli_heap *heap, struct hli_heap_node *node, hli_ns at)
{
    *node = (struct hli_heap_node){.at = at};
    heap_set_root(heap, heap->root ? heap_meld(heap->root, node) : node);
}

void hli_heap_remove(struct hli_heap *heap, struct hli_heap_node *node)
{
    struct hli_heap_node *children = heap_combine(node->child);

    if (node == heap->root) {
        heap_set_root(heap, children);
    } else {
        if (node->prev->child == node)
            node->prev->child = node->next;
        else
            node->prev->next = node->next;
        if (node->next)
            node->next->prev = node->prev;
        if (children)
            heap_set_root(heap, heap_meld(heap->root, children));
    }
    *node = (struct hli_heap_node){0};
}
