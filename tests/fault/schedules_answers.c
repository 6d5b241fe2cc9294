/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server's refusal of a release is no answer for a waiter. */
#include "support/actor.h"
#include "support/fake_server.h"
#include "support/handle.h"
#include "support/kit.h"

#include "redis/script.h"

static atomic_int refused, busy;
static atomic_bool is_held;

static bool refuse_releases(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    if (!resp_command_begins(command, "EVALSHA"))
        return false;
    if (resp_command_arg_is(command, 1, hli_script_get(HLI_SCRIPT_LOCK_RELEASE)->sha1)) {
        fake_reply_text(reply, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        refused++;
        return true;
    }
    if (!resp_command_arg_is(command, 1, hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->sha1) || !is_held)
        return false;
    fake_reply_text(reply,
                    "*6\r\n:0\r\n:60000\r\n:1700000000\r\n:0\r\n$7\r\nother:1\r\n$1\r\n1\r\n");
    reply->delay_ms =
        busy++ < 2 ? 0 : 60000; /* told when it asks and when it listens, and no more */
    return true;
}

static bool is_refused_again(void *arg)
{
    return refused > *(int *)arg;
}

static bool is_told_busy(void *arg)
{
    (void)arg;
    return busy > 1;
}

static void job_release(void *lock)
{
    expect_released(hl_lock_release(lock, NULL), HL_EINDOUBT);
}

static void job_hold_and_release(void *lock)
{
    expect_ok(hl_lock_acquire(lock, NULL));
    is_held = true;
    job_release(lock);
}

Test(schedules_answers, a_waiter_that_was_told_busy_does_not_fail_by_anothers_refused_release)
{
    struct fake_server *fake = fake_server_start(refuse_releases, NULL);
    hl_client *client = open_client_at(
        fake_server_url(fake), CLIENT(.request_timeout_ms = slow_ms(900) + 1600, .poll_ms = 60000));
    hl_lock *lock = new_lock(client, "refused");
    struct actor *holder = actor_start(), *waiter = actor_start();
    int before = 0;
    actor_begin(holder, job_hold_and_release, lock);
    check(wait_until(is_refused_again, &before, 5000));
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = slow_ms(500) + 1000));
    check(wait_until(is_told_busy, NULL, 5000));
    before = refused;
    check(wait_until(is_refused_again, &before, 5000));
    expect_outcome(actor_end(waiter), HL_ETIMEDOUT);
    check(strstr(actor_error(waiter), "held by") != NULL);
    actor_await(holder);
    server_down();
    fake_server_stop(fake);
}
