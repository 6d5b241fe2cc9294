/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What a survey has found, as numbers, and the few names that an operator wants to see. Its memory
 * does not grow with the number of locks.
 */
#ifndef CLI_EXPORTER_CENSUS_H
#define CLI_EXPORTER_CENSUS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXPORTER_KINDS = 8, EXPORTER_STEPS = 5, EXPORTER_LONG_MS = 60000 };

/* The last kind counts all locks of kinds that are not named here. */
extern const char *const exporter_kinds[EXPORTER_KINDS];
/* In seconds, ascending. */
extern const unsigned exporter_held_steps[EXPORTER_STEPS];
extern const unsigned exporter_lease_steps[EXPORTER_STEPS];

/* A lock that is named: somebody waits for it, it has no expiry, or it is held for a minute. */
struct exporter_name {
    json_object *lock;                       /* as cli_look_read() made it; owned */
    int64_t waiters, held_ms, lease_left_ms; /* -1: not known; without an expiry */
    bool is_endless;
};

struct exporter_census {
    size_t most;                /* names */
    struct exporter_name *name; /* owned; the most waited for first */
    size_t names;
    uint64_t keys; /* that the survey went through */
    uint64_t by_kind[EXPORTER_KINDS];
    uint64_t waiters, waited_for, endless;
    uint64_t held_over[EXPORTER_STEPS], lease_under[EXPORTER_STEPS];
    int64_t oldest_ms, least_lease_ms; /* -1: there is none */
};

/* False: no memory. */
bool exporter_census_begin(struct exporter_census *census, size_t most);

/* Takes over the lock. */
void exporter_census_add(struct exporter_census *census, json_object *lock);

void exporter_census_free(struct exporter_census *census);

#endif
