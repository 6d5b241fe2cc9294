/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A process that stands still for longer than its request timeout while its answers arrive: they
 * are read before the link is given up. And a request that could not be sent meanwhile is sent.
 */
#include "process_kit.h"

#include "integration/timer_block.h"
#include "support/process.h"
#include "support/redis_probe.h"

enum { GO, SENT };
enum {
    CALLS = 600, /* their answers are more than one read takes */
    LEFT = 16,   /* of a crowd, fewer than so many are left to the loop to send */
};

static atomic_int answered, succeeded;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true}); /* its buffers take all */
}

static void stop(void)
{
    redis_server_stop(server);
}

static int64_t stop_request_ms(void)
{
    return slow_ms(400) + 1200; /* well within the five seconds of a lock that is retained */
}

static void on_info(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info, (void)err, (void)arg;
    succeeded += code == HL_OK;
    answered++;
}

static bool has_all(void *arg)
{
    return answered >= *(int *)arg;
}

/* The client's loop is held from before the calls until behind the stop, so that it reads nothing
 * before, and sends nothing. Then its timers are the first to run. */
static void ask_and_stand_still(struct process *self, void *arg)
{
    int calls = *(int *)arg;
    static struct events events;
    static struct timer_block block;
    hl_client_options options = kit_options(slow_ms(60000), &events);
    options.request_timeout_ms = stop_request_ms();
    check(process_await(self, GO, 1, 20000));
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "asked for");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_inspect(lock, &(hl_lock_info)HL_LOCK_INFO_INIT, ERR));
    timer_block_begin(&block, client);
    process_tell(self, SENT);
    check(process_await(self, GO, 2, 20000)); /* the server's calls are counted */
    for (int i = 0; i < calls; i++)
        expect_ok(hl_lock_inspect_async(lock, on_info, NULL));
    process_tell(self, SENT);
    check(process_await(self, GO, 3, 60000));
    sem_post(&block.may_go);
    check(wait_until(has_all, &calls, 20000));
    check_int(succeeded, calls);
    check_int(stats_of(client).reconnects, 0);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
}

static bool has_run(void *arg)
{
    return redis_evalsha_calls(server) >= *(int64_t *)arg;
}

static void stand_still_with(int calls)
{
    struct process *process = process_start(ask_and_stand_still, &calls);
    process_tell(process, GO);
    check(process_await(process, SENT, 1, 20000));
    int64_t sent = redis_evalsha_calls(server) + (calls > LEFT ? calls - LEFT : calls);
    process_tell(process, GO);
    check(process_await(process, SENT, 2, 20000));
    struct deadline too_late = deadline_in(0);
    too_late.at_ns = now_ns() + (stop_request_ms() + 100) * 1000000;
    check(wait_until(has_run, &sent, 20000));
    redis_do(server, "PING"); /* the answers of the round before it are out */
    process_stop(process);
    while (!deadline_is_over(too_late))
        deadline_nap();
    process_continue(process);
    process_tell(process, GO);
    check_int(process_finish(process, 60000), 0);
}

Test(schedules_stop, an_answer_that_came_meanwhile_is_read_before_the_link_is_given_up,
     .init = start, .fini = stop)
{
    stand_still_with(1);
}

Test(schedules_stop, all_answers_that_came_meanwhile_are_read, .init = start, .fini = stop)
{
    stand_still_with(CALLS);
}
