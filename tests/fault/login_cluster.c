/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Logins of a cluster: each node has its own, and so has the connection that asks for the map. */

#include "login_kit.h"

#include "support/actor.h"
#include "support/topologies.h"

enum { NODES = 6 };

static void users_up(void)
{
    cluster_up_with(&(struct cluster_options){.config = LOGIN_USERS});
}

#define ClusterLoginLaw(name) Test(login_cluster, name, .init = users_up, .fini = server_down)

static hl_client *open_cluster(const hl_client_options *options)
{
    hl_client_options used = *options;

    used.outage_timeout_ms = slow_ms(60000);
    return open_client_at(cluster_url(cluster), &used);
}

/* The library's connections to all masters as this user are so many, soon. */
static void expect_logins(const char *user, int each)
{
    for (int i = 0; i < cluster_masters(cluster); i++) {
        server = cluster_node(cluster, i);
        check_msg(login_wait(user, each, 20000), "node %d: %d of %s", i, login_count(user), user);
    }
}

static void try_out_each(hl_client *client)
{
    for (int i = 0; i < cluster_masters(cluster); i++) {
        server = cluster_node(cluster, i);
        hl_lock *lock = new_lock(client, cluster_name_at(server, "tried"));
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
        free_lock(lock);
    }
}

ClusterLoginLaw(of_a_callback_is_that_of_all_nodes)
{
    static struct desk desk = DESK_INIT;

    desk_gives(&desk, "app", ONE, 0);
    hl_client *client = open_cluster(LOGIN(&desk));
    try_out_each(client);
    expect_logins("app", 2);
    check(atomic_load(&desk.asked) > cluster_masters(cluster)); /* the map, too */
    check_int(atomic_load(&desk.asked_for_sentinels), 0);
}

ClusterLoginLaw(that_the_callback_does_not_give_is_an_error_with_its_reason)
{
    static struct desk desk = DESK_INIT;

    desk_fails(&desk, "no token today");
    expect_no_open(cluster_url(cluster), LOGIN(&desk), HL_ECONN,
                   "the credentials callback failed: no token today");
    check(atomic_load(&desk.asked) < cluster_nodes(cluster)); /* not again for each address */
    desk_gives(&desk, "app", "wrong", 0);
    expect_no_open(cluster_url(cluster), LOGIN(&desk), HL_EDENIED, "WRONGPASS");
}

ClusterLoginLaw(that_the_callback_does_not_give_in_time_is_an_error_that_says_so)
{
    static struct desk desk = DESK_INIT;
    static struct recorder story = RECORDER_INIT;
    hl_client *client = NULL;

    desk_gives(&desk, "app", ONE, 0);
    desk_set_shut(&desk, true);
    expect_ok(
        hl_client_open(cluster_url(cluster),
                       LOGIN_WITHIN(slow_ms(300), &desk, .flags = HL_CLIENT_LAZY,
                                    .on_log = record_log, .log_level = HL_LOG_DEBUG, .arg = &story),
                       &client, ERR));
    check(recorder_wait_says(&story, "no answer of the credentials callback within"));
    desk_set_shut(&desk, false);
    try_out_each(client);
    check(!recorder_says(&story, ONE));
    expect_ok(hl_client_close(client));
}

ClusterLoginLaw(that_ends_is_renewed_at_each_node_and_loses_no_waiter)
{
    static struct desk desk = DESK_INIT;
    static struct events events;
    struct actor *actor[NODES];
    hl_lock *lock[NODES], *others[NODES];
    int masters = cluster_masters(cluster);

    desk_gives(&desk, "app", ONE, slow_ms(2000));
    hl_client *client = open_cluster(LOGIN(&desk, .on_event = count_event, .arg = &events));
    hl_client *other = open_cluster(CLIENT(.client_name = "other"));
    hl_owner *owner = new_owner(other);
    try_out_each(client);
    for (int i = 0; i < masters; i++) {
        const char *name = cluster_name_at(cluster_node(cluster, i), "stock");
        lock[i] = new_lock(client, name);
        others[i] = new_lock(other, name);
        expect_ok(hl_lock_acquire_with(others[i], ACQUIRE(.owner = owner, .wait_ms = -1), ERR));
        actor[i] = actor_start_acquire(lock[i], ACQUIRE(.wait_ms = -1));
    }
    expect_waiters(client, masters);
    desk_gives(&desk, "next", TWO, 0);
    expect_logins("next", 2);
    for (int i = 0; i < masters; i++)
        redis_do(cluster_node(cluster, i), "ACL DELUSER app");
    for (int i = 0; i < masters; i++) {
        expect_ok(hl_lock_release_as(others[i], owner, ERR));
        expect_ok(actor_end(actor[i]));
        expect_ok(actor_release(actor[i], lock[i], NULL));
    }
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

static atomic_int refusals;

static void count_refusal(hl_log_level level, const char *text, void *arg)
{
    (void)level, (void)arg;
    if (strstr(text, "refused the user or password"))
        atomic_fetch_add(&refusals, 1);
}

static bool is_silent(void *client)
{
    return stats_of(client).nodes_now == (uint64_t)cluster_masters(cluster) - 2;
}

ClusterLoginLaw(that_one_node_refuses_ends_no_call_at_another)
{
    static struct recorder story = RECORDER_INIT;
    struct redis_server *silent = cluster_node(cluster, 0), *refusing = cluster_node(cluster, 1);
    hl_client *client =
        open_cluster(CLIENT(.username = "app", .password = ONE, .on_log = count_refusal,
                            .log_level = HL_LOG_DEBUG, .request_timeout_ms = slow_ms(300),
                            .backoff_min_ms = 5, .backoff_max_ms = 50));
    hl_lock *lock = new_lock(client, cluster_name_at(silent, "stock"));

    redis_server_freeze(silent);
    expect_ok(hl_lock_inspect_async(lock, record_info, &story));
    redis_do(refusing, "ACL SETUSER app off");
    redis_do(refusing, "CLIENT KILL USER app");
    check(wait_until(is_silent, client, 20000));
    for (int before = atomic_load(&refusals); atomic_load(&refusals) < before + 5;)
        deadline_nap();
    redis_server_thaw(silent);
    expect_story(&story, "info 0");
}
