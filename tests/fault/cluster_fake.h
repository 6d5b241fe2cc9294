/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Fake nodes of a cluster, for the tests of nodes that lie: what each says of the cluster, and what
 * it answers to scripts. All else it answers as a healthy, empty Redis does.
 */
#ifndef HL_TEST_CLUSTER_FAKE_H
#define HL_TEST_CLUSTER_FAKE_H

#include "redis/script.h"
#include "support/fake_server.h"
#include "support/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_node {
    struct fake_server *server;
    pthread_mutex_t mutex; /* of all below: the server's thread reads them */
    char info[256];        /* answers to CLUSTER INFO, CLUSTER SLOTS, and each script */
    char *slots;
    char script[256]; /* "": as a healthy server */
    char id[64];      /* answers CLUSTER MYID; "": it does not know that command */
    bool is_old;      /* has no sharded pub/sub, as before Redis 7 */
    int64_t slots_delay_ms;
    enum fake_then slots_then, script_then;
    char watched[64]; /* a name */
    int released;     /* how many times its lock was released */
};

static inline void fake_node_note(struct fake_node *node, const struct resp_command *command)
{
    const char *release = hli_script_get(HLI_SCRIPT_LOCK_RELEASE)->sha1;
    if (node->watched[0] && resp_command_arg_is(command, 1, release) &&
        resp_command_arg_is(command, 3, node->watched))
        node->released++;
}

static inline void fake_node_acknowledge(const struct resp_command *command,
                                         struct fake_reply *reply, const char *kind)
{
    for (int i = 1; i < command->argc; i++) {
        fake_reply_text(reply, "*3\r\n");
        fake_reply_bulk(reply, kind, strlen(kind));
        fake_reply_bulk(reply, command->argv[i], command->length[i]);
        fake_reply_text(reply, ":1\r\n");
    }
}

static inline bool fake_node_answer_locked(struct fake_node *node,
                                           const struct resp_command *command,
                                           struct fake_reply *reply)
{
    if (resp_command_begins(command, "CLUSTER INFO")) {
        fake_reply_text(reply, node->info);
    } else if (resp_command_begins(command, "CLUSTER SLOTS")) {
        fake_reply_text(reply, node->slots ? node->slots : "*0\r\n");
        reply->delay_ms = node->slots_delay_ms;
        reply->then = node->slots_then;
    } else if (resp_command_begins(command, "CLUSTER MYID") && node->id[0]) {
        fake_reply_text(reply, node->id);
    } else if (resp_command_begins(command, "EVALSHA") && node->script[0]) {
        fake_reply_text(reply, node->script[0] == '(' ? "" : node->script);
        reply->then = node->script_then;
    } else {
        return false;
    }
    return true;
}

static inline bool fake_node_answer(const struct resp_command *command, struct fake_reply *reply,
                                    void *arg)
{
    struct fake_node *node = arg;
    if (resp_command_begins(command, "PUBSUB SHARDNUMSUB"))
        fake_reply_text(reply, node->is_old ? "-ERR Unknown subcommand\r\n" : "*0\r\n");
    else if (resp_command_begins(command, "ASKING"))
        fake_reply_text(reply, "+OK\r\n");
    else if (resp_command_begins(command, "SSUBSCRIBE"))
        fake_node_acknowledge(command, reply, "ssubscribe");
    else if (resp_command_begins(command, "SUNSUBSCRIBE"))
        fake_node_acknowledge(command, reply, "sunsubscribe");
    else {
        pthread_mutex_lock(&node->mutex);
        fake_node_note(node, command);
        bool is_answered = fake_node_answer_locked(node, command, reply);
        pthread_mutex_unlock(&node->mutex);
        return is_answered;
    }
    return true;
}

static inline void fake_node_stop(void *arg)
{
    struct fake_node *node = arg;
    fake_server_stop(node->server);
    free(node->slots);
    free(node);
}

/* What it says of the epoch: "cluster_current_epoch:1", and anything else. */
static inline void fake_node_set_info(struct fake_node *node, const char *text)
{
    pthread_mutex_lock(&node->mutex);
    snprintf(node->info, sizeof node->info, "$%zu\r\n%s\r\n", strlen(text), text);
    pthread_mutex_unlock(&node->mutex);
}

static inline struct fake_node *new_fake_node(void)
{
    struct fake_node *node = calloc(1, sizeof *node);
    check(node != NULL);
    pthread_mutex_init(&node->mutex, NULL);
    fake_node_set_info(node, "cluster_state:ok\r\ncluster_current_epoch:1\r\n");
    node->server = fake_server_start(fake_node_answer, node);
    return stop_at_end(node, fake_node_stop);
}

static inline int fake_node_port(const struct fake_node *node)
{
    return fake_server_port(node->server);
}

/* RESP as it is. "(silence)" to a script is none. */
static inline void fake_node_set_slots(struct fake_node *node, const char *text)
{
    pthread_mutex_lock(&node->mutex);
    free(node->slots);
    node->slots = strdup(text);
    pthread_mutex_unlock(&node->mutex);
}

static inline void fake_node_set_script(struct fake_node *node, const char *text)
{
    pthread_mutex_lock(&node->mutex);
    snprintf(node->script, sizeof node->script, "%s", text);
    pthread_mutex_unlock(&node->mutex);
}

/* As the face of this number in a map. */
static inline void fake_node_set_id(struct fake_node *node, int id)
{
    pthread_mutex_lock(&node->mutex);
    snprintf(node->id, sizeof node->id, "$40\r\n%040d\r\n", id);
    pthread_mutex_unlock(&node->mutex);
}

/* "-MOVED 3999 127.0.0.1:6381", of the slot of this name. */
static inline void fake_node_redirect(struct fake_node *node, const char *word, unsigned slot,
                                      const char *host, int port)
{
    char text[128];
    snprintf(text, sizeof text, "-%s %u %s:%d\r\n", word, slot, host, port);
    fake_node_set_script(node, text);
}

static inline void fake_node_watch(struct fake_node *node, const char *name)
{
    pthread_mutex_lock(&node->mutex);
    snprintf(node->watched, sizeof node->watched, "%s", name);
    node->released = 0;
    pthread_mutex_unlock(&node->mutex);
}

static inline bool fake_node_has_released(void *arg)
{
    struct fake_node *node = arg;
    pthread_mutex_lock(&node->mutex);
    bool has = node->released > 0;
    pthread_mutex_unlock(&node->mutex);
    return has;
}

struct fake_range {
    int first, last;
    int port;
};

/* The node's id is its port; that of its replica is 1 for all, so their maps are of one cluster. */
static inline void fake_range_write(FILE *out, const struct fake_range *range, const char *host)
{
    fprintf(out,
            "*4\r\n:%d\r\n:%d\r\n*3\r\n$%zu\r\n%s\r\n:%d\r\n$40\r\n%040d\r\n"
            "*3\r\n$9\r\n127.0.0.1\r\n:1\r\n$40\r\n%040d\r\n",
            range->first, range->last, strlen(host), host, range->port, range->port, 1);
}

/* All these nodes say that map. */
static inline void fake_nodes_set_map(struct fake_node *const *nodes, size_t count,
                                      const struct fake_range *ranges, size_t range_count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    check(out != NULL);
    fprintf(out, "*%zu\r\n", range_count);
    for (size_t i = 0; i < range_count; i++)
        fake_range_write(out, &ranges[i], "127.0.0.1");
    fclose(out);
    for (size_t i = 0; i < count; i++)
        fake_node_set_slots(nodes[i], text);
    free(text);
}

/* The node has all slots, and says so. */
static inline void fake_node_set_alone(struct fake_node *node)
{
    const struct fake_range all = {0, 16383, fake_node_port(node)};
    fake_nodes_set_map(&node, 1, &all, 1);
}

static inline const char *fake_cluster_url(struct fake_node *first, struct fake_node *second)
{
    static char url[128];
    int length = snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%d", fake_node_port(first));
    if (second)
        snprintf(url + length, sizeof url - (size_t)length, ",127.0.0.1:%d",
                 fake_node_port(second));
    return url;
}

#endif
