/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The heap of deadlines against an array that is searched from end to end. */

#include "base/heap.h"

#include "base/random.h"
#include "support/test.h"

enum { NODES = 200, ROUNDS = 20000 };

struct model {
    struct hli_heap heap;
    struct hli_heap_node node[NODES];
    bool is_in[NODES];
};

static hli_ns model_earliest(const struct model *model)
{
    hli_ns earliest = HLI_NEVER;
    for (int i = 0; i < NODES; i++)
        if (model->is_in[i] && model->node[i].at < earliest)
            earliest = model->node[i].at;
    return earliest;
}

static void model_compare(const struct model *model)
{
    const struct hli_heap_node *first = hli_heap_first(&model->heap);
    hli_ns earliest = model_earliest(model);
    check((first == NULL) == (earliest == HLI_NEVER));
    check(!first || first->at == earliest);
}

static void model_change(struct model *model, int i)
{
    check(hli_heap_has(&model->node[i]) == model->is_in[i]);
    if (model->is_in[i])
        hli_heap_remove(&model->heap, &model->node[i]);
    else
        hli_heap_insert(&model->heap, &model->node[i], hli_random_upto(50));
    model->is_in[i] = !model->is_in[i];
}

Test(heap, is_empty_at_first)
{
    struct hli_heap heap = {0};
    check(hli_heap_first(&heap) == NULL);
}

Test(heap, keeps_the_earliest_first_through_random_changes)
{
    static struct model model;
    for (int i = 0; i < ROUNDS; i++) {
        model_change(&model, (int)hli_random_upto(NODES - 1));
        model_compare(&model);
    }
}

Test(heap, gives_all_back_in_order)
{
    static struct hli_heap_node node[NODES];
    struct hli_heap heap = {0};
    for (int i = 0; i < NODES; i++)
        hli_heap_insert(&heap, &node[i], (i * 7919) % 1009);
    hli_ns before = -1;
    for (int i = 0; i < NODES; i++) {
        struct hli_heap_node *first = hli_heap_first(&heap);
        check(first->at >= before);
        before = first->at;
        hli_heap_remove(&heap, first);
        check(!hli_heap_has(first));
    }
    check(hli_heap_first(&heap) == NULL);
}
