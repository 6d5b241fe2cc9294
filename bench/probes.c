/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * probes URL LIBRARY LIBRARY: what the first library's pairs cost beside the second one's, which is
 * built without probes. Both are in this process, and take turns.
 * probes URL LIBRARY PAIR COUNT: so many pairs of one kind and nothing else, for a tool that counts
 * instructions. script/bench --probes does both.
 */
#include "instant.h"
#include "must.h"
#include "rounds.h"

#include <dlfcn.h>
#include <hirelock/hirelock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES_ROUNDS = 200, PROBES_ROUND_MS = 20, PROBES_RETAIN_MS = 1000, PROBES_SIDES = 2 };

/* The calls of one library; another one in the process has the same names. */
struct library {
    __typeof__(hl_client_open) *open;
    __typeof__(hl_client_close) *close;
    __typeof__(hl_lock_new_with) *new_with;
    __typeof__(hl_lock_free) *free;
    __typeof__(hl_lock_acquire) *acquire;
    __typeof__(hl_lock_release) *release;
};

/* A pair: what it does, and how many in a row before the clock is read. */
static const struct pair {
    const char *name;
    int64_t retain_ms;
    bool is_nested;
    int batch;
} pairs[] = {
    {"pair", 0, false, 1}, {"nested", 0, true, 100}, {"retained", PROBES_RETAIN_MS, false, 100}};

enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

struct side {
    struct library library;
    const struct pair *pair;
    hl_client *client;
    hl_lock *lock;
};

/* The function pointer has the bytes of what dlsym() returns (POSIX). */
static void library_call(void *handle, const char *name, void *ret_call)
{
    void *call = dlsym(handle, name);

    must(call != NULL, "%s", dlerror());
    memcpy(ret_call, &call, sizeof(call));
}

static struct library library_open(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct library library;

    must(handle != NULL, "%s", dlerror());
    library_call(handle, "hl_client_open", &library.open);
    library_call(handle, "hl_client_close", &library.close);
    library_call(handle, "hl_lock_new_with", &library.new_with);
    library_call(handle, "hl_lock_free", &library.free);
    library_call(handle, "hl_lock_acquire", &library.acquire);
    library_call(handle, "hl_lock_release", &library.release);
    return library;
}

static void side_pairs(const struct side *side, int count)
{
    hl_error err = HL_ERROR_INIT;

    for (int i = 0; i < count; i++) {
        must(side->library.acquire(side->lock, &err) == 0, "acquire: %s", err.text);
        must(side->library.release(side->lock, &err) == 0, "release: %s", err.text);
    }
}

static uint64_t side_work(void *arg, int64_t until)
{
    const struct side *side = arg;
    uint64_t done = 0;

    do {
        side_pairs(side, side->pair->batch);
        done += (uint64_t)side->pair->batch;
    } while (instant_now() < until);
    return done;
}

static void side_open(struct side *side, const struct pair *pair, const char *url, const char *name)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;

    side->pair = pair;
    options.name = name;
    options.retain_ms = pair->retain_ms;
    must(side->library.open(url, NULL, &side->client, &err) == 0, "%s", err.text);
    must(side->library.new_with(side->client, &options, &side->lock, &err) == 0, "%s", err.text);
    if (pair->is_nested)
        must(side->library.acquire(side->lock, &err) == 0, "acquire: %s", err.text);
}

static void side_close(struct side *side)
{
    hl_error err = HL_ERROR_INIT;

    if (side->pair->is_nested)
        must(side->library.release(side->lock, &err) == 0, "release: %s", err.text);
    side->library.free(side->lock);
    side->library.close(side->client);
}

static void compare(struct side sides[PROBES_SIDES], const struct pair *pair, const char *url)
{
    struct rounds rounds = {
        .count = PROBES_ROUNDS,
        .ms = PROBES_ROUND_MS,
        .sides = PROBES_SIDES,
        .side = {{.work = side_work, .arg = &sides[0]}, {.work = side_work, .arg = &sides[1]}}};

    side_open(&sides[0], pair, url, "bench:with");
    side_open(&sides[1], pair, url, "bench:none");
    rounds_run(&rounds);
    printf("%-10s %10.1f ns with probes, %10.1f ns without: %.4f times\n", pair->name,
           1e9 / rounds.side[0].rate, 1e9 / rounds.side[1].rate,
           rounds.side[1].rate / rounds.side[0].rate);
    side_close(&sides[0]);
    side_close(&sides[1]);
}

static const struct pair *pair_named(const char *name)
{
    for (size_t i = 0; i < PAIRS; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return &pairs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct side sides[PROBES_SIDES];
    const struct pair *pair = argc == 5 ? pair_named(argv[3]) : NULL;

    must(argc == 4 || pair, "usage: probes URL LIBRARY LIBRARY | URL LIBRARY PAIR COUNT");
    sides[0].library = library_open(argv[2]);
    if (pair) {
        side_open(&sides[0], pair, argv[1], "bench:count");
        side_pairs(&sides[0], (int)strtol(argv[4], NULL, 10));
        side_close(&sides[0]);
        return 0;
    }
    sides[1].library = library_open(argv[3]);
    for (size_t i = 0; i < PAIRS; i++)
        compare(sides, &pairs[i], argv[1]);
    return 0;
}
