/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MEMORY_S 5.0F /* what was seen so long ago weighs 1/e */
#define RECORD_ENOUGH_S 1.0F /* from which on a pace is told */

enum {
    RECORD_FIELDS = 32,   /* of more owners a look tells some, and others the next time */
    RECORD_TOKENS = 65536 /* a client that takes more at once has a stock, or goes by the clock */
};

/* As look.c calls them, and here. */
static const char *const record_kinds[][2] = {{"", ""},
                                              {"lock", "lock"},
                                              {"fair lock", "fair"},
                                              {"fenced lock", "fenced"},
                                              {"read lock", "read"},
                                              {"write lock", "write"},
                                              {"permits", "permits"},
                                              {"value", "value"},
                                              {"number", "number"}};

static const char *record_text(json_object *lock, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(lock, key));

    return text ? text : "";
}

static int64_t record_number(json_object *lock, const char *key, int64_t otherwise)
{
    json_object *value;

    return json_object_object_get_ex(lock, key, &value) ? json_object_get_int64(value) : otherwise;
}

/* FNV-1a. */
uint64_t top_hash(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

struct top_record *top_record_new(const char *name, size_t length)
{
    struct top_record *record =
        length > UINT16_MAX ? NULL : calloc(1, sizeof(*record) + length + 1);

    if (!record)
        return NULL;
    memcpy(record->name, name, length);
    record->length = (uint16_t)length;
    record->is_free = true;
    return record;
}

void top_record_free(struct top_record *record)
{
    free(record->holder);
    free(record);
}

static uint8_t record_kind(json_object *lock)
{
    const char *kind = record_text(lock, "kind");
    uint8_t at = sizeof(record_kinds) / sizeof(record_kinds[0]) - 1;

    while (at > 0 && strcmp(record_kinds[at][0], kind) != 0)
        at--;
    return at;
}

/* Forgets with time, and adds what this look tells of the time since the last one. */
static void record_count(struct top_record *record, double changes, int64_t now_ms)
{
    float past_s = (float)(now_ms - record->seen_ms) / 1000.0F;
    float kept = expf(-past_s / RECORD_MEMORY_S);

    record->watched_s = record->watched_s * kept + past_s;
    record->looks = record->looks * kept + 1.0F;
    record->changes = record->changes * kept + (float)changes;
}

/* New owners since the last look, as far as it can be told: the tokens of a fenced lock are counted
 * by the server. But their counter stays when the lock is a plain one from then on, and it leaps
 * (docs/fenced-lock.md). */
static double record_changes(struct top_record *record, uint64_t owner, uint64_t token)
{
    bool has_changed = owner != 0 && (record->is_free || owner != record->owner);
    uint64_t tokens = record->token > 0 && token > record->token ? token - record->token : 0;

    if (tokens > 0 || has_changed)
        record->is_counted = tokens > 0 && tokens <= RECORD_TOKENS;
    if (tokens > 0 && record->is_counted)
        return (double)tokens;
    return has_changed ? 1 : 0;
}

/* Its owner of now; 0: none is told. */
static uint64_t record_owner(json_object *lock)
{
    const char *owner = record_text(lock, "owner");

    if (record_number(lock, "owners", 0) > RECORD_FIELDS || !owner[0])
        return 0;
    return top_hash(owner, strlen(owner));
}

static void record_see_since(struct top_record *record, json_object *lock, bool is_new,
                             int64_t now_ms)
{
    int64_t held_ms = record_number(lock, "held_ms", -1);

    record->has_since = held_ms >= 0;
    if (held_ms >= 0)
        record->since_ms = now_ms - held_ms;
    else if (is_new)
        record->since_ms = now_ms;
}

static void record_see_held(struct top_record *record, json_object *lock, int64_t now_ms)
{
    const char *holder = record_text(lock, "holder");
    uint64_t owner = record_owner(lock);
    uint64_t token = strtoull(record_text(lock, "token_counter"), NULL, 10);
    int64_t left_ms = record_number(lock, "lease_left_ms", -1);
    int64_t queued_ms = record_number(lock, "queued_ms", -1);

    if (record->seen_ms > 0)
        record_count(record, record_changes(record, owner, token), now_ms);
    record_see_since(record, lock, record->is_free || owner != record->owner, now_ms);
    record->waiters = (uint32_t)record_number(lock, "waiters", 0);
    record->is_queued = queued_ms >= 0;
    record->queued_ms = now_ms - queued_ms;
    record->owner = owner;
    record->token = token;
    record->kind = record_kind(lock);
    record->has_end = true;
    record->lease_end_ms = left_ms < 0 ? -1 : now_ms + left_ms;
    if (!record->holder || strcmp(record->holder, holder) != 0) {
        free(record->holder);
        record->holder = strdup(holder);
    }
}

static void record_see_free(struct top_record *record, int64_t now_ms)
{
    if (record->seen_ms > 0)
        record_count(record, 0, now_ms);
    if (!record->is_free)
        record->since_ms = now_ms;
    record->waiters = 0;
    record->is_queued = false;
    free(record->holder);
    record->holder = NULL;
    record->has_end = false;
}

void top_record_see(struct top_record *record, json_object *lock, int64_t now_ms)
{
    if (lock)
        record_see_held(record, lock, now_ms);
    else
        record_see_free(record, now_ms);
    record->is_free = !lock;
    record->seen_ms = now_ms;
}

const char *top_record_kind(const struct top_record *record)
{
    return record_kinds[record->kind][1];
}

struct top_figure top_record_held_ms(const struct top_record *record, int64_t now_ms)
{
    if (record->is_free)
        return (struct top_figure){-1, false};
    return (struct top_figure){(double)(now_ms - record->since_ms), !record->has_since};
}

int64_t top_record_longest_ms(const struct top_record *record, int64_t now_ms)
{
    return record->is_queued ? now_ms - record->queued_ms : -1;
}

struct top_figure top_record_pace(const struct top_record *record)
{
    if (record->watched_s < RECORD_ENOUGH_S || (record->owner == 0 && !record->is_free))
        return (struct top_figure){-1, false};
    return (struct top_figure){(double)(record->changes / record->watched_s),
                               !record->is_counted && record->changes > 0 &&
                                   record->changes * 2 >= record->looks};
}

int64_t top_record_lease_ms(const struct top_record *record, int64_t now_ms)
{
    if (!record->has_end)
        return -2;
    if (record->lease_end_ms < 0)
        return -1;
    return record->lease_end_ms > now_ms ? record->lease_end_ms - now_ms : 0;
}
