/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Connections to PostgreSQL that threads borrow: there are fewer of them than threads, which mostly
 * wait for a lock and need none meanwhile. */
#ifndef SHOP_POOL_H
#define SHOP_POOL_H

#include "database.h"

struct pool;

struct pool *pool_new(long size, const char *url, const char *name);
void pool_free(struct pool *pool); /* all have been given back */

/* A connection that is up. NULL: there was none in time, or none can be made, and why says so.
 * Threads: any. */
struct database *pool_take(struct pool *pool, char *why, size_t size);
void pool_give(struct pool *pool, struct database *database);

/* From now on nobody waits for a connection, and no new one is made. Threads: any. */
void pool_hurry(struct pool *pool);

/* How many are borrowed now. Threads: any. */
long pool_taken(struct pool *pool);

#endif
