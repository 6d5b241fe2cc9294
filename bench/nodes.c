/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Processes; of a cluster slots and introductions. */
#include "nodes.h"

#include "instant.h"
#include "must.h"
#include "route/slots.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ports of a node, its own and the bus's, are below those that the kernel gives to clients. */
enum { NODES_PORTS = 10000, NODES_LAST_PORT = 22000, NODES_TRIES = 20 };
enum { NODES_PATIENCE_MS = 60000, NODES_LOOK_MS = 20, NODES_START_MS = 10000 };

/* TLS has the next port. A server exits when it has not got both. */
static int nodes_tls_port(const struct nodes *nodes, int port)
{
    return nodes->certificate ? port + 1 : 0;
}

/* Each node reads its own when it begins. */
static void node_configure(const struct nodes *nodes, int port)
{
    FILE *config = fopen("config", "we");

    must(config != NULL, "no file of a configuration");
    if (nodes->certificate)
        fprintf(config,
                "tls-port %d\ntls-cluster yes\ntls-auth-clients no\ntls-cert-file %s/server.pem\n"
                "tls-key-file %s/server.key\ntls-ca-cert-file %s/server.pem\n",
                nodes_tls_port(nodes, port), nodes->certificate, nodes->certificate,
                nodes->certificate);
    must(fclose(config) == 0, "the file of a configuration cannot be written");
}

static _Noreturn void node_exec(const struct nodes *nodes, bool is_alone, int number, pid_t parent)
{
    char file[64], port[16];
    bool is_there = chdir(nodes->dir) == 0;
    if (is_there)
        node_configure(nodes, number);
    int log = is_there ? open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    snprintf(port, sizeof(port), "%d", number);
    snprintf(file, sizeof(file), "nodes-%d.conf", number);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && log >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
        execlp("redis-server", "redis-server", "config", "--bind", "127.0.0.1", "--port", port,
               "--save", "", "--appendonly", "no", "--cluster-enabled", is_alone ? "no" : "yes",
               "--cluster-config-file", file, "--cluster-require-full-coverage", "no",
               (char *)NULL);
    _exit(127);
}

static bool node_answers(int port)
{
    redisContext *link = redisConnect("127.0.0.1", port);
    redisReply *reply = link && !link->err ? redisCommand(link, "PING") : NULL;
    bool is_pong = reply && reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    redisFree(link);
    return is_pong;
}

/* False when the program ended instead: the port may be taken. */
static bool node_comes_up(pid_t pid, int port)
{
    int64_t deadline = instant_after_ms(NODES_START_MS);

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (node_answers(port))
            return waitpid(pid, NULL, WNOHANG) == 0; /* else it was another's server */
        must(instant_now() < deadline, "a redis-server does not answer");
        instant_sleep_ms(NODES_LOOK_MS);
    }
    return false;
}

static void node_start(const struct nodes *nodes, struct server *server, bool is_alone)
{
    const pid_t parent = getpid();

    for (int i = 0; i < NODES_TRIES; i++) {
        int port = NODES_PORTS + (int)(instant_now() / 1000 % (NODES_LAST_PORT - NODES_PORTS));
        pid_t pid = fork();
        must(pid >= 0, "no more processes");
        if (pid == 0)
            node_exec(nodes, is_alone, port, parent);
        if (node_comes_up(pid, port)) {
            server_open(server, port);
            return;
        }
    }
    must(false, "no redis-server can be started: see %s/log", nodes->dir);
}

static void node_do(struct server *server, const char *format, int first, int last)
{
    redisReply *reply = redisCommand(server->link, format, first, last);

    must(reply && reply->type == REDIS_REPLY_STATUS, "%s: %s", format,
         reply ? reply->str : server->link->errstr);
    freeReplyObject(reply);
}

static int nodes_first_slot(const struct nodes *nodes, int index)
{
    return HLI_SLOTS * index / nodes->count;
}

static bool node_is_ready(struct server *server, int nodes)
{
    char known[64];
    redisReply *reply = redisCommand(server->link, "CLUSTER INFO");

    must(reply && reply->type == REDIS_REPLY_STRING, "CLUSTER INFO: no text");
    snprintf(known, sizeof(known), "cluster_size:%d\r", nodes);
    bool is_ready = strstr(reply->str, "cluster_state:ok") && strstr(reply->str, known) &&
                    strstr(reply->str, "cluster_slots_ok:16384");
    freeReplyObject(reply);
    return is_ready;
}

/* Where the other nodes are to meet it. */
static int nodes_bus(const struct nodes *nodes, int index)
{
    const int port = nodes->node[index].port;

    return nodes->certificate ? nodes_tls_port(nodes, port) : port;
}

static void nodes_introduce(struct nodes *nodes)
{
    int64_t deadline = instant_after_ms(NODES_PATIENCE_MS);

    for (int i = 0; i < nodes->count; i++) {
        node_do(&nodes->node[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1, 0);
        node_do(&nodes->node[i], "CLUSTER ADDSLOTSRANGE %d %d", nodes_first_slot(nodes, i),
                nodes_first_slot(nodes, i + 1) - 1);
        for (int n = 0; n < i; n++)
            node_do(&nodes->node[i], "CLUSTER MEET 127.0.0.1 %d", nodes_bus(nodes, n), 0);
    }
    for (int i = 0; i < nodes->count; i++)
        while (!node_is_ready(&nodes->node[i], nodes->count)) {
            must(instant_now() < deadline, "the nodes do not become a cluster");
            instant_sleep_ms(NODES_LOOK_MS);
        }
}

static void nodes_start_all(struct nodes *nodes, int masters, bool is_alone,
                            const char *certificate)
{
    const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */

    *nodes = (struct nodes){.count = masters, .certificate = certificate};
    snprintf(nodes->dir, sizeof(nodes->dir), "%s/hl-bench-nodes-XXXXXX", parent ? parent : "/tmp");
    must(mkdtemp(nodes->dir) != NULL, "no temporary folder");
    for (int i = 0; i < masters; i++)
        node_start(nodes, &nodes->node[i], is_alone);
}

void nodes_start(struct nodes *nodes, int masters)
{
    nodes_start_tls(nodes, masters, NULL);
}

void nodes_start_tls(struct nodes *nodes, int masters, const char *certificate)
{
    nodes_start_all(nodes, masters, false, certificate);
    nodes_introduce(nodes);
    snprintf(nodes->url, sizeof(nodes->url), "%s-cluster://127.0.0.1:%d",
             certificate ? "rediss" : "redis", nodes_bus(nodes, 0));
}

void nodes_start_alone(struct nodes *nodes, int masters)
{
    nodes_start_all(nodes, masters, true, NULL);
}

static void nodes_remove(const char *dir, const char *format, int port)
{
    char name[64], path[256];

    snprintf(name, sizeof(name), format, port);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
}

void nodes_stop(struct nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++) {
        server_close(&nodes->node[i]);
        kill(nodes->node[i].pid, SIGKILL);
        waitpid(nodes->node[i].pid, NULL, 0);
        nodes_remove(nodes->dir, "nodes-%d.conf", nodes->node[i].port);
    }
    nodes_remove(nodes->dir, "log", 0);
    nodes_remove(nodes->dir, "config", 0);
    rmdir(nodes->dir);
}

struct nodes nodes_single(const struct server *server)
{
    struct nodes nodes = {.count = 1, .node = {*server}};

    snprintf(nodes.url, sizeof(nodes.url), "%s", server->url);
    return nodes;
}

int nodes_index(const struct nodes *nodes, const char *name)
{
    const int slot = (int)hli_slot_of(name, strlen(name));
    int index = nodes->count - 1;

    while (slot < nodes_first_slot(nodes, index))
        index--;
    return index;
}

double nodes_sum(struct nodes *nodes, double (*ask)(struct server *server))
{
    double sum = 0;

    for (int i = 0; i < nodes->count; i++)
        sum += ask(&nodes->node[i]);
    return sum;
}

double nodes_calls(struct nodes *nodes, const char *command)
{
    double sum = 0;

    for (int i = 0; i < nodes->count; i++)
        sum += (double)server_calls(&nodes->node[i], command);
    return sum;
}

double nodes_command_us(struct nodes *nodes, const char *command)
{
    double sum = 0;

    for (int i = 0; i < nodes->count; i++)
        sum += server_command_us(&nodes->node[i], command);
    return sum;
}

double nodes_keys(struct nodes *nodes)
{
    double sum = 0;

    for (int i = 0; i < nodes->count; i++)
        sum += (double)server_int(&nodes->node[i], "DBSIZE");
    return sum;
}

void nodes_flush(struct nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++)
        server_flush(&nodes->node[i]);
}

void nodes_set_sharded(struct nodes *nodes, bool is_sharded)
{
    for (int i = 0; i < nodes->count; i++)
        node_do(&nodes->node[i],
                is_sharded ? "ACL SETUSER default +pubsub|shardnumsub"
                           : "ACL SETUSER default -pubsub|shardnumsub",
                0, 0);
}
