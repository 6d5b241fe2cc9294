/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A belief lasts from the first to the last time that is_held said yes. It has to lie within its
 * tenure on the server: from the instant the server took the lock (first expiry less the lease) to
 * the last expiry, and never into the next tenure of the name.
 */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fatal.h"
#include "support/test.h"

enum {
    VERDICT_CLOCK_MS = 1,                     /* the server counts in whole milliseconds */
    VERDICT_SLACK_MS = 1000,                  /* what a loaded machine may add to a timer */
    VERDICT_GAP_MS = STRESS_LEASE_MS * 2 / 3, /* between renewals, which are due after a third */
};

struct verdict_belief {
    uint32_t book;
    const struct ledger_record *record;
    int64_t first_ns, seen_ns;
};

struct verdict_case {
    struct verdict *verdict;
    const struct ledger *ledger;
    const struct replay *replay;
    struct verdict_belief *belief;
    size_t count;
};

__attribute__((format(printf, 3, 4))) static void verdict_violation(struct verdict_case *the_case,
                                                                    uint64_t *count,
                                                                    const char *format, ...)
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

static uint32_t verdict_used(const struct ledger_book *book)
{
    uint32_t used = atomic_load(&book->used);
    return used < LEDGER_RECORDS ? used : LEDGER_RECORDS;
}

static void verdict_collect(struct verdict_case *the_case)
{
    size_t room = 1;
    for (uint32_t i = 0; i < the_case->ledger->books; i++)
        room += verdict_used(&the_case->ledger->book[i]);
    the_case->belief = calloc(room, sizeof(struct verdict_belief));
    must(the_case->belief);
    for (uint32_t i = 0; i < the_case->ledger->books; i++)
        for (uint32_t j = 0; j < verdict_used(&the_case->ledger->book[i]); j++) {
            const struct ledger_record *record = &the_case->ledger->book[i].record[j];
            the_case->verdict->calls++;
            if (atomic_load(&record->first_ns) != 0)
                the_case->belief[the_case->count++] = (struct verdict_belief){
                    i, record, atomic_load(&record->first_ns), atomic_load(&record->seen_ns)};
        }
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

static void verdict_outlived(struct verdict_case *the_case, const struct verdict_belief *belief,
                             const struct replay_tenure *tenure)
{
    int64_t first_ms = belief->first_ns / 1000000, seen_ms = belief->seen_ns / 1000000;
    int64_t end_ms = tenure->last_expiry_ms;
    if (tenure->next && replay_began_ms(tenure->next) < end_ms)
        end_ms = replay_began_ms(tenure->next);
    if (first_ms + VERDICT_CLOCK_MS < replay_began_ms(tenure) ||
        seen_ms > end_ms + VERDICT_CLOCK_MS)
        verdict_violation(the_case, &the_case->verdict->outlived,
                          "s%u: %u:%llu believes from %lld to %lld ms of its tenure of %lld ms",
                          tenure->name, belief->book, (unsigned long long)tenure->number,
                          (long long)(first_ms - replay_began_ms(tenure)),
                          (long long)(seen_ms - replay_began_ms(tenure)),
                          (long long)(end_ms - replay_began_ms(tenure)));
}

static bool verdict_was_disturbed(const struct verdict_case *the_case, uint32_t book,
                                  int64_t from_ns, int64_t to_ns)
{
    for (uint32_t i = 0; i < the_case->ledger->disturbances; i++) {
        const struct ledger_disturbance *d = &the_case->ledger->disturbance[i];
        if (d->book == book && d->from_ns < to_ns && d->to_ns > from_ns)
            return true;
    }
    return false;
}

/* Of a hold that the watchdog alone renewed, in a process that could run. After the release was
 * called, one that was under way may still arrive. */
static void verdict_cadence(struct verdict_case *the_case, const struct verdict_belief *belief,
                            const struct replay_tenure *tenure)
{
    const struct ledger_record *record = belief->record;
    int64_t leave_ns = atomic_load(&record->leave_ns);
    int64_t slack_ns = VERDICT_SLACK_MS * INT64_C(1000000);
    if (!record->is_plain || leave_ns == 0 ||
        verdict_was_disturbed(the_case, belief->book, record->invoke_ns, leave_ns + slack_ns))
        return;
    the_case->verdict->judged++;
    if (tenure->longest_gap_ms > the_case->verdict->longest_gap_ms)
        the_case->verdict->longest_gap_ms = tenure->longest_gap_ms;
    int64_t renewed_ms = tenure->last_expiry_ms - STRESS_LEASE_MS;
    int64_t held_ms = (belief->seen_ns - belief->first_ns) / 1000000;
    bool is_rare = tenure->longest_gap_ms > VERDICT_GAP_MS ||
                   (record->is_watched && held_ms > STRESS_LEASE_MS && tenure->longest_gap_ms == 0);
    bool is_late = renewed_ms > (leave_ns + slack_ns) / 1000000;
    bool is_needless =
        !record->is_watched && renewed_ms > record->return_ns / 1000000 + VERDICT_CLOCK_MS;
    if (is_rare || is_late || is_needless)
        verdict_violation(the_case, &the_case->verdict->unrenewed,
                          "s%u: %u:%llu is renewed %s: longest gap %lld ms", tenure->name,
                          belief->book, (unsigned long long)tenure->number,
                          is_rare   ? "too rarely"
                          : is_late ? "after its end"
                                    : "without being watched",
                          (long long)tenure->longest_gap_ms);
}

static void verdict_compare(struct verdict_case *the_case, const struct verdict_belief *belief)
{
    const struct replay_tenure *tenure =
        replay_find(the_case->replay, belief->book, belief->record->number);
    if (!tenure || tenure->name != belief->record->name) {
        verdict_violation(the_case, &the_case->verdict->unfounded,
                          "s%u: %u:%llu believes, and the server knows nothing of it",
                          belief->record->name, belief->book,
                          (unsigned long long)belief->record->number);
        return;
    }
    verdict_outlived(the_case, belief, tenure);
    verdict_cadence(the_case, belief, tenure);
}

/* When the tenure was over on the server at the latest: its release was answered by then, or its
 * last lease had run out. */
static int64_t verdict_freed_ms(const struct verdict_case *the_case,
                                const struct replay_tenure *tenure,
                                const struct ledger_record *record)
{
    int64_t freed_ns = record ? atomic_load(&record->freed_ns) : 0;
    int64_t freed_ms = freed_ns / 1000000;
    (void)the_case;
    return freed_ns != 0 && freed_ms < tenure->last_expiry_ms ? freed_ms : tenure->last_expiry_ms;
}

/* Somebody who waited for this name all the while, in a process that could run. */
static bool verdict_had_waiter(const struct verdict_case *the_case, uint32_t name, int64_t from_ns,
                               int64_t to_ns)
{
    for (uint32_t i = 0; i < the_case->ledger->books; i++) {
        if (verdict_was_disturbed(the_case, i, from_ns, to_ns))
            continue;
        for (uint32_t j = 0; j < verdict_used(&the_case->ledger->book[i]); j++) {
            const struct ledger_record *record = &the_case->ledger->book[i].record[j];
            if (record->name == name && record->invoke_ns != 0 && record->invoke_ns < from_ns &&
                record->return_ns > to_ns)
                return true;
        }
    }
    return false;
}

static void verdict_idle(struct verdict_case *the_case, const struct replay_tenure *tenure,
                         const struct ledger_record *record)
{
    int64_t bound_ms = STRESS_POLL_MS * 13 / 10 + VERDICT_SLACK_MS;
    if (!tenure->next)
        return;
    int64_t freed_ms = verdict_freed_ms(the_case, tenure, record);
    int64_t idle_ms = replay_began_ms(tenure->next) - freed_ms;
    if (idle_ms <= STRESS_POLL_MS / 2 ||
        !verdict_had_waiter(the_case, tenure->name, freed_ms * 1000000,
                            replay_began_ms(tenure->next) * 1000000))
        return;
    if (idle_ms > the_case->verdict->longest_idle_ms)
        the_case->verdict->longest_idle_ms = idle_ms;
    if (idle_ms > bound_ms)
        verdict_violation(the_case, &the_case->verdict->late,
                          "s%u: free for %lld ms after %u:%llu while somebody waited", tenure->name,
                          (long long)idle_ms, tenure->book, (unsigned long long)tenure->number);
}

static int verdict_order_by_field(const void *left, const void *right)
{
    const struct verdict_belief *a = left, *b = right;
    if (a->book != b->book)
        return a->book < b->book ? -1 : 1;
    return (a->record->number > b->record->number) - (a->record->number < b->record->number);
}

/* Both are sorted by field. A tenure without a belief was given up before anybody was told. */
static void verdict_idles(struct verdict_case *the_case)
{
    size_t at = 0;
    qsort(the_case->belief, the_case->count, sizeof(struct verdict_belief), verdict_order_by_field);
    for (size_t i = 0; i < the_case->replay->count; i++) {
        const struct replay_tenure *tenure = the_case->replay->tenure[i];
        const struct ledger_record key_record = {.number = tenure->number};
        const struct verdict_belief key = {.book = tenure->book, .record = &key_record};
        while (at < the_case->count && verdict_order_by_field(&the_case->belief[at], &key) < 0)
            at++;
        bool is_believed =
            at < the_case->count && verdict_order_by_field(&the_case->belief[at], &key) == 0;
        verdict_idle(the_case, tenure, is_believed ? the_case->belief[at].record : NULL);
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
    verdict_idles(&the_case);
    free(the_case.belief);
}
