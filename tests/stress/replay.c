/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

#include "replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/aof.h"
#include "support/fatal.h"

__attribute__((format(printf, 2, 3))) static void replay_wrong(struct replay *replay,
                                                               const char *format, ...)
{
    if (replay->wrong++ > 0)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(replay->wrong_text, sizeof replay->wrong_text, format, args);
    va_end(args);
}

static int64_t replay_integer(const struct resp_command *command, int index)
{
    char text[32] = "";
    size_t length = command->length[index];
    memcpy(text, command->argv[index], length < sizeof text ? length : sizeof text - 1);
    return strtoll(text, NULL, 10);
}

/* "<uuid>:<number>" of one of the books; false for any other field. */
static bool replay_field(const struct replay *replay, const struct resp_command *command, int index,
                         struct replay_tenure *ret_tenure)
{
    const char *field = command->argv[index];
    size_t length = command->length[index];
    char number[32] = "";
    if (length <= 37 || length - 37 >= sizeof number || field[36] != ':')
        return false;
    memcpy(number, field + 37, length - 37);
    ret_tenure->number = strtoull(number, NULL, 10);
    for (uint32_t i = 0; i < replay->ledger->books; i++)
        if (memcmp(replay->ledger->book[i].uuid, field, 36) == 0) {
            ret_tenure->book = i;
            return true;
        }
    return false;
}

static void replay_begin(struct replay *replay, const struct replay_tenure *seen)
{
    struct replay_tenure *tenure = malloc(sizeof *tenure);
    must(tenure);
    *tenure = *seen;
    tenure->order = replay->count;
    tenure->most = tenure->count;
    if (replay->count == replay->room) {
        replay->room = replay->room ? 2 * replay->room : 4096;
        replay->tenure = realloc(replay->tenure, replay->room * sizeof(struct replay_tenure *));
        must(replay->tenure);
    }
    replay->tenure[replay->count++] = tenure;
    if (replay->last[seen->name])
        replay->last[seen->name]->next = tenure;
    else
        replay->first[seen->name] = tenure;
    replay->last[seen->name] = replay->current[seen->name] = tenure;
    replay->grants += seen->is_granted;
}

/* Records a grant to the waiter that stood first in the queue, when one was taken from it. */
static void replay_grant(struct replay *replay, const struct resp_command *command,
                         struct replay_tenure *seen)
{
    const char *popped = replay->queue[seen->name].popped;
    seen->is_granted = popped[0] != '\0';
    if (seen->is_granted && !resp_command_arg_is(command, 2, popped))
        replay_wrong(replay, "s%u is granted to %u:%llu, and %s was first in the queue", seen->name,
                     seen->book, (unsigned long long)seen->number, popped);
    replay->has_taken[seen->name] = !seen->is_granted;
}

static void replay_take(struct replay *replay, const struct resp_command *command,
                        struct replay_tenure *seen)
{
    seen->count = replay_integer(command, 3);
    if (replay->current[seen->name])
        replay_wrong(replay, "s%u is taken by %u:%llu and was not free", seen->name, seen->book,
                     (unsigned long long)seen->number);
    if (seen->count != 1)
        replay_wrong(replay, "s%u is taken with count %lld", seen->name, (long long)seen->count);
    if (!replay->ledger->book[seen->book].is_redisson)
        replay_grant(replay, command, seen);
    replay_begin(replay, seen);
}

static void replay_hset(struct replay *replay, const struct resp_command *command, uint32_t name)
{
    struct replay_tenure seen = {.name = name};
    if (command->argc < 4 || !replay_field(replay, command, 2, &seen))
        replay_wrong(replay, "s%u is set by a stranger", name);
    else
        replay_take(replay, command, &seen);
}

static void replay_add_expiry(struct replay_tenure *tenure, int64_t expiry_ms)
{
    if (tenure->expiries == tenure->room) {
        tenure->room = tenure->room ? 2 * tenure->room : 2;
        tenure->expiry_ms = realloc(tenure->expiry_ms, tenure->room * sizeof(int64_t));
        must(tenure->expiry_ms);
    }
    tenure->expiry_ms[tenure->expiries++] = expiry_ms;
    tenure->last_expiry_ms = expiry_ms;
}

/* The first expiry tells the time, for all begin with the same lease: what was deleted until now
 * was deleted before. */
static void replay_clock(struct replay *replay, struct replay_tenure *tenure, int64_t expiry_ms)
{
    tenure->began_ms = expiry_ms - (tenure->is_granted ? STRESS_CLAIM_MS : STRESS_LEASE_MS);
    for (int i = 0; i < STRESS_NAMES; i++)
        if (replay->deleted[i]) {
            replay->deleted[i]->gone_by_ms = tenure->began_ms;
            replay->deleted[i] = NULL;
        }
}

static void replay_expiry(struct replay *replay, const struct resp_command *command, uint32_t name)
{
    struct replay_tenure *tenure = replay->current[name];
    int64_t expiry_ms = replay_integer(command, 2);
    if (!tenure) {
        replay_wrong(replay, "s%u is renewed and nobody has it", name);
        return;
    }
    if (expiry_ms < tenure->last_expiry_ms)
        replay_wrong(replay, "the lease of s%u is shortened by %lld ms", name,
                     (long long)(tenure->last_expiry_ms - expiry_ms));
    if (tenure->expiries == 0)
        replay_clock(replay, tenure, expiry_ms);
    replay_add_expiry(tenure, expiry_ms);
}

/* In Redisson's manner the lock is taken by it, and goes to 0 before it is deleted. */
static void replay_count(struct replay *replay, const struct resp_command *command, uint32_t name)
{
    struct replay_tenure *tenure = replay->current[name], seen = {.name = name};
    bool is_known = replay_field(replay, command, 2, &seen);
    bool is_redisson = is_known && replay->ledger->book[seen.book].is_redisson;
    if (is_redisson && !tenure) {
        replay_take(replay, command, &seen);
        return;
    }
    if (!tenure || !is_known || seen.book != tenure->book || seen.number != tenure->number) {
        replay_wrong(replay, "the count of s%u is moved by who has it not", name);
        return;
    }
    tenure->count += replay_integer(command, 3);
    if (tenure->count > tenure->most)
        tenure->most = tenure->count;
    if (tenure->count < !is_redisson || tenure->count > 4)
        replay_wrong(replay, "the count of s%u becomes %lld", name, (long long)tenure->count);
}

static void replay_delete(struct replay *replay, uint32_t name)
{
    struct replay_tenure *tenure = replay->current[name];
    if (!tenure)
        replay_wrong(replay, "s%u is deleted and was not there", name);
    else if (tenure->expiries == 0)
        replay_wrong(replay, "s%u had no expiry", name);
    replay->deleted[name] = tenure;
    replay->current[name] = NULL;
}

/* An acquire of a free lock forgets the queue; its living waiters ask again. */
static void replay_end_transaction(struct replay *replay)
{
    for (int i = 0; i < STRESS_NAMES; i++) {
        if (replay->has_taken[i] && replay->queue[i].count > 0)
            replay_wrong(replay, "s%d is taken while it is free, and %u still stand in its queue",
                         i, replay->queue[i].count);
        replay->has_taken[i] = false;
        replay->queue[i].popped[0] = '\0';
    }
}

static void replay_key(struct replay *replay, const struct resp_command *command, uint32_t name)
{
    if (resp_command_begins(command, "HSET"))
        replay_hset(replay, command, name);
    else if (resp_command_begins(command, "PEXPIREAT"))
        replay_expiry(replay, command, name);
    else if (resp_command_begins(command, "HINCRBY"))
        replay_count(replay, command, name);
    else if (resp_command_begins(command, "DEL") || resp_command_begins(command, "UNLINK"))
        replay_delete(replay, name);
    else
        replay_wrong(replay, "s%u is changed by %.*s", name, (int)command->length[0],
                     command->argv[0]);
}

/* "s3", or its queue "hirelock_queue:{s3}" */
static void replay_word(struct replay *replay, const struct resp_command *command)
{
    static const char queue[] = "hirelock_queue:{s";
    const char *key = command->argv[1];
    size_t length = command->length[1];
    bool is_queue = length == sizeof queue + 1 && memcmp(key, queue, sizeof queue - 1) == 0;
    if (!is_queue && (length != 2 || key[0] != 's'))
        return;
    uint32_t name = (uint32_t)(key[is_queue ? sizeof queue - 1 : 1] - '0');
    if (name >= STRESS_NAMES)
        return;
    if (!is_queue)
        replay_key(replay, command, name);
    else if (!queue_step(&replay->queue[name], command))
        replay_wrong(replay, "the queue of s%u is changed by %.*s", name, (int)command->length[0],
                     command->argv[0]);
}

static void replay_step(const struct resp_command *command, int64_t at_s, void *arg)
{
    struct replay *replay = arg;
    (void)at_s;
    if (resp_command_begins(command, "MULTI"))
        replay->is_inside = true;
    else if (resp_command_begins(command, "EXEC"))
        replay->is_inside = false;
    else if (command->argc > 1)
        replay_word(replay, command);
    if (!replay->is_inside)
        replay_end_transaction(replay);
}

void replay_read(struct replay *replay, const char *dir, const struct ledger *ledger)
{
    *replay = (struct replay){.ledger = ledger};
    aof_read_dir(dir, replay_step, replay);
}

void replay_free(struct replay *replay)
{
    for (size_t i = 0; i < replay->count; i++) {
        free(replay->tenure[i]->expiry_ms);
        free(replay->tenure[i]);
    }
    free(replay->tenure);
}

static int replay_order_of_fields(const struct replay_tenure *a, const struct replay_tenure *b)
{
    if (a->book != b->book)
        return a->book < b->book ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int replay_order(const void *left, const void *right)
{
    const struct replay_tenure *a = *(const struct replay_tenure *const *)left;
    const struct replay_tenure *b = *(const struct replay_tenure *const *)right;
    int order = replay_order_of_fields(a, b);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

void replay_sort(struct replay *replay)
{
    if (replay->count > 0)
        qsort(replay->tenure, replay->count, sizeof(struct replay_tenure *), replay_order);
    for (size_t i = 1; i < replay->count; i++)
        if (replay_order_of_fields(replay->tenure[i - 1], replay->tenure[i]) == 0)
            replay->tenure[i - 1]->again = replay->tenure[i];
}

struct replay_tenure *replay_find(const struct replay *replay, uint32_t book, uint64_t number)
{
    const struct replay_tenure wanted = {.book = book, .number = number};
    size_t low = 0, high = replay->count;
    while (low < high) { /* the first that is not before the field */
        size_t middle = low + (high - low) / 2;
        if (replay_order_of_fields(replay->tenure[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there =
        low < replay->count && replay_order_of_fields(replay->tenure[low], &wanted) == 0;
    return is_there ? replay->tenure[low] : NULL;
}
