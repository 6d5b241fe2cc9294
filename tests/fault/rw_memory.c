/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Calls of read-write locks, with each allocation of the process failing once, whichever thread's
 * it is: the call is done, or it ends with a code of its own; nothing is held that the client does
 * not know.
 */
#include "memory_kit.h"
#include "support/kinds.h"

struct subject {
    int (*call)(struct subject *subject);
    bool writes, reads; /* before the call */
    hl_client *client;
    hl_lock *read, *write;
    hl_error err;
    int code;
};

static void subject_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(2000), NULL);
    subject->client = open_client(&options);
    expect_ok(rw_lock_new(subject->client, "subject", NULL, &subject->read, &subject->write, ERR));
    subject->err = (hl_error)HL_ERROR_INIT;
    if (subject->writes)
        expect_ok(hl_lock_acquire(subject->write, ERR));
    if (subject->reads)
        expect_ok(hl_lock_acquire(subject->read, ERR));
}

static void subject_run(void *arg)
{
    struct subject *subject = arg;
    subject->code = subject->call(subject);
}

/* What is still held is let go of, and then nothing is left, but what may have to expire. */
static void subject_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    check_msg(subject->code == HL_OK ||
                  (failed && (subject->code == HL_ENOMEM || subject->code == HL_EINDOUBT)),
              "the call ended with %s (%s)", hl_err_name(subject->code), subject->err.text);
    while (hl_lock_is_held(subject->read, NULL))
        kit_release(subject->read, NULL);
    while (hl_lock_is_held(subject->write, NULL))
        kit_release(subject->write, NULL);
    check_msg(redis_wait_int(server, 0, 20000, "DBSIZE"), "%s is left after %s",
              redis_str(server, "KEYS *"), hl_err_name(subject->code));
    expect_ok(hl_lock_try_acquire(subject->write, ERR));
    kit_release(subject->write, NULL);
    free_lock(subject->read);
    free_lock(subject->write);
    close_client(subject->client);
    kit_expect_no_threads();
}

static long sweep(struct subject subject)
{
    return failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_PROCESS,
                                                           .prepare = subject_prepare,
                                                           .run = subject_run,
                                                           .verify = subject_verify,
                                                           .arg = &subject});
}

static int make(struct subject *subject)
{
    hl_lock *read = NULL, *write = NULL;
    int rc = rw_lock_new(subject->client, "made", NULL, &read, &write, &subject->err);
    check((read != NULL) == (rc == HL_OK) && (write != NULL) == (rc == HL_OK)); /* or neither */
    free_lock(read);
    free_lock(write);
    return rc;
}

static int read_lock(struct subject *subject)
{
    return hl_lock_acquire_for(subject->read, slow_ms(5000), &subject->err);
}

static int write_lock(struct subject *subject)
{
    return hl_lock_acquire_for(subject->write, slow_ms(5000), &subject->err);
}

static int release_read(struct subject *subject)
{
    return hl_lock_release(subject->read, &subject->err);
}

static int release_write(struct subject *subject)
{
    return hl_lock_release(subject->write, &subject->err);
}

static int inspect(struct subject *subject)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    return hl_lock_inspect(subject->read, &info, &subject->err);
}

Test(rw_memory, both_handles_are_made_or_neither, .init = memory_up, .fini = memory_down)
{
    check(sweep((struct subject){.call = make}) >= 4);
}

Test(rw_memory, acquires_hold_or_leave_nothing, .init = memory_up, .fini = memory_down)
{
    check(sweep((struct subject){.call = read_lock}) >= 3);
    check(sweep((struct subject){.call = write_lock}) >= 2);
    check(sweep((struct subject){.call = read_lock, .writes = true}) >= 3);
    check(sweep((struct subject){.call = read_lock, .reads = true}) >= 0);
}

Test(rw_memory, releases_let_go_or_still_hold, .init = memory_up, .fini = memory_down)
{
    check(sweep((struct subject){.call = release_read, .reads = true}) >= 1);
    check(sweep((struct subject){.call = release_write, .writes = true}) >= 1);
    check(sweep((struct subject){.call = release_write, .writes = true, .reads = true}) >= 1);
}

Test(rw_memory, inspect_answers_or_says_why_not, .init = memory_up, .fini = memory_down)
{
    check(sweep((struct subject){.call = inspect, .reads = true}) >= 1);
}
