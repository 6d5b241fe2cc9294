/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The queue for renewals. */
#include "lease/hold/renewal_queue.h"

#include "base/check.h"
#include "route/slots.h"

#include <stdlib.h>

void hli_renewal_queue_init(struct hli_renewal_queue *queue, hl_client *client,
                            void (*done)(struct hli_renewal *renewal))
{
    *queue = (struct hli_renewal_queue){.turn = INT64_MIN};
    TAILQ_INIT(&queue->idle);
    for (int i = 0; i < HLI_RENEWAL_BATCHES; i++) {
        hli_renewal_init(&queue->batch[i], client, queue, done);
        TAILQ_INSERT_TAIL(&queue->idle, &queue->batch[i], link);
    }
}

/* Without memory for moments each hold keeps its own time. */
void hli_renewal_queue_set_link(struct hli_renewal_queue *queue, const struct hli_link *link,
                                bool is_for_cluster)
{
    queue->link = link;
    queue->moments = is_for_cluster ? calloc(HLI_SLOTS, sizeof(*queue->moments)) : NULL;
}

static bool queue_is_empty(const struct hli_renewal_queue *queue)
{
    return !hli_heap_first(&queue->ready) && !hli_heap_first(&queue->later);
}

void hli_renewal_queue_deinit(struct hli_renewal_queue *queue)
{
    HLI_CHECK(queue_is_empty(queue));
    free(queue->moments);
    for (int i = 0; i < HLI_RENEWAL_BATCHES; i++)
        hli_renewal_deinit(&queue->batch[i]);
}

void hli_renewal_queue_add(struct hli_renewal_queue *queue, struct hli_tenure *tenure)
{
    int64_t group = hli_renewal_group(tenure);

    hli_heap_insert(group > queue->turn ? &queue->ready : &queue->later, &tenure->ready, group);
}

/* After the last one of a round the next round begins. */
static struct hli_heap_node *queue_first(struct hli_renewal_queue *queue)
{
    if (!hli_heap_first(&queue->ready)) {
        queue->ready = queue->later;
        queue->later = (struct hli_heap){0};
        queue->turn = INT64_MIN;
    }
    return hli_heap_first(&queue->ready);
}

struct hli_tenure *hli_renewal_queue_pop(struct hli_renewal_queue *queue)
{
    struct hli_heap_node *first = queue_first(queue);

    if (!first)
        return NULL;
    hli_heap_remove(&queue->ready, first);
    return HLI_OF(first, struct hli_tenure, ready);
}

bool hli_renewal_queue_may_send(const struct hli_renewal_queue *queue)
{
    return !queue_is_empty(queue) && !TAILQ_EMPTY(&queue->idle) &&
           queue->in_flight + HLI_RENEWAL_HOLDS <= HLI_RENEWAL_IN_FLIGHT;
}

struct hli_renewal *hli_renewal_queue_fill(struct hli_renewal_queue *queue)
{
    struct hli_heap_node *first;

    if (!hli_renewal_queue_may_send(queue))
        return NULL;
    struct hli_renewal *renewal = TAILQ_FIRST(&queue->idle);
    TAILQ_REMOVE(&queue->idle, renewal, link);
    while ((first = queue_first(queue)) &&
           hli_renewal_add(renewal, HLI_OF(first, struct hli_tenure, ready))) {
        queue->turn = first->at;
        hli_heap_remove(&queue->ready, first);
    }
    queue->in_flight += renewal->count;
    return renewal;
}

/* The batch that came back last goes out first, so that few batches ever keep the memory of a long
 * text. */
void hli_renewal_queue_take_back(struct hli_renewal *renewal)
{
    struct hli_renewal_queue *queue = renewal->queue;

    queue->in_flight -= renewal->count;
    renewal->count = 0;
    TAILQ_INSERT_HEAD(&queue->idle, renewal, link);
}
