/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The calls of a Redlock on three masters, with each allocation failing once: each ends with a code
 * that its header names, it is held or not, and the next call works.
 */
#include "memory_kit.h"
#include "support/masters.h"

enum { MASTERS = 3 };

static hl_client **clients;
static hl_lock *lock;
static hl_owner *owner;
static hl_error said;
static int code;

static void memory_masters_up(void)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    masters_up_with(MASTERS, NULL);
}

static const hl_redlock_options *options(const char *name)
{
    static hl_redlock_options made = HL_REDLOCK_OPTIONS_INIT;
    made.name = name;
    made.flags = HL_REDLOCK_NO_RESTART_DELAY;
    made.vote_timeout_ms = slow_ms(500);
    return &made;
}

static void prepare(void *arg)
{
    hl_client_options short_times = kit_options(slow_ms(30000), NULL);
    (void)arg;
    clients = open_masters(&short_times);
    expect_ok(hl_redlock_new_with(clients, MASTERS, options("stock"), &lock, ERR));
    expect_ok(hl_owner_new(clients[0], &owner));
    said = (hl_error)HL_ERROR_INIT;
    atomic_store(&completions, 0);
}

static void prepare_held(void *arg)
{
    hl_acquire_options held = HL_ACQUIRE_OPTIONS_INIT;
    prepare(arg);
    held.owner = owner;
    expect_ok(hl_lock_acquire_with(lock, &held, ERR));
    wait_stat(clients[0], votes, MASTERS);
}

static void finish(void)
{
    hl_lock_free(lock);
    hl_owner_free(owner);
    for (int i = 0; i < MASTERS; i++)
        close_client(clients[i]);
    kit_expect_no_threads();
    for (int i = 0; i < MASTERS; i++)
        redis_do(masters.server[i], "FLUSHALL");
}

static void release_if_held(void)
{
    if (hl_lock_is_held(lock, owner))
        kit_release(lock, owner);
}

static void try_out(void)
{
    hl_acquire_options again = HL_ACQUIRE_OPTIONS_INIT;
    again.owner = owner;
    again.wait_ms = slow_ms(20000);
    expect_ok(hl_lock_acquire_with(lock, &again, ERR));
    check(hl_lock_is_held(lock, owner));
    kit_release(lock, owner);
    expect_masters_with("stock", 0);
}

static void verify_acquired(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && code == HL_ENOMEM), "%s: %s", hl_err_name(code),
              said.text);
    check_int(hl_lock_is_held(lock, owner), code == HL_OK);
    release_if_held();
    expect_masters_with("stock", 0);
    check_int(stats_of(clients[0]).holds_now, 0);
    check_int(stats_of(clients[0]).waiters_now, 0);
    finish();
}

static void verify_somehow(void *arg, bool failed)
{
    (void)arg, (void)failed;
    release_if_held();
    try_out();
    finish();
}

static long sweep(enum failing_scope scope, void (*run)(void *), bool is_held)
{
    return sweep_without_leaks(&(struct failing_scenario){
        .scope = scope,
        .prepare = is_held ? prepare_held : prepare,
        .run = run,
        .verify = is_held || scope == FAILING_PROCESS ? verify_somehow : verify_acquired});
}

static void acquire(void *arg)
{
    hl_acquire_options waiting = HL_ACQUIRE_OPTIONS_INIT;
    (void)arg;
    waiting.owner = owner;
    waiting.wait_ms = slow_ms(5000);
    code = hl_lock_acquire_with(lock, &waiting, &said);
}

static void acquire_async(void *arg)
{
    hl_acquire_options waiting = HL_ACQUIRE_OPTIONS_INIT;
    (void)arg;
    waiting.owner = owner;
    waiting.wait_ms = slow_ms(5000);
    code = await_completion(hl_lock_acquire_async(lock, &waiting, completed, NULL));
}

static void make(void *arg)
{
    hl_lock *made = NULL;
    hl_acquire_options waiting = HL_ACQUIRE_OPTIONS_INIT;
    (void)arg;
    waiting.owner = owner;
    code = hl_redlock_new_with(clients, MASTERS, options("another"), &made, &said);
    check((made != NULL) == (code == HL_OK));
    if (code == HL_OK)
        code = hl_lock_acquire_with(made, &waiting, &said);
    if (code == HL_OK)
        while (hl_lock_release_as(made, owner, NULL) == HL_ENOMEM)
            continue; /* still held */
    hl_lock_free(made);
    code = code == HL_OK ? HL_ENOMEM : code; /* `lock` is not held */
}

static void release(void *arg)
{
    (void)arg;
    code = hl_lock_release_as(lock, owner, &said);
}

static void release_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_release_async(lock, owner, completed, NULL));
}

static void inspected(int result, const hl_lock_info *info, const hl_error *error, void *arg)
{
    (void)info;
    completed(result, error, arg);
}

static void inspect_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_inspect_async(lock, inspected, NULL));
}

#define MemoryLaw(name) Test(redlock_memory, name, .init = memory_masters_up, .fini = server_down)

MemoryLaw(is_short_and_the_lock_is_held_or_not)
{
    check(sweep(FAILING_THREAD, acquire, false) >= 5);
    check(sweep(FAILING_THREAD, acquire_async, false) >= 5);
}

static void verify_made(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_ENOMEM, "%s: %s, %d", hl_err_name(code), said.text, failed);
    try_out();
    finish();
}

MemoryLaw(is_short_while_a_handle_is_made)
{
    check(sweep_without_leaks(&(struct failing_scenario){
              .scope = FAILING_THREAD, .prepare = prepare, .run = make, .verify = verify_made}) >=
          10);
}

MemoryLaw(is_short_anywhere_and_nothing_is_left)
{
    check(sweep(FAILING_PROCESS, acquire, false) >= 5);
    check(sweep(FAILING_PROCESS, acquire_async, false) >= 5);
}

MemoryLaw(is_short_and_a_release_is_made_or_can_be_made_again)
{
    check(sweep(FAILING_PROCESS, release, true) >= 3);
    check(sweep(FAILING_PROCESS, release_async, true) >= 3);
    check(sweep(FAILING_PROCESS, inspect_async, true) >= 2);
}
