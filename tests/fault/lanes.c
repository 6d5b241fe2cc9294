/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Lanes, the connections for commands to one server: when they are opened, which requests take
 * which one, and what happens to the others when one is lost. */

#include "lanes_kit.h"

#include "support/proxy.h"
#include "support/recorder.h"

#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 4 };

/* In the order in which they are opened: the first lane, its subscriptions, and the others. */
static int connection_of(int lane)
{
    return lane == 0 ? 0 : lane + 1;
}

static struct proxy *proxy;
static struct events events;

static hl_client *open_by_proxy(int connections)
{
    proxy = new_proxy();
    return open_client_at(proxy_url(proxy),
                          CLIENT(.connections = connections, .on_event = count_event,
                                 .arg = &events, .outage_timeout_ms = slow_ms(60000),
                                 .watchdog_timeout_ms = slow_ms(60000)));
}

TcpLaw(lanes, are_one_as_long_as_threads_do_not_meet)
{
    hl_client *client = open_by_proxy(LANES);
    hl_lock *lock = new_lock(client, "stock");

    for (int i = 0; i < 300; i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
    }
    check_int(lanes_of(client, NULL), 1);
    check_int(proxy_accepted(proxy), 2);
}

TcpLaw(lanes, are_opened_by_threads_that_meet_up_to_the_option)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_by_proxy(3);

    crowd_begin(&crowd, client, "stock");
    expect_lanes(client, NULL, 3);
    int pairs = atomic_load(&crowd.pairs);
    while (atomic_load(&crowd.pairs) < pairs + 2000)
        sched_yield();
    crowd_end(&crowd);
    check_int(lanes_of(client, NULL), 3);
    check_int(proxy_accepted(proxy), 4);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(events_told(&events, HL_EVENT_CONNECTED), 0);
    check_int(stats_of(client).nodes_now, 1);
    check_int(stats_of(client).lanes_now, 3);
    check_int(stats_of(client).reconnects, 0);
}

TcpLaw(lanes, are_never_more_than_one_with_one_connection)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_by_proxy(1);

    crowd_begin(&crowd, client, "stock");
    while (atomic_load(&crowd.pairs) < 2000)
        sched_yield();
    crowd_end(&crowd);
    check_int(proxy_accepted(proxy), 2);
}

TcpLaw(lanes, that_the_server_refuses_are_tried_again_and_nobody_notices)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_by_proxy(2);

    proxy_refuse(proxy, true);
    crowd_begin(&crowd, client, "stock");
    while (atomic_load(&crowd.pairs) < 2000)
        sched_yield();
    check_int(lanes_of(client, NULL), 1);
    proxy_refuse(proxy, false);
    expect_lanes(client, NULL, 2);
    crowd_end(&crowd);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

/* --- which requests take which lane --- */

static hl_lock *held[LANES];
static struct actor *actor[LANES];

static bool has_kept(void *lane)
{
    return proxy_kept(proxy, connection_of(*(int *)lane), PROXY_UP) > 0;
}

/* One hold by each lane: while the requests stay at the proxy, each finds the lanes before it
 * busy. */
static void hold_one_by_each(hl_client *client)
{
    char name[32];

    open_lanes(client, LANES);
    check_int(proxy_accepted(proxy), LANES + 1);
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    for (int i = 0; i < LANES; i++) {
        snprintf(name, sizeof name, "stock-%d", i);
        held[i] = new_lock(client, name);
        actor[i] = actor_start_acquire(held[i], ACQUIRE(.wait_ms = -1));
        check_msg(wait_until(has_kept, &i, 20000), "nothing came by lane %d", i);
    }
    proxy_release(proxy, PROXY_EVERY, PROXY_UP);
    proxy_pass(proxy);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_end(actor[i]));
}

static void sum_up(uint64_t bytes[LANES])
{
    for (int i = 0; i < LANES; i++)
        bytes[i] = proxy_bytes(proxy, connection_of(i), PROXY_UP);
}

TcpLaw(lanes, are_taken_by_names_that_are_asked_for_at_once)
{
    hl_client *client = open_by_proxy(LANES);

    hold_one_by_each(client);
    for (int i = 0; i < LANES; i++) {
        expect_held_by(client, held[i], 1);
        expect_ok(actor_release(actor[i], held[i], NULL));
    }
}

TcpLaw(lanes, each_take_all_requests_of_a_name)
{
    hl_client *client = open_by_proxy(LANES);
    uint64_t before[LANES], after[LANES];
    hl_lock_info info = HL_LOCK_INFO_INIT;

    hold_one_by_each(client);
    sum_up(before);
    expect_ok(hl_lock_inspect(held[2], &info, ERR));
    expect_ok(actor_acquire(actor[2], held[2], ACQUIRE(.wait_ms = -1)));
    expect_ok(actor_release(actor[2], held[2], NULL));
    expect_ok(actor_release(actor[2], held[2], NULL));
    expect_ok(actor_acquire(actor[2], held[2], ACQUIRE(.wait_ms = -1)));
    expect_ok(actor_release(actor[2], held[2], NULL));
    sum_up(after);
    check(after[2] > before[2] + 600);
    for (int i = 0; i < LANES; i++) /* a PING or ROLE may pass there */
        check_msg(i == 2 || after[i] < before[i] + 200, "lane %d: %d bytes", i,
                  (int)(after[i] - before[i]));
}

/* A release that is not awaited, and the try behind it, which would meet the lock if it were
 * overtaking. */
static void *try_behind_release(void *arg)
{
    hl_lock *lock = arg;

    for (int i = 0; i < 500; i++) {
        hl_error err = HL_ERROR_INIT;
        int code = hl_lock_try_acquire(lock, &err);
        check_msg(code == HL_OK, "round %d: %s", i, err.text);
        code = hl_lock_release(lock, &err);
        check_msg(code == HL_OK, "round %d: %s", i, err.text);
    }
    return NULL;
}

TcpLaw(lanes, keep_the_order_of_a_names_requests)
{
    static const hl_lock_options posted = {.size = sizeof posted, .flags = HL_LOCK_ASYNC_RELEASE};
    hl_client *client = open_by_proxy(LANES);
    pthread_t thread[CROWD];
    char name[32];

    open_lanes(client, LANES);
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "posted-%d", i);
        check_int(pthread_create(&thread[i], NULL, try_behind_release,
                                 new_lock_with(client, name, &posted)),
                  0);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(thread[i], NULL);
}

TcpLaw(lanes, are_one_for_the_members_of_a_multi_lock)
{
    hl_client *client = open_by_proxy(LANES);
    hl_lock *all = NULL;

    hold_one_by_each(client);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    expect_ok(hl_multi_lock_new(held, LANES, NULL, &all, ERR));
    keep_lock(all);
    expect_ok(hl_lock_acquire(all, ERR)); /* the server has the scripts from now on */
    expect_ok(hl_lock_release(all, ERR));
    uint64_t calls = (uint64_t)redis_evalsha_calls(server);
    expect_ok(hl_lock_acquire(all, ERR));
    check_int(redis_evalsha_calls(server), calls + 1);
    for (int i = 0; i < LANES; i++)
        expect_held_by(client, held[i], 1);
    expect_ok(hl_lock_release(all, ERR));
    check_int(redis_evalsha_calls(server), calls + 2);
}

/* --- one is lost --- */

static void expect_works(int lane)
{
    expect_ok(actor_release(actor[lane], held[lane], NULL));
    expect_ok(actor_acquire(actor[lane], held[lane], ACQUIRE(.wait_ms = -1)));
}

static void lose_one(hl_client *client, int lost)
{
    hold_one_by_each(client);
    proxy_refuse(proxy, true);
    proxy_kill(proxy, connection_of(lost));
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 20000));
    for (int i = 0; i < LANES; i++)
        if (i != lost)
            expect_works(i);
    check(stats_of(client).renewals <= 1); /* the lost lane's hold, by the first one */
    proxy_refuse(proxy, false);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    wait_stat(client, renewals, 1);
    for (int i = 0; i < LANES; i++) {
        expect_works(i);
        expect_held_by(client, held[i], 1);
        expect_ok(actor_release(actor[i], held[i], NULL));
    }
    check_int(stats_of(client).renewals, 1);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 1);
    check_int(events_told(&events, HL_EVENT_CONNECTED), 1);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(stats_of(client).reconnects, 1);
    check_int(lanes_of(client, NULL), LANES);
}

TcpLaw(lanes, that_are_cut_renew_their_own_holds_alone)
{
    lose_one(open_by_proxy(LANES), 2);
}

TcpLaw(lanes, go_on_without_the_first_one)
{
    lose_one(open_by_proxy(LANES), 0);
}

TcpLaw(lanes, are_told_of_releases_again_after_the_first_one_was_cut)
{
    hl_client *client = open_by_proxy(LANES), *other = open_client(CLIENT());
    hl_lock *lock;

    hold_one_by_each(client);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    lock = new_lock(other, "stock-3");
    expect_ok(hl_lock_acquire(lock, ERR));
    actor_begin_acquire(actor[3], held[3], ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    proxy_kill(proxy, connection_of(0));
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(actor[3]));
    expect_held_by(client, held[3], 1);
    expect_ok(actor_release(actor[3], held[3], NULL));
}

TcpLaw(lanes, come_back_with_a_server_that_was_restarted)
{
    hl_client *client = open_by_proxy(LANES);

    hold_one_by_each(client);
    redis_server_restart(server);
    check(events_wait(&events, HL_EVENT_LOST, LANES, 60000));
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    for (int i = 0; i < LANES; i++) {
        expect_outcome(actor_release(actor[i], held[i], NULL), HL_ELOST);
        expect_ok(actor_acquire(actor[i], held[i], ACQUIRE(.wait_ms = -1)));
        expect_held_by(client, held[i], 1);
        expect_ok(actor_release(actor[i], held[i], NULL));
    }
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 1);
    check_int(events_told(&events, HL_EVENT_CONNECTED), 1);
    check_int(lanes_of(client, NULL), LANES);
}

static hl_client *lose_for_good(const hl_client_options *options, int lost)
{
    hl_client_options used = *options;

    proxy = new_proxy();
    used.connections = LANES;
    used.on_event = count_event;
    used.arg = &events;
    hl_client *client = open_client_at(proxy_url(proxy), &used);
    hold_one_by_each(client);
    proxy_refuse(proxy, true);
    proxy_kill(proxy, connection_of(lost));
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 20000));
    return client;
}

TcpLaw(lanes, that_do_not_come_back_leave_their_holds_to_the_first_one)
{
    hl_client *client = lose_for_good(CLIENT(.watchdog_timeout_ms = slow_ms(3000)), 2);

    wait_stat(client, renewals, LANES * 4);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_held_by(client, held[2], 1);
    expect_works(2);
    proxy_refuse(proxy, false);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
}

TcpLaw(lanes, that_do_not_come_back_leave_waiters_and_calls_to_the_first_one)
{
    static struct recorder story = RECORDER_INIT;
    hl_client *other = open_client(CLIENT());
    hl_client *client = lose_for_good(CLIENT(.poll_ms = slow_ms(60000)), 2);
    hl_owner *owner = new_owner(client);
    hl_lock *lock = new_lock(other, "stock-2");
    hl_lock_info info = HL_LOCK_INFO_INIT;

    expect_ok(hl_lock_inspect(held[2], &info, ERR));
    check(info.mine);
    expect_ok(actor_release(actor[2], held[2], NULL));
    expect_ok(hl_lock_acquire(lock, ERR));
    actor_begin_acquire(actor[2], held[2], ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(actor[2]));
    expect_ok(actor_release(actor[2], held[2], NULL));
    expect_ok(hl_lock_acquire_async(held[2], ACQUIRE(.owner = owner), record_done, &story));
    expect_story(&story, "done HL_OK");
    expect_ok(hl_lock_release_as(held[2], owner, ERR));
}

/* The first one is to serve the names of a lane that is closed. */
TcpLaw(lanes, are_not_closed_while_the_first_one_is_lost)
{
    hl_client *client = lose_for_good(
        CLIENT(.watchdog_timeout_ms = slow_ms(1500), .outage_timeout_ms = slow_ms(60000)), 0);

    check(events_wait(&events, HL_EVENT_LOST, 1, 20000)); /* the first one's */
    uint64_t renewals = stats_of(client).renewals;
    wait_stat(client, renewals, renewals + (LANES - 1) * 9); /* three leases */
    check_int(lanes_of(client, NULL), LANES - 1);
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    for (int i = 1; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    proxy_refuse(proxy, false);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_outcome(actor_release(actor[0], held[0], NULL), HL_ELOST);
}

TcpLaw(lanes, that_do_not_come_back_are_not_missed_when_threads_do_not_meet_any_more)
{
    hl_client *client = lose_for_good(CLIENT(.watchdog_timeout_ms = slow_ms(1500)), LANES - 1);

    for (int i = 0; i < LANES; i++)
        expect_works(i);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000)); /* it has been closed */
    check(lanes_of(client, NULL) < LANES);
    check_int(proxy_accepted(proxy), LANES + 1);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

static void release_it(void *lock)
{
    expect_ok(hl_lock_release(lock, ERR));
}

TcpLaw(lanes, that_do_not_come_back_leave_requests_without_an_answer_to_the_first_one)
{
    hl_client *client = open_by_proxy(LANES);

    hold_one_by_each(client);
    proxy_hold(proxy, connection_of(2), PROXY_UP);
    actor_begin(actor[2], release_it, held[2]);
    check(wait_until(has_kept, &(int){2}, 20000));
    proxy_refuse(proxy, true);
    proxy_kill(proxy, connection_of(2));
    actor_await(actor[2]);
    expect_free(held[2]);
    for (int i = 0; i < LANES; i++)
        if (i != 2)
            expect_works(i);
    check_int(lanes_of(client, NULL), LANES - 1);
}

/* The lock was released since, by the first lane. */
TcpLaw(lanes, that_do_not_come_back_send_nothing_late)
{
    proxy = new_proxy();
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.connections = LANES, .request_timeout_ms = slow_ms(2000),
                                 .on_event = count_event, .arg = &events));
    hold_one_by_each(client);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    proxy_hold(proxy, connection_of(2), PROXY_UP);
    proxy_refuse(proxy, true);
    actor_begin_acquire(actor[2], held[2], ACQUIRE(.wait_ms = -1));
    check(wait_until(has_kept, &(int){2}, 20000));
    expect_ok(actor_end(actor[2]));
    expect_ok(actor_release(actor[2], held[2], NULL));
    check(redis_wait_clients(server, REDIS_NORMAL, LANES - 1, 20000)); /* the lost one is ended */
    int64_t calls = redis_evalsha_calls(server);
    proxy_release(proxy, connection_of(2), PROXY_UP);
    expect_ok(actor_acquire(actor[1], held[1], ACQUIRE(.wait_ms = -1)));
    check_int(redis_evalsha_calls(server), calls + 1);
    check_int(redis_int(server, "EXISTS stock-2"), 0);
}

static bool has_no_server(void *client)
{
    return stats_of(client).nodes_now == 0;
}

/* The CLIENT KILL that is to end the lost lane is lost with the first lane, and the lost lane comes
 * back later than that. */
TcpLaw(lanes, that_do_not_come_back_leave_nothing_to_a_first_one_that_could_not_end_them)
{
    proxy = new_proxy();
    hl_client *client = open_client_at(
        proxy_url(proxy),
        CLIENT(.connections = LANES, .request_timeout_ms = slow_ms(1000),
               .connect_timeout_ms = slow_ms(1000), .on_event = count_event, .arg = &events));
    hold_one_by_each(client);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    proxy_hold(proxy, connection_of(2), PROXY_UP);
    proxy_refuse(proxy, true);
    actor_begin_acquire(actor[2], held[2], ACQUIRE(.wait_ms = -1));
    check(wait_until(has_kept, &(int){2}, 20000));
    proxy_hold(proxy, connection_of(0), PROXY_UP);
    check(wait_until(has_no_server, client, 60000));
    proxy_kill(proxy, connection_of(0)); /* with all that it kept */
    int next = proxy_accepted(proxy);
    for (int i = next + 2; i < next + 20; i++) /* behind the two of the first lane */
        proxy_hold(proxy, i, PROXY_UP);
    proxy_refuse(proxy, false);
    expect_ok(actor_end(actor[2]));
    expect_ok(actor_release(actor[2], held[2], NULL));
    proxy_release(proxy, connection_of(2), PROXY_UP);
    for (int i = 0; i < 3; i++) { /* the server reads what has come to it before */
        expect_ok(actor_acquire(actor[1], held[1], ACQUIRE(.wait_ms = -1)));
        expect_ok(actor_release(actor[1], held[1], NULL));
    }
    check_int(redis_int(server, "EXISTS stock-2"), 0);
    proxy_pass(proxy);
}

/* --- the end --- */

TcpLaw(lanes, are_closed_with_their_client)
{
    static struct crowd_of_threads crowd = {.may_fail = true};
    hl_client *client = open_by_proxy(LANES);

    crowd_begin(&crowd, client, "stock");
    expect_lanes(client, NULL, LANES);
    atomic_store(&crowd.is_over, true);
    close_client(client);
    crowd_end(&crowd);
    check(redis_wait_clients(server, REDIS_NORMAL, 0, 20000));
    check(redis_wait_clients(server, REDIS_PUBSUB, 0, 20000));
}

static bool is_left(void *proxy_of_client)
{
    return proxy_open(proxy_of_client) == 0;
}

static void live_until(int fd)
{
    char byte;

    while (read(fd, &byte, 1) < 0)
        continue;
    _exit(0);
}

TcpLaw(lanes, are_not_held_open_by_a_forked_child)
{
    hl_client *client = open_by_proxy(LANES);
    int ends[2];

    hold_one_by_each(client);
    check_int(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        if (hl_client_close(client) != HL_EFORKED)
            _exit(1);
        live_until(ends[0]);
    }
    close(ends[0]);
    for (int i = 0; i < LANES; i++)
        expect_ok(actor_release(actor[i], held[i], NULL));
    close_client(client);
    check(wait_until(is_left, proxy, 20000));
    close(ends[1]);
    int status = -1;
    check_int(waitpid(child, &status, 0), child);
    check_int(status, 0);
}
