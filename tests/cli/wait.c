/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock wait: until no owner holds the lock, whatever its kind, and it takes nothing itself. */
#include "cli/said.h"

static bool has_begun(void *calls)
{
    return redis_calls(server, "evalsha") > *(int64_t *)calls;
}

/* It has looked at least once, and goes on. */
static struct said *wait_begun(const char *name)
{
    int64_t calls = redis_calls(server, "evalsha");
    struct said *said = START("wait", name);

    check(wait_until(has_begun, &calls, 20000));
    return said;
}

Law(wait, is_over_at_once_when_nobody_holds_it)
{
    expect_said(RUN("wait", "job"), 0);
    check_int(redis_int(server, "EXISTS job"), 0);
}

SingleLaw(wait, ends_with_each_kind_of_hold)
{
    static const hl_lock_kind kinds[] = {HL_LOCK_REENTRANT, HL_LOCK_FAIR, HL_LOCK_FENCED,
                                         HL_LOCK_READ, HL_LOCK_WRITE};
    hl_client *client = open_client(NULL);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "job%zu", i);
        hl_lock *lock = new_lock_with(
            client, name, &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = kinds[i]});
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_said(RUN("wait", "-w", "200ms", name), 124);
        struct said *said = wait_begun(name);
        expect_ok(hl_lock_release(lock, ERR));
        expect_said(said_end(said), 0);
    }
}

Law(wait, refuses_what_is_no_time_and_no_lock)
{
    check_has(RUN("wait", "-w", "soon", "job")->err, "no time");
    redis_do(server, "HSET setting color red");
    expect_said(RUN("wait", "setting"), 125);
    expect_help_fits("wait");
}
