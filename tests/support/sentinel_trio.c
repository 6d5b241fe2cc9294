/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Sentinel i logs in at the nodes as user sentinel<i>, and sentinels log in at each other as user
 * sentinels. So one sentinel is made deaf by the rights of its users, whatever passwords there are.
 */
#include "sentinel_trio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatal.h"
#include "redis_probe.h"
#include "redis_program.h"
#include "test.h"

enum { TRIO_PATIENCE_MS = 60000, TRIO_LOOK_MS = 10 };

struct trio {
    struct trio_options options;
    int nodes;
    struct redis_server *node[TRIO_NODES];
    struct redis_server *sentinel[TRIO_SENTINELS];
    bool is_stale[TRIO_SENTINELS];
};

static const char *trio_host(const struct trio *trio)
{
    return trio->options.host ? trio->options.host : "127.0.0.1";
}

/* The two lines for a host of its own: where to listen, and what to announce. */
static void trio_announce(const struct trio *trio, const char *option, char ret_lines[160])
{
    const char *host = trio->options.host;
    ret_lines[0] = '\0';
    if (host)
        snprintf(ret_lines, 160, "bind %s 127.0.0.1\n%s %s\n", host, option, host);
}

static struct redis_server *trio_start_node(const struct trio *trio, int i)
{
    char config[2048], replica_of[96] = "", announce[160];
    const struct trio_options *options = &trio->options;
    if (i > 0)
        snprintf(replica_of, sizeof replica_of, "replicaof %s %d", trio_host(trio),
                 redis_server_port(trio->node[0]));
    trio_announce(trio, "replica-announce-ip", announce);
    int length =
        snprintf(config, sizeof config,
                 "repl-diskless-sync-delay 0\n"
                 "user sentinel0 on nopass ~* &* +@all\n"
                 "user sentinel1 on nopass ~* &* +@all\n"
                 "user sentinel2 on nopass ~* &* +@all\n"
                 "%s%s\n%s\n%s%s\n",
                 options->password ? "masterauth " : "", options->password ? options->password : "",
                 replica_of, announce, options->config ? options->config : "");
    must(length < (int)sizeof config);
    return redis_server_start(&(struct redis_options){.tcp = true,
                                                      .tls = options->tls,
                                                      .plain = !options->tls,
                                                      .relative = trio->node[0],
                                                      .password = options->password,
                                                      .config = config});
}

/* The periods by which sentinels look and talk are 0.1 to 30 s; no configuration has them, and they
 * last as long as the process. Redis 6.2 refuses, and keeps to its own, which are slower. A
 * sentinel that has not heard of a failover for four publish periods makes the new master a replica
 * again. */
static void trio_hurry(const struct trio *trio, struct redis_server *sentinel)
{
    if (trio->options.unhurried)
        return;
    redis_str(sentinel,
              "SENTINEL DEBUG info-period 500 publish-period %d ask-period 200 ping-period 200 "
              "min-link-reconnect-period 1000 tilt-period 1000",
              (int)slow_ms(500));
}

static struct redis_server *trio_start_sentinel(const struct trio *trio, int i, int master_port)
{
    char config[1024], announce[160];
    const struct trio_options *options = &trio->options;
    trio_announce(trio, "sentinel announce-ip", announce);
    snprintf(config, sizeof config,
             "%s"
             "user sentinels on nopass ~* &* +@all\n"
             "sentinel sentinel-user sentinels\n"
             "sentinel sentinel-pass any\n"
             "sentinel monitor " SENTINEL_MASTER " %s %d 2\n"
             "sentinel auth-user " SENTINEL_MASTER " sentinel%d\n"
             "sentinel auth-pass " SENTINEL_MASTER " any\n"
             "sentinel down-after-milliseconds " SENTINEL_MASTER " %lld\n"
             "sentinel failover-timeout " SENTINEL_MASTER " %lld\n"
             "sentinel parallel-syncs " SENTINEL_MASTER " 2\n",
             announce, trio_host(trio), master_port, i, (long long)slow_ms(options->down_after_ms),
             (long long)slow_ms(options->failover_timeout_ms));
    struct redis_server *sentinel =
        redis_server_start(&(struct redis_options){.sentinel = true,
                                                   .tcp = true,
                                                   .tls = options->tls,
                                                   .plain = !options->tls,
                                                   .relative = trio->node[0],
                                                   .password = options->sentinel_password,
                                                   .config = config});
    trio_hurry(trio, sentinel);
    return sentinel;
}

struct trio *trio_start(const struct trio_options *options)
{
    struct trio *trio = calloc(1, sizeof *trio);
    must(trio);
    if (options)
        trio->options = *options;
    if (trio->options.down_after_ms == 0)
        trio->options.down_after_ms = 500;
    if (trio->options.failover_timeout_ms == 0)
        trio->options.failover_timeout_ms = 3000;
    trio->nodes = 1 + (trio->options.replicas ? trio->options.replicas : 1);
    must(trio->nodes <= TRIO_NODES);
    for (int i = 0; i < trio->nodes; i++)
        trio->node[i] = trio_start_node(trio, i);
    for (int i = 0; i < TRIO_SENTINELS; i++)
        trio->sentinel[i] = trio_start_sentinel(trio, i, redis_server_port(trio->node[0]));
    trio_await_whole(trio);
    return trio;
}

void trio_stop(struct trio *trio)
{
    if (!trio)
        return;
    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_server_stop(trio->sentinel[i]);
    for (int i = 0; i < trio->nodes; i++)
        redis_server_stop(trio->node[i]);
    free(trio);
}

void trio_word(const struct trio *trio, char ret_word[TRIO_WORD])
{
    int length = 0;
    for (int i = 0; i < TRIO_SENTINELS + trio->nodes; i++) {
        char word[REDIS_SERVER_WORD];
        redis_server_word(i < TRIO_SENTINELS ? trio->sentinel[i] : trio->node[i - TRIO_SENTINELS],
                          word);
        length += snprintf(ret_word + length, TRIO_WORD - (size_t)length, " %s", word);
    }
}

struct trio *trio_join(const char *word)
{
    struct trio *trio = calloc(1, sizeof *trio);
    must(trio);
    for (int i = 0; (word = strchr(word, ' ')) != NULL; i++) {
        struct redis_server *server = redis_server_join(++word);
        if (i < TRIO_SENTINELS)
            trio->sentinel[i] = server;
        else
            trio->node[trio->nodes++] = server;
    }
    return trio;
}

const char *trio_url_of(const struct trio *trio, int first, int count, const char *login)
{
    static _Thread_local char texts[8][256];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 8], hosts[128];
    int length = 0;
    for (int i = 0; i < count; i++)
        length += snprintf(hosts + length, sizeof hosts - (size_t)length, "%s127.0.0.1:%d",
                           i > 0 ? "," : "",
                           redis_server_port(trio->sentinel[(first + i) % TRIO_SENTINELS]));
    snprintf(text, sizeof texts[0], "%s://%s%s%s%s/" SENTINEL_MASTER,
             trio->options.tls ? "rediss-sentinel" : "redis-sentinel",
             login && !strchr(login, ':') ? ":" : "", login ? login : "", login ? "@" : "", hosts);
    return text;
}

const char *trio_url(const struct trio *trio)
{
    return trio_url_of(trio, 0, TRIO_SENTINELS, NULL);
}

int trio_nodes(const struct trio *trio)
{
    return trio->nodes;
}

struct redis_server *trio_node(const struct trio *trio, int i)
{
    must(i < trio->nodes);
    return trio->node[i];
}

struct redis_server *trio_sentinel(const struct trio *trio, int i)
{
    must(i < TRIO_SENTINELS);
    return trio->sentinel[i];
}

static bool trio_is_current(const struct trio *trio, int i)
{
    return redis_server_is_up(trio->sentinel[i]) && !trio->is_stale[i];
}

struct redis_server *trio_named_by(const struct trio *trio, int i)
{
    int port = sentinel_master_port(trio->sentinel[i]);
    for (int n = 0; n < trio->nodes; n++)
        if (redis_server_port(trio->node[n]) == port)
            return trio->node[n];
    return NULL;
}

/* What all that are up to date name; NULL while they differ. */
static struct redis_server *trio_agreed(const struct trio *trio)
{
    struct redis_server *agreed = NULL;
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        if (!trio_is_current(trio, i))
            continue;
        struct redis_server *named = trio_named_by(trio, i);
        if (!named || (agreed && agreed != named))
            return NULL;
        agreed = named;
    }
    return agreed;
}

static _Noreturn void trio_give_up(const struct trio *trio, const char *what)
{
    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_server_show_log(trio->sentinel[i]);
    for (int i = 0; i < trio->nodes; i++)
        redis_server_show_log(trio->node[i]);
    fatal("%s", what);
}

/* Each look is a dozen commands, so there is a pause between them. */
static void trio_wait(struct trio *trio, bool (*condition)(void *), void *arg, const char *what)
{
    struct deadline deadline = deadline_of_wait(TRIO_PATIENCE_MS);
    while (!condition(arg)) {
        if (deadline_is_over(deadline))
            trio_give_up(trio, what);
        for (int i = 0; i < TRIO_LOOK_MS; i++)
            deadline_nap();
    }
}

struct trio_look {
    struct trio *trio;
    const struct redis_server *old;
    struct redis_server *master;
};

static bool trio_agrees(void *arg)
{
    struct trio_look *look = arg;
    look->master = trio_agreed(look->trio);
    return look->master != NULL;
}

struct redis_server *trio_master(const struct trio *trio)
{
    struct trio_look look = {.trio = (struct trio *)trio};
    trio_wait(look.trio, trio_agrees, &look, "the sentinels do not agree on a master");
    return look.master;
}

struct redis_server *trio_replica(const struct trio *trio)
{
    const struct redis_server *master = trio_master(trio);
    for (int i = 0; i < trio->nodes; i++)
        if (trio->node[i] != master && redis_server_is_up(trio->node[i]))
            return trio->node[i];
    fatal("no replica is up");
}

static bool trio_has_switched(void *arg)
{
    struct trio_look *look = arg;
    return trio_agrees(look) && look->master != look->old && redis_server_is_up(look->master) &&
           redis_is_master(look->master);
}

struct redis_server *trio_await_switch(struct trio *trio, const struct redis_server *old)
{
    struct trio_look look = {.trio = trio, .old = old};
    trio_wait(trio, trio_has_switched, &look, "the sentinels do not agree on another master");
    return look.master;
}

static bool trio_sentinel_is_ready(struct trio *trio, int i, int replicas)
{
    struct redis_server *sentinel = trio->sentinel[i];
    int others = 0;
    for (int n = 0; n < TRIO_SENTINELS; n++)
        others += n != i && trio_is_current(trio, n);
    return sentinel_finds_master_well(sentinel) && sentinel_replicas(sentinel) == replicas &&
           sentinel_others(sentinel) >= others && sentinel_has_quorum(sentinel);
}

static bool trio_is_whole(void *arg)
{
    struct trio_look *look = arg;
    struct trio *trio = look->trio;
    int replicas = 0;
    bool whole = trio_has_switched(look);
    for (int i = 0; i < trio->nodes && whole; i++) {
        if (trio->node[i] == look->master || !redis_server_is_up(trio->node[i]))
            continue;
        whole = redis_replicates(trio->node[i], redis_server_port(look->master));
        replicas++;
    }
    for (int i = 0; i < TRIO_SENTINELS && whole; i++)
        whole = !trio_is_current(trio, i) || trio_sentinel_is_ready(trio, i, replicas);
    return whole;
}

void trio_await_whole(struct trio *trio)
{
    struct trio_look look = {.trio = trio};
    trio_wait(trio, trio_is_whole, &look, "the sentinels do not find all nodes and each other");
}

/* A sentinel refuses while a failover is under way, and when it has no fresh news of a replica. */
static bool trio_failover_is_accepted(void *arg)
{
    struct trio *trio = arg;
    bool accepted = false;
    for (int i = 0; i < TRIO_SENTINELS && !accepted; i++) {
        if (!trio_is_current(trio, i))
            continue;
        redisReply *reply =
            redis_command(trio->sentinel[i], "SENTINEL FAILOVER %s", SENTINEL_MASTER);
        accepted = reply && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    return accepted;
}

static int trio_count_logs(const struct trio *trio, const char *text)
{
    int count = 0;
    for (int i = 0; i < TRIO_SENTINELS; i++)
        if (trio_is_current(trio, i))
            count += redis_server_count_log(trio->sentinel[i], text);
    return count;
}

static const char trio_chosen[] = "+selected-slave", trio_aborted[] = "-failover-abort";

struct trio_failover {
    struct trio *trio;
    bool is_accepted;
    int chosen, aborted; /* lines, before it */
};

/* By the time of its election a sentinel on a busy machine may have no fresh news of a replica any
 * more: then it gives up what it accepted. */
static bool trio_failover_goes_on(void *arg)
{
    struct trio_failover *failover = arg;
    int aborted = trio_count_logs(failover->trio, trio_aborted);
    if (trio_count_logs(failover->trio, trio_chosen) > failover->chosen)
        return true;
    if (!failover->is_accepted || aborted > failover->aborted) {
        failover->aborted = aborted;
        failover->is_accepted = trio_failover_is_accepted(failover->trio);
    }
    return false;
}

/* A second failover because the machine is busy would put the old master back. */
static void trio_take_no_master_for_dead(const struct trio *trio)
{
    for (int i = 0; i < TRIO_SENTINELS; i++)
        if (trio_is_current(trio, i))
            redis_do(trio->sentinel[i],
                     "SENTINEL SET " SENTINEL_MASTER " down-after-milliseconds 600000");
}

void trio_start_failover(struct trio *trio)
{
    trio_take_no_master_for_dead(trio);
    struct trio_failover failover = {.trio = trio,
                                     .chosen = trio_count_logs(trio, trio_chosen),
                                     .aborted = trio_count_logs(trio, trio_aborted)};
    trio_wait(trio, trio_failover_goes_on, &failover, "no sentinel carries out SENTINEL FAILOVER");
}

void trio_restart_sentinel(struct trio *trio, int i)
{
    redis_server_restart(trio->sentinel[i]);
    trio_hurry(trio, trio->sentinel[i]);
}

void trio_reset_sentinel(struct trio *trio, int i)
{
    check_int(redis_int(trio->sentinel[i], "SENTINEL RESET %s", SENTINEL_MASTER), 1);
}

/* The others forget it one after another, so that two always know the replicas. */
void trio_replace_sentinel(struct trio *trio, int i)
{
    must(!trio->is_stale[i]);
    int port = redis_server_port(trio_master(trio));
    redis_server_stop(trio->sentinel[i]);
    trio->sentinel[i] = trio_start_sentinel(trio, i, port);
    for (int n = 0; n < TRIO_SENTINELS; n++)
        if (n != i && trio_is_current(trio, n)) {
            trio_reset_sentinel(trio, n);
            trio_await_whole(trio);
        }
    trio_await_whole(trio);
}

/* News come by a channel of the nodes, and from sentinel to sentinel by PUBLISH. The rights are
 * written down, so that they outlast a node's restart. */
void trio_begin_stale(struct trio *trio, int i)
{
    must(trio_is_current(trio, i));
    trio->is_stale[i] = true;
    for (int n = 0; n < trio->nodes; n++) {
        redis_do(trio->node[n], "ACL SETUSER sentinel%d resetchannels -slaveof -replicaof", i);
        redis_do(trio->node[n], "CONFIG REWRITE");
    }
    redis_do(trio->sentinel[i], "ACL SETUSER sentinels resetchannels -publish");
    redis_server_freeze(trio->sentinel[i]);
}

/* New connections, for what was refused on the old ones is not asked again. */
void trio_end_stale(struct trio *trio, int i)
{
    must(trio->is_stale[i]);
    redis_do(trio->sentinel[i], "ACL SETUSER sentinels allchannels +publish");
    for (int n = 0; n < trio->nodes; n++) {
        redis_do(trio->node[n], "ACL SETUSER sentinel%d allchannels +@all", i);
        redis_do(trio->node[n], "CONFIG REWRITE");
        redis_int(trio->node[n], "CLIENT KILL USER sentinel%d", i);
    }
    trio->is_stale[i] = false;
}
