/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The same figures as one JSON object. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

static void json_integer(const char *name, int64_t value)
{
    printf("\"%s\": %" PRId64 ", ", name, value);
}

static void json_waits(const struct sale *sale)
{
    int64_t lock_us = sale_duration_us(sale) - sale_pause_us(sale);

    json_integer("locks", sale->waits);
    json_integer("locks_per_second", (int64_t)sale->waits * 1000000 / lock_us);
    json_integer("holds_lost", sale->lost);
    json_integer("wait_p50_us", sale_wait_us(sale, 0.5));
    json_integer("wait_p99_us", sale_wait_us(sale, 0.99));
    json_integer("wait_max_us", sale_wait_us(sale, 1));
    if (sale->killed_us == 0)
        return;
    json_integer("releases_in_doubt", sale->in_doubt);
    json_integer("killed_process", sale->killed_process + 1); /* 0: the lock's server */
    json_integer("killed_lease_left_ms", sale->lease_left_ms);
    json_integer("killed_others_waited_us", sale_pause_us(sale));
}

static void json_sale(const struct sale *sale, const struct options *options)
{
    json_integer("sold", sale->sold_in_redis);
    json_integer("left", sale->left_in_redis);
    json_integer("oversold", sale_oversold(sale, options->stock));
    json_integer("orders_refused", sale->refused);
    json_integer("orders_unanswered", (int64_t)sale->orders - sale->sold - sale->refused);
    json_integer("duration_us", sale_duration_us(sale));
    if (sale->is_locked)
        json_waits(sale);
    printf("\"answered_by_process\": [");
    for (int i = 0; i < options->processes; i++)
        printf("%s%u", i > 0 ? ", " : "", sale->answered[i]);
    putchar(']');
}

void report_json(const struct report *report)
{
    putchar('{');
    json_integer("processes", report->options->processes);
    json_integer("threads", report->options->threads);
    json_integer("stock", report->options->stock);
    json_integer("orders", report->with->orders);
    json_integer("lease_ms", report->options->lease_ms);
    printf("\"without_a_lock\": {");
    json_sale(report->without, report->options);
    printf("}, \"with_hirelock\": {");
    json_sale(report->with, report->options);
    printf("}}\n");
}
