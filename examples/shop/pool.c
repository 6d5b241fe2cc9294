/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A stack of connections under a mutex. Those that broke are made anew by the thread that borrows
 * them next, so the pool heals when the server is back. */
#define _POSIX_C_SOURCE 200809L
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { POOL_WAIT_S = 5 };

struct pool {
    const char *url, *name; /* immutable */
    long size;              /* immutable */
    atomic_bool is_hurried;
    pthread_mutex_t mutex;
    pthread_cond_t given;
    long free_count;          /* mutex */
    struct database **free;   /* mutex; the first free_count */
    struct database *members; /* each belongs to the pool, or to the thread that has taken it */
};

struct pool *pool_new(long size, const char *url, const char *name)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    pthread_condattr_t monotonic;

    if (!pool)
        return NULL;
    pool->members = calloc((size_t)size, sizeof(*pool->members));
    pool->free = calloc((size_t)size, sizeof(*pool->free));
    if (!pool->members || !pool->free) {
        free(pool->members);
        free(pool->free);
        free(pool);
        return NULL;
    }
    pool->url = url;
    pool->name = name;
    pool->size = size;
    for (; pool->free_count < size; pool->free_count++)
        pool->free[pool->free_count] = &pool->members[pool->free_count];
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->given, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return pool;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    for (long i = 0; i < pool->size; i++)
        database_close(&pool->members[i]);
    pthread_cond_destroy(&pool->given);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->members);
    free(pool->free);
    free(pool);
}

static struct database *pool_wait(struct pool *pool)
{
    struct database *database = NULL;
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += POOL_WAIT_S;
    pthread_mutex_lock(&pool->mutex);
    while (pool->free_count == 0 && rc != ETIMEDOUT && !atomic_load(&pool->is_hurried))
        rc = pthread_cond_timedwait(&pool->given, &pool->mutex, &end);
    if (pool->free_count > 0)
        database = pool->free[--pool->free_count];
    pthread_mutex_unlock(&pool->mutex);
    return database;
}

static bool pool_open(struct pool *pool, struct database *database)
{
    if (atomic_load(&pool->is_hurried))
        return database_is_open(database);
    return database_open(database, pool->url, pool->name);
}

struct database *pool_take(struct pool *pool, char *why, size_t size)
{
    struct database *database = pool_wait(pool);

    if (!database) {
        snprintf(why, size, "no connection to PostgreSQL was free in time");
        return NULL;
    }
    if (!pool_open(pool, database)) { /* outside of the mutex: it may take long */
        snprintf(why, size, "%s", database->why);
        pool_give(pool, database);
        return NULL;
    }
    return database;
}

void pool_give(struct pool *pool, struct database *database)
{
    pthread_mutex_lock(&pool->mutex);
    pool->free[pool->free_count++] = database;
    pthread_cond_signal(&pool->given);
    pthread_mutex_unlock(&pool->mutex);
}

void pool_hurry(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->is_hurried, true);
    pthread_cond_broadcast(&pool->given);
    pthread_mutex_unlock(&pool->mutex);
}

long pool_taken(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    long taken = pool->size - pool->free_count;
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}
