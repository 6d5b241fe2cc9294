/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * How multi-locks over several servers end before their time: a wait is over or cancelled, a server
 * is out of reach, a client is closed, a thread ends. Nothing is left at any server.
 */

#include "multi_servers_kit.h"
#include "support/actor.h"
#include "support/events.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/recorder.h"

#include <pthread.h>

static struct recorder told = RECORDER_INIT, events = RECORDER_INIT;
static hl_lock *multi;

/* It has a1, and waits for b2; c3 is free. */
static struct actor *begin_waiting(void)
{
    multi = new_multi_at("a1 b2 c3");
    stranger_takes_at("b2");
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1));
    expect_queue_at("b2", 1);
    expect_keys_at("a1", 1);
    return waiter;
}

static void expect_only_the_stranger(void)
{
    expect_queue_at("b2", 0);
    expect_keys_at("a1 c3", 0);
    stranger_leaves_at("b2");
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers_end, when_the_wait_time_is_over)
{
    sites_open(CLIENT(.poll_ms = 30000));
    multi = new_multi_at("a1 b2 c3");
    stranger_takes_at("b2");
    struct actor *actor = actor_start_acquire(multi, ACQUIRE(.wait_ms = slow_ms(3000)));
    expect_queue_at("b2", 1);
    expect_outcome(actor_end(actor), HL_ETIMEDOUT);
    check_has(actor_error(actor), "acquire 'b': the wait time is over");
    expect_only_the_stranger();
}

SingleLaw(multi_servers_end, when_the_call_is_cancelled)
{
    sites_open(CLIENT(.poll_ms = 30000));
    multi = new_multi_at("a1 b2 c3");
    hl_cancel *cancel = new_cancel();
    stranger_takes_at("b2");
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_queue_at("b2", 1);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    check_str(actor_error(waiter), "acquire 'b': cancelled");
    expect_only_the_stranger();
}

/* The first client, which leads the call; that of the busy member; and one that is not asked yet.
 */
static void close_while_it_waits(int number)
{
    sites_open(CLIENT(.poll_ms = 30000));
    struct actor *waiter = begin_waiting();
    close_client(site[number].client);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    check_str(actor_error(waiter), "acquire 'b': the client is closed");
    expect_only_the_stranger();
    expect_outcome(hl_lock_acquire(multi, ERR), HL_ECLOSED);
    expect_outcome(hl_lock_inspect(multi, &(hl_lock_info)HL_LOCK_INFO_INIT, ERR), HL_ECLOSED);
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers_end, when_the_first_client_is_closed)
{
    close_while_it_waits(1);
}

SingleLaw(multi_servers_end, when_the_client_of_the_busy_member_is_closed)
{
    close_while_it_waits(2);
}

SingleLaw(multi_servers_end, when_a_client_is_closed_whose_member_is_not_asked_yet)
{
    close_while_it_waits(3);
}

static void close_while_it_waits_async(int number)
{
    sites_open(CLIENT(.poll_ms = 30000));
    multi = new_multi_at("a1 b2 c3");
    stranger_takes_at("b2");
    hl_owner *owner = new_owner(site[3].client);
    expect_ok(
        hl_lock_acquire_async(multi, ACQUIRE(.owner = owner, .wait_ms = -1), record_done, &told));
    expect_queue_at("b2", 1);
    close_client(site[number].client);
    expect_story(&told, "done HL_ECANCELED");
    expect_only_the_stranger();
}

SingleLaw(multi_servers_end, async_when_the_first_client_is_closed)
{
    close_while_it_waits_async(1);
}

SingleLaw(multi_servers_end, async_when_the_client_of_the_busy_member_is_closed)
{
    close_while_it_waits_async(2);
}

SingleLaw(multi_servers_end, async_when_a_client_is_closed_whose_member_is_not_asked_yet)
{
    close_while_it_waits_async(3);
}

/* All is acquired, and the program was not told yet. */
SingleLaw(multi_servers_end, async_when_a_client_is_closed_before_the_completion_runs)
{
    site_open(1, CLIENT(.flags = HL_CLIENT_DISPATCH));
    site_open(2, NULL);
    hl_client *clients[] = {NULL, site[1].client, site[2].client};
    multi = new_multi_of_clients(clients, "a1 b2");
    hl_owner *owner = new_owner(site[1].client);
    expect_ok(
        hl_lock_acquire_async(multi, ACQUIRE(.owner = owner, .wait_ms = -1), record_done, &told));
    expect_keys_at("a1 b2", 1);
    expect_waiters(site[2].client, 0);
    close_client(site[2].client);
    struct deadline deadline = deadline_of_wait(5000);
    while (hl_client_dispatch(site[1].client) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    expect_story(&told, "done HL_ECANCELED");
    expect_nothing_left_at_all();
    check(!hl_lock_is_held(multi, owner));
}

/* The other members stay, and can be released: also when the call's own client is the closed one.
 */
static void close_while_it_is_held(int number)
{
    int codes[3], others = number == 1 ? 3 : 1;
    for (int i = 1; i <= SITES; i++)
        site_open(i, CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE, .on_event = record_event,
                            .arg = &events));
    multi = new_multi_at("a1 b2 c3");
    expect_ok(hl_lock_acquire(multi, ERR));
    close_client(site[number].client);
    check(!hl_lock_is_held(multi, NULL));
    expect_keys_at(number == 1 ? "b2 c3" : "a1 c3", 1);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_multi_lock_release_each(multi, NULL, codes, &err), HL_ECLOSED);
    check_int(codes[number - 1], HL_ECLOSED);
    check_int(codes[others - 1], HL_OK);
    check_has(err.text, number == 1 ? "release 'a': " : "release 'b': ");
    expect_nothing_left_at_all();
    for (int i = 1; i <= SITES; i++)
        if (i != number)
            close_client(site[i].client);
    expect_outcome(hl_lock_release(multi, ERR), HL_ECLOSED);
}

SingleLaw(multi_servers_end, held_when_the_first_client_is_closed)
{
    close_while_it_is_held(1);
}

SingleLaw(multi_servers_end, held_when_another_client_is_closed)
{
    close_while_it_is_held(2);
}

/* The second server does not answer: its request in flight would be waited for. */
SingleLaw(multi_servers_end, releasing_when_the_first_client_is_closed)
{
    site_open(1, NULL);
    site[2].server = redis_server_start(&(struct redis_options){.tcp = true});
    struct proxy *proxy = proxy_start_before(site[2].server);
    site[2].client = open_client_at(proxy_url(proxy), CLIENT(.request_timeout_ms = 60000));
    hl_client *clients[] = {NULL, site[1].client, site[2].client};
    multi = new_multi_of_clients(clients, "a1 b2");
    hl_owner *owner = new_owner(site[2].client);
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner), ERR)); /* loads the scripts */
    expect_ok(hl_lock_release_as(multi, owner, ERR));
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner), ERR));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_multi_lock_release_each_async(multi, owner, record_codes, &told));
    expect_keys_at("a1 b2", 0);
    close_client(site[1].client);
    check(recorder_wait(&told, 1));
    check_has(told.text, "HL_EINDOUBT");
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    close_client(site[2].client);
    proxy_stop(proxy);
    redis_server_stop(site[2].server);
    site[2].server = NULL;
}

/* The outage timeout is that of the member's own client. */
SingleLaw(multi_servers_end, when_the_server_of_the_awaited_member_is_killed)
{
    site_open(1, CLIENT(.poll_ms = 100));
    site_open(2, CLIENT(.poll_ms = 100, .outage_timeout_ms = slow_ms(1500)));
    site_open(3, CLIENT(.poll_ms = 100));
    struct actor *waiter = begin_waiting();
    redis_server_kill(site[2].server);
    expect_outcome(actor_end(waiter), HL_ECONN);
    check_has(actor_error(waiter), "acquire 'b': ");
    expect_keys_at("a1 c3", 0);
}

static bool holds_nothing(void *client)
{
    return stats_of(client).holds_now == 0;
}

/* a is lost while the call waits for b: then the call begins anew, and waits for a. */
SingleLaw(multi_servers_end, anew_when_a_member_is_lost_while_the_call_waits)
{
    sites_open(CLIENT(.poll_ms = 100));
    struct actor *waiter = begin_waiting();
    expect_ok(hl_lock_force_release(new_lock(site[1].client, "a"), ERR));
    stranger_takes_at("a1");
    check(wait_until(holds_nothing, site[1].client, 5000));
    stranger_leaves_at("b2");
    check(redis_wait_int(site[1].server, 1, 60000, "ZCARD hirelock_queue:{a}"));
    expect_keys_at("b2 c3", 0);
    stranger_leaves_at("a1");
    expect_ok(actor_end(waiter));
    expect_keys_at("a1 b2 c3", 1);
    expect_ok(actor_release(waiter, multi, NULL));
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers_end, held_when_a_server_is_killed)
{
    for (int i = 1; i <= SITES; i++)
        site_open(
            i, CLIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = record_event, .arg = &events));
    int codes[3];
    multi = new_multi_at("a1 b2 c3");
    expect_ok(hl_lock_acquire(multi, ERR));
    redis_server_kill(site[2].server);
    check(recorder_wait_says(&events, "LOST expired"));
    check(!hl_lock_is_held(multi, NULL));
    expect_keys_at("a1 c3", 1);
    expect_outcome(hl_multi_lock_release_each(multi, NULL, codes, ERR), HL_ELOST);
    check_int(codes[0], HL_OK);
    check_int(codes[1], HL_ELOST);
    check_int(codes[2], HL_OK);
    expect_keys_at("a1 c3", 0);
}

static void *acquire_and_end(void *arg)
{
    expect_ok(hl_lock_acquire(arg, NULL));
    return NULL;
}

SingleLaw(multi_servers_end, when_the_thread_that_holds_ends)
{
    pthread_t thread;
    for (int i = 1; i <= SITES; i++)
        site_open(i, CLIENT(.flags = HL_CLIENT_RELEASE_ON_THREAD_EXIT, .on_event = record_event,
                            .arg = &events));
    multi = new_multi_at("a1 b2 c3");
    check_int(pthread_create(&thread, NULL, acquire_and_end, multi), 0);
    pthread_join(thread, NULL);
    expect_nothing_left_at_all();
}

static void use_in_child(struct process *self, void *arg)
{
    (void)self, (void)arg;
    check(!hl_lock_is_held(multi, NULL));
    expect_outcome(hl_lock_try_acquire(multi, NULL), HL_EFORKED);
    expect_outcome(hl_lock_release(multi, NULL), HL_EFORKED);
    hl_lock_free(multi);
}

SingleLaw(multi_servers_end, in_a_forked_child)
{
    sites_open(NULL);
    multi = new_multi_at("a1 b2 c3");
    expect_ok(hl_lock_acquire(multi, ERR));
    struct process *child = process_start(use_in_child, NULL);
    check_int(process_finish(child, 10000), 0);
    check(hl_lock_is_held(multi, NULL));
    expect_ok(hl_lock_release(multi, ERR));
    expect_nothing_left_at_all();
}
