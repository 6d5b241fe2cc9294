/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A master that may have been replaced, because neither a sentinel nor a replica can be reached
 * from where the client is: what the client tells of it, and what it does not. */

#include "support/proxy.h"
#include "support/recorder.h"
#include "support/topologies.h"

#include <string.h>

static struct recorder story = RECORDER_INIT; /* the client's events and warnings, in order */

static const char isolated[] = "MASTER_ISOLATED", confirmed[] = "MASTER_CONFIRMED";

static bool is_said(void *part)
{
    return recorder_says(&story, part);
}

static void expect_said(const char *part)
{
    check_msg(wait_until(is_said, (void *)part, 60000), "no '%s' in: %s", part, story.text);
}

/* How often the client has told of an isolated master. */
static int told(void)
{
    int times = 0;

    for (int i = 0; i < recorder_count(&story); i++)
        times += recorder_entry(&story, i).kind == HL_EVENT_MASTER_ISOLATED;
    return times;
}

/* Why: that of the last event of this kind. */
static const char *reason_of(hl_event_kind kind)
{
    static struct record found;

    for (int i = 0; i < recorder_count(&story); i++)
        if (recorder_entry(&story, i).kind == kind)
            found = recorder_entry(&story, i);
    return found.kind == kind ? found.said : "never told";
}

/* A link that is lost soon after it came up asks for ROLE each second, and not every five. */
static hl_client *client_up(const char *url, hl_client_options *options)
{
    options->connect_timeout_ms = slow_ms(2000);
    options->outage_timeout_ms = slow_ms(60000);
    options->on_event = record_event;
    options->on_log = record_log;
    options->arg = &story;
    hl_client *client = open_client_at(url, options);
    server = trio_master(trio);
    redis_kill_named(server, REDIS_NORMAL, "hirelock");
    expect_said(", CONNECTED");
    return client;
}

static bool has_been_asked(void *calls)
{
    return redis_calls(server, "role") >= *(int64_t *)calls;
}

static void await_roles(int count)
{
    int64_t calls = redis_calls(server, "role") + count;

    check(wait_until(has_been_asked, &calls, 120000));
}

/* So many that a master which no replica follows is noticed: after 8 seconds. */
enum { ROLES = 10 };

static void kill_sentinels(void)
{
    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_server_kill(trio_sentinel(trio, i));
    expect_said("so a failover may go unnoticed");
}

static void expect_works(hl_client *client)
{
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

TrioLaw(sentinel_isolated, is_not_told_while_a_replica_follows)
{
    hl_client *client = client_up(trio_url(trio), CLIENT(0));
    struct redis_server *replica = trio_replica(trio);
    char why[160];

    kill_sentinels();
    await_roles(ROLES);
    check_int(told(), 0);
    redis_server_freeze(replica); /* the master does not drop it before a minute is over */
    expect_works(client);         /* what is written, it does not acknowledge */
    expect_said(isolated);
    snprintf(why, sizeof why, "no replica follows 127.0.0.1:%d, and no sentinel of 'mymaster'",
             redis_server_port(server));
    check_has(reason_of(HL_EVENT_MASTER_ISOLATED), why);
    redis_server_thaw(replica);
    expect_said(confirmed);
    check_str(reason_of(HL_EVENT_MASTER_CONFIRMED), "a replica follows it again");
    expect_works(client);
    check_int(told(), 1);
}

TrioLaw(sentinel_isolated, is_not_told_while_a_sentinel_answers)
{
    hl_client *client = client_up(trio_url(trio), CLIENT(0));

    redis_server_kill(trio_replica(trio));
    redis_server_kill(trio_sentinel(trio, 0));
    redis_server_kill(trio_sentinel(trio, 1));
    await_roles(ROLES);
    check_int(told(), 0);
    redis_server_freeze(trio_sentinel(trio, 2));
    expect_said(isolated);
    await_roles(3);
    check_int(told(), 1); /* once, as long as it lasts */
    redis_server_thaw(trio_sentinel(trio, 2));
    expect_said(confirmed);
    check_has(reason_of(HL_EVENT_MASTER_CONFIRMED), "names it");
    expect_works(client);
    check_int(told(), 1);
}

static bool has_no_replica(void *node)
{
    return strstr(redis_str(node, "INFO replication"), "connected_slaves:0") != NULL;
}

TrioLaw(sentinel_isolated, is_not_told_of_a_master_without_replicas)
{
    redis_server_kill(trio_replica(trio));
    check(wait_until(has_no_replica, trio_master(trio), 10000));
    hl_client *client = client_up(trio_url(trio), CLIENT(0));
    kill_sentinels();
    await_roles(ROLES);
    check_int(told(), 0);
    expect_works(client);
}

/* The client's way to the sentinels; they and their nodes have another. */
static struct proxy *way[TRIO_SENTINELS];

static void map_to_ways(hl_address *address, void *arg)
{
    (void)arg;
    for (int i = 0; i < TRIO_SENTINELS; i++)
        if (address->port == redis_server_port(trio_sentinel(trio, i)))
            address->port = proxy_port(way[i]);
}

static const char *url_of_ways(void)
{
    static char url[160];

    for (int i = 0; i < TRIO_SENTINELS; i++) {
        const struct proxy_options to = {.server_port = redis_server_port(trio_sentinel(trio, i))};
        way[i] = stop_at_end(proxy_start(&to), (void (*)(void *))proxy_stop);
    }
    snprintf(url, sizeof url,
             "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" SENTINEL_MASTER,
             proxy_port(way[0]), proxy_port(way[1]), proxy_port(way[2]));
    return url;
}

/* From now on the client and `master` are alone. */
static void cut_off(struct redis_server *master)
{
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        proxy_refuse(way[i], true);
        proxy_kill_all(way[i]);
    }
    redis_deny(master, "default", "psync");
    redis_deny(master, "default", "sync");
    redis_int(master, "CLIENT KILL TYPE replica");
    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_do(master, "ACL SETUSER sentinel%d -@all", i); /* a refused PING counts as none */
}

static void expect_story_of_a_change(const struct redis_server *from, const struct redis_server *to)
{
    char change[128];

    snprintf(change, sizeof change, "MASTER_CHANGED from 127.0.0.1:%d to 127.0.0.1:%d",
             redis_server_port(from), redis_server_port(to));
    expect_said(change);
    const char *const order[] = {isolated, "DISCONNECTED", change, confirmed, ", CONNECTED"};
    expect_said(confirmed);
    const char *at = strstr(story.text, isolated);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        at = strstr(at, order[i]);
        check_msg(at != NULL, "no '%s' behind it: %s", order[i], story.text);
    }
    check_has(reason_of(HL_EVENT_MASTER_CONFIRMED), "names it");
}

/* The danger itself: two clients hold one lock, and only the event tells. */
TrioLaw(sentinel_isolated, is_told_to_a_client_that_is_cut_off_with_an_old_master)
{
    hl_client *other = open_client_at(trio_url(trio), NULL);
    hl_client *client = client_up(url_of_ways(), CLIENT(.address_map = map_to_ways));
    hl_lock *lock = new_lock(client, "stock"), *others = new_lock(other, "stock");
    struct redis_server *old = server;

    cut_off(old);
    struct redis_server *heir = trio_await_switch(trio, old);
    expect_said(isolated);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_acquire(others, ERR));
    check(hl_lock_is_held(lock, NULL) && hl_lock_is_held(others, NULL));
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    for (int i = 0; i < TRIO_SENTINELS; i++)
        proxy_refuse(way[i], false);
    expect_story_of_a_change(old, heir);
    check_int(told(), 1);
    server = heir;
    expect_works(client);
}
