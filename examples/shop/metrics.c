/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Each metric is read where it is counted; nothing is counted for this page only. */
#define _POSIX_C_SOURCE 200809L
#include "metrics.h"

#include <stdlib.h>

/* One whole text: it is written again when it did not fit. */
static bool metrics_add_locks(struct evbuffer *text, hl_client *client)
{
    size_t size = 32768;

    for (;;) {
        char *buffer = malloc(size);
        int length = buffer ? hl_metrics_format(&client, NULL, 1, buffer, size) : -1;
        bool fits = length >= 0 && (size_t)length < size;
        bool is_added = fits && evbuffer_add(text, buffer, (size_t)length) == 0;

        free(buffer);
        if (fits || length < 0)
            return is_added;
        size = (size_t)length * 2;
    }
}

static void metrics_add_one(struct evbuffer *text, const char *name, const char *type,
                            const char *help, unsigned long long value)
{
    evbuffer_add_printf(text, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
                        value);
}

static void metrics_add_answers(struct evbuffer *text, const struct sale *sale)
{
    evbuffer_add_printf(text, "# HELP shop_answers_total Orders by the answer that they had.\n"
                              "# TYPE shop_answers_total counter\n");
    for (int i = 0; i <= ANSWER_TRY_AGAIN; i++)
        evbuffer_add_printf(text, "shop_answers_total{text=\"%s\"} %llu\n",
                            answer_text((enum answer)i), atomic_load(&sale->answers[i]));
}

bool metrics_add(struct evbuffer *text, const struct http *http)
{
    const struct sale *sale = http->crew->sale;

    metrics_add_answers(text, sale);
    metrics_add_one(text, "shop_requests_total", "counter", "Requests of all kinds.",
                    http->requests);
    metrics_add_one(text, "shop_refused_total", "counter", "Orders that no thread has seen.",
                    http->refused);
    metrics_add_one(text, "shop_fenced_total", "counter",
                    "Reads and writes that a row has refused for their token.",
                    atomic_load(&sale->fenced));
    metrics_add_one(text, "shop_queue_length", "gauge", "Orders that wait for a thread.",
                    (unsigned long long)queue_length(&http->crew->orders));
    metrics_add_one(text, "shop_orders_open", "gauge", "Orders that have no answer yet.",
                    (unsigned long long)http->orders_open);
    metrics_add_one(text, "shop_pool_taken", "gauge", "Connections to PostgreSQL in use.",
                    (unsigned long long)pool_taken(sale->pool));
    metrics_add_one(text, "shop_pages", "gauge", "Pages that listen to events.",
                    (unsigned long long)http->events.count);
    metrics_add_one(text, "shop_events_dropped_total", "counter",
                    "Events that a page was too slow for.", http->events.dropped);
    metrics_add_one(text, "shop_door_shut_total", "counter",
                    "Times that too many connections were open.", http->door.shut);
    metrics_add_one(text, "shop_door_ended_total", "counter",
                    "Connections that had to leave, for they asked nothing in a full house.",
                    http->door.ended);
    return metrics_add_locks(text, sale->client);
}
