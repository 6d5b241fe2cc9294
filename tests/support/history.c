/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Records are taken by an atomic counter in the file and never moved. */
#include "history.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"

struct history_file {
    _Atomic uint64_t taken;
    struct history_record records[];
};

struct history {
    uint64_t capacity;
    struct history_file *file;
};

struct history_belief {
    uint32_t lock;
    bool is_shared;
    uint64_t owner;
    int64_t enter_ns, end_ns;
};

static size_t history_size(uint64_t capacity)
{
    return sizeof(struct history_file) + capacity * sizeof(struct history_record);
}

struct history *history_open(const char *path, uint64_t capacity)
{
    struct history *history = calloc(1, sizeof *history);
    must(history);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)history_size(capacity)) != 0)
        fatal_errno("open %s", path);
    void *pages = mmap(NULL, history_size(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(pages != MAP_FAILED);
    close(fd);
    history->capacity = capacity;
    history->file = pages;
    return history;
}

void history_close(struct history *history)
{
    munmap(history->file, history_size(history->capacity));
    free(history);
}

static struct history_record *history_begin(struct history *history, uint32_t lock, uint64_t owner,
                                            bool is_shared)
{
    uint64_t index = atomic_fetch_add(&history->file->taken, 1);
    if (index >= history->capacity)
        fatal("the history is full: %llu records", (unsigned long long)history->capacity);
    struct history_record *record = &history->file->records[index];
    record->lock = lock;
    record->owner = owner;
    record->is_shared = is_shared;
    /* Last: a process that was killed before this never entered. */
    atomic_store(&record->enter_ns, now_ns());
    return record;
}

struct history_record *history_enter(struct history *history, uint32_t lock, uint64_t owner)
{
    return history_begin(history, lock, owner, false);
}

struct history_record *history_enter_shared(struct history *history, uint32_t lock, uint64_t owner)
{
    return history_begin(history, lock, owner, true);
}

void history_leave(struct history_record *record)
{
    atomic_store(&record->leave_ns, now_ns());
}

void history_until(struct history_record *record, int64_t until_ns)
{
    atomic_store(&record->until_ns, until_ns);
}

uint64_t history_count(const struct history *history)
{
    uint64_t taken = atomic_load(&history->file->taken);
    return taken < history->capacity ? taken : history->capacity;
}

void history_end(struct history *history, int64_t end_ns)
{
    for (uint64_t i = 0; i < history_count(history); i++) {
        struct history_record *record = &history->file->records[i];
        if (atomic_load(&record->leave_ns) == 0)
            atomic_store(&record->leave_ns, end_ns);
    }
}

static int64_t history_end_of(const struct history_record *record)
{
    int64_t leave_ns = atomic_load(&record->leave_ns);
    int64_t until_ns = atomic_load(&record->until_ns);
    int64_t end_ns = leave_ns ? leave_ns : INT64_MAX;
    return until_ns && until_ns < end_ns ? until_ns : end_ns;
}

/* A belief that was over before it began is none. */
static bool history_read(const struct history_record *record, struct history_belief *ret_belief)
{
    struct history_belief belief = {.lock = record->lock,
                                    .is_shared = record->is_shared,
                                    .owner = record->owner,
                                    .enter_ns = atomic_load(&record->enter_ns),
                                    .end_ns = history_end_of(record)};
    *ret_belief = belief;
    return belief.enter_ns != 0 && belief.end_ns > belief.enter_ns;
}

static int history_order(const void *left, const void *right)
{
    const struct history_belief *a = left, *b = right;
    if (a->lock != b->lock)
        return a->lock < b->lock ? -1 : 1;
    return (a->enter_ns > b->enter_ns) - (a->enter_ns < b->enter_ns);
}

static void history_note(struct history_overlap *overlap, const struct history_belief *first,
                         const struct history_belief *second)
{
    int64_t end_ns = first->end_ns < second->end_ns ? first->end_ns : second->end_ns;
    int64_t longest_ns = overlap->longest_ns, this_ns = end_ns - second->enter_ns;
    if (longest_ns == 0)
        *overlap = (struct history_overlap){.lock = second->lock,
                                            .first_owner = first->owner,
                                            .second_owner = second->owner,
                                            .second_enter_ns = second->enter_ns,
                                            .first_end_ns = first->end_ns};
    overlap->longest_ns = this_ns > longest_ns ? this_ns : longest_ns;
}

static void history_extend(const struct history_belief **furthest, const struct history_belief *b)
{
    if (!*furthest || (*furthest)->lock != b->lock || b->end_ns > (*furthest)->end_ns)
        *furthest = b;
}

/* In order of enter, a belief that begins before the furthest end so far, of another owner, is an
 * overlap; a reader's before that of a writer. Equal stamps are none: either may have come first.
 */
static uint64_t history_scan(const struct history_belief *beliefs, size_t count,
                             struct history_overlap *ret_first)
{
    uint64_t overlaps = 0;
    const struct history_belief *furthest = NULL, *furthest_alone = NULL;
    struct history_overlap overlap = {.longest_ns = 0};
    for (const struct history_belief *b = beliefs; b < beliefs + count; b++) {
        const struct history_belief *rival = b->is_shared ? furthest_alone : furthest;
        if (rival && rival->lock == b->lock && b->owner != rival->owner &&
            b->enter_ns < rival->end_ns) {
            history_note(&overlap, rival, b);
            overlaps++;
        }
        history_extend(&furthest, b);
        if (!b->is_shared)
            history_extend(&furthest_alone, b);
    }
    if (overlaps > 0 && ret_first)
        *ret_first = overlap;
    return overlaps;
}

uint64_t history_check(struct history *const *histories, size_t count,
                       struct history_overlap *ret_first)
{
    size_t records = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        records += history_count(histories[i]);
    struct history_belief *beliefs = calloc(records + 1, sizeof *beliefs);
    must(beliefs);
    for (size_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < history_count(histories[i]) && used < records; j++)
            used += history_read(&histories[i]->file->records[j], &beliefs[used]);
    qsort(beliefs, used, sizeof *beliefs, history_order);
    uint64_t overlaps = history_scan(beliefs, used, ret_first);
    free(beliefs);
    return overlaps;
}
