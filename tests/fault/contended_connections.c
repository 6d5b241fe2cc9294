/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Connections that break, fall silent and lose messages, of processes that hand one lock on: by
 * grants, passes and retained locks, with posted releases among them. */

#include "support/crowd.h"
#include "support/proxy.h"
#include "support/redis_probe.h"
#include "support/test.h"

/* On a busy machine a thread gets its turn a little later. */
enum { THREADS = 3, SLACK_MS = 1500, STORM_MS = 1000, EVERY_MS = 50 };
enum { DIRECT, FIRST, SECOND }; /* processes: one that is not disturbed, and two that are */

static struct redis_server *server;
static struct proxy *proxy;
static struct crowd *crowd;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
    crowd = crowd_start(THREADS, 0);
    proxy = proxy_start_before(server);
    crowd_send_to(crowd, FIRST, proxy_url(proxy));
    crowd_send_to(crowd, SECOND, proxy_url(proxy));
    crowd_begin(crowd, server);
}

static void stop(void)
{
    proxy_stop(proxy);
    redis_server_stop(server);
}

/* Commands that a dropped connection has left behind may have taken the lock. */
static void expect_recovery(void)
{
    crowd_expect_served(crowd, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

static void kill_storm(bool kills_normal, bool kills_pubsub)
{
    struct deadline deadline = deadline_in(STORM_MS);
    while (!deadline_is_over(deadline)) {
        if (kills_normal)
            redis_kill_clients(server, REDIS_NORMAL);
        if (kills_pubsub)
            redis_kill_clients(server, REDIS_PUBSUB);
        crowd_go_on(EVERY_MS);
    }
    expect_recovery();
}

Test(contended_connections, killed_command_links_cost_no_exclusion, .init = start, .fini = stop)
{
    kill_storm(true, false);
}

Test(contended_connections, killed_pubsub_links_cost_no_exclusion, .init = start, .fini = stop)
{
    kill_storm(false, true);
}

Test(contended_connections, killed_links_of_both_kinds_cost_no_exclusion, .init = start,
     .fini = stop)
{
    kill_storm(true, true);
}

Test(contended_connections, cuts_at_any_byte_cost_no_exclusion, .init = start, .fini = stop)
{
    enum { CUTS = 60 };
    unsigned seed = (unsigned)getpid();
    fprintf(stderr, "seed %u\n", seed);
    for (int i = 0; i < CUTS; i++) {
        enum proxy_direction way = rand_r(&seed) % 2 ? PROXY_UP : PROXY_DOWN;
        uint64_t bytes = (uint64_t)rand_r(&seed) % 4000;
        proxy_cut_once(proxy, PROXY_EVERY, way, bytes, rand_r(&seed) % 2 ? PROXY_RST : PROXY_FIN);
        struct deadline deadline = deadline_of_wait(5000);
        while (proxy_cuts(proxy) <= i && !deadline_is_over(deadline))
            deadline_nap();
        check_msg(proxy_cuts(proxy) > i, "cut %d was not made", i);
    }
    expect_recovery();
}

/* What was kept in one direction comes late: commands of connections that are gone, answers to
 * nobody. The other process goes on meanwhile, after what a holder has left. */
static void be_half_open(enum proxy_direction way, int64_t ms)
{
    proxy_hold(proxy, PROXY_EVERY, way);
    crowd_expect_process_served(crowd, DIRECT, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_go_on(ms);
    proxy_release(proxy, PROXY_EVERY, way);
    expect_recovery();
}

Test(contended_connections, requests_that_come_late_take_nothing_from_others, .init = start,
     .fini = stop)
{
    be_half_open(PROXY_UP, CROWD_LEASE_MS / 2);
}

Test(contended_connections, requests_that_come_after_a_lease_take_nothing_from_others,
     .init = start, .fini = stop)
{
    be_half_open(PROXY_UP, CROWD_LEASE_MS * 3 / 2);
}

Test(contended_connections, answers_that_come_late_are_not_believed, .init = start, .fini = stop)
{
    be_half_open(PROXY_DOWN, CROWD_LEASE_MS / 2);
}

/* Only the grants are late: they are void when they come. */
Test(contended_connections, grants_that_come_late_are_not_entered, .init = start, .fini = stop)
{
    int link = proxy_find(proxy, "SUBSCRIBE");
    check(link >= 0);
    for (int i = 0; i < 4; i++) {
        proxy_delay(proxy, link, PROXY_DOWN, slow_ms(CROWD_CLAIM_MS / 4) * (i + 1));
        crowd_go_on(CROWD_CLAIM_MS);
    }
    proxy_pass(proxy);
    expect_recovery();
}

Test(contended_connections, a_black_hole_past_the_lease_is_outlived, .init = start, .fini = stop)
{
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    crowd_expect_process_served(crowd, DIRECT, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_go_on(CROWD_LEASE_MS * 3 / 2);
    proxy_pass(proxy);
    expect_recovery();
}

Test(contended_connections, an_outage_past_the_lease_is_outlived, .init = start, .fini = stop)
{
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    crowd_expect_process_served(crowd, DIRECT, CROWD_LEASE_MS + CROWD_POLL_MS + SLACK_MS);
    crowd_go_on(CROWD_LEASE_MS * 3 / 2);
    proxy_refuse(proxy, false);
    expect_recovery();
}

/* Each lost grant, and each lost wake-up, costs a poll: each of six threads is served twice. */
static void lose_messages(const char *part)
{
    enum { ALL = 1 << 30, TURNS = 2 * 2 * THREADS };
    proxy_drop_messages(proxy, part, ALL);
    crowd_expect_served(crowd, TURNS * CROWD_POLL_MS + SLACK_MS);
    check(proxy_dropped(proxy) > 0);
    proxy_pass(proxy);
    crowd_expect_served(crowd, CROWD_POLL_MS + SLACK_MS);
    crowd_end(crowd, false);
}

Test(contended_connections, lost_grants_and_wants_cost_a_poll_each, .init = start, .fini = stop)
{
    lose_messages("hirelock:");
}

Test(contended_connections, lost_messages_of_all_kinds_cost_a_poll_each, .init = start,
     .fini = stop)
{
    lose_messages("");
}
