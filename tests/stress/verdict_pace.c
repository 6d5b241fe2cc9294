/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Renewals in time and none too many; no lock free while a process waits; and no waiter in
 * Redisson's manner is forgotten. */
#include "verdict.h"

enum {
    PACE_GAP_MS = STRESS_LEASE_MS * 3 / 4, /* between renewals, which are due after a third */
    PACE_YIELD_MS = 20,                    /* how often Redisson's waiters get their turn */
    PACE_LATENCY_MS = STRESS_LEASE_MS / 4, /* of a request that asks whether a leased hold stands */
};

static bool pace_was_disturbed(const struct verdict_case *the_case, uint32_t book, int64_t from_ns,
                               int64_t to_ns)
{
    for (uint32_t i = 0; i < ledger_disturbances(the_case->ledger); i++) {
        const struct ledger_disturbance *d = &the_case->ledger->disturbance[i];
        if (d->book == book && d->from_ns < to_ns && d->to_ns > from_ns)
            return true;
    }
    return false;
}

/* The longest time of a hold in which nothing was renewed; the last part ends with the belief. */
static int64_t pace_longest_gap_ms(const struct verdict_belief *belief)
{
    const struct replay_tenure *tenure = belief->tenure;
    int64_t at_ms = belief->first_ns / 1000000, end_ms = belief->seen_ns / 1000000, longest_ms = 0;
    for (size_t i = 1; i <= tenure->expiries && at_ms < end_ms; i++) {
        int64_t next_ms = i < tenure->expiries ? tenure->expiry_ms[i] - STRESS_LEASE_MS : end_ms;
        next_ms = next_ms < end_ms ? next_ms : end_ms;
        if (next_ms - at_ms > longest_ms)
            longest_ms = next_ms - at_ms;
        at_ms = next_ms > at_ms ? next_ms : at_ms;
    }
    return longest_ms;
}

/* Of a hold that the watchdog alone renewed, in a process that could run. After the release was
 * called, one that was under way may still arrive; and so may a request that asks for leave to keep
 * the lock. */
static void pace_cadence(struct verdict_case *the_case, const struct verdict_belief *belief)
{
    const struct ledger_record *record = belief->record;
    const struct replay_tenure *tenure = belief->tenure;
    int64_t leave_ns = atomic_load(&record->leave_ns);
    int64_t slack_ns = VERDICT_SLACK_MS * INT64_C(1000000);
    if (!tenure || tenure->is_prolonged || leave_ns == 0 ||
        the_case->ledger->book[belief->book].is_redisson ||
        pace_was_disturbed(the_case, belief->book, record->invoke_ns, leave_ns + slack_ns))
        return;
    the_case->verdict->judged++;
    int64_t gap_ms = record->is_watched ? pace_longest_gap_ms(belief) : 0;
    if (gap_ms > the_case->verdict->longest_gap_ms)
        the_case->verdict->longest_gap_ms = gap_ms;
    int64_t renewed_ms = tenure->last_expiry_ms - STRESS_LEASE_MS;
    bool is_rare = gap_ms > PACE_GAP_MS;
    bool is_late = renewed_ms > (tenure->seen_ns + slack_ns) / 1000000;
    bool is_needless = !record->is_watched && tenure->beliefs == 1 &&
                       renewed_ms > record->return_ns / 1000000 + PACE_LATENCY_MS;
    if (is_rare || is_late || is_needless)
        verdict_violation(the_case, &the_case->verdict->unrenewed,
                          "s%u: %u:%llu is renewed %s: longest gap %lld ms", tenure->name,
                          belief->book, (unsigned long long)tenure->number,
                          is_rare   ? "too rarely"
                          : is_late ? "after its end"
                                    : "without being watched",
                          (long long)gap_ms);
}

/* A waiter waited for this name all the while, in a process that could run. */
static bool pace_had_waiter(const struct verdict_case *the_case, uint32_t name, int64_t from_ns,
                            int64_t to_ns)
{
    for (uint32_t i = 0; i < the_case->ledger->books; i++) {
        const struct ledger_book *book = &the_case->ledger->book[i];
        if (book->is_redisson || pace_was_disturbed(the_case, i, from_ns, to_ns))
            continue;
        for (uint32_t j = 0; j < ledger_used(book); j++) {
            const struct ledger_record *record = &book->record[j];
            if (record->name == name && record->invoke_ns != 0 && record->invoke_ns < from_ns &&
                record->return_ns > to_ns)
                return true;
        }
    }
    return false;
}

/* After it was deleted, or its last lease had run out, a waiter gets it within a poll. */
static void pace_idle(struct verdict_case *the_case, const struct replay_tenure *tenure)
{
    int64_t bound_ms = STRESS_POLL_MS * 13 / 10 + VERDICT_SLACK_MS;
    if (!tenure->next)
        return;
    int64_t freed_ms = tenure->last_expiry_ms;
    if (tenure->gone_by_ms != 0 && tenure->gone_by_ms < freed_ms)
        freed_ms = tenure->gone_by_ms;
    int64_t idle_ms = tenure->next->began_ms - freed_ms;
    bool is_known = idle_ms <= bound_ms && idle_ms <= the_case->verdict->longest_idle_ms;
    if (idle_ms <= STRESS_POLL_MS / 2 || is_known ||
        !pace_had_waiter(the_case, tenure->name, freed_ms * 1000000,
                         tenure->next->began_ms * 1000000))
        return;
    if (idle_ms > the_case->verdict->longest_idle_ms)
        the_case->verdict->longest_idle_ms = idle_ms;
    if (idle_ms > bound_ms)
        verdict_violation(the_case, &the_case->verdict->late,
                          "s%u: free for %lld ms after %u:%llu while somebody waited", tenure->name,
                          (long long)idle_ms, tenure->book, (unsigned long long)tenure->number);
}

/* A tenure as far as it stood in the way of this wait. */
static int64_t pace_longest_tenure_ms(const struct verdict_case *the_case, uint32_t index,
                                      const struct ledger_record *record)
{
    int64_t from_ms = record->invoke_ns / 1000000, to_ms = record->return_ns / 1000000;
    int64_t longest_ms = 0;
    const struct replay_tenure *tenure = the_case->replay->first[record->name];
    for (; tenure && tenure->began_ms < to_ms; tenure = tenure->next) {
        int64_t end_ms = tenure->gone_by_ms != 0 && tenure->gone_by_ms < tenure->last_expiry_ms
                             ? tenure->gone_by_ms
                             : tenure->last_expiry_ms;
        bool is_own = tenure->book == index && tenure->number == record->number;
        if (!is_own && end_ms > from_ms && end_ms - tenure->began_ms > longest_ms)
            longest_ms = end_ms - tenure->began_ms;
    }
    return longest_ms;
}

/* One hold, its turn, and an expiry when the message is lost. Several of Redisson's that wait for
 * one name are served in any order, so each of them has to wait for the others too. */
static void pace_of_stranger(struct verdict_case *the_case, uint32_t index,
                             const struct ledger_record *record)
{
    int64_t waited_ms = (record->return_ns - record->invoke_ns) / 1000000;
    int64_t bound_ms = PACE_YIELD_MS + STRESS_LEASE_MS + VERDICT_SLACK_MS;
    if (record->return_ns == 0 ||
        pace_was_disturbed(the_case, index, record->invoke_ns, record->return_ns))
        return;
    if (waited_ms > the_case->verdict->longest_stranger_ms)
        the_case->verdict->longest_stranger_ms = waited_ms;
    if (waited_ms < STRESS_LEASE_MS / 4)
        return;
    int64_t excess_ms = waited_ms - pace_longest_tenure_ms(the_case, index, record);
    if (excess_ms > the_case->verdict->longest_excess_ms)
        the_case->verdict->longest_excess_ms = excess_ms;
    if (excess_ms > bound_ms)
        verdict_violation(the_case, &the_case->verdict->starved,
                          "s%u: %u:%llu waited %lld ms, %lld ms longer than any hold meanwhile",
                          record->name, index, (unsigned long long)record->number,
                          (long long)waited_ms, (long long)excess_ms);
}

void verdict_pace(struct verdict_case *the_case)
{
    for (size_t i = 0; i < the_case->count; i++)
        pace_cadence(the_case, &the_case->belief[i]);
    for (size_t i = 0; i < the_case->replay->count; i++)
        pace_idle(the_case, the_case->replay->tenure[i]);
    for (uint32_t i = 0; i < the_case->ledger->books; i++)
        if (the_case->ledger->book[i].is_redisson)
            for (uint32_t j = 0; j < ledger_used(&the_case->ledger->book[i]); j++)
                pace_of_stranger(the_case, i, &the_case->ledger->book[i].record[j]);
}
