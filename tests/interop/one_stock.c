/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Four threads of C and four of Java serve one stock as fast as they can for a minute
 * (HL_INTEROP_SECONDS): nothing is lost, and each side has its turns after the other's.
 */
#include "redisson.h"
#include "stock.h"

enum { SECONDS = 60, THREADS = 4, HANDOVERS = 100 };

static int64_t run_ms(void)
{
    const char *seconds = getenv("HL_INTEROP_SECONDS");
    return (seconds ? strtoll(seconds, NULL, 10) : SECONDS) * 1000;
}

static void expect_fair_share(const struct stock_tally *tally)
{
    check(tally->handovers >= HANDOVERS * run_ms() / 60000);
    check(tally->longest_wait_ms < REDISSON_LEASE_MS);
}

RedissonLaw(one_stock, served_by_threads_of_c_and_java_loses_nothing)
{
    struct stock_team team = {"lock", "stock", {NULL}, run_ms()};
    hl_client *clients[] = {open_client(NULL), open_client(NULL)};
    for (int i = 0; i < THREADS; i++)
        team.locks[i] = new_lock(clients[i % 2], "stock");
    struct stock_result result = stock_run(&team);
    expect_fair_share(&result.c);
    expect_fair_share(&result.java);
}
