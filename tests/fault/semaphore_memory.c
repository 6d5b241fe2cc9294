/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each call of semaphores and latches, with each of its own allocations failing once: it is done,
 * or it ends with HL_ENOMEM and nothing has changed; and the next call works. */
#include "memory_kit.h"

enum { PERMITS = 5, COUNT = 3 };

/* A call under test, with what it works on, new for each failure; and what stands in Redis when it
 * was done. */
struct subject {
    int (*call)(struct subject *subject);
    int permits, count;
    int closed; /* the latch, before the call */
    hl_client *client;
    hl_semaphore *semaphore;
    hl_latch *latch;
    hl_error err;
    int code;
};

static void subject_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(1000), NULL);
    subject->client = open_client(&options);
    expect_ok(hl_semaphore_new(subject->client, "pool", &subject->semaphore, ERR));
    expect_ok(hl_latch_new(subject->client, "gate", &subject->latch, ERR));
    subject->err = (hl_error)HL_ERROR_INIT;
    atomic_store(&completions, 0);
    redis_do(server, "SET pool %d", PERMITS);
    redis_do(server, "DEL gate");
    if (subject->closed > 0)
        redis_do(server, "SET gate %d", subject->closed);
}

static void subject_run(void *arg)
{
    struct subject *subject = arg;
    subject->code = subject->call(subject);
}

static void counted(int code, int64_t count, const hl_error *err, void *arg)
{
    (void)count;
    completed(code, err, arg);
}

static void subject_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    check_msg(subject->code == HL_OK || (failed && subject->code == HL_ENOMEM),
              "the call ended with %s (%s)", hl_err_name(subject->code), subject->err.text);
    bool is_done = subject->code == HL_OK;
    check_msg(redis_wait_int(server, is_done ? subject->permits : PERMITS, 5000, "GET pool"),
              "%s after %s", redis_str(server, "GET pool"), hl_err_name(subject->code));
    int count = is_done ? subject->count : subject->closed;
    check(redis_wait_int(server, count > 0 ? count : -1, 5000, "GET gate"));
    kit_try_out(subject->client, "afterwards");
    hl_semaphore_free(subject->semaphore);
    hl_latch_free(subject->latch);
    close_client(subject->client);
    kit_expect_no_threads();
}

static long sweep_from(int closed, int (*call)(struct subject *), int permits, int count)
{
    struct subject subject = {.call = call, .permits = permits, .count = count, .closed = closed};
    return failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_THREAD,
                                                           .prepare = subject_prepare,
                                                           .run = subject_run,
                                                           .verify = subject_verify,
                                                           .arg = &subject});
}

static long sweep(int (*call)(struct subject *), int permits, int count)
{
    return sweep_from(COUNT, call, permits, count);
}

static int acquire(struct subject *subject)
{
    return hl_semaphore_acquire_for(subject->semaphore, 2, slow_ms(5000), &subject->err);
}

static int acquire_async(struct subject *subject)
{
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    options.wait_ms = slow_ms(5000);
    return await_completion(
        hl_semaphore_acquire_async(subject->semaphore, 2, &options, completed, NULL));
}

/* Two that follow each other: the second takes what the first has settled along. */
static int release(struct subject *subject)
{
    int code = hl_semaphore_release(subject->semaphore, 2, &subject->err), second = HL_ENOMEM;
    while (code == HL_OK && second == HL_ENOMEM)
        second = hl_semaphore_release(subject->semaphore, 1, NULL);
    check(code != HL_OK || second == HL_OK);
    return code;
}

static int release_async(struct subject *subject)
{
    return await_completion(hl_semaphore_release_async(subject->semaphore, 2, completed, NULL));
}

static int drain(struct subject *subject)
{
    int64_t permits;
    return hl_semaphore_drain(subject->semaphore, &permits, &subject->err);
}

static int drain_async(struct subject *subject)
{
    return await_completion(hl_semaphore_drain_async(subject->semaphore, counted, NULL));
}

static int available(struct subject *subject)
{
    int64_t permits;
    return hl_semaphore_available(subject->semaphore, &permits, &subject->err);
}

static int add(struct subject *subject)
{
    return hl_semaphore_add_permits(subject->semaphore, -1, &subject->err);
}

Test(semaphore_memory, permits_are_taken_or_not, .init = memory_up, .fini = memory_down)
{
    check(sweep(acquire, PERMITS - 2, COUNT) >= 2);
    check(sweep(acquire_async, PERMITS - 2, COUNT) >= 3);
}

Test(semaphore_memory, permits_are_given_back_or_not, .init = memory_up, .fini = memory_down)
{
    check(sweep(release, PERMITS + 3, COUNT) >= 4);
    check(sweep(release_async, PERMITS + 2, COUNT) >= 2);
    check(sweep(drain, 0, COUNT) >= 2);
    check(sweep(drain_async, 0, COUNT) >= 2);
    check(sweep(add, PERMITS - 1, COUNT) >= 2);
    check(sweep(available, PERMITS, COUNT) >= 2);
}

static int make_semaphore(struct subject *subject)
{
    hl_semaphore *made = NULL;
    int code = hl_semaphore_new(subject->client, "unseen", &made, &subject->err);
    check((made != NULL) == (code == HL_OK));
    hl_semaphore_free(made);
    return code;
}

static int make_latch(struct subject *subject)
{
    hl_latch *made = NULL;
    int code = hl_latch_new(subject->client, "unseen", &made, &subject->err);
    check((made != NULL) == (code == HL_OK));
    hl_latch_free(made);
    return code;
}

Test(semaphore_memory, handles_are_made_or_not, .init = memory_up, .fini = memory_down)
{
    check(sweep(make_semaphore, PERMITS, COUNT) >= 2);
    check(sweep(make_latch, PERMITS, COUNT) >= 2);
}

static int count_down(struct subject *subject)
{
    return hl_latch_count_down(subject->latch, &subject->err);
}

static int count_down_async(struct subject *subject)
{
    return await_completion(hl_latch_count_down_async(subject->latch, completed, NULL));
}

static int await_open(struct subject *subject)
{
    return hl_latch_await_for(subject->latch, slow_ms(5000), &subject->err);
}

static int count_of(struct subject *subject)
{
    int64_t count;
    return hl_latch_count(subject->latch, &count, &subject->err);
}

Test(semaphore_memory, counts_are_counted_or_not, .init = memory_up, .fini = memory_down)
{
    check(sweep(count_down, PERMITS, COUNT - 1) >= 2);
    check(sweep(count_down_async, PERMITS, COUNT - 1) >= 2);
    check(sweep(count_of, PERMITS, COUNT) >= 2);
    check(sweep_from(0, await_open, PERMITS, 0) >= 2);
}
