/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * TLS with several servers, each of which speaks TLS only: a cluster's nodes and sentinels name
 * others, and the client goes there by TLS, too.
 */

#include "cluster_kit.h"

#include "support/certificates.h"
#include "support/cluster_reshape.h"
#include "support/raw_client.h"

#include <stdio.h>

static void tls_cluster_up(void)
{
    cluster_up_with(&(struct cluster_options){.tls = true});
}

static void tls_trio_up(void)
{
    trio_up_with(&(struct trio_options){.tls = true});
}

#define TlsClusterLaw(name) Test(tls_nodes, name, .init = tls_cluster_up, .fini = server_down)
#define TlsTrioLaw(name) Test(tls_nodes, name, .init = tls_trio_up, .fini = server_down)

/* A failover is an outage; nothing else here is one that lasts. No poll comes within a test. */
enum { FAILOVER_MS = 60000, OTHERWISE_MS = 10000 };

static hl_client *open_tls(const char *url, int outage_ms)
{
    return open_client_at(url,
                          CLIENT(.tls_ca_file = redis_server_authority(), .poll_ms = slow_ms(60000),
                                 .outage_timeout_ms = slow_ms(outage_ms)));
}

/* A client that knows one node, and is told of the others. */
static hl_client *open_at_one_node(int outage_ms)
{
    return open_tls(cluster_url_of(cluster, 0, 1, NULL), outage_ms);
}

/* Each connection of the library is one at the port that does not answer without TLS. */
static void expect_tls_only(struct redis_server *peer)
{
    char wanted[48];
    int port = redis_server_port(peer), count = 0;
    redisContext *link = raw_connect(port);
    check_str(raw_ask(link, "PING"), "(none)");
    redisFree(link);
    redisReply *reply = redis_command(peer, "CLIENT LIST");
    check(reply && reply->type == REDIS_REPLY_STRING);
    snprintf(wanted, sizeof wanted, " laddr=127.0.0.1:%d ", port);
    char *rest = NULL, *line = strtok_r(reply->str, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        bool is_ours = strstr(line, " name=hirelock") != NULL;
        check_msg(!is_ours || strstr(line, wanted), "%s", line);
        count += is_ours;
    }
    check(count > 0);
    freeReplyObject(reply);
}

/* They are told of by CLUSTER SLOTS. */
TlsClusterLaw(each_node_of_a_cluster_is_reached_by_tls)
{
    hl_client *client = open_at_one_node(OTHERWISE_MS), *other = open_at_one_node(OTHERWISE_MS);

    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_tls_only(cluster_node(cluster, i));
}

/* The new node is told of by ASK on the way, and by MOVED at the end. */
TlsClusterLaw(slot_that_moves_is_followed_by_tls)
{
    hl_client *client = open_at_one_node(OTHERWISE_MS), *other = open_at_one_node(OTHERWISE_MS);
    const char *name = name_at(0, "stock");
    hl_lock *held = new_lock(client, name), *asked = new_lock(client, name_at(0, "other"));

    expect_ok(hl_lock_acquire(held, ERR));
    struct slot_move move = slot_move_begin(cluster, slot_of(name), cluster_node(cluster, 1));
    expect_ok(hl_lock_acquire(asked, ERR));
    slot_move_end(&move);
    server = cluster_node(cluster, 1);
    expect_held_by(client, held, 1);
    expect_held_by(client, asked, 1);
    expect_ok(hl_lock_release(held, ERR));
    expect_ok(hl_lock_release(asked, ERR));
    expect_handed_over(client, other, name);
    expect_tls_only(server);
}

TlsClusterLaw(slot_that_goes_on_by_redis_cli_is_followed_by_tls)
{
    hl_client *client = open_at_one_node(OTHERWISE_MS), *other = open_at_one_node(OTHERWISE_MS);
    const char *name = name_at(1, "stock");
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    cluster_reshard(cluster, cluster_node(cluster, 1), cluster_node(cluster, 2), 1);
    server = cluster_node(cluster, 2);
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    expect_handed_over(client, other, name);
    expect_tls_only(server);
}

TlsClusterLaw(replica_that_becomes_a_master_is_reached_by_tls)
{
    hl_client *client = open_at_one_node(FAILOVER_MS), *other = open_at_one_node(FAILOVER_MS);
    const char *name = name_at(2, "stock");

    expect_handed_over(client, other, name);
    struct redis_server *old = server;
    redis_server_kill(old);
    server = cluster_await_master(cluster, slot_of(name), old);
    expect_handed_over(client, other, name);
    expect_tls_only(server);
}

static void lock_once(hl_client *client)
{
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

TlsTrioLaw(master_that_sentinels_choose_is_reached_by_tls)
{
    hl_client *client = open_tls(trio_url(trio), FAILOVER_MS);
    struct redis_server *old = server;

    lock_once(client);
    expect_tls_only(old);
    redis_server_kill(old);
    server = trio_await_switch(trio, old);
    lock_once(client);
    expect_tls_only(server);
}

static hl_client *open_by_names(const char *of_servers, const char *of_sentinels)
{
    return open_client_at(trio_url(trio), CLIENT(.tls_ca_file = redis_server_authority(),
                                                 .tls_server_name = of_servers,
                                                 .sentinel_tls_server_name = of_sentinels,
                                                 .outage_timeout_ms = slow_ms(OTHERWISE_MS)));
}

/* The servers are behind a name that the sentinels do not have, and the other way round. */
TlsTrioLaw(sentinels_may_have_other_names_than_the_servers)
{
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "named", .issuer = "ca", .hosts = "DNS:named"});
    redis_do(server, "CONFIG SET tls-cert-file %s/named.pem tls-key-file %s/named.key",
             redis_server_dir(server), redis_server_dir(server));
    lock_once(open_by_names("named", NULL));
    lock_once(open_by_names("named", "localhost"));
}

TlsTrioLaw(sentinel_without_the_name_that_it_must_have_is_refused)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(trio_url(trio),
                                  CLIENT(.tls_ca_file = redis_server_authority(),
                                         .sentinel_tls_server_name = "elsewhere.example"),
                                  &client, &err),
                   HL_ECONN);
    check_has(err.text, "not for elsewhere.example");
}

static struct redis_server *watched; /* of those that are up */

static bool is_one_watched(void *arg)
{
    (void)arg;
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        watched = trio_sentinel(trio, i);
        if (redis_server_is_up(watched) && redis_clients(watched, REDIS_PUBSUB, "hirelock") > 0)
            return true;
    }
    return false;
}

TlsTrioLaw(sentinel_that_another_names_is_reached_by_tls)
{
    hl_client *client = open_tls(trio_url_of(trio, 0, 1, NULL), OTHERWISE_MS);

    check(wait_until(is_one_watched, NULL, 20000));
    check(watched == trio_sentinel(trio, 0));
    expect_tls_only(watched);
    redis_server_kill(watched);
    check(wait_until(is_one_watched, NULL, 20000));
    expect_tls_only(watched);
    lock_once(client);
}
