/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The shop's data in Redis: what is left, and what was sold. It is kept the way that goes wrong
 * without a lock: read, decide, write. A connection belongs to one thread.
 *
 * Every function is false when Redis fails; shop_error says how.
 */
#ifndef STOCK_DEDUCTION_SHOP_H
#define STOCK_DEDUCTION_SHOP_H

#include <stdbool.h>

struct shop;

struct shop *shop_new(void);
void shop_free(struct shop *shop);

/* id tells apart the shops of several programs on one server. */
bool shop_open(struct shop *shop, const char *url, long id);
const char *shop_error(const struct shop *shop);

bool shop_fill(struct shop *shop, long stock);
bool shop_read(struct shop *shop, long *ret_left);
bool shop_write(struct shop *shop, long left, long quantity_sold);
bool shop_count(struct shop *shop, long *ret_left, long *ret_sold);
bool shop_clear(struct shop *shop);

#endif
