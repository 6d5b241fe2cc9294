/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The scripts, called raw at a cluster, with a cluster's words: while their slot moves, with each
 * choice of its keys at the new node already, a script runs as a whole or changes nothing. And
 * their messages are sharded ones.
 */
#include "redis/script.h"
#include "support/fatal.h"
#include "support/redis_link.h"
#include "support/redis_program.h"
#include "support/slot_move.h"
#include "support/topologies.h"

#include <string.h>

/* The beginnings of words; "-" alone is the empty word. */
#define QUEUE "hirelock_queue:{n}"
#define FAIR "redisson_lock_queue:{n} redisson_lock_timeout:{n} hirelock_fair:{n}"
#define FAIR_WORDS "SPUBLISH SHARDNUMSUB 5000 1000"
#define TOKEN "redisson_lock_token:{n}"
#define TAG "hirelock_holder:{n}"
#define WAITER "hirelock_waiter:{n}:" UUID ":1"
#define WRITER "hirelock_rw_writer:{n}"
#define NOTES "hirelock_note:{n}:u:"
#define NOTED NOTES "1 " NOTES "0"
#define TURN QUEUE " 60000 1"
#define LINE_OF(field) "ZADD " QUEUE " 1 " field " 9e15 @" field "|"
#define OUT "{n}:timeout"
#define ID "0123456789abcdef"
#define HOLD(reader) "{n}:" reader ":rwlock_timeout:1"
#define LOCKS "redisson_lock__channel:{n} SPUBLISH"
#define PERMITS "redisson_sc:{n} SPUBLISH"
#define READERS "redisson_rwlock:{n} SPUBLISH"
#define REDLOCKS "hirelock_redlock:{n} SPUBLISH"
#define LATCHES "redisson_countdownlatch__channel__{n} SPUBLISH"
#define RELEASE LOCKS " " QUEUE " hirelock:{n}: 4000 hirelock:{n} 1 SHARDNUMSUB"
#define UUID "0d1c2b3a-4f5e-6789-abcd-ef0123456789"

#define HELD(field) "HSET n " field " 1|PEXPIRE n 60000|"
#define QUEUED "ZADD " QUEUE " 1 B:1 2 C:1|"
#define FAIR_QUEUE(asked)                                                                          \
    "RPUSH redisson_lock_queue:{n} C:1|ZADD redisson_lock_timeout:{n} 99999999999999 C:1|"         \
    "HSET hirelock_fair:{n} C:1 " asked "|"
#define READS(reader)                                                                              \
    "HSET n mode read " reader " 1|PEXPIRE n 60000|SET " HOLD(reader) " 1 PX 9000|"
#define OVER(reader) "HSET n " reader " 1|"
#define SAYS(value) "SET n " value " PX 60000|"
#define IS_OUT(score) "SET n 2|ZADD " OUT " " score " " ID "|"

enum { SCENE_KEYS = 8 };

static const struct scene {
    hli_script_id script;
    const char *before; /* commands that make the keys */
    const char *keys, *words;
} scenes[] = {
    {HLI_SCRIPT_LOCK_ACQUIRE, "", "n " QUEUE,
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: - 0 - SPUBLISH"},
    {HLI_SCRIPT_LOCK_ACQUIRE, HELD("A:1"), "n " QUEUE,
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: - 0 - SPUBLISH"},
    {HLI_SCRIPT_LOCK_ACQUIRE, HELD("D:1") QUEUED "SET " TAG " tag|SET " TOKEN " 7|",
     "n " QUEUE " " TOKEN " " TAG,
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: " TOKEN " 1 " TAG " SPUBLISH"},
    {HLI_SCRIPT_LOCK_ACQUIRE, HELD("A:1") QUEUED "SET " TOKEN " 7|", "n " QUEUE " " TOKEN,
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: " TOKEN " 1 - SPUBLISH"},
    /* with the lock's key alone */
    {HLI_SCRIPT_LOCK_ACQUIRE, HELD("D:1") QUEUED, "n",
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: - 0 - SPUBLISH"},
    {HLI_SCRIPT_LOCK_ACQUIRE, QUEUED, "n",
     "A:1 5000 1 " QUEUE " 30000 hirelock:{n}: - 0 - SPUBLISH"},
    {HLI_SCRIPT_LOCK_RELEASE, HELD("A:1"), "n " QUEUE, "A:1 0 0 0 " RELEASE},
    {HLI_SCRIPT_LOCK_RELEASE, HELD("A:1") QUEUED, "n " QUEUE, "A:1 0 0 0 " RELEASE},
    {HLI_SCRIPT_LOCK_RELEASE, HELD("A:1") QUEUED "SET " TOKEN " 7|", "n " QUEUE " " TOKEN,
     "A:1 0 0 0 " RELEASE " " TOKEN},
    {HLI_SCRIPT_LOCK_RELEASE, HELD("A:1") QUEUED, "n " QUEUE, "A:1 0 0 500 " RELEASE},
    {HLI_SCRIPT_LOCK_RELEASE, HELD("A:1") QUEUED, "n", "A:1 0 0 0 " RELEASE},
    {HLI_SCRIPT_LOCK_RELEASE, QUEUED, "n", "B:1 0 0 0 " RELEASE},
    {HLI_SCRIPT_LOCK_RENEW, HELD("A:1"), "n", "5000 A:1"},
    {HLI_SCRIPT_LOCK_RENEW, HELD("A:1") "HSET m{n} A:2 1|PEXPIRE m{n} 500|", "n m{n}",
     "5000 A:1 A:2"},
    {HLI_SCRIPT_LOCK_RECLAIM, "", "n", "5000 A:1 2 99999999999999 -"},
    {HLI_SCRIPT_LOCK_RECLAIM, HELD("D:1") "HSET m{n} A:2 1|PEXPIRE m{n} 500|", "n m{n}",
     "5000 A:1 1 99999999999999 - A:2 1 99999999999999 -"},
    {HLI_SCRIPT_LOCK_RECLAIM, READS(UUID ":1"), "n",
     "5000 " UUID ":2:write 1 99999999999999 " UUID ":1"},
    {HLI_SCRIPT_LOCK_KEEP, HELD("A:1") QUEUED, "n " QUEUE,
     "A:1 5000 redisson_lock__channel:{n} " QUEUE " hirelock:{n} SHARDNUMSUB"},
    {HLI_SCRIPT_LOCK_KEEP, HELD("A:1"), "n",
     "A:1 5000 redisson_lock__channel:{n} " QUEUE " hirelock:{n} SHARDNUMSUB"},
    {HLI_SCRIPT_LOCK_FORCE_RELEASE, HELD(UUID ":1"), "n", LOCKS " hirelock:{n}:"},
    {HLI_SCRIPT_LOCK_INSPECT, HELD("A:1") "SET " TAG " tag|", "n " TAG, TAG},
    {HLI_SCRIPT_LOCK_TAG, HELD("A:1"), "n " TAG, "A:1 1 10 words 300000"},
    {HLI_SCRIPT_LOCK_TAG, HELD("A:1") "SET " TAG " tag|", "n " TAG, "A:1 1 10 words 300000"},
    {HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "", "n " FAIR, FAIR_WORDS " A:1 5000 1 1"},
    {HLI_SCRIPT_FAIR_LOCK_ACQUIRE, HELD("D:1") FAIR_QUEUE("99999999999999:5000"), "n " FAIR,
     FAIR_WORDS " A:1 5000 1 1"},
    {HLI_SCRIPT_FAIR_LOCK_ACQUIRE, HELD("D:1") FAIR_QUEUE("1:5000"), "n " FAIR,
     FAIR_WORDS " C:1 5000 1 1"},
    {HLI_SCRIPT_FAIR_LOCK_RELEASE, HELD("A:1") FAIR_QUEUE("99999999999999:5000"), "n " FAIR,
     FAIR_WORDS " A:1 0 0 0"},
    {HLI_SCRIPT_FAIR_LOCK_RELEASE, HELD("A:1") FAIR_QUEUE("1:5000"), "n " FAIR,
     FAIR_WORDS " A:1 0 0 0"},
    {HLI_SCRIPT_FAIR_LOCK_RELEASE, HELD("D:1") FAIR_QUEUE("1:5000"), "n " FAIR,
     FAIR_WORDS " C:1 0 0 0"},
    {HLI_SCRIPT_FAIR_LOCK_FORCE_RELEASE, HELD(UUID ":1") FAIR_QUEUE("1:5000"), "n " FAIR,
     FAIR_WORDS " -"},
    {HLI_SCRIPT_FENCE_RELEASE, HELD("A:1") QUEUED "SET d{n} v|SET hirelock_fence:d{n} 3|",
     "n d{n} hirelock_fence:d{n} " QUEUE, "A:1 0 0 0 " RELEASE " w 7 0 0"},
    {HLI_SCRIPT_FENCE_SET, "SET d{n} v|SET hirelock_fence:d{n} 3|", "d{n} hirelock_fence:d{n}",
     "w 7 0 0"},
    {HLI_SCRIPT_MULTI_ACQUIRE, HELD("A:1") "HSET m{n} D:1 1|PEXPIRE m{n} 60000|",
     "n m{n} " QUEUE " hirelock_queue:m{n}",
     "5000 1 30000 - A:1 " QUEUE " - A:2 hirelock_queue:m{n} - SPUBLISH"},
    {HLI_SCRIPT_MULTI_ACQUIRE,
     HELD("A:1") QUEUED "HSET m{n} D:1 1|PEXPIRE m{n} 60000|ZADD hirelock_queue:m{n} 1 B:1|",
     "n m{n} " QUEUE " hirelock_queue:m{n}",
     "5000 1 30000 - A:1 " QUEUE " - A:2 hirelock_queue:m{n} - SPUBLISH"},
    {HLI_SCRIPT_MULTI_RELEASE,
     HELD("A:1") QUEUED "HSET m{n} A:2 1|PEXPIRE m{n} 60000|ZADD hirelock_queue:m{n} 1 B:1|",
     "n m{n} " QUEUE " hirelock_queue:m{n}",
     "SPUBLISH SHARDNUMSUB A:1 redisson_lock__channel:{n} " QUEUE " hirelock:{n} 1 A:2 "
     "redisson_lock__channel:m{n} hirelock_queue:m{n} hirelock:m{n} 0"},
    {HLI_SCRIPT_LATCH_COUNT, "SET n 2|", "n", ""},
    {HLI_SCRIPT_LATCH_COUNT_DOWN, "SET n 1|", "n " NOTED, NOTES " 1 60000 " LATCHES " 0"},
    {HLI_SCRIPT_LATCH_COUNT_DOWN, "SET n 1|SET " NOTES "1 0|SET " NOTES "0 0|", "n " NOTED,
     NOTES " 1 60000 " LATCHES " 0"},
    {HLI_SCRIPT_LATCH_DELETE, "SET n 1|", "n " NOTED, NOTES " 1 60000 " LATCHES " 0"},
    {HLI_SCRIPT_LATCH_SET_COUNT, "", "n " NOTED, NOTES " 1 60000 " LATCHES " 2 0"},
    {HLI_SCRIPT_PERMIT_ACQUIRE, IS_OUT("99999999999999"), "n " OUT,
     "fedcba9876543210 5000 " PERMITS},
    {HLI_SCRIPT_PERMIT_ACQUIRE, IS_OUT("1"), "n " OUT, "fedcba9876543210 5000 " PERMITS},
    {HLI_SCRIPT_PERMIT_ACQUIRE, IS_OUT("99999999999999") "PEXPIRE n 60000|", "n " OUT,
     "fedcba9876543210 5000 " PERMITS},
    {HLI_SCRIPT_PERMIT_ADD, IS_OUT("1"), "n " OUT, "1 " PERMITS},
    {HLI_SCRIPT_PERMIT_DELETE, IS_OUT("99999999999999"), "n " OUT, ""},
    {HLI_SCRIPT_PERMIT_INSPECT, IS_OUT("1"), "n " OUT, PERMITS},
    {HLI_SCRIPT_PERMIT_LEASE_LEFT, IS_OUT("99999999999999"), "n " OUT, ID " " PERMITS},
    {HLI_SCRIPT_PERMIT_RELEASE, IS_OUT("99999999999999"), "n " OUT, ID " " PERMITS},
    {HLI_SCRIPT_PERMIT_RELEASE, IS_OUT("1"), "n " OUT, ID " " PERMITS},
    {HLI_SCRIPT_PERMIT_RENEW, IS_OUT("99999999999999"), "n " OUT, "5000 " ID},
    {HLI_SCRIPT_PERMIT_RECLAIM, IS_OUT("1"), "n " OUT, "5000 " ID " 1 99999999999999 -"},
    {HLI_SCRIPT_PERMIT_RECLAIM, "SET n 2|", "n " OUT, "5000 " ID " 1 99999999999999 -"},
    {HLI_SCRIPT_PERMIT_SET, IS_OUT("1"), "n " OUT, "5 0 0 " PERMITS},
    {HLI_SCRIPT_PERMIT_SET, IS_OUT("99999999999999"), "n " OUT, "5 0 60000 " PERMITS},
    {HLI_SCRIPT_PERMIT_SET, IS_OUT("99999999999999") "PEXPIRE n 30000|", "n " OUT,
     "5 1 60000 " PERMITS},
    {HLI_SCRIPT_PERMIT_RENEW, IS_OUT("99999999999999") "PEXPIRE n 60000|", "n " OUT, "5000 " ID},
    {HLI_SCRIPT_PERMIT_UPDATE_LEASE, IS_OUT("99999999999999"), "n " OUT, ID " 5000 " PERMITS},
    {HLI_SCRIPT_REDLOCK_ACQUIRE, "", "n", "A:1 5000"},
    {HLI_SCRIPT_REDLOCK_ACQUIRE, SAYS("A:1"), "n", "A:1 70000"},
    {HLI_SCRIPT_REDLOCK_ACQUIRE, SAYS("D:1"), "n", "A:1 5000"},
    {HLI_SCRIPT_REDLOCK_RELEASE, SAYS("A:1"), "n", "A:1 0 " REDLOCKS},
    {HLI_SCRIPT_REDLOCK_RELEASE, SAYS("A:1"), "n", "A:1 500 " REDLOCKS},
    {HLI_SCRIPT_REDLOCK_RENEW, SAYS("A:1"), "n", "70000 A:1"},
    {HLI_SCRIPT_REDLOCK_RENEW, SAYS("A:1") "SET m{n} A:2 PX 500|", "n m{n}", "70000 A:1 A:2"},
    {HLI_SCRIPT_REDLOCK_INSPECT, SAYS("A:1"), "n", ""},
    {HLI_SCRIPT_REDLOCK_FORCE_RELEASE, SAYS("A:1"), "n", REDLOCKS " -"},
    {HLI_SCRIPT_RW_READ_ACQUIRE, "", "n " WRITER " " HOLD("R:1"), "R:1 5000 1 " WRITER " -"},
    {HLI_SCRIPT_RW_READ_ACQUIRE, READS("R:1") "SET " WRITER " W:1|", "n " WRITER " " HOLD("R:1"),
     "R:1 5000 1 " WRITER " -"},
    {HLI_SCRIPT_RW_READ_RELEASE, READS("R:1"), "n " HOLD("R:1"), "R:1 0 0 0 " READERS},
    {HLI_SCRIPT_RW_READ_RELEASE, READS("R:1") READS("S:1"), "n " HOLD("R:1"), "R:1 0 0 0 " READERS},
    {HLI_SCRIPT_RW_READ_RELEASE, READS("S:1") "SET " HOLD("R:1") " 1 PX 9000|", "n " HOLD("R:1"),
     "R:1 0 0 0 " READERS},
    {HLI_SCRIPT_RW_READ_RENEW, READS("R:1"), "n " HOLD("R:1"), "5000 R:1"},
    {HLI_SCRIPT_RW_READ_RECLAIM, READS("S:1"), "n " HOLD("R:1"), "5000 R:1 1 99999999999999 -"},
    {HLI_SCRIPT_RW_READ_RECLAIM, "HSET n mode write W:1:write 1|PEXPIRE n 60000|", "n " HOLD("R:1"),
     "5000 R:1 1 99999999999999 -"},
    {HLI_SCRIPT_RW_WRITE_ACQUIRE, "SET " WRITER " W:1|" READS("R:1") READS("S:1") OVER("T:1"),
     "n " WRITER, "A:1:write 5000 1 " WRITER " 500"},
    {HLI_SCRIPT_RW_WRITE_RELEASE,
     "HSET n mode write A:1:write 1|PEXPIRE n 60000|SET " WRITER " W:1|", "n " WRITER,
     "A:1:write 0 0 0 " READERS " " WRITER},
    {HLI_SCRIPT_RW_WRITE_RELEASE,
     READS("R:1") "HSET n mode write A:1:write 1|PEXPIRE n 60000|SET " WRITER " W:1|", "n " WRITER,
     "A:1:write 0 0 0 " READERS " " WRITER},
    {HLI_SCRIPT_RW_FORCE_RELEASE, READS(UUID ":1"), "n", "read " READERS " -"},
    {HLI_SCRIPT_RW_INSPECT, READS("R:1") "SET " TAG " tag|", "n " TAG, "read u " TAG},
    {HLI_SCRIPT_RW_WRITE_ACQUIRE, READS("R:1") LINE_OF("A:1:write"), "n " WRITER " " QUEUE,
     "A:1:write 5000 1 " WRITER " 0 - " TURN},
    {HLI_SCRIPT_RW_WRITE_ACQUIRE, LINE_OF("W:1:write"), "n " WRITER " " QUEUE,
     "A:1:write 5000 1 " WRITER " 0 - " TURN},
    {HLI_SCRIPT_RW_WRITE_RELEASE, HELD("D:1") LINE_OF("A:1:write"), "n " QUEUE " " WRITER,
     "A:1:write 0 0 0 " READERS " " WRITER " " QUEUE},
    {HLI_SCRIPT_RW_READ_ACQUIRE, READS("S:1") LINE_OF("R:1"), "n " WRITER " " QUEUE " " HOLD("R:1"),
     "R:1 5000 1 " WRITER " - - " TURN},
    {HLI_SCRIPT_RW_READ_ACQUIRE, READS("S:1") LINE_OF("W:1:write"),
     "n " WRITER " " QUEUE " " HOLD("R:1"), "R:1 5000 1 " WRITER " - - " TURN},
    {HLI_SCRIPT_PERMIT_ACQUIRE, IS_OUT("1") LINE_OF("A:1"), "n " OUT " " QUEUE,
     "fedcba9876543210 5000 " PERMITS " A:1 " TURN},
    {HLI_SCRIPT_PERMIT_ACQUIRE, IS_OUT("1") LINE_OF("B:1"), "n " OUT " " QUEUE,
     "fedcba9876543210 5000 " PERMITS " A:1 " TURN},
    {HLI_SCRIPT_PERMIT_RELEASE, IS_OUT("99999999999999") LINE_OF("A:1"), "n " OUT " " QUEUE,
     "fedcba9876543210 " PERMITS " - A:1 " QUEUE},
    {HLI_SCRIPT_SEMAPHORE_ACQUIRE, "SET n 2|" LINE_OF("A:1"), "n " NOTED " " QUEUE,
     NOTES " 1 60000 A:1 " TURN " 1 1 0"},
    {HLI_SCRIPT_SEMAPHORE_ACQUIRE, "SET n 2|" LINE_OF("B:1"), "n " NOTED " " QUEUE,
     NOTES " 1 60000 A:1 " TURN " 1 1 0"},
    {HLI_SCRIPT_SEMAPHORE_ACQUIRE, "SET n 2|SET " NOTES "1 1|SET " NOTES "0 1|",
     "n " NOTED " " QUEUE, NOTES " 1 60000 A:1 " TURN " 1 1 0"},
    {HLI_SCRIPT_SEMAPHORE_ADD, "SET n 2|", "n " NOTED, NOTES " 1 60000 " PERMITS " 1 0 0"},
    {HLI_SCRIPT_SEMAPHORE_AVAILABLE, "SET n 2|", "n", ""},
    {HLI_SCRIPT_SEMAPHORE_DRAIN, "SET n 2|", "n " NOTED, NOTES " 1 60000 0"},
    {HLI_SCRIPT_SEMAPHORE_TRY_SET, "", "n " NOTED, NOTES " 1 60000 " PERMITS " 2 0 0"},
    {HLI_SCRIPT_SEMAPHORE_UNDO, "SET n 2|SET " NOTES "1 1|SET " NOTES "0 1|" LINE_OF("A:1"),
     "n " NOTED " " QUEUE, NOTES " 1 60000 " PERMITS " A:1 " QUEUE " 0 0"},
    {HLI_SCRIPT_TOKEN_RAISE, "SET " TOKEN " 3|", TOKEN, "7"},
    {HLI_SCRIPT_WAITER_TAG, "", WAITER, "1000 words 30000"},
    {HLI_SCRIPT_WAITER_TAG, "SET " WAITER " tag|", WAITER, "1000 words 30000"},
};

enum { SCENES = sizeof scenes / sizeof scenes[0], SLOT = 3432 /* of "n" */, LINE = 1024 };

/* The old node of the slot, and the new one. */
static struct node {
    struct redis_server *server;
    redisContext *link;
    struct cluster_peer peer;
} node[2];

static redisReply *say(redisContext *link, const char *line)
{
    const char *words[40];
    size_t lengths[40];
    char copy[LINE], *rest = NULL;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        must(count < 40);
        words[count] = strcmp(word, "-") == 0 ? "" : word;
        lengths[count] = strlen(words[count]);
        count++;
    }
    redisReply *reply = redisCommandArgv(link, count, words, lengths);
    must(reply);
    return reply;
}

static void say_ok(redisContext *link, const char *line)
{
    redisReply *reply = say(link, line);
    check_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", line, reply->str);
    freeReplyObject(reply);
}

static void say_all(redisContext *link, const char *lines)
{
    char copy[LINE], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", lines);
    for (char *line = strtok_r(copy, "|", &rest); line; line = strtok_r(NULL, "|", &rest))
        say_ok(link, line);
}

static void nodes_open(void)
{
    if (!redis_program_is_7())
        skip("sharded messages are new in Redis 7.0");
    node[0].server = cluster_node_at(cluster, SLOT);
    node[1].server = node[0].server == server ? cluster_node(cluster, 1) : server;
    for (int i = 0; i < 2; i++) {
        node[i].link = redis_link_connect(redis_server_socket(node[i].server));
        must(node[i].link);
        node[i].peer = cluster_peer_of(node[i].server);
        for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
            redis_do(node[i].server, "SCRIPT LOAD %b",
                     (const char *)hli_script_get((hli_script_id)id)->text,
                     hli_script_get((hli_script_id)id)->length);
    }
}

static void nodes_close(void)
{
    redisFree(node[0].link);
    redisFree(node[1].link);
}

/* A sum over the keys of both nodes, and what is in them. */
static uint64_t state_of_keys(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        redisReply *keys = say(node[i].link, "KEYS *");
        for (size_t k = 0; k < keys->elements; k++) {
            uint64_t hash = 14695981039346656037u + (unsigned)i;
            if (i == 1)
                say_ok(node[i].link, "ASKING");
            redisReply *dump = redisCommand(node[i].link, "DUMP %s", keys->element[k]->str);
            must(dump && dump->type == REDIS_REPLY_STRING);
            for (const char *at = keys->element[k]->str; *at; at++)
                hash = (hash ^ (unsigned char)*at) * 1099511628211u;
            for (size_t at = 0; at < (size_t)dump->len; at++)
                hash = (hash ^ (unsigned char)dump->str[at]) * 1099511628211u;
            sum += hash;
            freeReplyObject(dump);
        }
        freeReplyObject(keys);
    }
    return sum;
}

static void move_begins(void)
{
    char line[LINE];
    snprintf(line, sizeof line, "CLUSTER SETSLOT %d IMPORTING %s", SLOT, node[0].peer.id);
    say_ok(node[1].link, line);
    snprintf(line, sizeof line, "CLUSTER SETSLOT %d MIGRATING %s", SLOT, node[1].peer.id);
    say_ok(node[0].link, line);
}

static void move_is_undone(void)
{
    char line[LINE];
    snprintf(line, sizeof line, "CLUSTER SETSLOT %d STABLE", SLOT);
    for (int i = 0; i < 2; i++) {
        say_ok(node[i].link, line);
        say_ok(node[i].link, "FLUSHALL");
    }
}

static redisReply *call_at(int which, const struct scene *scene, bool asks)
{
    char line[2 * LINE];
    int keys = 1;
    for (const char *at = scene->keys; (at = strchr(at, ' ')); at++)
        keys++;
    snprintf(line, sizeof line, "EVALSHA %s %d %s %s", hli_script_get(scene->script)->sha1, keys,
             scene->keys, scene->words);
    must(strlen(line) < LINE);
    if (asks)
        say_ok(node[which].link, "ASKING");
    return say(node[which].link, line);
}

enum { WHOLE, ELSEWHERE, LATER, REFUSED };

/* The one thing that a script may do before it is refused: the expired permit has come back. */
static bool has_reclaimed(void)
{
    redisReply *left = say(node[0].link, "GET n"), *out = say(node[0].link, "KEYS " OUT);
    bool has =
        left->type == REDIS_REPLY_STRING && strcmp(left->str, "3") == 0 && out->elements == 0;
    freeReplyObject(left);
    freeReplyObject(out);
    return has;
}

/* What became of a call; ends the test if it was cut short. */
static int judge(const struct scene *scene, const redisReply *reply, uint64_t before, int moved)
{
    const char *name = hli_script_get(scene->script)->name;
    if (reply->type != REDIS_REPLY_ERROR)
        return WHOLE;
    bool is_permits = strncmp(name, "permit_", 7) == 0;
    check_msg(state_of_keys() == before || (is_permits && has_reclaimed()),
              "%s, keys %d moved: changed, and %s", name, moved, reply->str);
    if (strncmp(reply->str, "ASK ", 4) == 0)
        return ELSEWHERE;
    if (strncmp(reply->str, "TRYAGAIN ", 9) == 0)
        return LATER;
    check_msg(strstr(reply->str, "non local key") != NULL, "%s: %s", name, reply->str);
    printf("%s (keys %d moved) refuses by itself\n", name, moved);
    return REFUSED;
}

/* How many keys there are after the scene's beginning; their names in `names`. */
static int keys_of(char names[SCENE_KEYS][64])
{
    redisReply *keys = say(node[0].link, "KEYS *");
    int count = (int)keys->elements;
    must(count <= SCENE_KEYS);
    for (int k = 0; k < count; k++)
        snprintf(names[k], 64, "%s", keys->element[k]->str);
    freeReplyObject(keys);
    return count;
}

/* Bit k of `moved`: the k-th key is at the new node. Returns the outcome; -1: there are fewer keys.
 */
static int play(const struct scene *scene, int moved)
{
    char names[SCENE_KEYS][64];
    say_all(node[0].link, scene->before);
    int count = keys_of(names), outcome = -1;
    if (moved < 1 << count) {
        const struct slot_move move = {cluster, SLOT, node[0].server, node[1].server};
        move_begins();
        for (int k = 0; k < count; k++)
            if (moved & 1 << k)
                check(slot_move_key(&move, names[k]));
        uint64_t before = state_of_keys();
        redisReply *reply = call_at(0, scene, false);
        outcome = judge(scene, reply, before, moved);
        freeReplyObject(reply);
        if (outcome == ELSEWHERE) {
            reply = call_at(1, scene, true);
            outcome = judge(scene, reply, before, moved);
            freeReplyObject(reply);
        }
    }
    move_is_undone();
    return outcome;
}

ClusterLaw(script_cluster, each_script_runs_whole_or_changes_nothing_while_its_slot_moves)
{
    bool is_played[HLI_SCRIPT_COUNT] = {false};
    int outcomes[REFUSED + 1] = {0};
    nodes_open();
    redisContext *ears = redis_link_connect(redis_server_socket(node[0].server));
    say_ok(ears, "SSUBSCRIBE hirelock:{n}:B"); /* a release grants to it */
    for (size_t i = 0; i < SCENES; i++) {
        redisReply *reply;
        say_all(node[0].link, scenes[i].before);
        check_msg((reply = call_at(0, &scenes[i], false))->type != REDIS_REPLY_ERROR,
                  "scene %d: %s", (int)i, reply->str);
        freeReplyObject(reply);
        move_is_undone();
        is_played[scenes[i].script] = true;
        int outcome;
        for (int moved = 0; (outcome = play(&scenes[i], moved)) >= 0; moved++)
            outcomes[outcome]++;
    }
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
        check_msg(is_played[id] || id == HLI_SCRIPT_TERM /* it has no key in the slot */,
                  "no scene of %s", hli_script_get((hli_script_id)id)->name);
    printf("whole %d, refused before %d, refused by the script %d\n", outcomes[WHOLE],
           outcomes[LATER], outcomes[REFUSED]);
    redisFree(ears);
    nodes_close();
}

/* The answer of `id` at the slot's node, with words between spaces. */
static const char *run(const char *keys, const char *words, hli_script_id id)
{
    static char text[LINE];
    const struct scene scene = {id, "", keys, words};
    redisReply *reply = call_at(0, &scene, false);
    check(reply->type == REDIS_REPLY_ARRAY && reply->elements > 1);
    snprintf(text, sizeof text, "%lld %s", reply->element[0]->integer, reply->element[1]->str);
    freeReplyObject(reply);
    return text;
}

static const char *next_word(redisContext *ear)
{
    static char heard[LINE];
    redisReply *reply = NULL;
    check(redisGetReply(ear, (void **)&reply) == REDIS_OK && reply->elements == 3);
    check_str(reply->element[0]->str, "smessage");
    snprintf(heard, sizeof heard, "%s %s", reply->element[1]->str, reply->element[2]->str);
    freeReplyObject(reply);
    return heard;
}

ClusterLaw(script_cluster, a_grant_and_a_want_come_by_the_mailboxes_of_the_name)
{
    nodes_open();
    redisContext *holder = redis_link_connect(redis_server_socket(node[0].server));
    redisContext *waiter = redis_link_connect(redis_server_socket(node[0].server));
    say_ok(holder, "SSUBSCRIBE hirelock:{n}:A");
    say_ok(waiter, "SSUBSCRIBE hirelock:{n}:B");
    say_all(node[0].link, HELD("A:1"));
    redisReply *reply =
        call_at(0,
                &(const struct scene){HLI_SCRIPT_LOCK_ACQUIRE, "", "n " QUEUE,
                                      "B:1 5000 1 " QUEUE " 30000 hirelock:{n}: - 0 - SPUBLISH"},
                false);
    check(reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 0);
    freeReplyObject(reply);
    check_str(next_word(holder), "hirelock:{n}:A w n");
    check_str(run("n " QUEUE, "A:1 0 0 0 " RELEASE, HLI_SCRIPT_LOCK_RELEASE), "1 B:1");
    check(strncmp(next_word(waiter), "hirelock:{n}:B g B:1 ", 21) == 0);
    redisFree(holder);
    redisFree(waiter);
    nodes_close();
}

/* Redisson's waiter listens to its channel alone, ours to both. */
ClusterLaw(script_cluster, a_release_counts_the_listeners_of_sharded_channels)
{
    nodes_open();
    redisContext *java = redis_link_connect(redis_server_socket(node[0].server));
    redisContext *ours = redis_link_connect(redis_server_socket(node[0].server));
    say_ok(java, "SSUBSCRIBE redisson_lock__channel:{n}");
    say_ok(ours, "SSUBSCRIBE redisson_lock__channel:{n}");
    say_ok(ours, "SSUBSCRIBE hirelock:{n}");
    say_all(node[0].link, HELD("A:1"));
    redisReply *reply = call_at(
        0, &(const struct scene){HLI_SCRIPT_LOCK_RELEASE, "", "n " QUEUE, "A:1 0 0 0 " RELEASE},
        false);
    check(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    check_int(reply->element[2]->integer, 1);
    freeReplyObject(reply);
    check_str(next_word(java), "redisson_lock__channel:{n} 0");
    redisFree(java);
    redisFree(ours);
    nodes_close();
}
