/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The records of all locks that were seen (record.h). The threads of the looks add to them; only
 * the thread of the screen takes records away, so a record that it knows stays where it is.
 */
#ifndef CLI_TOP_STORE_H
#define CLI_TOP_STORE_H

#include "cli/look.h"
#include "cli/top/record.h"

#include <pthread.h>

struct top_store {
    pthread_mutex_t mutex; /* guards all below, and the records */
    struct top_record **buckets;
    size_t bucket_count, count;
    size_t waited;     /* so many have waiters */
    uint64_t changes;  /* counted: a record came or went */
    uint32_t round;    /* of the survey that goes on */
    uint32_t finished; /* the last one that went through all */
    int64_t keys;      /* of all kinds at the server; -1: not known */
    bool is_paused;    /* what is seen is forgotten */
};

void top_store_init(struct top_store *store);
void top_store_deinit(struct top_store *store);

/* Takes in what was seen of this name: the lock, borrowed, or NULL: no key. Any thread. */
void top_store_see(struct top_store *store, const struct cli_name *name, json_object *lock);

/* Takes away what neither a whole survey nor a look has found for some seconds. Screen's thread,
 * without the mutex. */
void top_store_sweep(struct top_store *store);

/* NULL: there is none. With the mutex. */
struct top_record *top_store_find(const struct top_store *store, const char *name, size_t length);

#endif
