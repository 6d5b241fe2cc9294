/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A belief lasts from the first to the last time that is_held said yes. It has to lie within its
 * tenure on the server: from the instant the server took the lock (first expiry less the lease) to
 * its deletion or last expiry, and never into the next tenure of the name. Several beliefs may
 * share a tenure, one after the other: by passes, and by retained locks.
 */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fatal.h"

void verdict_violation(struct verdict_case *the_case, uint64_t *count, const char *format, ...)
{
    bool is_first = verdict_violations(the_case->verdict) == 0;
    (*count)++;
    if (!is_first)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(the_case->verdict->text, sizeof the_case->verdict->text, format, args);
    va_end(args);
}

/* The server ended this tenure before the next one, and before its lease was over. */
static int64_t verdict_end_ms(const struct replay_tenure *tenure)
{
    int64_t end_ms = tenure->last_expiry_ms;
    if (tenure->gone_by_ms != 0 && tenure->gone_by_ms < end_ms)
        end_ms = tenure->gone_by_ms;
    if (tenure->next && tenure->next->began_ms < end_ms)
        end_ms = tenure->next->began_ms;
    return end_ms;
}

static bool verdict_fits(const struct replay_tenure *tenure, int64_t first_ns, int64_t seen_ns)
{
    return first_ns / 1000000 + VERDICT_CLOCK_MS >= tenure->began_ms &&
           seen_ns / 1000000 <= verdict_end_ms(tenure) + VERDICT_CLOCK_MS;
}

/* The tenure that it was in; when there is none such, the last one of its field. */
static void verdict_match(struct verdict_case *the_case, struct verdict_belief *belief)
{
    struct replay_tenure *tenure =
        replay_find(the_case->replay, belief->book, belief->record->number);
    while (tenure && tenure->again && !verdict_fits(tenure, belief->first_ns, belief->seen_ns))
        tenure = tenure->again;
    belief->tenure = tenure;
}

/* Of calls without a belief, too: a process may end, or lose the lock, after it asked for a level
 * and before it asks is_held. */
static void verdict_note_asked(struct verdict_case *the_case, uint32_t book,
                               const struct ledger_record *record)
{
    struct replay_tenure *tenure = replay_find(the_case->replay, book, record->number);
    uint32_t deepest = atomic_load(&record->deepest);
    for (; tenure; tenure = tenure->again) {
        tenure->is_prolonged |= !record->is_plain;
        if (deepest > tenure->deepest)
            tenure->deepest = deepest;
    }
}

static void verdict_collect_book(struct verdict_case *the_case, uint32_t index)
{
    const struct ledger_book *book = &the_case->ledger->book[index];
    for (uint32_t i = 0; i < ledger_used(book); i++) {
        const struct ledger_record *record = &book->record[i];
        the_case->verdict->calls++;
        verdict_note_asked(the_case, index, record);
        if (atomic_load(&record->first_ns) == 0)
            continue;
        the_case->verdict->strangers += book->is_redisson;
        struct verdict_belief *belief = &the_case->belief[the_case->count++];
        *belief = (struct verdict_belief){index, record, atomic_load(&record->first_ns),
                                          atomic_load(&record->seen_ns), NULL};
        verdict_match(the_case, belief);
    }
}

static void verdict_collect(struct verdict_case *the_case)
{
    size_t room = 1;
    for (uint32_t i = 0; i < the_case->ledger->books; i++)
        room += ledger_used(&the_case->ledger->book[i]);
    the_case->belief = calloc(room, sizeof(struct verdict_belief));
    must(the_case->belief);
    for (uint32_t i = 0; i < the_case->ledger->books; i++)
        verdict_collect_book(the_case, i);
    the_case->verdict->holds = the_case->count;
}

static int verdict_order(const void *left, const void *right)
{
    const struct verdict_belief *a = left, *b = right;
    if (a->record->name != b->record->name)
        return a->record->name < b->record->name ? -1 : 1;
    return (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns);
}

/* In order of their beginning, none may begin before the furthest end so far. */
static void verdict_overlaps(struct verdict_case *the_case)
{
    const struct verdict_belief *furthest = the_case->belief;
    qsort(the_case->belief, the_case->count, sizeof(struct verdict_belief), verdict_order);
    for (size_t i = 1; i < the_case->count; i++) {
        const struct verdict_belief *belief = &the_case->belief[i];
        bool is_same_name = belief->record->name == furthest->record->name;
        if (is_same_name && belief->first_ns < furthest->seen_ns)
            verdict_violation(the_case, &the_case->verdict->overlaps,
                              "s%u: %u:%llu believes %lld us before %u:%llu has ended",
                              belief->record->name, belief->book,
                              (unsigned long long)belief->record->number,
                              (long long)((furthest->seen_ns - belief->first_ns) / 1000),
                              furthest->book, (unsigned long long)furthest->record->number);
        if (!is_same_name || belief->seen_ns > furthest->seen_ns)
            furthest = belief;
    }
}

static void verdict_outlived(struct verdict_case *the_case, const struct verdict_belief *belief)
{
    const struct replay_tenure *tenure = belief->tenure;
    int64_t first_ms = belief->first_ns / 1000000, seen_ms = belief->seen_ns / 1000000;
    int64_t end_ms = verdict_end_ms(tenure);
    if (!verdict_fits(tenure, belief->first_ns, belief->seen_ns))
        verdict_violation(the_case, &the_case->verdict->outlived,
                          "s%u: %u:%llu believes from %lld to %lld ms of its tenure of %lld ms",
                          tenure->name, belief->book, (unsigned long long)tenure->number,
                          (long long)(first_ms - tenure->began_ms),
                          (long long)(seen_ms - tenure->began_ms),
                          (long long)(end_ms - tenure->began_ms));
}

static void verdict_note_in_tenure(const struct verdict_belief *belief)
{
    struct replay_tenure *tenure = belief->tenure;
    tenure->beliefs++;
    if (tenure->first_ns == 0 || belief->first_ns < tenure->first_ns)
        tenure->first_ns = belief->first_ns;
    if (belief->seen_ns > tenure->seen_ns)
        tenure->seen_ns = belief->seen_ns;
}

static void verdict_compare(struct verdict_case *the_case, const struct verdict_belief *belief)
{
    if (!belief->tenure || belief->tenure->name != belief->record->name) {
        verdict_violation(the_case, &the_case->verdict->unfounded,
                          "s%u: %u:%llu believes, and the server knows nothing of it",
                          belief->record->name, belief->book,
                          (unsigned long long)belief->record->number);
        return;
    }
    verdict_note_in_tenure(belief);
    verdict_outlived(the_case, belief);
}

/* In the order of the server's log, no tenure's beliefs may begin before all those of the tenures
 * before it have ended; and the count in it is not higher than what was asked for. */
static void verdict_order_of_name(struct verdict_case *the_case, const struct replay_tenure *tenure)
{
    const struct replay_tenure *furthest = NULL;
    for (; tenure; tenure = tenure->next) {
        if (tenure->beliefs == 0)
            continue;
        if (furthest && tenure->first_ns < furthest->seen_ns)
            verdict_violation(the_case, &the_case->verdict->misordered,
                              "s%u: %u:%llu came after %u:%llu and was believed in before it ended",
                              tenure->name, tenure->book, (unsigned long long)tenure->number,
                              furthest->book, (unsigned long long)furthest->number);
        if (tenure->most > tenure->deepest)
            verdict_violation(the_case, &the_case->verdict->miscounted,
                              "s%u: %u:%llu stood with count %lld, and %u were asked for",
                              tenure->name, tenure->book, (unsigned long long)tenure->number,
                              (long long)tenure->most, tenure->deepest);
        if (!furthest || tenure->seen_ns > furthest->seen_ns)
            furthest = tenure;
    }
}

void verdict_give(struct verdict *verdict, struct replay *replay)
{
    struct verdict_case the_case = {.verdict = verdict, .ledger = replay->ledger, .replay = replay};
    *verdict = (struct verdict){.calls = 0};
    replay_sort(replay);
    verdict_collect(&the_case);
    verdict_overlaps(&the_case);
    for (size_t i = 0; i < the_case.count; i++)
        verdict_compare(&the_case, &the_case.belief[i]);
    for (size_t i = 0; i < replay->count; i++)
        verdict->orphans += replay->tenure[i]->again && replay->tenure[i]->beliefs > 0;
    for (int i = 0; i < STRESS_NAMES; i++)
        verdict_order_of_name(&the_case, replay->first[i]);
    verdict_pace(&the_case);
    free(the_case.belief);
}
