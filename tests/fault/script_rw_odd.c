/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of the read-write lock, called raw: preferred writers, operators that inspect and
 * force, servers that are full or deny commands, foreign clients that write. */

#include "script_rw.h"

Law(script_rw_odd, new_readers_stay_away_from_a_writer_that_goes_first)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_has(write_acquire_first("W:1:write 5000 1"), "A:1 1");
    check_left(RW_WRITER, 0, RW_PREFER_MS);
    check_busy(read_acquire("B:1 5000 1"), 0, RW_PREFER_MS, "W:1:write 0");
    check_str(read_acquire("A:1 60000 2"), RAW_HAD); /* who holds already may go deeper */
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_busy(read_acquire("B:1 5000 1"), 0, RW_PREFER_MS, "W:1:write 0");
    check_str(write_acquire_first("W:1:write 5000 1"), RAW_TAKEN);
    check_int(redis_int(server, "EXISTS " RW_WRITER), 0);
    check_str(write_release("W:1:write 0 0 0"), RAW_UNSEEN);
}

Law(script_rw_odd, a_writer_reads_whichever_waiter_is_next)
{
    check_str(write_acquire_first("A:1:write 5000 1"), RAW_TAKEN);
    check_has(write_acquire_first("V:1:write 5000 1"), "A:1:write 1");
    check_str(read_acquire_under("A:2 5000 1"), RAW_HAD);
    check_str(read_acquire_under("A:2 5000 2"), RAW_HAD);
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_str(read_acquire("A:2 5000 3"), RAW_HAD);
    check_busy(read_acquire("B:1 5000 1"), 0, RW_PREFER_MS, "V:1:write 0");
}

Law(script_rw_odd, readers_come_back_when_the_writer_gives_up)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_has(write_acquire_first("W:1:write 5000 1"), "A:1 1");
    check_str(write_release("W:1:write 0 0 0"), "0");
    check_str(write_release("W:1:write 0 0 0"), "0");
    ear_check(ear, RW_CHANNEL, "0");
    ear_check_end(ear, RW_CHANNEL);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    redisFree(ear);
}

Law(script_rw_odd, a_writer_that_died_waiting_keeps_readers_away_for_a_moment_only)
{
    raw_run(HLI_SCRIPT_RW_WRITE_ACQUIRE, "W:1:write 5000 1", RW_WRITER " 50");
    check_str(write_release("W:1:write 0 0 0"), RAW_UNSEEN);
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    raw_run(HLI_SCRIPT_RW_WRITE_ACQUIRE, "W:2:write 5000 1", RW_WRITER " 50");
    check(redis_wait_int(server, 0, 5000, "EXISTS " RW_WRITER));
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
}

Law(script_rw_odd, a_writer_gives_up_only_what_it_has_asked_for_itself)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    write_acquire_first("W:1:write 5000 1");
    write_acquire_first("V:1:write 5000 1");
    check_str(write_release("W:1:write 0 0 0"), "0");
    check_str(redis_str(server, "GET " RW_WRITER), "V:1:write");
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_str(write_acquire_first("W:2:write 5000 1"), RAW_TAKEN);
    check_str(redis_str(server, "GET " RW_WRITER), "V:1:write");
    check_str(write_release("V:1:write 1 5000 0"), "0"); /* no giving up */
    check_str(redis_str(server, "GET " RW_WRITER), "V:1:write");
}

Law(script_rw_odd, readers_are_thrown_out_with_their_hold_keys)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(force_release("read"), "0");
    check_str(read_acquire(RAW_CLIENT ":1 5000 1"), RAW_TAKEN);
    check_str(read_acquire(RAW_CLIENT ":1 5000 3"), RAW_HAD);
    check_str(read_acquire(RAW_CLIENT ":2 5000 1"), RAW_HAD);
    check_str(force_release("write"), "0");
    check_str(force_release("read"), "1");
    check_int(redis_int(server, "DBSIZE"), 0);
    ear_check(ear, RW_CHANNEL, "0");
    ear_check_end(ear, RW_CHANNEL);
    redisFree(ear);
}

/* By the writer :1:write. */
static const char *read_under(const char *words)
{
    return raw_run(HLI_SCRIPT_RW_READ_ACQUIRE, words, RW_WRITER " " RAW_CLIENT ":1:write");
}

Law(script_rw_odd, a_writer_is_thrown_out)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(write_acquire(RAW_CLIENT ":1:write 5000 1"), RAW_TAKEN);
    check_str(force_release("read"), "0");
    check_str(read_under(RAW_CLIENT ":2 5000 1"), RAW_HAD);
    check_str(force_release("read"), "1");
    check_holder("mode write " RAW_CLIENT ":1:write 1");
    check_int(redis_int(server, "DBSIZE"), 1);
    check_str(read_under(RAW_CLIENT ":2 5000 1"), RAW_HAD);
    check_str(force_release("write"), "1");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_all_woken(ear);
    ear_check_end(ear, RW_CHANNEL);
    redisFree(ear);
}

/* By DEL, or by a Redisson: the hold keys stay behind. */
Law(script_rw_odd, a_release_takes_the_hold_keys_of_a_lock_that_was_deleted)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 5000 3"), RAW_HAD);
    redis_do(server, "DEL n");
    check_str(read_renew("5000 A:1"), "1 -1");
    check_str(read_release("A:1 0 0 0"), "0");
    check_int(redis_int(server, "DBSIZE"), 0);
}

/* "1 pttl holder count" */
static void check_inspected(const char *said, const char *rest)
{
    int at = 0;
    long long pttl = 0;
    check_msg(sscanf(said, "1 %lld %n", &pttl, &at) == 1 && at > 0, "%s", said);
    check(pttl > 2000 && pttl <= 5000);
    check_str(said + at, rest);
}

Law(script_rw_odd, an_operator_sees_readers_and_writers)
{
    check_str(inspect("read x"), "0 -2  0");
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_inspected(inspect("read x"), "A:1 1");
    check_str(inspect("write x"), "0 -2  0");
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(read_acquire("B:1 5000 2"), RAW_HAD);
    check_inspected(inspect("read B"), "B:1 2");
    check_has(inspect("read C"), ":1 ");
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_str(read_release("B:1 0 0 5000"), RAW_UNSEEN);
    check_inspected(inspect("read B"), "B:1:rest 0");
}

Law(script_rw_odd, an_operator_sees_a_writer_that_reads)
{
    check_str(write_acquire("A:1:write 5000 1"), RAW_TAKEN);
    check_str(inspect("read A"), "0 -2  0");
    check_inspected(inspect("write x"), "A:1:write 1");
    check_str(read_acquire_under("A:2 5000 1"), RAW_HAD);
    check_inspected(inspect("read x"), "A:2 1");
    check_inspected(inspect("write x"), "A:1:write 1");
}

Law(script_rw_odd, a_release_works_at_maxmemory_and_an_acquire_leaves_nothing)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 60000 3"), RAW_HAD);
    check_str(read_acquire("B:1 60000 1"), RAW_HAD);
    redis_do(server, "CONFIG SET maxmemory 1");
    check_has(read_acquire("C:1 5000 1"), "OOM");
    check(strncmp(write_acquire_first("W:1:write 5000 1"), "0 ", 2) == 0);
    check_int(redis_int(server, "DBSIZE"), 5);
    check_str(read_renew("70000 A:1"), "1 3");
    check_str(read_release("A:1 1 90000 0"), RAW_UNSEEN);
    check_left(RW_HOLD("A:1", 1), 80000, 90000);
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
    check_has(read_acquire("C:1 5000 1"), "OOM");
    check_has(write_acquire("C:1:write 5000 1"), "OOM");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw_odd, a_writer_becomes_a_reader_at_maxmemory)
{
    check_str(write_acquire("A:1:write 60000 1"), RAW_TAKEN);
    check_str(write_acquire("A:1:write 60000 2"), RAW_HAD);
    check_str(read_acquire_under("A:2 60000 1"), RAW_HAD);
    redis_do(server, "CONFIG SET maxmemory 1");
    check_str(write_release("A:1:write 1 60000 0"), RAW_UNSEEN);
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_holder("mode read A:2 1");
    check_str(read_release("A:2 0 0 900"), RAW_UNSEEN);
    check_holder("mode read A:2:rest 1");
}

Law(script_rw_odd, a_lock_that_may_have_no_expiry_is_not_taken)
{
    redis_do(server, "ACL SETUSER hltest -pexpire");
    check(strncmp(read_acquire("A:1 5000 1"), "1 ", 2) != 0);
    check(strncmp(write_acquire("A:1:write 5000 1"), "1 ", 2) != 0);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw_odd, a_message_that_may_not_be_sent_is_no_failure)
{
    check_str(read_acquire(RAW_CLIENT ":1 5000 1"), RAW_TAKEN);
    redis_do(server, "ACL SETUSER hltest -publish");
    check_str(read_release(RAW_CLIENT ":1 0 0 0"), RAW_UNSEEN);
    check_str(write_acquire(RAW_CLIENT ":1:write 5000 1"), RAW_TAKEN);
    check_str(write_release(RAW_CLIENT ":1:write 0 0 0"), RAW_UNSEEN);
    check_str(write_acquire(RAW_CLIENT ":1:write 5000 1"), RAW_TAKEN);
    check_str(force_release("write"), "1");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw_odd, a_key_that_is_no_hash_is_an_error_and_stays_as_it_is)
{
    redis_do(server, "SET n stranger");
    check_has(read_acquire("A:1 5000 1"), "WRONGTYPE");
    check_has(write_acquire("A:1:write 5000 1"), "WRONGTYPE");
    check_has(read_release("A:1 0 0 0"), "WRONGTYPE");
    check_has(write_release("A:1:write 0 0 0"), "WRONGTYPE");
    check_has(force_release("read"), "WRONGTYPE");
    check_has(inspect("read x"), "WRONGTYPE");
    check_str(read_renew("5000 A:1"), "1 -1");
    check_str(redis_str(server, "GET n"), "stranger");
    check_int(redis_int(server, "DBSIZE"), 1);
}

Law(script_rw_odd, a_hash_that_is_no_lock_is_a_short_error)
{
    for (size_t i = 0; raw_odd_hash(i); i++) {
        int64_t fields = redis_int(server, "HLEN n");
        raw_check_no_lock(read_acquire("A:1 5000 1"), fields);
        raw_check_no_lock(write_acquire_first("A:1:write 5000 1"), fields);
        raw_check_no_lock(inspect("read x"), fields);
        raw_check_no_lock(force_release("read"), fields);
        check_int(redis_int(server, "DBSIZE"), 1);
    }
}

/* A user's settings may have a mode as well. */
Law(script_rw_odd, a_hash_with_a_mode_that_is_no_lock_is_an_error)
{
    redis_do(server, "HSET n mode read theme dark");
    raw_check_no_lock(write_acquire("A:1:write 5000 1"), 2);
    raw_check_no_lock(inspect("read x"), 2);
    raw_check_no_lock(force_release("read"), 2);
    redis_do(server, "HSET n mode write theme dark");
    raw_check_no_lock(read_acquire("A:1 5000 1"), 2);
    raw_check_no_lock(inspect("write x"), 2);
    raw_check_no_lock(force_release("write"), 2);
}

enum { CROWD = 30000 };

/* Neither looks at all of them, whichever client is asked for. */
Law(script_rw_odd, a_crowd_is_inspected_and_thrown_out_by_looking_at_some)
{
    redis_do(server, "EVAL %s 1 n " RAW_CLIENT " %d",
             "redis.call('HSET', KEYS[1], 'mode', 'read') for i = 1, ARGV[2] do "
             "redis.call('HSET', KEYS[1], ARGV[1] .. ':' .. i, 1) "
             "redis.call('SET', '{n}:' .. ARGV[1] .. ':' .. i .. ':rwlock_timeout:1', 1, 'PX', "
             "60000) end redis.call('PEXPIRE', KEYS[1], 60000)",
             (int)CROWD);
    check_has(inspect("read nobody"), RAW_CLIENT);
    check(redis_calls(server, "hscan") <= 5);
    check_str(force_release("read"), "1");
    check(redis_calls(server, "hscan") <= 6);
    check(redis_calls(server, "del") <= 2000);
    check_int(redis_int(server, "EXISTS n"), 0);
}

Law(script_rw_odd, a_lock_of_another_kind_is_busy_and_stays_as_it_is)
{
    check_str(acquire(RAW_CLIENT ":1 5000 1"), RAW_TAKEN);
    check_busy(read_acquire("B:1 5000 1"), 2000, 5000, RAW_CLIENT ":1 1");
    check_busy(write_acquire("B:1:write 5000 1"), 2000, 5000, RAW_CLIENT ":1 1");
    check_str(force_release("write"), "0");
    check_holder(RAW_CLIENT ":1 1");
    check_str(release(RAW_CLIENT ":1 0 0 0"), RAW_DONE);
}

/* A foreign client overwrites our fields: no script fails, and none runs for long. */
Law(script_rw_odd, odd_values_are_survived)
{
    static const char *const odd[] = {"x", "", "-3", "0", "nan", "999999999999"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        redis_do(server, "FLUSHALL");
        redis_do(server, "HSET n mode read A:1 %s", odd[i]);
        redis_do(server, "PEXPIRE n 60000");
        check_str(read_renew("5000 A:1"), "1 -1");
        check_str(read_release("A:1 1 5000 0"), "0");
        check_int(redis_int(server, "DBSIZE"), 0);
        redis_do(server, "HSET n mode read A:1 %s", odd[i]);
        redis_do(server, "PEXPIRE n 60000");
        check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
        redis_do(server, "HSET n W:1:write %s", odd[i]);
        check_str(write_release("W:1:write 1 5000 0"), RAW_UNSEEN);
        check_str(write_release("W:1:write 0 0 0"), RAW_UNSEEN);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

/* A thousand levels are looked at; what is above has no key of its own. */
Law(script_rw_odd, very_deep_readers_have_a_thousand_hold_keys)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 60000 100000"), RAW_HAD);
    check_int(redis_int(server, "DBSIZE"), 1001);
    check_int(redis_int(server, "HGET n A:1"), 100000);
    check_str(read_release("A:1 2000 60000 0"), RAW_UNSEEN);
    check_int(redis_int(server, "HGET n A:1"), 2000);
    check_int(redis_int(server, "DBSIZE"), 1001);
    check_str(read_release("A:1 1 60000 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 2);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw_odd, very_deep_readers_get_the_longer_lease_of_one_more_level)
{
    for (int count = 999; count <= 1001; count++) {
        char words[64];
        check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
        snprintf(words, sizeof words, "A:1 5000 %d", count);
        check_str(read_acquire(words), RAW_HAD);
        snprintf(words, sizeof words, "A:1 60000 %d", count + 1);
        check_str(read_acquire(words), RAW_HAD);
        check_left("n", 50000, 60000);
        check_left(RW_HOLD("A:1", 1000), 50000, 60000);
        check_int(redis_int(server, "DBSIZE"), 1001);
        check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

Law(script_rw_odd, very_deep_readers_are_renewed_and_keep_their_lease_when_levels_go)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 5000 1002"), RAW_HAD);
    check_str(read_renew("30000 A:1"), "1 1002");
    check_left(RW_HOLD("A:1", 1), 20000, 30000);
    check_left(RW_HOLD("A:1", 1000), 20000, 30000);
    check_str(read_release("A:1 1001 60000 0"), RAW_UNSEEN);
    check_left(RW_HOLD("A:1", 1), 50000, 60000);
    check_left(RW_HOLD("A:1", 1000), 50000, 60000);
    check_str(read_release("A:1 999 60000 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 1000);
    check_left(RW_HOLD("A:1", 999), 50000, 60000);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
}

/* It waited in a process that another owner's request got the lock for. */
Law(script_rw_odd, a_writers_wish_ends_with_its_hold_however_it_got_it)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_has(write_acquire_first("W:1:write 5000 1"), "A:1 1");
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
    check_str(write_release("W:1:write 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}
