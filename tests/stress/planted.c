/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The judge of the stress run is judged: it passes a clean history, and finds each planted fault.
 */

#include <time.h>

#include "support/fatal.h"
#include "support/redis_probe.h"
#include "support/test.h"
#include "verdict.h"

/* Expiries are written as instants, so a history of seconds is made at once; it lies ahead, for
 * the server drops what has expired. */
enum { LATER_MS = 100000 };

static struct redis_server *server;
static struct ledger *ledger;
static int64_t start_ms; /* of the history; times in the tests count from here */

static void planted_start(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    start_ms = now.tv_sec * INT64_C(1000) + LATER_MS;
    server = redis_server_start(&(struct redis_options){.appendonly = true});
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(ledger != MAP_FAILED);
    ledger->books = 2;
    for (int i = 0; i < 2; i++)
        snprintf(ledger->book[i].uuid, sizeof ledger->book[i].uuid,
                 "%08d-0000-4000-8000-000000000000", i);
}

static void planted_stop(void)
{
    munmap(ledger, sizeof *ledger);
    redis_server_stop(server);
}

#define PlantedTest(name) Test(stress_planted, name, .init = planted_start, .fini = planted_stop)

static void planted_expire(int64_t at_ms)
{
    redis_do(server, "PEXPIREAT s0 %lld", (long long)(start_ms + at_ms + STRESS_LEASE_MS));
}

static void planted_take(int book, int number, int64_t at_ms)
{
    redis_do(server, "HSET s0 %s:%d 1", ledger->book[book].uuid, number);
    planted_expire(at_ms);
}

/* A call that returned when the belief began; it was invoked long before. */
static struct ledger_record *planted_belief(int book, int number, int64_t first_ms, int64_t seen_ms)
{
    struct ledger_record *record =
        &ledger->book[book].record[atomic_fetch_add(&ledger->book[book].used, 1)];
    record->number = (uint64_t)number;
    record->is_watched = record->is_plain = true;
    record->return_ns = (start_ms + first_ms) * 1000000;
    record->invoke_ns = record->return_ns - INT64_C(1000000);
    atomic_store(&record->first_ns, record->return_ns);
    atomic_store(&record->seen_ns, (start_ms + seen_ms) * 1000000);
    atomic_store(&record->leave_ns, (start_ms + seen_ms) * 1000000);
    return record;
}

static struct verdict planted_verdict(uint32_t wrong)
{
    struct replay replay;
    struct verdict verdict;
    replay_read(&replay, server, ledger);
    verdict_give(&verdict, &replay);
    check_msg(replay.wrong == wrong, "%u steps are wrong: %s", replay.wrong, replay.wrong_text);
    replay_free(&replay);
    return verdict;
}

PlantedTest(a_clean_history_passes)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 700);
    redis_do(server, "HINCRBY s0 %s:1 1", ledger->book[0].uuid);
    planted_expire(500);
    redis_do(server, "HINCRBY s0 %s:1 -1", ledger->book[0].uuid);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 702);
    planted_belief(1, 1, 703, 704);
    redis_do(server, "DEL s0");
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict_violations(&verdict), 0);
    check_int((int)verdict.holds, 2);
    check_int((int)verdict.judged, 2);
}

PlantedTest(two_believers_at_one_time_are_found)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 300);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 300);
    planted_belief(1, 1, 299, 301);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).overlaps, 1);
}

PlantedTest(a_belief_without_a_tenure_is_found)
{
    planted_take(0, 1, 0);
    redis_do(server, "DEL s0");
    planted_belief(0, 2, 1, 2);
    check_int((int)planted_verdict(0).unfounded, 1);
}

PlantedTest(a_belief_past_the_lease_is_found)
{
    planted_take(0, 1, 0);
    redis_do(server, "DEL s0");
    planted_belief(0, 1, 1, STRESS_LEASE_MS + 2);
    check_int((int)planted_verdict(0).outlived, 1);
}

PlantedTest(a_belief_into_the_next_tenure_is_found)
{
    planted_take(0, 1, 0);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 100);
    redis_do(server, "DEL s0");
    planted_belief(0, 1, 1, 102);
    check_int((int)planted_verdict(0).outlived, 1);
}

PlantedTest(a_belief_before_its_tenure_is_found)
{
    planted_take(0, 1, 100);
    redis_do(server, "DEL s0");
    planted_belief(0, 1, 98, 120);
    check_int((int)planted_verdict(0).outlived, 1);
}

/* A field that takes the lock again after it was believed in, as a late acquire would. */
PlantedTest(a_belief_in_a_field_that_takes_the_lock_again_is_found)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 10);
    redis_do(server, "DEL s0");
    planted_take(0, 1, 50);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).outlived, 1);
}

static void planted_free_for(int64_t idle_ms)
{
    struct ledger_record *holder;
    planted_take(0, 1, 0);
    holder = planted_belief(0, 1, 1, 10);
    atomic_store(&holder->freed_ns, (start_ms + 11) * 1000000);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 11 + idle_ms);
    redis_do(server, "DEL s0");
    struct ledger_record *waiter = planted_belief(1, 1, 12 + idle_ms, 13 + idle_ms);
    waiter->invoke_ns = start_ms * 1000000;
    waiter->return_ns = (start_ms + 12 + idle_ms) * 1000000;
}

PlantedTest(a_free_lock_that_nobody_gets_is_found)
{
    planted_free_for(1480);
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict.late, 1);
    check_int((int)verdict.longest_idle_ms, 1480);
}

PlantedTest(a_free_lock_is_no_fault_when_its_waiter_was_stopped)
{
    planted_free_for(1480);
    ledger->disturbances = 1;
    ledger->disturbance[0] = (struct ledger_disturbance){
        .book = 1, .from_ns = start_ms * 1000000, .to_ns = (start_ms + 500) * 1000000};
    check_int((int)planted_verdict(0).late, 0);
}

PlantedTest(a_renewal_too_late_or_after_the_end_is_found)
{
    planted_take(0, 1, 0);
    planted_expire(1501);
    planted_belief(0, 1, 1, 1600);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 3000);
    planted_belief(1, 1, 3001, 3002);
    planted_expire(4100);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).unrenewed, 2);
}

PlantedTest(steps_that_no_lock_makes_are_found)
{
    const char *uuid = ledger->book[0].uuid, *other = ledger->book[1].uuid;
    planted_take(0, 1, 0);
    redis_do(server, "HSET s0 %s:9 1", other); /* 1: not free */
    planted_expire(10);
    redis_do(server, "DEL s0");
    redis_do(server, "HSET s0 %s:2 1", uuid);
    redis_do(server, "DEL s0"); /* 2: it had no expiry */
    planted_take(0, 3, 0);
    redis_do(server, "HINCRBY s0 %s:3 1", other); /* 3: a count of somebody else */
    planted_expire(-200);                         /* 4: shorter */
    redis_do(server, "SET s0 x");                 /* 5: another type */
    planted_verdict(5);
}
