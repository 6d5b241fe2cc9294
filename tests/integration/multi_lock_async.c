/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock without blocking, its owners, and what happens to it when the link breaks. */

#include "lease/state/name.h"
#include "multi_kit.h"
#include "support/actor.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"
#include "two_links.h"

#include <hirelock/multi_lock.h>

static struct recorder told = RECORDER_INIT, events = RECORDER_INIT;
static struct two_links links;
static hl_client *client;
static hl_lock *multi;
static hl_owner *mine, *others;

static void begin(const char *names)
{
    client = open_client(CLIENT(.poll_ms = 30000));
    multi = new_multi(client, names);
    mine = new_owner(client);
    others = new_owner(client);
}

/* The same behind a proxy. The server knows the scripts. */
static void begin_behind_proxy_with(const char *names, const hl_client_options *options)
{
    two_links_open(&links, options);
    client = links.client;
    multi = new_multi(client, names);
    mine = new_owner(client);
    others = new_owner(client);
    expect_ok(hl_lock_acquire(multi, NULL));
    expect_ok(hl_lock_release(multi, NULL));
}

static void begin_behind_proxy(const char *names)
{
    begin_behind_proxy_with(names, CLIENT(.poll_ms = 100, .request_timeout_ms = slow_ms(1000),
                                          .backoff_min_ms = 5, .backoff_max_ms = 20,
                                          .on_event = record_event, .arg = &events));
}

/* A client whose answers may be kept for long, and whose messages come all the same. */
static void begin_patiently(const char *names, int64_t watchdog_ms)
{
    begin_behind_proxy_with(names, CLIENT(.poll_ms = 30000, .request_timeout_ms = slow_ms(10000),
                                          .watchdog_timeout_ms = watchdog_ms,
                                          .on_event = record_event, .arg = &events));
}

static void acquire_async(const hl_acquire_options *options)
{
    expect_ok(hl_lock_acquire_async(multi, options, record_done, &told));
}

TcpLaw(multi_async, acquires_and_releases_and_is_told_once)
{
    begin("a b");
    acquire_async(ACQUIRE(.owner = mine));
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(multi, mine));
    check(!hl_lock_is_held(multi, others));
    expect_all_held_by(client, "a b");
    expect_ok(hl_multi_lock_release_each_async(multi, mine, record_codes, &told));
    expect_story(&told, "done HL_OK, codes HL_OK HL_OK");
    expect_nothing_left();
    expect_ok(hl_lock_release_async(multi, mine, record_done, &told));
    expect_story(&told, "done HL_OK, codes HL_OK HL_OK, done HL_ENOTOWNER");
}

TcpLaw(multi_async, ends_with_the_codes_of_its_twins)
{
    begin("a b");
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine));
    check(recorder_wait(&told, 1));
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = 50));
    check(recorder_wait(&told, 2));
    stranger_leaves("b");
    acquire_async(ACQUIRE(.owner = mine));
    check(recorder_wait(&told, 3));
    redis_do(server, "DEL b");
    expect_ok(hl_multi_lock_release_each_async(multi, mine, record_codes, &told));
    expect_story(&told, "done HL_EBUSY, done HL_ETIMEDOUT, done HL_OK, codes HL_OK HL_ELOST");
    check_int(recorder_entry(&told, 3).code, HL_ELOST);
    expect_all_free("a b");
}

TcpLaw(multi_async, inspects_and_forces_too)
{
    begin("a b");
    expect_ok(hl_lock_inspect_async(multi, record_info, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
    expect_ok(hl_lock_inspect_async(multi, record_info, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_lock_force_release_async(multi, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_lock_force_release_async(multi, record_done, &told));
    check(recorder_wait(&told, 4));
    stranger_takes("b", 60000);
    expect_ok(hl_lock_inspect_async(multi, record_info, &told));
    expect_story(&told, "info 0, info locked mine 1, done HL_OK, done HL_ENOENT, info locked 1");
}

TcpLaw(multi_async, refuses_what_the_lock_does)
{
    begin("a b");
    expect_outcome(hl_lock_acquire_async(multi, ACQUIRE(.wait_ms = 0), record_done, &told),
                   HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(multi, ACQUIRE(.owner = mine), NULL, &told), HL_EINVAL);
    expect_outcome(hl_lock_release_async(multi, NULL, record_done, &told), HL_EINVAL);
    expect_outcome(hl_multi_lock_release_each_async(multi, mine, NULL, NULL), HL_EINVAL);
    expect_outcome(
        hl_multi_lock_release_each_async(new_lock(client, "a"), mine, record_codes, &told),
        HL_EINVAL);
    close_client(client);
    expect_outcome(hl_lock_acquire_async(multi, ACQUIRE(.owner = mine), record_done, &told),
                   HL_ECLOSED);
    expect_outcome(hl_multi_lock_release_each_async(multi, mine, record_codes, &told), HL_ECLOSED);
    check_int(recorder_count(&told), 0);
}

TcpLaw(multi_async, blocks_neither_the_loop_nor_the_callbacks_while_it_waits)
{
    begin("a b");
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{b}"));
    expect_ok(hl_client_ping(client, 5000, NULL));
    hl_lock *c = new_lock(client, "c");
    expect_ok(hl_lock_acquire_async(c, ACQUIRE(.owner = others), record_done, &told));
    expect_story(&told, "done HL_OK");
    stranger_leaves("b");
    expect_story(&told, "done HL_OK, done HL_OK");
    check(hl_lock_is_held(multi, mine));
}

TcpLaw(multi_async, may_be_cancelled_with_its_handles_gone)
{
    begin("a b c");
    hl_cancel *cancel = new_cancel();
    stranger_takes("b", 60000);
    hl_lock *both = NULL, *members[] = {new_lock(client, "a"), new_lock(client, "b")};
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    expect_ok(hl_lock_acquire_async(both, ACQUIRE(.owner = mine, .wait_ms = -1, .cancel = cancel),
                                    record_done, &told));
    hl_lock_free(both);
    free_lock(members[0]);
    free_lock(members[1]);
    free_owner(mine);
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{b}"));
    expect_all_held_by(client, "a");
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    expect_all_free("a");
    check(redis_wait_int(server, 0, 5000, "EXISTS hirelock_queue:{b}"));
}

TcpLaw(multi_async, ends_with_the_client)
{
    begin("a b");
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{b}"));
    close_client(client);
    expect_story(&told, "done HL_ECANCELED");
    expect_all_free("a");
}

TcpLaw(multi_owners, exclude_each_other_in_one_thread)
{
    begin("a b");
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
    expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.owner = others), NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EBUSY);
    expect_outcome(hl_lock_release_as(multi, others, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
    check_int(hl_lock_hold_count(multi, mine), 2);
    expect_ok(hl_lock_release_as(multi, mine, NULL));
    expect_ok(hl_lock_release_as(multi, mine, NULL));
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = others), NULL));
    expect_ok(hl_lock_release_as(multi, others, NULL));
    expect_nothing_left();
}

TcpLaw(multi_owners, have_one_call_under_way_at_a_time)
{
    begin("a b");
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{b}"));
    expect_outcome(hl_lock_acquire_with(new_lock(client, "b"), ACQUIRE(.owner = mine), NULL),
                   HL_EINVAL);
    stranger_leaves("b");
    expect_story(&told, "done HL_OK");
}

/* The request has run, and its answer is lost with the link: what was asked for is asked again with
 * the same fields, or given back before others ask. */
TcpLaw(multi_link, that_breaks_before_the_answer_is_asked_again)
{
    begin_behind_proxy("a b c");
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    check(redis_wait_int(server, 3, 5000, "EXISTS a b c"));
    proxy_kill(links.proxy, links.commands);
    proxy_pass(links.proxy);
    expect_story(&told, "done HL_OK");
    expect_all_held_by(client, "a b c");
    expect_ok(hl_lock_release_as(multi, mine, NULL));
    expect_nothing_left();
}

TcpLaw(multi_link, that_breaks_before_the_answer_leaves_nothing_of_a_call_that_is_cancelled)
{
    begin_behind_proxy("a b c");
    hl_cancel *cancel = new_cancel();
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1, .cancel = cancel));
    check(redis_wait_int(server, 3, 5000, "EXISTS a b c"));
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    proxy_pass(links.proxy);
    expect_nothing_left();
}

/* The call waits its turn at a, and no answer comes for b: what is over is its wait, and no fault.
 */
TcpLaw(multi_link, that_does_not_answer_a_member_in_time_is_no_fault)
{
    struct actor *actor = actor_start();
    begin_patiently("a b", 60000);
    hl_lock *a = new_lock(open_client(NULL), "a");
    expect_ok(hl_lock_acquire(a, NULL));
    actor_begin_acquire(actor, multi, ACQUIRE(.wait_ms = slow_ms(3000)));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{a}"));
    expect_ok(hl_client_ping(client, 5000, NULL)); /* what it was told of a has come */
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    expect_ok(hl_lock_release(a, NULL));
    expect_outcome(actor_end(actor), HL_ETIMEDOUT);
    check_str(actor_error(actor), "acquire 'b': the wait time is over; no answer came by then");
    check(!actor_busy(actor)->locked && actor_busy(actor)->owner[0] == '\0');
    proxy_pass(links.proxy);
    expect_nothing_left();
}

TcpLaw(multi_link, that_brings_a_late_answer_gives_the_members_back)
{
    begin_patiently("a b c", 60000);
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = slow_ms(3000)));
    check(redis_wait_int(server, 3, 5000, "EXISTS a b c"));
    expect_story(&told, "done HL_ETIMEDOUT");
    proxy_pass(links.proxy);
    expect_nothing_left();
    check(!hl_lock_is_held(multi, mine));
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
}

TcpLaw(multi_link, that_breaks_while_a_member_is_waited_for_keeps_the_held_members)
{
    begin_behind_proxy("a b c");
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{b}"));
    proxy_kill_all(links.proxy);
    check(recorder_wait_says(&events, "DISCONNECTED, CONNECTED"));
    check(!recorder_says(&told, "done"));
    expect_all_held_by(client, "a");
    stranger_leaves("b");
    expect_story(&told, "done HL_OK");
    expect_all_held_by(client, "a b c");
}

TcpLaw(multi_link, that_breaks_under_a_release_has_it_repeated)
{
    begin_behind_proxy("a b c");
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    expect_ok(hl_multi_lock_release_each_async(multi, mine, record_codes, &told));
    check(redis_wait_int(server, 0, 5000, "EXISTS a b c"));
    proxy_kill(links.proxy, links.commands);
    proxy_pass(links.proxy);
    expect_story(&told, "codes HL_EINDOUBT HL_EINDOUBT HL_EINDOUBT"); /* the copy finds nothing */
    expect_nothing_left();
}

TcpLaw(multi_link, that_brings_no_answer_to_a_release_leaves_each_member_in_doubt)
{
    begin_behind_proxy("a b c");
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = mine), NULL));
    proxy_hold(links.proxy, PROXY_EVERY, PROXY_DOWN);
    proxy_refuse(links.proxy, true);
    expect_ok(hl_multi_lock_release_each_async(multi, mine, record_codes, &told));
    expect_story(&told, "codes HL_EINDOUBT HL_EINDOUBT HL_EINDOUBT");
    check(!hl_lock_is_held(multi, mine));
    proxy_pass(links.proxy);
    expect_nothing_left();
}

TcpLaw(multi_scripts, are_loaded_when_the_server_has_forgotten_them)
{
    begin("a b c");
    for (int i = 0; i < 3; i++) {
        redis_do(server, "SCRIPT FLUSH");
        expect_ok(hl_lock_acquire(multi, NULL));
        expect_all_held_by(client, "a b c");
        redis_do(server, "SCRIPT FLUSH");
        expect_ok(hl_lock_release(multi, NULL));
        expect_nothing_left();
    }
}

static void expect_waiting_for(const char *name)
{
    char channel[64];
    snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
    check(redis_wait_subscribers(server, channel, 1, 5000));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{%s}", name));
}

static bool is_renewing(void *one)
{
    struct hli_name *name = ((hl_lock *)one)->handle.name;
    pthread_mutex_lock(&name->mutex);
    bool is = name->current && name->current->is_renewing;
    pthread_mutex_unlock(&name->mutex);
    return is;
}

/* While it waits, what it has is renewed by a lease of the watchdog's; the answer to that comes
 * when it has all, and wants a longer one. */
TcpLaw(multi_async, gives_the_lease_time_to_all_behind_an_older_renewal)
{
    const int64_t lease_ms = slow_ms(9000);
    int64_t left_ms = 0;
    begin_patiently("a b", slow_ms(3000));
    hl_lock *b = new_lock(open_client(CLIENT(.poll_ms = 30000)), "b");
    expect_ok(hl_lock_acquire(b, NULL));
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1, .lease_ms = lease_ms));
    expect_waiting_for("b");
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    check(wait_until(is_renewing, new_lock(client, "a"), 10000));
    expect_ok(hl_lock_release(b, NULL));
    expect_story(&told, "done HL_OK");
    int64_t began_ms = now_ms();
    proxy_release(links.proxy, links.commands, PROXY_DOWN);
    struct deadline deadline = deadline_in(lease_ms / 2);
    do
        left_ms = hl_lock_validity_ms(multi, mine);
    while (left_ms + now_ms() - began_ms < lease_ms * 5 / 6 && !deadline_is_over(deadline));
    check_msg(left_ms + now_ms() - began_ms >= lease_ms * 5 / 6, "%d ms are left after %d",
              (int)left_ms, (int)(now_ms() - began_ms));
    expect_ok(hl_lock_release_as(multi, mine, NULL));
}

static bool holds_nothing(void *arg)
{
    (void)arg;
    return stats_of(client).holds_now == 0;
}

TcpLaw(multi_async, warns_of_no_member_before_it_has_all)
{
    begin_patiently("a b", slow_ms(2000));
    stranger_takes("b", 60000);
    acquire_async(ACQUIRE(.owner = mine, .wait_ms = -1));
    expect_waiting_for("b");
    proxy_hold(links.proxy, links.commands, PROXY_DOWN); /* no renewal is heard of */
    check(wait_until(holds_nothing, NULL, 10000));
    proxy_release(links.proxy, links.commands, PROXY_DOWN);
    stranger_leaves("b");
    expect_story(&told, "done HL_OK");
    expect_story(&events, "");
    expect_ok(hl_lock_release_as(multi, mine, NULL));
}
