/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Lanes while memory is short: a second one is opened, and closed and opened anew, with each
 * allocation failing once. The client has its second lane all the same, and no name is lost. */

#include "lanes_kit.h"
#include "memory_kit.h"

#include "lease/calls/client.h"

enum { MEETINGS = 100 }; /* open a lane (lanes.c) */

static int files_before;
static struct events events;

struct subject {
    hl_client *client;
    struct hli_link *first;
    hl_lock *held;
};

/* Of the request that keeps the first lane busy; -1: it is in flight. */
static atomic_int verdict;

static void note_verdict(struct hli_op *op, const struct hli_answer *answer)
{
    (void)op;
    atomic_store(&verdict, (int)answer->verdict);
}

static struct hli_op work = {.done = note_verdict};

static bool is_idle(void *arg)
{
    (void)arg;
    return atomic_load(&verdict) >= 0;
}

/* All that goes by the first lane waits from now on, until the list `door` has something. While the
 * lane is lost there is no such work. */
static void begin_work(struct subject *subject)
{
    const struct hli_bytes words[] = {hli_bytes_of("BLPOP"), hli_bytes_of("door"),
                                      hli_bytes_of("0")};

    hli_op_deinit(&work);
    while (hli_op_command(&work, words, 3) != 0)
        continue; /* without memory */
    atomic_store(&verdict, -1);
    hli_link_send(subject->first, &work);
}

static void await_work(struct subject *subject)
{
    struct deadline deadline = deadline_of_wait(20000);

    for (; is_idle(NULL) && !deadline_is_over(deadline); deadline_nap())
        begin_work(subject);
    check_int(atomic_load(&verdict), -1);
}

static void end_work(void)
{
    redis_do(server, "RPUSH door open");
    check(wait_until(is_idle, NULL, 20000));
    check_int(atomic_load(&verdict), HLI_REPLIED);
}

/* Calls that find the first lane busy, until there is another. */
static void meet(struct subject *subject)
{
    struct deadline deadline = deadline_of_wait(20000);

    while (hli_link_lanes(subject->first) == 1 && !deadline_is_over(deadline)) {
        if (is_idle(NULL))
            begin_work(subject);
        for (int i = 0; i < MEETINGS; i++)
            hli_link_free_lane(subject->first, 0);
        deadline_nap();
    }
}

static void open_subject(struct subject *subject, int64_t watchdog_ms)
{
    hl_client_options options = kit_options(watchdog_ms, &events);

    options.connections = 2;
    options.request_timeout_ms = slow_ms(60000); /* the first lane's work lasts */
    subject->client = open_client(&options);
    subject->first = hli_client_link(subject->client, 0, 0);
    subject->held = new_lock(subject->client, "held");
    expect_ok(hl_client_ping(subject->client, -1, ERR)); /* nothing is on its way any more */
    begin_work(subject);
}

/* By the second lane, for the first one is busy. Its lease is its own: the watchdog's is brief. */
static void hold(struct subject *subject, hl_lock *lock)
{
    await_work(subject);
    expect_ok(hl_lock_acquire_with(
        lock, ACQUIRE(.wait_ms = slow_ms(20000), .lease_ms = slow_ms(60000)), ERR));
    check_int(atomic_load(&verdict), -1);
}

static void end_subject(struct subject *subject)
{
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    close_client(subject->client);
    hli_op_deinit(&work);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
    check_int(redis_int(server, "EXISTS held again"), 0);
}

static void open_prepare(void *arg)
{
    open_subject(arg, slow_ms(30000));
}

static void open_run(void *arg)
{
    meet(arg);
}

static void open_verify(void *arg, bool failed)
{
    struct subject *subject = arg;

    (void)failed;
    check_int(hli_link_lanes(subject->first), 2);
    hold(subject, subject->held);
    end_work();
    kit_release(subject->held, NULL);
    free_lock(subject->held);
    end_subject(subject);
}

static void memory_lanes_up(void)
{
    memory_up();
    redis_do(server, "PING");
    files_before = census_files();
}

#define MemoryLaw(name) Test(memory_lanes, name, .init = memory_lanes_up, .fini = memory_down)

MemoryLaw(a_second_one_is_opened_all_the_same)
{
    struct subject subject;
    const struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                              .prepare = open_prepare,
                                              .run = open_run,
                                              .verify = open_verify,
                                              .arg = &subject};

    check(sweep_without_leaks(&scenario) >= 5);
}

/* The lane of a name is about to be closed, since no threads meet. */
static void close_prepare(void *arg)
{
    struct subject *subject = arg;

    open_subject(subject, slow_ms(500));
    meet(subject);
    check_int(hli_link_lanes(subject->first), 2);
    hold(subject, subject->held);
    end_work();
}

static void close_run(void *arg)
{
    struct subject *subject = arg;
    struct deadline deadline = deadline_of_wait(20000);

    while (hli_link_lanes(subject->first) == 2 && !deadline_is_over(deadline))
        deadline_nap();
    check_int(hli_link_lanes(subject->first), 1);
    meet(subject);
}

/* The first lane had the requests of the name meanwhile, and has them still. */
static void close_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    hl_lock *again = new_lock(subject->client, "again");

    (void)failed;
    check_int(hli_link_lanes(subject->first), 2);
    hold(subject, again);
    end_work();
    expect_held_by(subject->client, subject->held, 1);
    kit_release(subject->held, NULL);
    kit_release(again, NULL);
    free_lock(subject->held);
    free_lock(again);
    end_subject(subject);
}

MemoryLaw(a_closed_one_is_opened_anew_all_the_same)
{
    struct subject subject;
    const struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                              .prepare = close_prepare,
                                              .run = close_run,
                                              .verify = close_verify,
                                              .arg = &subject};

    check(sweep_without_leaks(&scenario) >= 5);
}
