/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Tests join what their program has started by a word in the environment. */
#include "shared_servers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "certificates.h"
#include "fatal.h"
#include "redis_link.h"
#include "redis_program.h"
#include "redis_shards.h"
#include "topologies.h"

static const char variable[] = "HL_TEST_SHARED_SERVERS";

/* In the process that starts the tests. */
static struct trio *program_trio;
static struct redis_cluster *program_cluster;
static char program_authority[64]; /* its directory */

static bool has_tls(void)
{
    const char *kind = getenv("HL_TEST_SERVER");
    return kind && strcmp(kind, "tls") == 0;
}

enum shared_servers shared_servers_wanted(void)
{
    const char *kind = getenv("HL_TEST_SERVER");
    if (!kind || has_tls())
        return SHARED_NONE;
    if (strcmp(kind, "sentinel") == 0)
        return SHARED_TRIO;
    if (strcmp(kind, "cluster") == 0)
        return SHARED_CLUSTER;
    if (strcmp(kind, "plain_cluster") == 0)
        return SHARED_PLAIN_CLUSTER;
    fatal("HL_TEST_SERVER=%s is not known", kind);
}

/* No test of shared servers is about their failovers, so none begins because the machine is slow.
 */
static void start_trio(void)
{
    char word[TRIO_WORD];
    program_trio = trio_start(&(struct trio_options){.down_after_ms = 30000});
    trio_word(program_trio, word);
    setenv(variable, word, 1);
}

static void start_cluster(bool is_plain)
{
    static const char denied[] = "user default on nopass ~* &* +@all -pubsub|shardnumsub";
    char word[CLUSTER_WORD];
    program_cluster = cluster_start(&(struct cluster_options){
        .without_replicas = true, .config = is_plain && redis_program_is_7() ? denied : NULL});
    cluster_word(program_cluster, word);
    setenv(variable, word, 1);
}

/* Beside the servers' directories, which have its files by links. */
static void start_authority(void)
{
    char path[80];
    const char *base = getenv("TMPDIR");
    snprintf(program_authority, sizeof program_authority, "%s/hl-authority-XXXXXX",
             base && strlen(base) < 40 ? base : "/tmp");
    if (!mkdtemp(program_authority))
        fatal_errno("mkdtemp %s", program_authority);
    certificate_make(program_authority, &(struct certificate){.name = "ca"});
    snprintf(path, sizeof path, "%s/ca.pem", program_authority);
    setenv(REDIS_SERVER_AUTHORITY, program_authority, 1);
    setenv("SSL_CERT_FILE", path, 1);
}

static void stop_authority(void)
{
    static const char *const files[] = {"/ca.pem", "/ca.key", ""};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[80];
        snprintf(path, sizeof path, "%s%s", program_authority, files[i]);
        must(remove(path) == 0);
    }
}

void shared_servers_start(enum shared_servers kind)
{
    if (kind == SHARED_TRIO)
        start_trio();
    else if (kind != SHARED_NONE)
        start_cluster(kind == SHARED_PLAIN_CLUSTER);
    else if (has_tls())
        start_authority();
}

void shared_servers_stop(void)
{
    trio_stop(program_trio);
    cluster_stop(program_cluster);
    if (program_authority[0])
        stop_authority();
}

/* Held until the test's process ends. */
static void await_turn(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/turn", redis_server_dir(server));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        fatal_errno("lock %s", path);
}

static struct redis_shards shards; /* this test's */

static void stand_together(void)
{
    shards.url = cluster ? cluster_url(cluster) : trio_url(trio);
    shards.has_sharded_messages = shared_servers_wanted() == SHARED_CLUSTER && redis_program_is_7();
    shards.count = cluster ? cluster_masters(cluster) : 1;
    for (int i = 0; i < shards.count; i++)
        shards.shard[i] = cluster ? cluster_node(cluster, i) : server;
    redis_server_stand_for(server, &shards);
}

static bool is_own_user(const char *user)
{
    return strcmp(user, "default") == 0 || strcmp(user, "hltest") == 0 ||
           strncmp(user, "sentinel", 8) == 0;
}

/* Rights that a test has given or taken. */
static void reset_users(struct redis_server *shard)
{
    redisReply *users = redis_command(shard, "ACL USERS");
    must(users && users->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < users->elements; i++)
        if (!is_own_user(users->element[i]->str))
            redis_do(shard, "ACL DELUSER %s", users->element[i]->str);
    freeReplyObject(users);
    redis_do(shard, "ACL SETUSER default on nopass ~* &* +@all");
    if (shared_servers_wanted() == SHARED_PLAIN_CLUSTER && redis_program_is_7())
        redis_do(shard, "ACL SETUSER default -pubsub|shardnumsub");
}

static void ask(redisContext *link, const char *command)
{
    redisReply *reply = redisCommand(link, command);
    must(reply && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

/* Waits until this shard has heard what the others have published so far. A node's messages come
 * in their order, but behind the answers of the requests that sent them. */
static void hear_out(struct redis_server *listener)
{
    redisContext *ear = redis_link_connect(redis_server_socket(listener));
    must(ear);
    ask(ear, "SUBSCRIBE turn");
    for (int i = 0; i < shards.count; i++) {
        redisContext *voice = redis_link_connect(redis_server_socket(shards.shard[i]));
        must(voice);
        ask(voice, "PUBLISH turn begins");
        redisFree(voice);
    }
    for (int i = 0; i < shards.count; i++) {
        redisReply *reply = NULL;
        must(redisGetReply(ear, (void **)&reply) == REDIS_OK);
        freeReplyObject(reply);
    }
    redisFree(ear);
}

static void await_no_clients(void)
{
    redis_wait_clients(server, REDIS_NORMAL, 0, 5000);
    redis_wait_clients(server, REDIS_PUBSUB, 0, 5000);
}

/* The clients of the test before have gone, also those of a test that failed, and so have their
 * messages. A link that is used before a test starts processes would be theirs, too. */
static void begin_anew(void)
{
    await_no_clients();
    for (int i = 0; i < shards.count && shards.count > 1; i++)
        hear_out(shards.shard[i]);
    await_no_clients();
    redis_do(server, "CONFIG SET maxmemory 0");
    redis_do(server, "FLUSHALL");
    redis_do(server, "SCRIPT FLUSH");
    redis_do(server, "CONFIG RESETSTAT");
    for (int i = 0; i < shards.count; i++) {
        reset_users(shards.shard[i]);
        redis_link_drop(redis_server_link(shards.shard[i]));
    }
}

void shared_servers_join(void)
{
    const char *word = getenv(variable);
    if (!word)
        fatal("this program has no servers for HL_TEST_SERVER=%s", getenv("HL_TEST_SERVER"));
    if (shared_servers_wanted() == SHARED_TRIO)
        trio_up_joined(word);
    else
        cluster_up_joined(word);
    await_turn();
    stand_together();
    begin_anew();
}
