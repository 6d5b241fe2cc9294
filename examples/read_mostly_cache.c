/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A cache that many processes read and one refreshes, now and then. No process may read it half
 * written: readers hold a read lock, all at a time, and the refresher the write lock, alone. Here
 * the cache is a page of memory that the processes share; a file or rows of a table would do.
 */
#define _DEFAULT_SOURCE
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 4, READS = 50, REFRESHES = 5, ENTRIES = 64 };

struct cache {
    long version[ENTRIES]; /* all the same, unless somebody looks while it is being written */
    atomic_int reads, refreshes, torn;
};

struct caller {
    struct cache *cache;
    hl_client *client;
    hl_lock *read, *write;
    hl_error err;
};

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* The refresher comes seldom and should not have to wait until no process happens to read: while it
 * waits, new readers stay out. */
static int caller_open(struct caller *caller, const char *url)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    int rc = hl_client_open(url, NULL, &caller->client, &caller->err);

    options.name = "cache:prices";
    options.kind = HL_LOCK_READ;
    if (rc == 0)
        rc = hl_lock_new_with(caller->client, &options, &caller->read, &caller->err);
    options.kind = HL_LOCK_WRITE;
    options.flags = HL_LOCK_PREFER_WRITERS;
    if (rc == 0)
        rc = hl_lock_new_with(caller->client, &options, &caller->write, &caller->err);
    return rc;
}

static void caller_close(struct caller *caller)
{
    hl_lock_free(caller->read);
    hl_lock_free(caller->write);
    hl_client_close(caller->client);
}

static void cache_check(struct cache *cache)
{
    for (int i = 1; i < ENTRIES; i++)
        if (cache->version[i] != cache->version[0]) {
            atomic_fetch_add(&cache->torn, 1);
            return;
        }
}

static int read_cache(struct caller *caller)
{
    int rc = hl_lock_acquire_for(caller->read, 10000, &caller->err);

    if (rc < 0)
        return rc;
    cache_check(caller->cache);
    nap_ms(1);
    cache_check(caller->cache); /* nobody has changed it meanwhile */
    atomic_fetch_add(&caller->cache->reads, 1);
    return hl_lock_release(caller->read, &caller->err);
}

/* Writes; then goes on as a reader, so that others may read while it looks at what it wrote. */
static int refresh_cache(struct caller *caller)
{
    int rc = hl_lock_acquire_for(caller->write, 10000, &caller->err);

    if (rc < 0)
        return rc;
    for (int i = 0; i < ENTRIES && hl_lock_is_held(caller->write, NULL); i++) {
        caller->cache->version[i]++;
        if (i % 16 == 0)
            nap_ms(1);
    }
    rc = hl_lock_acquire(caller->read, &caller->err); /* never waits: it writes */
    if (rc < 0)
        return rc;
    rc = hl_lock_release(caller->write, &caller->err);
    cache_check(caller->cache);
    atomic_fetch_add(&caller->cache->refreshes, 1);
    return rc < 0 ? rc : hl_lock_release(caller->read, &caller->err);
}

/* One process, with a client of its own, opened after the fork. */
static int process_main(struct cache *cache, const char *url, bool is_refresher)
{
    struct caller caller = {.cache = cache, .err = HL_ERROR_INIT};
    int rc = caller_open(&caller, url);

    for (int i = 0; rc == 0 && i < (is_refresher ? REFRESHES : READS); i++) {
        rc = is_refresher ? refresh_cache(&caller) : read_cache(&caller);
        nap_ms(is_refresher ? 10 : 1);
    }
    if (rc < 0)
        fprintf(stderr, "read_mostly_cache: %s\n", caller.err.text);
    caller_close(&caller);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const char does[] = "A cache that four processes read and one refreshes.";

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    struct cache *cache =
        mmap(NULL, sizeof(*cache), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0, status = 0;

    if (cache == MAP_FAILED) {
        perror("read_mostly_cache: mmap");
        return EXIT_FAILURE;
    }
    for (int i = 0; i <= READERS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(process_main(cache, url, i == READERS));
        failures += pid < 0;
    }
    while (wait(&status) > 0)
        failures += status != 0;
    printf("%d reads beside %d refreshes, %d of them torn\n", atomic_load(&cache->reads),
           atomic_load(&cache->refreshes), atomic_load(&cache->torn));
    return failures > 0 || atomic_load(&cache->torn) > 0;
}
