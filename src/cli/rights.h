/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The rights that the library needs for names that begin with `lock:`, in parts. `hirelock acl`
 * prints them for any prefix; tests/fault shows for each topology that they are enough, and that
 * something is denied without any one of them.
 */
#ifndef CLI_RIGHTS_H
#define CLI_RIGHTS_H

#include <stddef.h>

/* Each right as its page has it, for names without a brace of their own: keys and channels are
 * derived from such a name in braces. The channel by which a lock is granted is another in a
 * cluster. */
static const char *const lock_rights[] = {"~lock:*",
                                          "~hirelock_queue:{lock:*",
                                          "&redisson_lock__channel:{lock:*",
                                          "+hget",
                                          "+hset",
                                          "+hincrby",
                                          "+hrandfield",
                                          "+del",
                                          "+pttl",
                                          "+pexpire",
                                          "+pexpireat",
                                          "+time",
                                          "+zadd",
                                          "+zpopmin",
                                          "+zcard",
                                          "+zrem",
                                          NULL};
/* Messages that stay in a shard, or go to all who listen. */
static const char *const sharded_rights[] = {"+pubsub|shardnumsub", "+spublish", "+ssubscribe",
                                             "+sunsubscribe", NULL};
static const char *const plain_rights[] = {"+pubsub|numsub", "+publish", "+subscribe",
                                           "+unsubscribe", NULL};
static const char *const no_rights[] = {NULL};
static const char *const fenced_rights[] = {"~redisson_lock_token:{lock:*", "+incrby", "+get",
                                            "+set", NULL};
static const char *const fair_rights[] = {"~redisson_lock_queue:{lock:*",
                                          "~redisson_lock_timeout:{lock:*",
                                          "~hirelock_fair:{lock:*",
                                          "+exists",
                                          "+lindex",
                                          "+lrange",
                                          "+lrem",
                                          "+rpush",
                                          "+zscore",
                                          "+zrangebyscore",
                                          "+hmget",
                                          "+hdel",
                                          NULL};
static const char *const rw_rights[] = {"~{lock:*",
                                        "~hirelock_rw_writer:{lock:*",
                                        "&redisson_rwlock:{lock:*",
                                        "+hmget",
                                        "+hdel",
                                        "+hgetall",
                                        "+hlen",
                                        "+get",
                                        "+set",
                                        "+hscan",
                                        "+zrange",
                                        NULL};
static const char *const semaphore_rights[] = {"~lock:*",
                                               "~hirelock_note:{lock:*",
                                               "~hirelock_queue:{lock:*",
                                               "&redisson_sc:{lock:*",
                                               "+get",
                                               "+set",
                                               "+del",
                                               "+exists",
                                               "+incrby",
                                               "+decrby",
                                               "+zrange",
                                               NULL};
static const char *const permit_rights[] = {"~lock:*",
                                            "~{lock:*",
                                            "~hirelock_queue:{lock:*",
                                            "&redisson_sc:{lock:*",
                                            "+get",
                                            "+set",
                                            "+del",
                                            "+exists",
                                            "+incrby",
                                            "+decrby",
                                            "+zadd",
                                            "+zrem",
                                            "+zscore",
                                            "+zcount",
                                            "+zcard",
                                            "+zrange",
                                            "+zremrangebyscore",
                                            "+pttl",
                                            "+pexpire",
                                            "+time",
                                            NULL};
static const char *const latch_rights[] = {"~lock:*",
                                           "~hirelock_note:{lock:*",
                                           "&redisson_countdownlatch__channel__{lock:*",
                                           "+get",
                                           "+set",
                                           "+del",
                                           "+exists",
                                           "+decr",
                                           NULL};

static const char *const redlock_rights[] = {
    "~lock:*", "~hirelock_data", "&hirelock_redlock:{lock:*",
    "+get",    "+set",           "+del",
    "+pttl",   "+pexpire",       "+time",
    NULL};

/* What each client of a server, or of a master behind Sentinel, needs. */
static const char *const server_rights[] = {
    "&hirelock:*", "+evalsha",        "+script|load", "+ping",        "+info", "+role",
    "+select",     "+client|setname", "+client|id",   "+client|kill", NULL};

/* What each client of a cluster needs. */
static const char *const cluster_rights[] = {"+cluster|slots",
                                             "+cluster|info",
                                             "+cluster|myid",
                                             "+asking",
                                             "+evalsha",
                                             "+script|load",
                                             "+ping",
                                             "+info",
                                             "+role",
                                             "+client|setname",
                                             "+client|id",
                                             "+client|kill",
                                             NULL};

/* And each lock: the channel by which it is granted. */
static const char *const grant_rights[] = {"&hirelock:{lock:*", NULL};

/* At the sentinels (docs/sentinel.md). */
static const char *const watcher_rights[] = {"&+switch-master",
                                             "&+promoted-slave",
                                             "+sentinel|get-master-addr-by-name",
                                             "+sentinel|master",
                                             "+sentinel|sentinels",
                                             "+sentinel|myid",
                                             "+subscribe",
                                             "+unsubscribe",
                                             "+client|setname",
                                             NULL};

/* What options of a client need beside: HL_CLIENT_HOLDER_INFO, failover_grace_ms
 * (docs/failover.md), min_replicas (docs/replicas.md). */
static const char *const holder_rights[] = {"~hirelock_holder:{lock:*", "~hirelock_waiter:{lock:*",
                                            "+get", "+set", NULL};
static const char *const grace_rights[] = {
    "~hirelock_term*", "+info", "+eval",  "+get",        "+set",
    "+persist",        "+hdel", "+hkeys", "+config|get", NULL};
static const char *const grace_cluster_rights[] = {"+cluster|nodes", NULL}; /* and in a cluster */
static const char *const replicas_rights[] = {"+wait", "+role", NULL};

/* What an operator needs beside all of the above that a locker needs: for list, top, inspect,
 * watch, unlock, deadlocks, doctor and the exporter. */
static const char *const operator_rights[] = {"~hirelock_holder:{lock:*",
                                              "~hirelock_waiter:{lock:*",
                                              "+eval",
                                              "+type",
                                              "+scan",
                                              "+dbsize",
                                              "+getrange",
                                              "+llen",
                                              "+acl|whoami",
                                              "+config|get",
                                              "+slowlog|get",
                                              NULL};

#endif
