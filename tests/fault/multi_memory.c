/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The calls of a multi-lock, with each allocation of the caller's thread failing once: each ends
 * with a code that its header names, all members are held or none, and the next call works.
 */
#include <hirelock/multi_lock.h>

#include "memory_kit.h"

enum { MEMBERS = 3 };

static hl_client *client;
static hl_lock *member[MEMBERS], *multi;
static hl_owner *owner;
static hl_error said;
static int code;

static void prepare(void *arg)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    (void)arg;
    client = open_client(&options);
    for (int i = 0; i < MEMBERS; i++)
        member[i] = kit_lock_number(client, "member", i);
    expect_ok(hl_multi_lock_new(member, MEMBERS, NULL, &multi, NULL));
    expect_ok(hl_owner_new(client, &owner));
    said = (hl_error)HL_ERROR_INIT;
    atomic_store(&completions, 0);
}

static void prepare_held(void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    prepare(arg);
    options.owner = owner;
    expect_ok(hl_lock_acquire_with(multi, &options, ERR));
}

static int members_held(void)
{
    return (int)redis_int(server, "EXISTS member:0 member:1 member:2");
}

static void finish(void)
{
    free_lock(multi);
    for (int i = 0; i < MEMBERS; i++)
        free_lock(member[i]);
    free_owner(owner);
    close_client(client);
    kit_expect_no_threads();
    redis_do(server, "FLUSHALL");
}

static void verify_acquired(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && code == HL_ENOMEM), "%s: %s", hl_err_name(code),
              said.text);
    check_int(hl_lock_is_held(multi, owner), code == HL_OK);
    if (code == HL_OK) {
        check_int(members_held(), MEMBERS);
        kit_release(multi, owner);
    }
    check(redis_wait_int(server, 0, 5000, "EXISTS member:0 member:1 member:2"));
    check_int(stats_of(client).holds_now, 0);
    check_int(stats_of(client).waiters_now, 0);
    finish();
}

/* What could not be released for want of memory is held still, and can be. An answer that could not
 * be read for want of it drops the link. */
static void verify_released(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && (code == HL_ENOMEM || code == HL_EINDOUBT)), "%s: %s",
              hl_err_name(code), said.text);
    for (int i = 0; i < MEMBERS; i++)
        if (hl_lock_is_held(member[i], owner))
            kit_release(member[i], owner);
    check(redis_wait_int(server, 0, 5000, "EXISTS member:0 member:1 member:2"));
    finish();
}

static long sweep(void (*run)(void *), bool is_held)
{
    return failing_malloc_sweep(
        &(struct failing_scenario){.scope = FAILING_THREAD,
                                   .prepare = is_held ? prepare_held : prepare,
                                   .run = run,
                                   .verify = is_held ? verify_released : verify_acquired});
}

static void acquire(void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    (void)arg;
    options.owner = owner;
    options.wait_ms = slow_ms(5000);
    code = hl_lock_acquire_with(multi, &options, &said);
}

static void acquire_async(void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    (void)arg;
    options.owner = owner;
    options.wait_ms = slow_ms(5000);
    code = await_completion(hl_lock_acquire_async(multi, &options, completed, NULL));
}

static void release(void *arg)
{
    int codes[MEMBERS];
    (void)arg;
    code = hl_multi_lock_release_each(multi, owner, codes, &said);
}

static void release_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_release_async(multi, owner, completed, NULL));
}

static void each_released(int result, const int *codes, size_t count, const hl_error *error,
                          void *arg)
{
    check_int((int)count, MEMBERS);
    for (size_t i = 0; i < count; i++)
        check(codes[i] <= 0);
    completed(result, error, arg);
}

static void release_each_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_multi_lock_release_each_async(multi, owner, each_released, NULL));
}

static void make(void *arg)
{
    hl_lock *made = NULL;
    (void)arg;
    code = hl_multi_lock_new(member, MEMBERS, NULL, &made, &said);
    check((made != NULL) == (code == HL_OK));
    if (code == HL_OK)
        code = hl_lock_acquire_with(
            made, &(hl_acquire_options){.size = sizeof(hl_acquire_options), .owner = owner}, &said);
    free_lock(made);
}

Test(multi_memory, is_short_and_all_members_are_held_or_none, .init = memory_up_tcp,
     .fini = memory_down)
{
    check(sweep(acquire, false) >= 5);
    check(sweep(acquire_async, false) >= 5);
    check(sweep(make, false) >= 5);
}

/* Wherever it is short: of the loop's, the watchdog's and the callbacks' allocations too. */
static void verify_somehow(void *arg, bool failed)
{
    (void)arg, (void)failed;
    for (int i = 0; i < MEMBERS;
         i++) /* the call has had its failure, and may have changed nothing */
        if (hl_lock_is_held(member[i], owner))
            kit_release(member[i], owner);
    check(redis_wait_int(server, 0, 5000, "EXISTS member:0 member:1 member:2"));
    check(!hl_lock_is_held(multi, owner));
    kit_try_out(client, "afterwards");
    finish();
}

static long sweep_everywhere(void (*run)(void *), bool is_held)
{
    return failing_malloc_sweep(
        &(struct failing_scenario){.scope = FAILING_PROCESS,
                                   .prepare = is_held ? prepare_held : prepare,
                                   .run = run,
                                   .verify = verify_somehow});
}

Test(multi_memory, is_short_anywhere_and_nothing_is_left, .init = memory_up_tcp,
     .fini = memory_down)
{
    check(sweep_everywhere(acquire, false) >= 5);
    check(sweep_everywhere(acquire_async, false) >= 5);
    code = HL_OK;
    check(sweep_everywhere(release, true) >= 3);
    check(sweep_everywhere(release_async, true) >= 3);
    check(sweep_everywhere(release_each_async, true) >= 4);
}

Test(multi_memory, is_short_and_a_release_is_made_or_can_be_made_again, .init = memory_up_tcp,
     .fini = memory_down)
{
    check(sweep(release, true) >= 3);
    check(sweep(release_async, true) >= 3);
    check(sweep(release_each_async, true) >= 4);
}

static void inspect(void *arg)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    (void)arg;
    code = hl_lock_inspect(multi, &info, &said);
}

static void inspected(int result, const hl_lock_info *info, const hl_error *error, void *arg)
{
    (void)info;
    completed(result, error, arg);
}

static void inspect_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_inspect_async(multi, inspected, NULL));
}

static void force_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_force_release_async(multi, completed, NULL));
    if (code == HL_ENOENT)
        code = HL_OK; /* it was free */
}

static void verify_asked(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && (code == HL_ENOMEM || code == HL_EINDOUBT)), "%s: %s",
              hl_err_name(code), said.text);
    finish();
}

static long sweep_asking(void (*run)(void *))
{
    return failing_malloc_sweep(&(struct failing_scenario){
        .scope = FAILING_THREAD, .prepare = prepare, .run = run, .verify = verify_asked});
}

Test(multi_memory, is_short_and_questions_are_answered_or_fail, .init = memory_up_tcp,
     .fini = memory_down)
{
    check(sweep_asking(inspect) >= 2);
    check(sweep_asking(inspect_async) >= 2);
    check(sweep_asking(force_async) >= 2);
}
