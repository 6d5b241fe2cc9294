/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Memory runs short in a multi-lock over two servers. All members are held or none, at both; a
 * release that fails leaves its hold, which can be released again; nothing is left, and all works
 * afterwards.
 */
#include <hirelock/multi_lock.h>

#include "memory_kit.h"

enum { SERVERS = 2, MEMBERS = 4 };

static struct redis_server *host[SERVERS]; /* the first is `server` */
static hl_client *client[SERVERS];
static hl_lock *member[MEMBERS], *multi; /* in the order of their names they take turns */
static hl_owner *owner;
static hl_error said;
static int code;
static bool is_contended; /* the last member is busy for some moments */

static void both_up(void)
{
    memory_up_tcp();
    host[0] = server;
    host[1] = redis_server_start(&(struct redis_options){.tcp = true});
}

static void both_down(void)
{
    redis_server_stop(host[1]);
    memory_down();
}

static int members_held(void)
{
    int held = 0;
    for (int i = 0; i < MEMBERS; i++)
        held += (int)redis_int(host[i % SERVERS], "EXISTS member:%d", i);
    return held;
}

static bool none_is_held(void *arg)
{
    (void)arg;
    return members_held() == 0;
}

static void prepare(void *arg)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    (void)arg;
    for (int i = 0; i < SERVERS; i++)
        client[i] = open_client_at(redis_server_url(host[i]), &options);
    for (int i = 0; i < MEMBERS; i++)
        member[i] = kit_lock_number(client[i % SERVERS], "member", i);
    expect_ok(hl_multi_lock_new(member, MEMBERS, NULL, &multi, NULL));
    expect_ok(hl_owner_new(client[1], &owner));
    if (is_contended) {
        redis_do(host[1], "HSET member:3 0a1b2c3d-0000-4000-8000-1234567890ab:71 1");
        redis_do(host[1], "PEXPIRE member:3 30");
    }
    said = (hl_error)HL_ERROR_INIT;
    atomic_store(&completions, 0);
}

static void prepare_held(void *arg)
{
    prepare(arg);
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner), ERR));
}

static void finish(void)
{
    free_lock(multi);
    for (int i = 0; i < MEMBERS; i++)
        free_lock(member[i]);
    free_owner(owner);
    for (int i = 0; i < SERVERS; i++)
        close_client(client[i]);
    kit_expect_no_threads();
    for (int i = 0; i < SERVERS; i++)
        redis_do(host[i], "FLUSHALL");
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
    check(wait_until(none_is_held, NULL, 5000));
    for (int i = 0; i < SERVERS; i++) {
        check_int(stats_of(client[i]).holds_now, 0);
        check_int(stats_of(client[i]).waiters_now, 0);
    }
    finish();
}

static void release_what_is_held(void)
{
    for (int i = 0; i < MEMBERS; i++)
        if (hl_lock_is_held(member[i], owner)) { /* the owner is not that of each client */
            hl_lock *alone = NULL;
            hl_lock *both[] = {member[i], member[1]};
            expect_ok(hl_multi_lock_new(both, 2, NULL, &alone, NULL));
            hl_lock_release_as(alone, owner, NULL);
            free_lock(alone);
        }
}

static void verify_released(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && (code == HL_ENOMEM || code == HL_EINDOUBT)), "%s: %s",
              hl_err_name(code), said.text);
    release_what_is_held();
    check(wait_until(none_is_held, NULL, 5000));
    finish();
}

/* The failure may have been any thread's; the call itself may have succeeded. */
static void verify_somehow(void *arg, bool failed)
{
    (void)arg, (void)failed;
    release_what_is_held();
    check(wait_until(none_is_held, NULL, 5000));
    check(!hl_lock_is_held(multi, owner));
    for (int i = 0; i < SERVERS; i++)
        check_int(stats_of(client[i]).waiters_now, 0);
    finish();
}

static long sweep(int scope, void (*run)(void *), bool is_held)
{
    void (*verify)(void *, bool) = scope == FAILING_PROCESS ? verify_somehow
                                   : is_held                ? verify_released
                                                            : verify_acquired;
    return failing_malloc_sweep(&(struct failing_scenario){
        .scope = scope, .prepare = is_held ? prepare_held : prepare, .run = run, .verify = verify});
}

static void acquire(void *arg)
{
    (void)arg;
    code = hl_lock_acquire_with(multi, ACQUIRE(.owner = owner, .wait_ms = slow_ms(5000)), &said);
}

static void acquire_async(void *arg)
{
    (void)arg;
    code = await_completion(hl_lock_acquire_async(
        multi, ACQUIRE(.owner = owner, .wait_ms = slow_ms(5000)), completed, NULL));
}

static void make(void *arg)
{
    hl_lock *made = NULL;
    (void)arg;
    code = hl_multi_lock_new(member, MEMBERS, NULL, &made, &said);
    check((made != NULL) == (code == HL_OK));
    free_lock(made);
    if (code == HL_OK)
        acquire(arg);
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

static void verify_asked(void *arg, bool failed)
{
    (void)arg;
    check_msg(code == HL_OK || (failed && code == HL_ENOMEM), "%s", hl_err_name(code));
    finish();
}

Test(multi_servers_memory, is_short_and_all_members_are_held_or_none, .init = both_up,
     .fini = both_down)
{
    check(sweep(FAILING_THREAD, acquire, false) >= 5);
    check(sweep(FAILING_THREAD, acquire_async, false) >= 5);
    check(sweep(FAILING_THREAD, make, false) >= 5);
}

Test(multi_servers_memory, is_short_and_a_busy_member_is_waited_for, .init = both_up,
     .fini = both_down)
{
    is_contended = true;
    check(sweep(FAILING_THREAD, acquire, false) >= 5);
    check(sweep(FAILING_PROCESS, acquire, false) >= 5);
    check(sweep(FAILING_PROCESS, acquire_async, false) >= 5);
}

Test(multi_servers_memory, is_short_anywhere_and_nothing_is_left, .init = both_up,
     .fini = both_down)
{
    check(sweep(FAILING_PROCESS, acquire, false) >= 5);
    check(sweep(FAILING_PROCESS, acquire_async, false) >= 5);
    check(sweep(FAILING_PROCESS, release, true) >= 3);
    check(sweep(FAILING_PROCESS, release_async, true) >= 3);
}

Test(multi_servers_memory, is_short_and_a_release_is_made_or_can_be_made_again, .init = both_up,
     .fini = both_down)
{
    check(sweep(FAILING_THREAD, release, true) >= 3);
    check(sweep(FAILING_THREAD, release_async, true) >= 3);
    check(failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_THREAD,
                                                          .prepare = prepare,
                                                          .run = inspect_async,
                                                          .verify = verify_asked}) >= 2);
}
