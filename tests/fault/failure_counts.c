/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What fails is counted by what and why: in hl_stats, and in the metrics that an operator sees. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "server_fault.h"
#include "support/semaphore_support.h"

static uint64_t failures(hl_client *client, hl_call call, hl_reason reason)
{
    return stats_of(client).failures[call][reason];
}

static uint64_t all_failures(hl_client *client)
{
    const hl_stats stats = stats_of(client);
    uint64_t all = 0;

    for (size_t call = 0; call < 4; call++)
        for (size_t reason = 0; reason < 32; reason++)
            all += stats.failures[call][reason];
    return all;
}

/* The value of this sample in the metrics of the client; -1: it is not there. */
static double metric(hl_client *client, const char *sample)
{
    static char text[64 * 1024];
    char line[128];

    int length = hl_metrics_format(&client, NULL, 1, text, sizeof text);
    check(length > 0 && (size_t)length < sizeof text);
    snprintf(line, sizeof line, "\n%s ", sample);
    const char *found = strstr(text, line);
    return found ? atof(found + strlen(line)) : -1;
}

/* Three tries fail for this reason, and nothing else is counted. */
static void check_tries(hl_client *client, int code, hl_reason reason, const char *sample)
{
    hl_lock *lock = new_lock(client, "free");

    check_int(metric(client, sample), 0);
    for (int i = 0; i < 3; i++)
        expect_outcome(hl_lock_try_acquire(lock, NULL), code);
    check_int(failures(client, HL_CALL_ACQUIRE, reason), 3);
    check_int(all_failures(client), 3);
    check_int(metric(client, sample), 3);
    check_int(stats_of(client).acquires, 0);
}

SingleLaw(failure_counts, name_a_full_server)
{
    hl_client *client = open_impatient(NULL);

    redis_do(server, "CONFIG SET maxmemory-policy noeviction");
    redis_do(server, "CONFIG SET maxmemory 4mb");
    redis_int(server, "EVAL %s 0",
              "for i = 1, 1000 do if type(redis.pcall('SET', 'k' .. i, string.rep('x', 65536))) "
              "== 'table' and i > 200 then return i end end");
    check_tries(client, HL_ESERVER, HL_REASON_OOM,
                "hirelock_failures_total{call=\"acquire\",reason=\"oom\"}");
}

SingleLaw(failure_counts, name_a_user_who_may_not)
{
    hl_client *client = open_impatient(NULL);

    redis_deny(server, "default", "evalsha");
    check_tries(client, HL_EDENIED, HL_REASON_DENIED,
                "hirelock_failures_total{call=\"acquire\",reason=\"denied\"}");
}

/* Also when the client has looked at the server's role, and asks it nothing more. */
SingleLaw(failure_counts, name_a_replica)
{
    static struct events events;
    hl_client *client = open_impatient(&events);

    redis_do(server, "REPLICAOF 127.0.0.1 1");
    expect_outcome(hl_lock_try_acquire(new_lock(client, "free"), NULL), HL_ESERVER);
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    for (int i = 0; i < 2; i++)
        expect_outcome(hl_lock_try_acquire(new_lock(client, "free"), NULL), HL_ESERVER);
    check_int(failures(client, HL_CALL_ACQUIRE, HL_REASON_READONLY), 3);
    check_int(all_failures(client), 3);
}

SingleLaw(failure_counts, name_a_server_that_cannot_save)
{
    hl_client *client = open_impatient(NULL);
    char path[128];

    snprintf(path, sizeof path, "%s/dump.rdb", redis_server_dir(server));
    check_int(mkdir(path, 0700), 0); /* a snapshot cannot be put in its place */
    redis_do(server, "CONFIG SET save %s", "3600 1");
    redis_do(server, "BGSAVE");
    check(redis_wait_int(server, 1, 10000, "EVAL %s 0",
                         "return string.find(redis.call('INFO','persistence'),"
                         "'rdb_last_bgsave_status:err') and 1 or 0"));
    check_tries(client, HL_ESERVER, HL_REASON_MISCONF,
                "hirelock_failures_total{call=\"acquire\",reason=\"misconf\"}");
    redis_do(server, "CONFIG SET save %s", "");
    check_int(rmdir(path), 0);
}

SingleLaw(failure_counts, name_a_server_without_its_replicas)
{
    hl_client *client = open_impatient(NULL);

    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check_tries(client, HL_ESERVER, HL_REASON_NOREPLICAS,
                "hirelock_failures_total{call=\"acquire\",reason=\"noreplicas\"}");
}

SingleLaw(failure_counts, name_a_server_that_is_away)
{
    static struct events events;
    hl_client *client = open_impatient(&events);

    redis_server_kill(server);
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    check_tries(client, HL_ECONN, HL_REASON_UNREACHABLE,
                "hirelock_failures_total{call=\"acquire\",reason=\"unreachable\"}");
}

SingleLaw(failure_counts, name_the_ends_of_waits_and_a_key_of_another_kind)
{
    hl_client *client = open_impatient(NULL), *other = open_impatient(NULL);
    hl_lock *lock = new_lock(client, "stock"), *others = new_lock(other, "stock");
    hl_cancel *cancel = new_cancel();

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_outcome(hl_lock_try_acquire(others, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(others, 10, NULL), HL_ETIMEDOUT);
    hl_cancel_fire(cancel);
    expect_outcome(hl_lock_acquire_with(others, ACQUIRE(.wait_ms = -1, .cancel = cancel), NULL),
                   HL_ECANCELED);
    redis_do(server, "SET text text");
    expect_outcome(hl_lock_try_acquire(new_lock(other, "text"), NULL), HL_ESERVER);
    check_int(failures(other, HL_CALL_ACQUIRE, HL_REASON_BUSY), 1);
    check_int(failures(other, HL_CALL_ACQUIRE, HL_REASON_TIMEOUT), 1);
    check_int(failures(other, HL_CALL_ACQUIRE, HL_REASON_CANCELED), 1);
    check_int(failures(other, HL_CALL_ACQUIRE, HL_REASON_WRONGTYPE), 1);
    check_int(all_failures(other), 4);
    const hl_stats stats = stats_of(other);
    check(stats.busy == 1 && stats.timeouts == 1 && stats.cancels == 1);
    check_int(all_failures(client), 0);
}

/* The server's word is the reason, and that the outcome is in doubt is counted beside it. */
SingleLaw(failure_counts, of_releases_and_renewals_have_the_servers_word)
{
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    wait_stat(client, failures[HL_CALL_RENEWAL][HL_REASON_NOREPLICAS], 1);
    check(hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_EINDOUBT);
    check_int(failures(client, HL_CALL_RELEASE, HL_REASON_NOREPLICAS), 1);
    check_int(stats_of(client).in_doubt, 1);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    check_int(failures(client, HL_CALL_RELEASE, HL_REASON_MISUSE), 1);
    check_int(metric(client, "hirelock_failures_total{call=\"release\",reason=\"noreplicas\"}"), 1);
    check(metric(client, "hirelock_failures_total{call=\"renewal\",reason=\"noreplicas\"}") >= 1);
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    expect_free(lock);
}

/* Nobody waits for a posted release, so only the event and this figure tell of it. */
SingleLaw(failure_counts, have_a_release_that_nobody_waits_for)
{
    static struct events events;
    hl_client *client = open_client(CLIENT(.on_event = count_event, .arg = &events));
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = HL_LOCK_ASYNC_RELEASE;
    hl_lock *lock = new_lock_with(client, "stock", &options);

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(2000)), ERR));
    redis_deny(server, "default", "evalsha");
    expect_ok(hl_lock_release(lock, ERR));
    wait_stat(client, failures[HL_CALL_RELEASE][HL_REASON_DENIED], 1);
}

SingleLaw(failure_counts, have_the_calls_of_every_primitive)
{
    hl_client *client = open_impatient(NULL);
    hl_semaphore *semaphore = new_semaphore(client, "s");
    hl_permits *permits = NULL;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    int64_t count;

    expect_ok(hl_permits_new(client, "p", &permits, NULL));
    expect_ok(hl_semaphore_try_set_permits(semaphore, 1, 0, NULL));
    redis_deny(server, "default", "evalsha");
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), HL_EDENIED);
    expect_outcome(hl_semaphore_release(semaphore, 1, NULL), HL_EDENIED);
    expect_outcome(hl_semaphore_available(semaphore, &count, NULL), HL_EDENIED);
    expect_outcome(hl_permits_total(permits, &count, NULL), HL_EDENIED);
    expect_outcome(hl_lock_inspect(new_lock(client, "stock"), &info, NULL), HL_EDENIED);
    check_int(failures(client, HL_CALL_ACQUIRE, HL_REASON_DENIED), 1);
    check_int(failures(client, HL_CALL_RELEASE, HL_REASON_DENIED), 1);
    check_int(failures(client, HL_CALL_OTHER, HL_REASON_DENIED), 3);
    check_int(all_failures(client), 5);
    hl_permits_free(permits);
}

Test(failure_counts, name_every_reason_once)
{
    int reasons = 0;

    for (; hl_reason_name((hl_reason)reasons); reasons++)
        for (int i = 0; i < reasons; i++)
            check(strcmp(hl_reason_name((hl_reason)i), hl_reason_name((hl_reason)reasons)) != 0);
    check(reasons > HL_REASON_SERVER && reasons <= 32);
}
