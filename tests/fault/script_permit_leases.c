/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The permits' scripts, called raw: when a permit ends, by itself or with its semaphore. */

#include <inttypes.h>

#include "script_permits.h"

Law(script_permit_leases, expired_permits_are_taken_back_first_and_announced)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n 0");
    put(A, -1);
    put(B, -5000);
    put(C, 60000);
    check_str(take("dddddddddddddddd 5000"), "1 1");
    check_int(redis_int(server, "GET n"), 1);
    ear_check(ear, PERMIT_CHANNEL, "1"); /* what is left */
    check_int(redis_int(server, "ZCARD " PERMIT_IDS), 2);
    put(A, -1);
    check_str(inspect(), "1 2 2");
    ear_check(ear, PERMIT_CHANNEL, "2");
    ear_check_end(ear, PERMIT_CHANNEL);
    redisFree(ear);
}

Law(script_permit_leases, expired_permits_are_announced_even_if_too_few)
{
    redisContext *ear = ear_open(PERMIT_CHANNEL);
    redis_do(server, "SET n 0");
    put(C, -1);
    check_busy(take(A B " 5000"), -1, -1, 1);
    ear_check(ear, PERMIT_CHANNEL, "1");
    redisFree(ear);
}

/* More than Lua can pass to one call. */
Law(script_permit_leases, many_thousands_expire_at_once)
{
    enum { MANY = 20000 };
    redis_do(server, "SET n 0");
    redis_do(server, "EVAL %s 0 %d",
             "for i = 1, tonumber(ARGV[1]) do "
             "redis.call('ZADD', '" PERMIT_IDS "', i, string.format('%016d', i)) end return 1",
             MANY);
    check_int(redis_int(server, "ZCARD " PERMIT_IDS), MANY);
    check_str(inspect(), "1 20000 0");
}

Law(script_permit_leases, an_expired_permit_is_given_back_once)
{
    redis_do(server, "SET n 0");
    put(A, -1);
    check_str(give(A), "0 x");
    check_int(redis_int(server, "GET n"), 1);
    check_str(give(A), "0 0");
    check_int(redis_int(server, "GET n"), 1);
    put(A, -1);
    put(B, 60000);
    check_str(give(A B C), "1 x10 -1");
    check_int(redis_int(server, "GET n"), 3);
}

Law(script_permit_leases, a_renewal_brings_nothing_back_and_never_shortens)
{
    redis_do(server, "SET n 5");
    check_str(renew_permits("30000 " A), "1 -1");
    put(A, -1);
    check_str(renew_permits("30000 " A), "1 -1");
    check(left_of(A) < 0);
    put(A, 1000);
    check_str(renew_permits("30000 " A), "");
    check_lasts(A, 30000);
    check_str(renew_permits("1000 " A), "");
    check_lasts(A, 30000);
    put(B, 1000);
    check_str(renew_permits("50000 " A B C), "1 2"); /* two of the three are left */
    check_lasts(B, 50000);
    check_int(redis_int(server, "GET n"), 5);
}

Law(script_permit_leases, a_renewal_of_many_goes_on_past_a_name_whose_keys_are_something_else)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_PERMIT_RENEW);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    redis_do(server, "SET {m}:timeout stranger");
    redis_do(server, "ZADD {k{k}:timeout %lld " C, (long long)(server_now_ms() + 1000));
    put(A, 1000);
    check_str(redis_str(server, "EVALSHA %s 4 m n o n 60000 " A " " A " " A " " B, script->sha1),
              "1 -1 3 -1 4 -1");
    check_lasts(A, 60000);
}

Law(script_permit_leases, an_end_is_set_sooner_or_later_but_not_of_an_expired_permit)
{
    redis_do(server, "SET n 0");
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 60000"), "0");
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
    put(A, 10000);
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 60000"), "1");
    check_lasts(A, 60000);
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 5000"), "1");
    check(left_of(A) <= 5000);
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 0"), "1");
    check_str(redis_str(server, "ZSCORE " PERMIT_IDS " " A), PERMIT_NEVER);
    put(A, -1);
    check_str(run(HLI_SCRIPT_PERMIT_UPDATE_LEASE, A " 60000"), "-1");
    check_int(redis_int(server, "GET n"), 1);
    check_int(redis_int(server, "EXISTS " PERMIT_IDS), 0);
}

Law(script_permit_leases, the_remaining_lease_of_a_permit_is_returned)
{
    int64_t left = 0;
    redis_do(server, "SET n 0");
    check_str(run(HLI_SCRIPT_PERMIT_LEASE_LEFT, A), "0");
    put(A, 60000);
    check_int(sscanf(run(HLI_SCRIPT_PERMIT_LEASE_LEFT, A), "1 %" SCNd64, &left), 1);
    check(left > 30000 && left <= 60000);
    redis_do(server, "ZADD " PERMIT_IDS " " PERMIT_NEVER " " B);
    check_str(run(HLI_SCRIPT_PERMIT_LEASE_LEFT, B), "1 -1");
    put(A, -1);
    check_str(run(HLI_SCRIPT_PERMIT_LEASE_LEFT, A), "-1");
    check_int(redis_int(server, "GET n"), 1);
}

Law(script_permit_leases, the_ids_end_with_the_semaphore)
{
    redis_do(server, "SET n 2 PX 60000");
    check_str(take(A " 5000"), "1 1");
    int64_t left = redis_int(server, "PTTL " PERMIT_IDS);
    check(left > 35000 && left <= 65000); /* a minute behind the permit's end */
    check_str(give(A), "1  -1");
    check(redis_int(server, "PTTL n") > 30000);
    redis_do(server, "PERSIST n");
    check_str(take(A " 5000"), "1 1");
    check_int(redis_int(server, "PTTL " PERMIT_IDS), -1);
}
