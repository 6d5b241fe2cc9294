/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The threads that sell: each takes an order, serves it, and hands the answer back to the loop. */
#ifndef SHOP_CREW_H
#define SHOP_CREW_H

#include "bell.h"
#include "queue.h"
#include "sale.h"

struct crew {
    struct sale *sale;
    struct queue orders;  /* from the loop */
    struct queue answers; /* to the loop, for which the bell rings */
    const struct bell *bell;
    long count;
    pthread_t threads[256];
};

bool crew_start(struct crew *crew, struct sale *sale, const struct bell *bell);

/* Serves the orders that are in the queue, and ends. Their answers wait in crew->answers. */
void crew_finish(struct crew *crew);
void crew_deinit(struct crew *crew); /* all answers have been taken */

#endif
