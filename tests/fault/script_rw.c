/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts of the read-write lock, called raw: their keys in Redis, the holders that they let in
 * beside each other, and leases that are never shortened. */

#include "script_rw.h"

Law(script_rw, a_reader_leaves_what_redisson_looks_for)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_holder("mode read A:1 1");
    check_str(redis_str(server, "GET " RW_HOLD("A:1", 1)), "1");
    check_left(RW_HOLD("A:1", 1), 2000, 5000);
    check_left("n", 2000, 5000);
    check_int(redis_int(server, "DBSIZE"), 2);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, a_name_with_braces_has_hold_keys_without_more_of_them)
{
    run_script(HLI_SCRIPT_RW_READ_ACQUIRE, "a{t}", "A:1 5000 2 w none");
    run_script(HLI_SCRIPT_RW_READ_ACQUIRE, "a{t}", "A:1 5000 1 w none");
    check_int(redis_int(server, "EXISTS a{t}:A:1:rwlock_timeout:1"), 1);
    check_str(run_script(HLI_SCRIPT_RW_READ_RENEW, "a{t}", "9000 A:1"), "");
    check_left("a{t}:A:1:rwlock_timeout:1", 6000, 9000);
    run_script(HLI_SCRIPT_RW_READ_RELEASE, "a{t}", "A:1 0 0 0 c PUBLISH");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, a_writer_leaves_what_redisson_looks_for)
{
    check_str(write_acquire("A:1:write 5000 1"), RAW_TAKEN);
    check_holder("mode write A:1:write 1");
    check_left("n", 2000, 5000);
    check_int(redis_int(server, "DBSIZE"), 1);
    check_str(renew("9000 A:1:write"), ""); /* the lock's own renewal will do */
    check_left("n", 6000, 9000);
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, bad_leases_and_counts_leave_nothing_behind)
{
    static const char *const bad[] = {"-1 1", "0 1",  "1.5 1", "1e3 1",  "100000000001 1", "x 1",
                                      "5 0",  "5 -1", "5 x",   "0x10 1", "inf 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "A:1 %s", bad[i]);
        check_has(read_acquire(words), "HIRELOCK");
        check_has(write_acquire(words), "HIRELOCK");
        check_int(redis_int(server, "DBSIZE"), 0);
    }
}

Law(script_rw, readers_share_and_a_writer_is_alone)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_busy(write_acquire("C:1:write 5000 1"), 2000, 5000, "B:1 1");
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    check_str(write_acquire("C:1:write 5000 1"), RAW_TAKEN);
    check_busy(read_acquire("A:2 5000 1"), 2000, 5000, "C:1:write 1");
    check_busy(write_acquire("B:2:write 5000 1"), 2000, 5000, "C:1:write 1");
    check_str(write_release("C:1:write 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, each_level_of_a_reader_has_a_hold_key)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 8000 3"), RAW_HAD);
    check_str(read_acquire("A:1 8000 3"), RAW_HAD); /* a copy */
    check_str(read_acquire("A:1 5000 1"), RAW_HAD); /* late: takes no level away */
    check_holder("mode read A:1 3");
    check_left(RW_HOLD("A:1", 1), 2000, 5000);
    check_left(RW_HOLD("A:1", 3), 5000, 8000);
    check_int(redis_int(server, "DBSIZE"), 4);
    check_str(read_release("A:1 1 100 0"), RAW_UNSEEN);
    check_str(read_release("A:1 1 100 0"), RAW_UNSEEN);
    check_holder("mode read A:1 1");
    check_left(RW_HOLD("A:1", 1), 5000, 8000); /* a hold goes on for its longest lease */
    check_int(redis_int(server, "DBSIZE"), 2);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_str(read_release("A:1 0 0 0"), "0");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, a_writer_that_comes_again_gets_the_longer_lease_not_the_sum)
{
    check_str(write_acquire("A:1:write 60000 1"), RAW_TAKEN);
    check_str(write_acquire("A:1:write 50000 2"), RAW_HAD);
    check_left("n", 50000, 60000);
    check_str(write_acquire("A:1:write 90000 2"), RAW_HAD);
    check_left("n", 80000, 90000);
    check_holder("mode write A:1:write 2");
    check_str(write_release("A:1:write 1 1000 0"), RAW_UNSEEN);
    check_str(write_release("A:1:write 1 1000 0"), RAW_UNSEEN);
    check_left("n", 80000, 90000);
    check_holder("mode write A:1:write 1");
}

Law(script_rw, a_nested_acquire_whose_outer_hold_is_gone_takes_nothing)
{
    check_str(read_acquire("A:1 5000 2"), "-1");
    check_str(write_acquire("A:1:write 5000 2"), "-1");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(read_acquire("B:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 10 1"), RAW_HAD);
    check(redis_wait_int(server, 0, 5000, "EXISTS " RW_HOLD("A:1", 1)));
    check_str(read_acquire("A:1 5000 2"), "-1"); /* its field stands, its lease is over */
    check_str(write_acquire("A:1:write 5000 2"), "-1");
    check_int(redis_int(server, "EXISTS " RW_HOLD("A:1", 2)), 0);
}

Law(script_rw, a_shorter_lease_shortens_no_other)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_left("n", 50000, 60000);
    check_str(read_acquire("B:1 4000 2"), RAW_HAD);
    check_str(read_renew("4000 B:1"), "1 2");
    check_str(read_release("B:1 1 3000 0"), RAW_UNSEEN);
    check_left("n", 50000, 60000);
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    check_left("n", 50000, 60000);
    check_left(RW_HOLD("A:1", 1), 50000, 60000);
    redis_do(server, "PEXPIRE n 30000"); /* as Redisson's renewal does, and others' leases stay */
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    check_left("n", 50000, 60000);
    check_str(read_acquire("A:1 1000 1"), RAW_HAD);
    check_left(RW_HOLD("A:1", 1), 50000, 60000);
}

Law(script_rw, the_last_reader_out_says_so)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_holder("mode read B:1 1");
    redis_do(server, "PUBLISH " RW_CHANNEL " between");
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    check_str(read_release("B:1 0 0 0"), "0");
    ear_check(ear, RW_CHANNEL, "between");
    ear_check(ear, RW_CHANNEL, "0");
    ear_check_end(ear, RW_CHANNEL);
    redisFree(ear);
}

Law(script_rw, a_writer_that_leaves_wakes_all)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(write_acquire("A:1:write 5000 1"), RAW_TAKEN);
    check_str(write_acquire("A:1:write 5000 2"), RAW_HAD);
    check_str(write_release("A:1:write 1 5000 0"), RAW_UNSEEN);
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_str(write_release("A:1:write 0 0 0"), "0");
    check_all_woken(ear);
    ear_check_end(ear, RW_CHANNEL);
    redisFree(ear);
}

/* A thousand others, each with a field and a hold key. */
static void crowd_of_readers(int count, int64_t lease_ms)
{
    for (int i = 0; i < count; i++) {
        char words[64];
        snprintf(words, sizeof words, "X:%d %lld 1", i, (long long)lease_ms);
        check(strncmp(read_acquire(words), "1 ", 2) == 0);
    }
}

static int64_t calls_of(const char *command)
{
    return redis_calls(server, command);
}

Law(script_rw, a_reader_that_leaves_looks_at_no_other)
{
    static const char *const looks[] = {"pttl", "hget", "hmget", "exists"};
    int64_t before[4];
    crowd_of_readers(300, 60000);
    check_str(read_acquire("A:1 60000 1"), RAW_HAD);
    for (int i = 0; i < 4; i++)
        before[i] = calls_of(looks[i]);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    for (int i = 0; i < 4; i++)
        check_msg(calls_of(looks[i]) <= before[i] + 1, "%s", looks[i]);
    check_int(redis_calls(server, "hkeys") + redis_calls(server, "hgetall"), 0);
    check_int(redis_int(server, "HLEN n"), 301);
}

Law(script_rw, a_reader_that_leaves_a_handful_behind_leaves_them_their_longest_lease)
{
    check_str(read_acquire("A:1 90000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(read_acquire("C:1 20000 1"), RAW_HAD);
    check_str(read_acquire("C:1 40000 2"), RAW_HAD);
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_left("n", 30000, 40000);
    check_str(read_release("C:1 0 0 0"), RAW_UNSEEN);
    check_left("n", 2000, 5000);
}

Law(script_rw, the_last_living_reader_removes_readers_whose_lease_is_over)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(read_acquire("A:1 90000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 10 1"), RAW_HAD);
    check_str(read_acquire("C:1 10 1"), RAW_HAD);
    check(redis_wait_int(server, 2, 5000, "DBSIZE"));
    check_str(read_release("A:1 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
    ear_check(ear, RW_CHANNEL, "0");
    ear_check_end(ear, RW_CHANNEL);
    redisFree(ear);
}

Law(script_rw, a_released_reader_keeps_writers_out_for_its_minimum_time_and_is_not_renewed)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 60000 2"), RAW_HAD);
    check_str(read_release("A:1 0 0 700"), RAW_UNSEEN);
    check_str(read_release("A:1 0 0 700"), RAW_UNSEEN);
    check_holder("mode read A:1:rest 1");
    check_left("n", 0, 700);
    check_str(read_renew("5000 A:1"), "1 -1");
    check_busy(write_acquire("B:1:write 5000 1"), -3, 700, "A:1:rest 1");
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
    check_str(write_acquire("B:1:write 60000 1"), RAW_TAKEN);
    check_str(write_release("B:1:write 0 0 700"), RAW_UNSEEN);
    check_str(write_release("B:1:write 0 0 700"), RAW_UNSEEN);
    check_holder("mode write B:1:write 0");
    check_left("n", 0, 700);
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

Law(script_rw, a_rest_beside_other_readers_ends_with_its_time)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 60000 1"), RAW_HAD);
    check_str(read_release("B:1 0 0 50"), RAW_UNSEEN);
    check_left("n", 50000, 60000);
    check(redis_wait_int(server, 0, 5000, "EXISTS " RW_HOLD("B:1:rest", 1)));
    check_busy(write_acquire("C:1:write 5000 1"), 50000, 60000, "A:1 1");
    check_holder("mode read A:1 1");
}

/* Redisson's renewal sets the lock's expiry to its own lease. */
Law(script_rw, a_renewal_puts_back_what_redisson_has_shortened)
{
    check_str(read_acquire("A:1 90000 1"), RAW_TAKEN);
    redis_do(server, "PEXPIRE n 30000");
    check_str(read_renew("80000 A:1"), "");
    check_left("n", 70000, 80000);
    check_left(RW_HOLD("A:1", 1), 80000, 90000);
    check_str(read_renew("95000 A:1"), "");
    check_left("n", 90000, 95000);
    check_left(RW_HOLD("A:1", 1), 90000, 95000);
}

Law(script_rw, a_renewal_creates_nothing_and_believes_in_hold_keys_only)
{
    check_str(read_renew("5000 A:1"), "1 -1");
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    redis_do(server, "DEL " RW_HOLD("A:1", 1));
    check_str(read_renew("60000 A:1"), "1 -1");
    check_left("n", 2000, 5000);
    check_int(redis_int(server, "EXISTS " RW_HOLD("A:1", 1)), 0);
    redis_do(server, "PERSIST n");
    redis_do(server, "PERSIST " RW_HOLD("B:1", 1));
    check_str(read_renew("4000 B:1"), "");
    check_left("n", 2000, 4000);
    check_left(RW_HOLD("B:1", 1), 2000, 4000);
}

Law(script_rw, a_renewal_of_many_tells_the_counts_that_differ)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_RW_READ_RENEW);
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("A:2 5000 1"), RAW_HAD);
    check_str(read_acquire("A:2 5000 2"), RAW_HAD);
    redis_do(server, "SET b stranger");
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    check_str(redis_str(server, "EVALSHA %s 4 n b n n 60000 A:1 A:9 A:2 A:3", script->sha1),
              "2 -1 3 2 4 -1");
    check_left(RW_HOLD("A:1", 1), 50000, 60000);
    check_left(RW_HOLD("A:2", 2), 50000, 60000);
    check_int(redis_int(server, "PTTL b"), -1);
}

Law(script_rw, a_reader_whose_lease_is_over_does_not_keep_a_writer_out)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    check_str(read_acquire("A:2 10 1"), RAW_HAD);
    redis_do(server, "PEXPIRE " RW_HOLD("A:1", 1) " 10"); /* the lock's own was made by others */
    check(redis_wait_int(server, 1, 5000, "DBSIZE"));
    check_holder("mode read A:1 1 A:2 1");
    check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
    check_holder("mode write W:1:write 1");
    check_left("n", 2000, 5000);
}

Law(script_rw, a_writer_hears_when_the_last_living_reader_is_over)
{
    check_str(read_acquire("B:1 5000 1"), RAW_TAKEN);
    check_str(read_acquire("A:1 10 1"), RAW_HAD);
    check_str(read_acquire("B:1 8000 2"), RAW_HAD);
    redis_do(server, "PEXPIRE n 60000");
    check(redis_wait_int(server, 0, 5000, "EXISTS " RW_HOLD("A:1", 1)));
    check_busy(write_acquire("W:1:write 5000 1"), 5000, 8000, "B:1 2");
    check_holder("mode read B:1 2");
    check_left("n", 50000, 60000); /* theirs, not a writer's to shorten */
}

Law(script_rw, a_writer_looks_at_eight_readers_and_on_while_they_are_all_over)
{
    crowd_of_readers(100, 60000);
    int64_t before = calls_of("pttl");
    check(strncmp(write_acquire("W:1:write 5000 1"), "0 ", 2) == 0);
    check_int(calls_of("pttl") - before, 8 + 1);
    check_int(redis_int(server, "HLEN n"), 101);
    for (int i = 0; i < 100; i++)
        redis_do(server, "DEL {n}:X:%d:rwlock_timeout:1", i);
    check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
    check_int(redis_int(server, "DBSIZE"), 1);
}

Law(script_rw, a_very_large_crowd_that_died_is_gone_after_some_asks)
{
    crowd_of_readers(300, 60000);
    for (int i = 0; i < 300; i++)
        redis_do(server, "DEL {n}:X:%d:rwlock_timeout:1", i);
    check(strncmp(write_acquire("W:1:write 5000 1"), "0 ", 2) == 0);
    check(strncmp(write_acquire("W:1:write 5000 1"), "0 ", 2) == 0);
    check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
}

Law(script_rw, a_client_that_may_not_read_readers_waits_for_the_expiry)
{
    check_str(read_acquire("A:1 60000 1"), RAW_TAKEN);
    redis_do(server, "DEL " RW_HOLD("A:1", 1));
    redis_do(server, "ACL SETUSER hltest -hrandfield");
    check_busy(write_acquire("W:1:write 5000 1"), 50000, 60000, " 0");
    redis_do(server, "ACL SETUSER hltest +hrandfield -hdel");
    check_busy(write_acquire("W:1:write 5000 1"), 50000, 60000, " 0");
    redis_do(server, "ACL SETUSER hltest +hdel");
    check_str(write_acquire("W:1:write 5000 1"), RAW_TAKEN);
}

Law(script_rw, a_writer_may_read_as_well_and_go_on_as_a_reader)
{
    redisContext *ear = ear_open(RW_CHANNEL);
    check_str(write_acquire("A:1:write 60000 1"), RAW_TAKEN);
    check_str(read_acquire_under("A:2 5000 1"), RAW_HAD);
    check_holder("mode write A:1:write 1 A:2 1");
    check_left("n", 50000, 60000);
    check_busy(read_acquire("B:1 5000 1"), 50000, 60000, "A:1:write 1");
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_all_woken(ear);
    check_holder("mode read A:2 1");
    check_left("n", 2000, 5000); /* the reader's own lease is all that is left */
    check_busy(write_acquire("B:1:write 5000 1"), 2000, 5000, "A:2 1");
    check_str(read_acquire("B:1 5000 1"), RAW_HAD);
    check_str(write_release("A:1:write 0 0 0"), "0");
    check_holder("mode read A:2 1 B:1 1");
    check_str(read_release("A:2 0 0 0"), RAW_UNSEEN);
    check_str(read_release("B:1 0 0 0"), RAW_UNSEEN);
    ear_check(ear, RW_CHANNEL, "0");
    ear_check_end(ear, RW_CHANNEL);
    check_int(redis_int(server, "DBSIZE"), 0);
    redisFree(ear);
}

Law(script_rw, a_writer_may_leave_its_read_lock_first)
{
    check_str(write_acquire("A:1:write 60000 1"), RAW_TAKEN);
    check_str(read_acquire_under("A:2 5000 1"), RAW_HAD);
    check_str(read_release("A:2 0 0 0"), RAW_UNSEEN);
    check_holder("mode write A:1:write 1");
    check_left("n", 50000, 60000);
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(script_rw, a_writer_whose_own_read_lease_is_over_leaves_nothing)
{
    check_str(write_acquire("A:1:write 60000 1"), RAW_TAKEN);
    check_str(read_acquire_under("A:2 10 1"), RAW_HAD);
    check(redis_wait_int(server, 1, 5000, "DBSIZE"));
    check_str(write_release("A:1:write 0 0 0"), RAW_UNSEEN);
    check_int(redis_int(server, "DBSIZE"), 0);
    check_str(read_release("A:2 0 0 0"), "0");
}

/* Its write lock was released, or lost: then it is a reader like any other. */
Law(script_rw, no_reader_enters_under_a_write_lock_that_is_gone)
{
    check_str(write_acquire("B:1:write 5000 1"), RAW_TAKEN);
    check_busy(read_acquire_under("A:2 5000 1"), 2000, 5000, "B:1:write 1");
    check_str(write_release("B:1:write 0 0 0"), RAW_UNSEEN);
    check_str(read_acquire_under("A:2 5000 1"), RAW_TAKEN);
    check_holder("mode read A:2 1");
}

Law(script_rw, a_reader_is_busy_for_itself_when_it_asks_to_write)
{
    check_str(read_acquire("A:1 5000 1"), RAW_TAKEN);
    check_busy(write_acquire("A:1:write 5000 1"), 2000, 5000, "A:1 1");
    check_holder("mode read A:1 1");
}
