/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/exporter/census.h"

#include <stdlib.h>
#include <string.h>

const char *const exporter_kinds[EXPORTER_KINDS] = {
    "lock", "fair lock", "fenced lock", "read lock", "write lock", "permits", "resting", "other"};

/* The watchdog's leases are 30 s, renewed when 20 s are left; below 10 s a hold is in danger. */
const unsigned exporter_held_steps[EXPORTER_STEPS] = {10, 60, 600, 3600, 86400};
const unsigned exporter_lease_steps[EXPORTER_STEPS] = {1, 10, 20, 60, 600};

bool exporter_census_begin(struct exporter_census *census, size_t most)
{
    *census = (struct exporter_census){.most = most, .oldest_ms = -1, .least_lease_ms = -1};
    census->name = calloc(most + 1, sizeof(*census->name));
    return census->name != NULL;
}

void exporter_census_free(struct exporter_census *census)
{
    for (size_t i = 0; i < census->names; i++)
        json_object_put(census->name[i].lock);
    free(census->name);
    *census = (struct exporter_census){0};
}

static int64_t census_number(json_object *lock, const char *key, int64_t otherwise)
{
    json_object *value;

    return json_object_object_get_ex(lock, key, &value) ? json_object_get_int64(value) : otherwise;
}

static const char *census_text(json_object *lock, const char *key)
{
    return json_object_get_string(json_object_object_get(lock, key));
}

/* A lock that rests has no owner (docs/semantics.md). */
static size_t census_kind(json_object *lock)
{
    bool rests = json_object_object_get_ex(lock, "rest_left_ms", NULL);
    const char *kind = rests ? "resting" : census_text(lock, "kind");
    size_t at = 0;

    while (at < EXPORTER_KINDS - 1 && strcmp(exporter_kinds[at], kind) != 0)
        at++;
    return at;
}

/* Which of two is to be named first? */
static bool census_is_before(const struct exporter_name *left, const struct exporter_name *right)
{
    if (left->waiters != right->waiters)
        return left->waiters > right->waiters;
    if (left->is_endless != right->is_endless)
        return left->is_endless;
    if (left->held_ms != right->held_ms)
        return left->held_ms > right->held_ms;
    return strcmp(census_text(left->lock, "name"), census_text(right->lock, "name")) < 0;
}

/* SCAN may tell a key twice. */
static bool census_has(const struct exporter_census *census, json_object *lock)
{
    for (size_t i = 0; i < census->names; i++)
        if (strcmp(census_text(census->name[i].lock, "name"), census_text(lock, "name")) == 0)
            return true;
    return false;
}

/* The array has a place more than it needs: the last one falls out. */
static void census_keep(struct exporter_census *census, const struct exporter_name *name)
{
    bool is_full = census->names == census->most;
    bool is_worth = name->waiters > 0 || name->is_endless || name->held_ms >= EXPORTER_LONG_MS;

    if (!is_worth || census->most == 0)
        return;
    if (is_full && !census_is_before(name, &census->name[census->names - 1]))
        return;
    if (census_has(census, name->lock))
        return;
    size_t at = census->names++;
    for (; at > 0 && census_is_before(name, &census->name[at - 1]); at--)
        census->name[at] = census->name[at - 1];
    census->name[at] = *name;
    json_object_get(name->lock);
    if (census->names > census->most)
        json_object_put(census->name[--census->names].lock);
}

static void census_count_hold(struct exporter_census *census, const struct exporter_name *name)
{
    for (size_t i = 0; i < EXPORTER_STEPS; i++)
        census->held_over[i] += name->held_ms > exporter_held_steps[i] * 1000LL;
    if (name->held_ms > census->oldest_ms)
        census->oldest_ms = name->held_ms;
}

static void census_count_lease(struct exporter_census *census, const struct exporter_name *name)
{
    census->endless += name->is_endless;
    if (name->lease_left_ms < 0)
        return;
    for (size_t i = 0; i < EXPORTER_STEPS; i++)
        census->lease_under[i] += name->lease_left_ms < exporter_lease_steps[i] * 1000LL;
    if (census->least_lease_ms < 0 || name->lease_left_ms < census->least_lease_ms)
        census->least_lease_ms = name->lease_left_ms;
}

/* Only an owner has a lease; each permit has one of its own, which its name's key does not tell. */
void exporter_census_add(struct exporter_census *census, json_object *lock)
{
    struct exporter_name name = {.lock = lock, .lease_left_ms = -1};
    size_t kind = census_kind(lock);
    bool has_lease = census_number(lock, "levels", 0) != 0;

    name.waiters = census_number(lock, "waiters", 0);
    name.held_ms = census_number(lock, "held_ms", -1);
    if (has_lease)
        name.lease_left_ms = census_number(lock, "lease_left_ms", -1);
    name.is_endless = has_lease && name.lease_left_ms == -1;
    census->by_kind[kind]++;
    census->waiters += name.waiters > 0 ? (uint64_t)name.waiters : 0;
    census->waited_for += name.waiters > 0;
    census_count_hold(census, &name);
    census_count_lease(census, &name);
    census_keep(census, &name);
    json_object_put(lock);
}
