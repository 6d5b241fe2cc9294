/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Every allocation of the calls about permits fails once: all are got or none, and nothing stays
 * behind here or in Redis. */

#include "memory_kit.h"

enum { PERMITS = 5, SEVERAL = 3 };

static hl_client *client;
static hl_permits *gate;

static void start(void)
{
    memory_up();
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    client = open_client(&options);
    expect_ok(hl_permits_new(client, "gate", &gate, NULL));
    expect_ok(hl_permits_set_total(gate, PERMITS, 0, NULL));
}

static void stop(void)
{
    hl_permits_free(gate);
    close_client(client);
    memory_down();
}

struct subject {
    int (*call)(struct subject *subject);
    hl_permit permits[SEVERAL];
    bool wants_permits; /* that are held before the call */
    int code;
};

static void subject_prepare(void *arg)
{
    struct subject *subject = arg;
    atomic_store(&completions, 0);
    if (subject->wants_permits)
        expect_ok(hl_permits_acquire_many(gate, SEVERAL, NULL, subject->permits, NULL));
}

static void subject_run(void *arg)
{
    struct subject *subject = arg;
    subject->code = subject->call(subject);
}

/* What was not done is still to be done: so are the permits given back whose call failed. */
static void subject_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    bool is_refused = failed && subject->code == HL_ENOMEM;
    bool is_unsure = failed && subject->code == HL_EINDOUBT;
    check_msg(subject->code == HL_OK || is_refused || is_unsure, "%s", hl_err_name(subject->code));
    if (is_refused && subject->wants_permits)
        for (int i = 0; i < SEVERAL; i++)
            check(hl_permits_is_held(gate, &subject->permits[i]));
    for (int i = 0; i < SEVERAL; i++)
        if (subject->permits[i].id[0])
            hl_permits_release(gate, &subject->permits[i], NULL);
    memset(subject->permits, 0, sizeof subject->permits);
    check(redis_wait_int(server, PERMITS, 5000, "GET gate"));
    check_int(redis_int(server, "ZCARD {gate}:timeout"), 0);
    check_int(stats_of(client).holds_now, 0);
}

static long sweep(int (*call)(struct subject *subject), bool wants_permits)
{
    struct subject subject = {.call = call, .wants_permits = wants_permits};
    return failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_THREAD,
                                                           .prepare = subject_prepare,
                                                           .run = subject_run,
                                                           .verify = subject_verify,
                                                           .arg = &subject});
}

static int acquire_one(struct subject *subject)
{
    return hl_permits_try_acquire(gate, subject->permits, NULL);
}

static int acquire_several(struct subject *subject)
{
    return hl_permits_acquire_many(gate, SEVERAL, NULL, subject->permits, NULL);
}

static int release_first(struct subject *subject)
{
    return hl_permits_release(gate, subject->permits, NULL);
}

static int release_several(struct subject *subject)
{
    return hl_permits_release_many(gate, subject->permits, SEVERAL, NULL);
}

static int release_several_async(struct subject *subject)
{
    return await_completion(
        hl_permits_release_many_async(gate, subject->permits, SEVERAL, completed, NULL));
}

static int give_an_end(struct subject *subject)
{
    return hl_permits_update_lease(gate, subject->permits, 50000, NULL);
}

static int ask_how_many(struct subject *subject)
{
    int64_t count;
    (void)subject;
    return hl_permits_total(gate, &count, NULL);
}

/* At least so many; and more when this thread, and not the loop, reads the answer. */
Test(memory_permits, are_got_and_given_back_or_the_call_fails, .init = start, .fini = stop)
{
    check(sweep(acquire_one, false) >= 3);
    check(sweep(acquire_several, false) >= 6);
    check(sweep(release_first, true) >= 1);
    check(sweep(release_several, true) >= 2);
    check(sweep(release_several_async, true) >= 2);
    check(sweep(give_an_end, true) >= 2);
    check(sweep(ask_how_many, false) >= 2);
}
