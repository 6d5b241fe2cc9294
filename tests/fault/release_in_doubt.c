/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A release that the server refuses until the lease is over: the hold was there when the call
 * began, so nobody can say that it was lost before. The error has the server's words. */

#include <stdio.h>
#include <sys/stat.h>

#include "support/kit.h"
#include "support/masters.h"
#include "support/recorder.h"
#include "support/redis_server.h"

/* A lease that is over before the release gives up. */
static hl_client *open_patient(void)
{
    return open_client(CLIENT(.request_timeout_ms = slow_ms(30000), .poll_ms = slow_ms(200)));
}

/* Each has its completion: hl_lock_release_async() gives it a record. */
static struct recorder told = RECORDER_INIT;

static void expect_all_in_doubt(int count, const char *words)
{
    check(recorder_wait(&told, count));
    for (int i = 0; i < count; i++) {
        const struct record entry = recorder_entry(&told, i);
        check_msg(entry.code == HL_EINDOUBT && strstr(entry.said, words), "%s: %s",
                  hl_err_name(entry.code), entry.said);
    }
}

static hl_lock *lock_of_kind(hl_client *client, hl_lock_kind kind)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    char name[16];

    options.kind = kind;
    snprintf(name, sizeof name, "kind%d", (int)kind);
    return new_lock_with(client, name, &options);
}

Law(release_in_doubt, is_the_result_for_each_kind_if_the_server_refuses_until_the_lease_is_over)
{
    static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR, HL_LOCK_FENCED,
                                         HL_LOCK_SPIN,      HL_LOCK_READ, HL_LOCK_WRITE};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    hl_client *client = open_patient();
    hl_owner *owner = new_owner(client);
    hl_lock *locks[KINDS];

    for (int i = 0; i < KINDS; i++) {
        locks[i] = lock_of_kind(client, kinds[i]);
        expect_ok(hl_lock_acquire_with(locks[i], ACQUIRE(.owner = owner, .lease_ms = slow_ms(3000)),
                                       ERR));
    }
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    for (int i = 0; i < KINDS; i++)
        expect_ok(hl_lock_release_async(locks[i], owner, record_done, &told));
    expect_all_in_doubt(KINDS, "NOREPLICAS");
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check_int(stats_of(client).in_doubt, KINDS);
}

Law(release_in_doubt, is_the_result_for_a_lock_on_several_and_for_permits)
{
    hl_client *client = open_patient();
    hl_owner *owner = new_owner(client);
    hl_permits *permits = NULL;
    hl_permit held, many[2];
    hl_lock *both = NULL;

    expect_ok(hl_multi_lock_new((hl_lock *[]){new_lock(client, "a"), new_lock(client, "b")}, 2,
                                NULL, &both, NULL));
    expect_ok(hl_permits_new(client, "p", &permits, NULL));
    expect_ok(hl_permits_try_set_total(permits, 3, 0, NULL));
    const hl_acquire_options *lease = ACQUIRE(.owner = owner, .lease_ms = slow_ms(3000));
    const hl_acquire_options *permit_lease = ACQUIRE(.lease_ms = slow_ms(3000));
    expect_ok(hl_lock_acquire_with(both, lease, ERR));
    expect_ok(hl_permits_acquire_with(permits, permit_lease, &held, ERR));
    expect_ok(hl_permits_acquire_many(permits, 2, permit_lease, many, ERR));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    expect_ok(hl_lock_release_async(both, owner, record_done, &told));
    expect_ok(hl_permits_release_async(permits, &held, record_done, &told));
    expect_ok(hl_permits_release_many_async(permits, many, 2, record_done, &told));
    check(recorder_wait(&told, 2));
    check(redis_wait_int(server, 0, slow_ms(10000), "EVAL %s 1 {p}:timeout",
                         "local time = redis.call('TIME') return redis.call('ZCOUNT', KEYS[1], "
                         "time[1] * 1000 + time[2] / 1000, '+inf')"));
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    expect_all_in_doubt(3, "NOREPLICAS");
    hl_permits_free(permits);
    hl_lock_free(both);
}

SingleLaw(release_in_doubt, has_the_words_of_a_server_that_cannot_save)
{
    hl_client *client = open_patient();
    hl_lock *lock = new_lock(client, "stock");
    char path[128];
    hl_error err;

    snprintf(path, sizeof path, "%s/dump.rdb", redis_server_dir(server));
    check_int(mkdir(path, 0700), 0); /* a snapshot cannot be put in its place */
    redis_do(server, "CONFIG SET save %s", "3600 1");
    redis_do(server, "CONFIG SET stop-writes-on-bgsave-error no");
    redis_do(server, "BGSAVE");
    check(redis_wait_int(server, 1, 10000, "EVAL %s 0",
                         "return string.find(redis.call('INFO','persistence'),"
                         "'rdb_last_bgsave_status:err') and 1 or 0"));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(2000)), ERR));
    redis_do(server, "CONFIG SET stop-writes-on-bgsave-error yes");
    expect_outcome(hl_lock_release(lock, &err), HL_EINDOUBT);
    check_has(err.text, "release 'stock': MISCONF");
    redis_do(server, "CONFIG SET save %s", "");
    check_int(rmdir(path), 0);
}

MastersLaw(release_in_doubt, is_the_result_of_a_redlock_whose_masters_refuse)
{
    hl_client **clients = open_masters(CLIENT(.request_timeout_ms = slow_ms(30000)));
    hl_lock *lock = new_redlock(clients, "stock");
    hl_error err;

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(3000)), ERR));
    for (size_t i = 0; i < masters.count; i++)
        redis_do(masters.server[i], "CONFIG SET min-replicas-to-write 1");
    expect_outcome(hl_lock_release(lock, &err), HL_EINDOUBT);
    check_has(err.text, "NOREPLICAS");
}

/* What ended before its lease was over had been lost, whatever the server said in between; and what
 * a release was to write is certainly not written. */
SingleLaw(release_in_doubt, is_not_the_result_where_it_is_certain)
{
    hl_client *client = open_patient();
    hl_owner *owner = new_owner(client);
    hl_lock *expired = new_lock(client, "expired"), *writes = lock_of_kind(client, HL_LOCK_FENCED);
    hl_fenced_write write = HL_FENCED_WRITE_INIT;
    hl_error err;

    write.key = "data";
    write.value = "1";
    write.value_length = 1;
    expect_ok(
        hl_lock_acquire_with(expired, ACQUIRE(.owner = owner, .lease_ms = slow_ms(60000)), ERR));
    expect_ok(
        hl_lock_acquire_with(writes, ACQUIRE(.owner = owner, .lease_ms = slow_ms(2000)), ERR));
    redis_do(server, "PEXPIRE expired %d", (int)slow_ms(1000));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    expect_ok(hl_lock_release_async(expired, owner, record_done, &told));
    check(recorder_wait(&told, 1));
    check_int(recorder_entry(&told, 0).code, HL_ELOST);
    expect_outcome(hl_lock_set_and_release(writes, owner, &write, &err), HL_ELOST);
    check_has(err.text, "nothing is written");
    check_has(err.text, "NOREPLICAS");
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(!redis_int(server, "EXISTS data"));
}
