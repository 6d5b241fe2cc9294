/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The judge of a stress run: a program of its own, without the library. It reads the ledger of the
 * processes and the server's log, and prints its verdict.
 *
 *     stress_judge LEDGER SERVER_DIRECTORY
 *
 * Exits with 0 when there is no violation, with 1 when there is one, with 2 when it cannot read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "verdict.h"

static void judge_print_tally(const struct ledger *ledger)
{
    uint64_t held = 0, passes = 0, grants = 0, retained = 0, losses = 0, reconnects = 0, failed = 0;
    for (uint32_t i = 0; i < ledger->books; i++) {
        const struct ledger_tally *tally = &ledger->book[i].tally;
        held += atomic_load(&ledger->book[i].held);
        passes += atomic_load(&tally->passes);
        grants += atomic_load(&tally->grants);
        retained += atomic_load(&tally->retained);
        losses += atomic_load(&tally->losses);
        reconnects += atomic_load(&tally->reconnects);
        failed += atomic_load(&tally->failed_releases);
    }
    printf("%" PRIu64 " acquires, %" PRIu64 " passes, %" PRIu64 " grants, %" PRIu64
           " retained, %" PRIu64 " losses, %" PRIu64 " reconnects, %" PRIu64
           " posted releases failed\n",
           held, passes, grants, retained, losses, reconnects, failed);
}

static void judge_print(const struct verdict *verdict, const struct replay *replay)
{
    printf("%" PRIu64 " calls, %" PRIu64 " holds, %zu tenures, %" PRIu64
           " of them granted, %" PRIu64 " orphans; renewals of %" PRIu64
           " holds judged, longest gap %" PRId64 " ms; longest idle with a waiter %" PRId64 " ms\n",
           verdict->calls, verdict->holds, replay->count, replay->grants, verdict->orphans,
           verdict->judged, verdict->longest_gap_ms, verdict->longest_idle_ms);
    printf("in Redisson's manner %" PRIu64 " holds, longest wait %" PRId64
           " ms, longest beyond the longest hold meanwhile %" PRId64 " ms\n",
           verdict->strangers, verdict->longest_stranger_ms, verdict->longest_excess_ms);
    printf("%" PRIu64 " violations: overlaps %" PRIu64 ", misordered %" PRIu64
           ", unfounded %" PRIu64 ", outlived %" PRIu64 ", miscounted %" PRIu64 ", late %" PRIu64
           ", unrenewed %" PRIu64 ", starved %" PRIu64 ", steps of the server %u\n",
           verdict_violations(verdict) + replay->wrong, verdict->overlaps, verdict->misordered,
           verdict->unfounded, verdict->outlived, verdict->miscounted, verdict->late,
           verdict->unrenewed, verdict->starved, replay->wrong);
}

static bool judge_books_are_clean(const struct ledger *ledger)
{
    bool are_clean = true;
    for (uint32_t i = 0; i < ledger->books; i++) {
        unsigned strange = atomic_load(&ledger->book[i].strange);
        if (strange > 0)
            printf("%u strange answers; the first: %s\n", strange, ledger->book[i].strange_text);
        are_clean = are_clean && strange == 0;
    }
    return are_clean;
}

int main(int argc, char **argv)
{
    struct replay replay;
    struct verdict verdict;
    struct ledger *ledger = argc == 3 ? ledger_open(argv[1]) : NULL;
    if (!ledger)
        return 2;
    replay_read(&replay, argv[2], ledger);
    verdict_give(&verdict, &replay);
    judge_print_tally(ledger);
    judge_print(&verdict, &replay);
    if (replay.wrong > 0)
        printf("%s\n", replay.wrong_text);
    if (verdict.text[0])
        printf("%s\n", verdict.text);
    bool is_clean =
        judge_books_are_clean(ledger) && replay.wrong == 0 && verdict_violations(&verdict) == 0;
    replay_free(&replay);
    ledger_close(ledger);
    return is_clean ? 0 : 1;
}
