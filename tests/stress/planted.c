/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The judge of the stress run is judged: it passes a clean history, and finds each planted fault.
 */

#include <sys/wait.h>
#include <time.h>

#include "support/fatal.h"
#include "support/redis_probe.h"
#include "support/spawn.h"
#include "support/test.h"
#include "verdict.h"

/* Expiries are written as instants, so a history of seconds is made at once; it lies ahead, for
 * the server drops what has expired. */
enum { LATER_MS = 100000 };

static struct redis_server *server;
static struct ledger *ledger;
static char ledger_path[256];
static int64_t start_ms; /* of the history; times in the tests count from here */

static void planted_start(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    start_ms = now.tv_sec * INT64_C(1000) + LATER_MS;
    server = redis_server_start(&(struct redis_options){.appendonly = true});
    snprintf(ledger_path, sizeof ledger_path, "%s/ledger", redis_server_dir(server));
    ledger = ledger_open(ledger_path);
    must(ledger);
    ledger->books = 2;
    for (int i = 0; i < 2; i++)
        snprintf(ledger->book[i].uuid, sizeof ledger->book[i].uuid,
                 "%08d-0000-4000-8000-000000000000", i);
}

static void planted_stop(void)
{
    ledger_close(ledger);
    redis_server_stop(server);
}

#define PlantedTest(name) Test(stress_planted, name, .init = planted_start, .fini = planted_stop)

static void planted_expire(int64_t at_ms)
{
    redis_do(server, "PEXPIREAT s0 %lld", (long long)(start_ms + at_ms + STRESS_LEASE_MS));
}

/* Something on another name tells the judge the time. */
static void planted_tick(int64_t at_ms)
{
    static int ticks;
    redis_do(server, "HSET s1 %s:%d 1", ledger->book[0].uuid, 1000 + ticks++);
    redis_do(server, "PEXPIREAT s1 %lld", (long long)(start_ms + at_ms + STRESS_LEASE_MS));
    redis_do(server, "DEL s1");
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
    atomic_store(&record->deepest, 1);
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
    replay_read(&replay, redis_server_dir(server), ledger);
    verdict_give(&verdict, &replay);
    check_msg(replay.wrong == wrong, "%u steps are wrong: %s", replay.wrong, replay.wrong_text);
    replay_free(&replay);
    return verdict;
}

PlantedTest(a_clean_history_passes)
{
    planted_take(0, 1, 0);
    atomic_store(&planted_belief(0, 1, 1, 700)->deepest, 2);
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

/* As a late acquire would. It is no violation, for its client lets go of it when it hears of it. */
PlantedTest(a_field_that_takes_the_lock_again_is_counted)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 10);
    redis_do(server, "DEL s0");
    planted_tick(20);
    planted_take(0, 1, 50);
    redis_do(server, "DEL s0");
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict.orphans, 1);
    check_int((int)verdict_violations(&verdict), 0);
}

PlantedTest(a_belief_between_two_tenures_of_its_field_is_found)
{
    planted_take(0, 1, 0);
    redis_do(server, "DEL s0");
    planted_tick(10);
    planted_belief(0, 1, 20, 30);
    planted_take(0, 1, 50);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).outlived, 1);
}

static void planted_free_for(int64_t idle_ms)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 10);
    redis_do(server, "DEL s0");
    planted_tick(11);
    planted_take(1, 1, 11 + idle_ms);
    redis_do(server, "DEL s0");
    struct ledger_record *waiter = planted_belief(1, 1, 12 + idle_ms, 13 + idle_ms);
    waiter->invoke_ns = start_ms * 1000000;
    waiter->return_ns = (start_ms + 12 + idle_ms) * 1000000;
}

PlantedTest(a_free_lock_that_no_waiter_gets_is_found)
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
    planted_expire(1200);
    planted_belief(0, 1, 1, 1250);
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
    redis_do(server, "HINCRBY s0 %s:3 1", other); /* 3: a count of another program */
    planted_expire(-200);                         /* 4: shorter */
    redis_do(server, "SET s0 x");                 /* 5: another type */
    planted_verdict(5);
}

PlantedTest(holds_of_one_tenure_may_follow_each_other)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 100);
    planted_belief(0, 1, 100, 200);
    planted_belief(0, 1, 201, 300);
    redis_do(server, "DEL s0");
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict_violations(&verdict), 0);
    check_int((int)verdict.holds, 3);
}

/* A pass before the hold has ended, or a retained lock resumed twice. */
PlantedTest(two_believers_in_one_tenure_are_found)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 100);
    planted_belief(0, 1, 99, 200);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).overlaps, 1);
}

/* A retained lock is released, and resumed all the same; or a release runs too early. */
PlantedTest(a_belief_in_what_was_released_is_found)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 40);
    redis_do(server, "DEL s0");
    planted_tick(50);
    planted_belief(0, 1, 55, 60);
    check_int((int)planted_verdict(0).outlived, 1);
}

/* Within the millisecond that the server's clock leaves open. */
PlantedTest(beliefs_in_another_order_than_the_servers_are_found)
{
    planted_take(0, 1, 5);
    redis_do(server, "DEL s0");
    planted_take(1, 1, 5);
    redis_do(server, "DEL s0");
    struct ledger_record *first = planted_belief(0, 1, 5, 5), *second = planted_belief(1, 1, 5, 5);
    atomic_store(&first->first_ns, (start_ms + 5) * 1000000 + 600000);
    atomic_store(&first->seen_ns, (start_ms + 5) * 1000000 + 700000);
    atomic_store(&second->first_ns, (start_ms + 5) * 1000000 + 100000);
    atomic_store(&second->seen_ns, (start_ms + 5) * 1000000 + 200000);
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict.misordered, 1);
    check_int((int)verdict_violations(&verdict), 1);
}

/* The second of two holds of one tenure is killed before it could ask is_held. */
PlantedTest(a_level_of_a_process_that_died_is_counted)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 2);
    struct ledger_record *died = planted_belief(0, 1, 0, 0);
    atomic_store(&died->first_ns, 0);
    atomic_store(&died->deepest, 2);
    redis_do(server, "HINCRBY s0 %s:1 1", ledger->book[0].uuid);
    check_int((int)planted_verdict(0).miscounted, 0);
}

PlantedTest(a_count_without_an_acquire_is_found)
{
    planted_take(0, 1, 0);
    atomic_store(&planted_belief(0, 1, 1, 2)->deepest, 2);
    redis_do(server, "HINCRBY s0 %s:1 2", ledger->book[0].uuid);
    redis_do(server, "DEL s0");
    check_int((int)planted_verdict(0).miscounted, 1);
}

static void planted_queue(int book, int number, int64_t score)
{
    redis_do(server, "ZADD hirelock_queue:{s0} NX %lld %s:%d", (long long)score,
             ledger->book[book].uuid, number);
}

/* As one script writes it: from the queue's head into the key. */
static void planted_grant(int book, int number, int64_t at_ms)
{
    redis_do(server, "EVAL %s 0 %s:%d %lld",
             "redis.call('ZPOPMIN', 'hirelock_queue:{s0}') redis.call('DEL', 's0') "
             "redis.call('HSET', 's0', ARGV[1], 1) redis.call('PEXPIREAT', 's0', ARGV[2])",
             ledger->book[book].uuid, number, (long long)(start_ms + at_ms + STRESS_CLAIM_MS));
}

PlantedTest(a_grant_in_the_order_of_the_queue_passes)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 9);
    planted_queue(1, 2, 20);
    planted_queue(1, 1, 10);
    planted_grant(1, 1, 10);
    planted_belief(1, 1, 11, 12);
    planted_grant(1, 2, 13);
    planted_belief(1, 2, 14, 15);
    redis_do(server, "DEL s0");
    struct verdict verdict = planted_verdict(0);
    check_int((int)verdict_violations(&verdict), 0);
}

PlantedTest(a_grant_out_of_order_is_found)
{
    planted_take(0, 1, 0);
    planted_queue(1, 2, 20);
    planted_queue(1, 1, 10);
    planted_grant(1, 2, 10);
    planted_verdict(1);
}

PlantedTest(a_belief_in_a_grant_that_went_on_is_found)
{
    planted_take(0, 1, 0);
    planted_queue(1, 1, 10);
    planted_grant(1, 1, 10);
    planted_belief(1, 1, 11, 10 + STRESS_CLAIM_MS + 2);
    check_int((int)planted_verdict(0).outlived, 1);
}

PlantedTest(a_free_lock_that_is_taken_beside_its_queue_is_found)
{
    planted_take(0, 1, 0);
    planted_queue(1, 1, 10);
    redis_do(server, "DEL s0");
    planted_take(0, 2, 5);
    planted_verdict(1);
}

static struct verdict planted_wait_of_redissons(int64_t waited_ms)
{
    ledger->book[1].is_redisson = true;
    for (int i = 0; i * 100 < waited_ms; i++) {
        planted_take(0, i + 1, i * INT64_C(100));
        redis_do(server, "DEL s0");
    }
    redis_do(server, "HINCRBY s0 %s:1 1", ledger->book[1].uuid);
    planted_expire(waited_ms);
    planted_belief(1, 1, waited_ms + 1, waited_ms + 2)->invoke_ns = start_ms * 1000000;
    redis_do(server, "HINCRBY s0 %s:1 -1", ledger->book[1].uuid);
    redis_do(server, "DEL s0");
    return planted_verdict(0);
}

PlantedTest(a_waiter_of_redissons_that_is_passed_over_is_found)
{
    struct verdict verdict = planted_wait_of_redissons(2700);
    check_int((int)verdict.starved, 1);
    check_int((int)verdict.longest_stranger_ms, 2701);
}

PlantedTest(a_waiter_of_redissons_that_gets_its_turn_passes)
{
    check_int((int)planted_wait_of_redissons(1000).starved, 0);
}

static int planted_judge(const char *path)
{
    char judge[] = HL_STRESS_JUDGE, ledger_arg[256], dir[256], output[300];
    int status = -1;
    snprintf(ledger_arg, sizeof ledger_arg, "%s", path);
    snprintf(dir, sizeof dir, "%s", redis_server_dir(server));
    snprintf(output, sizeof output, "%s/verdict", dir);
    char *argv[] = {judge, ledger_arg, dir, NULL};
    check(spawn_reap(spawn_start(&(struct spawn){.argv = argv, .output = output}), 20000, &status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

PlantedTest(the_judge_exits_as_it_finds)
{
    planted_take(0, 1, 0);
    planted_belief(0, 1, 1, 40);
    check_int(planted_judge(ledger_path), 0);
    planted_belief(0, 1, 39, 41);
    check_int(planted_judge(ledger_path), 1);
    check_int(planted_judge("/dev/null/ledger"), 2);
}
