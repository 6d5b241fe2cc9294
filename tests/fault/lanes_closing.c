/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* When lanes are closed again, and what becomes of their names. */

#include "lanes_kit.h"

#include "lease/calls/client.h"
#include "support/proxy.h"

static struct events events;

/* One thread works on. */
static bool are_closed(void *arg)
{
    struct lanes_seen *wanted = arg;

    for (int i = 0; i < 100; i++) {
        expect_ok(hl_lock_acquire(wanted->lock, ERR));
        expect_ok(hl_lock_release(wanted->lock, ERR));
    }
    return lanes_are_reached(wanted);
}

static void expect_lanes_close(hl_client *client)
{
    struct lanes_seen wanted = {.client = client, .lanes = 1, .lock = new_lock(client, "stock-1")};

    check_msg(wait_until(are_closed, &wanted, 60000), "%u lanes are open", lanes_of(client, NULL));
    check_int(stats_of(client).lanes_now, 1);
    check(redis_wait_clients(server, REDIS_NORMAL, 1, 20000));
}

TcpLaw(lanes, are_closed_when_threads_do_not_meet_any_more)
{
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.connections = 3, .watchdog_timeout_ms = slow_ms(1500),
                                 .on_event = count_event, .arg = &events));
    hl_lock *held[CROWD];
    char name[32];

    for (int round = 1; round <= 2; round++) {
        open_lanes(client, 3);
        for (int i = 0; i < CROWD; i++) {
            snprintf(name, sizeof name, "crowd-%d", i); /* with the lane that it had there */
            held[i] = new_lock(client, name);
            expect_ok(hl_lock_acquire(held[i], ERR));
        }
        expect_lanes_close(client);
        for (int i = 0; i < CROWD; i++) {
            expect_held_by(client, held[i], 1);
            expect_ok(hl_lock_release(held[i], ERR));
        }
        check_int(proxy_accepted(proxy), 2 + 2 * round);
    }
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(stats_of(client).reconnects, 0);
}

/* The number of one that is open. */
static unsigned further_lane(hl_client *client)
{
    unsigned number = 1;

    while (hli_client_link(client, 0, number) == hli_client_link(client, 0, 0))
        number++;
    return number;
}

static atomic_int verdict;

static void note_verdict(struct hli_op *op, const struct hli_answer *answer)
{
    (void)op;
    atomic_store(&verdict, (int)answer->verdict);
}

static bool has_verdict(void *arg)
{
    (void)arg;
    return atomic_load(&verdict) >= 0;
}

/* Another thread's request is on the way by the first lane all the time; this one takes the other
 * lane, which is free. */
TcpLaw(lanes, stay_open_as_long_as_a_thread_works_beside_the_first_one)
{
    static struct hli_op op = {.done = note_verdict};
    const struct hli_bytes words[] = {hli_bytes_of("BLPOP"), hli_bytes_of("door"),
                                      hli_bytes_of("0")};
    struct proxy *proxy = new_proxy();
    hl_client *client = open_client_at(
        proxy_url(proxy), CLIENT(.connections = 2, .watchdog_timeout_ms = slow_ms(1500),
                                 .request_timeout_ms = slow_ms(60000)));
    hl_client *other = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *clock = new_lock(other, "clock");

    open_lanes(client, 2);
    atomic_store(&verdict, -1);
    check_int(hli_op_command(&op, words, 3), 0);
    struct hli_link *first = hli_client_link(client, 0, 0);
    unsigned lane = further_lane(client);
    hli_link_send(first, &op);
    expect_ok(hl_lock_acquire(clock, ERR));
    while (stats_of(other).renewals < 5 * 3 && lanes_of(client, NULL) == 2) { /* five leases */
        for (int i = 0; i < 50; i++)
            hli_link_free_lane(first, lane);
        deadline_nap();
    }
    check_int(lanes_of(client, NULL), 2);
    redis_do(server, "RPUSH door open");
    check(wait_until(has_verdict, NULL, 20000));
    expect_ok(hl_lock_release(clock, ERR));
    check_int(proxy_accepted(proxy), 3);
    hli_op_deinit(&op);
}

/* As a thread does that stood still before it sent its request. */
TcpLaw(lanes, that_are_closed_leave_what_is_sent_there_to_the_first_one)
{
    static struct hli_op op = {.done = note_verdict};
    hl_client *client = open_client(CLIENT(.connections = 2, .watchdog_timeout_ms = slow_ms(1500)));
    const struct hli_bytes ping = hli_bytes_of("PING");

    atomic_store(&verdict, -1);
    open_lanes(client, 2);
    struct hli_link *lane = hli_client_link(client, 0, further_lane(client));
    expect_lanes_close(client);
    check_int(hli_op_command(&op, &ping, 1), 0);
    hli_link_send(lane, &op);
    check(wait_until(has_verdict, NULL, 20000));
    check_int(atomic_load(&verdict), HLI_REPLIED);
    hli_op_deinit(&op);
}

static int64_t refused_connections(void)
{
    const char *info = redis_str(server, "INFO stats");
    const char *refused = strstr(info, "rejected_connections:");
    check(refused);
    return strtoll(refused + strlen("rejected_connections:"), NULL, 10);
}

static bool has_refused(void *count)
{
    return refused_connections() >= *(int64_t *)count;
}

/* The server has room for two lanes, and the third one comes again and again: also when the second
 * one has made room for it. */
TcpLaw(lanes, that_a_full_server_refuses_do_not_come_when_others_are_closed)
{
    static struct crowd_of_threads crowd;
    hl_client *client = open_client(
        CLIENT(.connections = 3, .backoff_max_ms = 50, .watchdog_timeout_ms = slow_ms(1500)));

    redis_do(server, "CONFIG SET maxclients 4"); /* the test's, two and the one for messages */
    crowd_begin(&crowd, client, "stock");
    expect_lanes(client, NULL, 2);
    check(wait_until(has_refused, &(int64_t){3}, 60000));
    crowd_end(&crowd);
    expect_lanes_close(client);
    int64_t refused = refused_connections();
    for (int i = 0; i < 500; i++) {
        expect_ok(hl_client_ping(client, -1, ERR));
        poll(NULL, 0, 1);
    }
    check_int(refused_connections(), refused);
    check_int(lanes_of(client, NULL), 1);
    redis_do(server, "CONFIG SET maxclients 100");
    open_lanes(client, 3);
}
