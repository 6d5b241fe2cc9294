/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A process that stands still for longer than its request timeout while its answers arrive: they
 * are read before the link is given up.
 */
#include "process_kit.h"

#include "support/process.h"
#include "support/redis_probe.h"

enum { GO, SENT, CALLS = 600 }; /* their answers are more than one read takes */

static struct redis_server *server;
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
    return slow_ms(800);
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

static void ask_and_stand_still(struct process *self, void *arg)
{
    int calls = *(int *)arg;
    static struct kit_events events;
    hl_client_options options = kit_options(slow_ms(60000), &events);
    options.request_timeout_ms = stop_request_ms();
    check(process_await(self, GO, 1, 20000));
    hl_client *client = kit_open(redis_server_url(server), &options);
    hl_lock *lock = kit_lock(client, "asked for");
    kit_expect(hl_lock_acquire(lock, &err), HL_OK);
    kit_expect(hl_lock_inspect(lock, &(hl_lock_info)HL_LOCK_INFO_INIT, &err), HL_OK);
    process_tell(self, SENT);
    check(process_await(self, GO, 2, 20000)); /* the server stands still */
    for (int i = 0; i < calls; i++)
        check_int(hl_lock_inspect_async(lock, on_info, NULL), HL_OK);
    process_tell(self, SENT);
    check(wait_until(has_all, &calls, 20000));
    check_int(succeeded, calls);
    check_int(kit_stats(client).reconnects, 0);
    check_int(kit_told(&events, HL_EVENT_DISCONNECTED), 0);
    kit_expect(hl_lock_release(lock, &err), HL_OK);
    hl_lock_free(lock);
    check_int(hl_client_close(client), HL_OK);
}

static void stand_still_with(int calls)
{
    struct process *process = process_start(ask_and_stand_still, &calls);
    process_tell(process, GO);
    check(process_await(process, SENT, 1, 20000));
    redis_server_freeze(server);
    process_tell(process, GO);
    check(process_await(process, SENT, 2, 20000));
    struct deadline too_late = deadline_in(0);
    too_late.at_ns = now_ns() + (stop_request_ms() + 100) * 1000000;
    process_stop(process);
    redis_server_thaw(server);
    redis_do(server, "PING"); /* the answers are out */
    while (!deadline_is_over(too_late))
        deadline_nap();
    process_continue(process);
    check_int(process_finish(process, 20000), 0);
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
