/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a buyer asks for, and the answer. The buyer chooses the order's id, and asks again with the
 * same one when no answer came. */
#ifndef SHOP_ORDER_H
#define SHOP_ORDER_H

#include "config.h"

#include <stddef.h>

enum { ORDER_ID_SIZE = 65, ORDER_WHY_SIZE = 256 };

struct order {
    char id[ORDER_ID_SIZE];
    int article; /* of the configuration */
    long long quantity;
};

enum answer {
    ANSWER_SOLD,
    ANSWER_SOLD_OUT,
    ANSWER_OTHER_ORDER, /* the id is another order's */
    ANSWER_TRY_AGAIN /* nobody knows whether it was sold: with the same id the buyer will learn */
};

/* 0, or the status of HTTP by which it is refused; why says what is wrong. */
int order_parse(const struct config *config, const char *text, size_t length, struct order *order,
                const char **ret_why);

/* As the answer stands in the table of orders and in JSON. */
const char *answer_text(enum answer answer);
int answer_status(enum answer answer);

#endif
