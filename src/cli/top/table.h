/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The table of locks on the screen: a line of titles, and a line for each lock. */
#ifndef CLI_TOP_TABLE_H
#define CLI_TOP_TABLE_H

#include "cli/top/order.h"

struct top_table {
    int row, rows;          /* its place on the screen, titles included */
    size_t first, selected; /* of the order */
};

/* How many locks it shows at a time. */
size_t top_table_room(const struct top_table *table);

/* Moves `first` as little as needed, so that the selected lock is shown. */
void top_table_follow(struct top_table *table, size_t count);

/* With the store's mutex. */
void top_table_draw(const struct top_table *table, const struct top_order *order);

#endif
