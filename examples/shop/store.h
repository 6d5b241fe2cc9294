/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Stock and orders, as rows of PostgreSQL. All SQL of the shop is here. */
#ifndef SHOP_STORE_H
#define SHOP_STORE_H

#include "database.h"
#include "order.h"

#include <stdint.h>

enum store_verdict {
    STORE_DONE,
    STORE_ABSENT,  /* no such order */
    STORE_REFUSED, /* the row has seen a larger token: the hold is late, or Redis has lost its
                      counter */
    STORE_TWICE,   /* the order came in by another way meanwhile */
    STORE_FAILED   /* the connection's why says so; what was under way may have happened */
};

/* A row of the article as one hold of its lock has read it. Without the lock the token is 0. */
struct reading {
    const char *article;
    uint64_t token;
    long long stock;
};

/* How one process fares, for the page. */
struct figures {
    unsigned long long sold, sold_out, tried_again, fenced, lost;
    unsigned long long waits, wait_p50_us, wait_p99_us, wait_max_us;
};

/* Makes the tables and the rows of articles that are not there. */
bool store_prepare(struct database *database, const struct config *config);

enum store_verdict store_find(struct database *database, const struct config *config,
                              const struct order *order, enum answer *ret_answer);
enum store_verdict store_read(struct database *database, struct reading *reading);
enum store_verdict store_write(struct database *database, const struct reading *reading,
                               const struct order *order, enum answer answer, const char *seller);
/* The largest token that the article's row has seen. */
enum store_verdict store_token(struct database *database, const char *article, uint64_t *ret_token);

/* Enters this process, if it has no row, and how it fares. */
bool store_note(struct database *database, const char *id, const char *address,
                const struct figures *figures);
bool store_leave(struct database *database, const char *id);

/* Objects of JSON: articles and their sum; processes. NULL: it failed. */
PGresult *store_sales(struct database *database);
PGresult *store_processes(struct database *database);

#endif
