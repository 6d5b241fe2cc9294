/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/store.h"

#include <stdlib.h>
#include <string.h>

enum {
    STORE_BUCKETS = 256,   /* at first; a power of two */
    STORE_LINGER_MS = 5000 /* a lock that is taken again at once keeps its place, and its figures */
};

void top_store_init(struct top_store *store)
{
    *store = (struct top_store){.keys = -1};
    pthread_mutex_init(&store->mutex, NULL);
}

void top_store_deinit(struct top_store *store)
{
    for (size_t i = 0; i < store->bucket_count; i++)
        for (struct top_record *at = store->buckets[i], *next; at; at = next) {
            next = at->next;
            top_record_free(at);
        }
    free(store->buckets);
    pthread_mutex_destroy(&store->mutex);
}

static struct top_record **store_bucket(const struct top_store *store, const char *name,
                                        size_t length)
{
    return &store->buckets[top_hash(name, length) & (store->bucket_count - 1)];
}

struct top_record *top_store_find(const struct top_store *store, const char *name, size_t length)
{
    struct top_record *at = store->buckets ? *store_bucket(store, name, length) : NULL;

    while (at && (at->length != length || memcmp(at->name, name, length) != 0))
        at = at->next;
    return at;
}

/* As many buckets as records. False: there is no memory, and it stays as it is. */
static bool store_grow(struct top_store *store)
{
    struct top_store larger = {.bucket_count =
                                   store->bucket_count ? 2 * store->bucket_count : STORE_BUCKETS};

    larger.buckets = calloc(larger.bucket_count, sizeof(struct top_record *));
    if (!larger.buckets)
        return false;
    for (size_t i = 0; i < store->bucket_count; i++)
        for (struct top_record *at = store->buckets[i], *next; at; at = next) {
            struct top_record **to = store_bucket(&larger, at->name, at->length);
            next = at->next;
            at->next = *to;
            *to = at;
        }
    free(store->buckets);
    store->buckets = larger.buckets;
    store->bucket_count = larger.bucket_count;
    return true;
}

static struct top_record *store_add(struct top_store *store, const struct cli_name *name)
{
    bool is_full = store->count >= store->bucket_count;

    if (is_full && !store_grow(store) && !store->buckets)
        return NULL;
    struct top_record *record = top_record_new(name->bytes, name->length);
    if (!record)
        return NULL;
    struct top_record **to = store_bucket(store, record->name, record->length);
    record->next = *to;
    *to = record;
    store->count++;
    store->changes++;
    return record;
}

void top_store_see(struct top_store *store, const struct cli_name *name, json_object *lock)
{
    pthread_mutex_lock(&store->mutex);
    struct top_record *record = top_store_find(store, name->bytes, name->length);
    if (!record && lock && !store->is_paused)
        record = store_add(store, name);
    if (record && !store->is_paused) {
        store->waited -= record->waiters > 0;
        top_record_see(record, lock, cli_now_ms());
        store->waited += record->waiters > 0;
        record->round = store->round;
    }
    pthread_mutex_unlock(&store->mutex);
}

/* A survey may miss a lock that is released and taken all the time. */
static bool store_is_over(const struct top_store *store, const struct top_record *record,
                          int64_t now_ms)
{
    bool has_been_free = record->is_free && now_ms - record->since_ms > STORE_LINGER_MS;
    bool is_missed = record->round < store->finished && now_ms - record->seen_ms > STORE_LINGER_MS;

    return has_been_free || is_missed;
}

static void store_sweep_bucket(struct top_store *store, struct top_record **at, int64_t now_ms)
{
    while (*at) {
        struct top_record *record = *at;
        if (!store_is_over(store, record, now_ms)) {
            at = &record->next;
            continue;
        }
        *at = record->next;
        store->waited -= record->waiters > 0;
        top_record_free(record);
        store->count--;
        store->changes++;
    }
}

void top_store_sweep(struct top_store *store)
{
    int64_t now_ms = cli_now_ms();

    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < store->bucket_count; i++)
        store_sweep_bucket(store, &store->buckets[i], now_ms);
    pthread_mutex_unlock(&store->mutex);
}
