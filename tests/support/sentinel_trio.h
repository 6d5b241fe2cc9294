/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A master with one or two replicas, and three sentinels that watch over them under the name
 * SENTINEL_MASTER: real processes on free ports of 127.0.0.1. They find a dead master within a
 * second and agree on a new one within a few more. They look and talk more often than usual, and so
 * demote an old master that lives about a second after the switch.
 *
 * Each is a struct redis_server, which tests kill, freeze and ask as such. A node may be restarted
 * by redis_server_restart(), too: it starts as what it was last, and the sentinels make a replica
 * of it if they have another master by now (trio_await_whole).
 */
#ifndef HL_TEST_SENTINEL_TRIO_H
#define HL_TEST_SENTINEL_TRIO_H

#include "redis_server.h"
#include "sentinel_view.h"

enum { TRIO_SENTINELS = 3, TRIO_NODES = 3 };

struct trio;

/* All zero: one replica, no passwords. */
struct trio_options {
    int replicas;                  /* 1 or 2 */
    const char *password;          /* of the default user of master and replicas */
    const char *sentinel_password; /* of the default user of the sentinels */
    const char *config;            /* more lines of redis.conf of master and replicas */
    /* Where all listen beside 127.0.0.1, and announce themselves; NULL: there only. */
    const char *host;
    int64_t down_after_ms;       /* 500; an idle machine's, like the next */
    int64_t failover_timeout_ms; /* 3000: a failover that failed is tried again after twice this */
    bool unhurried; /* the sentinels keep to their usual periods, and so demote an old master that
                     * lives only 10 s after they have another */
    bool tls;       /* all speak TLS only, also with each other, and redis_server_authority() signs
                     * for all; not for trio_word() */
};

/* Returns when a failover would succeed at once: trio_await_whole(). options may be NULL. */
struct trio *trio_start(const struct trio_options *options);
void trio_stop(struct trio *trio); /* NULL is accepted */

/* The same in a process that this one starts: redis_server_join(). */
enum { TRIO_WORD = (TRIO_SENTINELS + TRIO_NODES) * 128 };
void trio_word(const struct trio *trio, char ret_word[TRIO_WORD]);
struct trio *trio_join(const char *word);

/* redis-sentinel://127.0.0.1:PORT,.../mymaster, with .tls rediss-sentinel, with the sentinels from
 * `first` on, round the three; login: "password" or "user:password" of the nodes, or NULL.
 * Borrowed: this thread's 8th next call overwrites it. */
const char *trio_url(const struct trio *trio);
const char *trio_url_of(const struct trio *trio, int first, int count, const char *login);

int trio_nodes(const struct trio *trio);
struct redis_server *trio_node(const struct trio *trio, int i); /* 0 was the master at first */
struct redis_server *trio_sentinel(const struct trio *trio, int i);

/* What sentinel i names: a node, also if it is dead; NULL: no node, or no answer. */
struct redis_server *trio_named_by(const struct trio *trio, int i);
struct redis_server *trio_master(const struct trio *trio);  /* what all up to date name, soon */
struct redis_server *trio_replica(const struct trio *trio); /* another that is up */

/* Each ends the test if it has not happened after a minute. They look at servers that are up, and
 * at sentinels that are not stale. */

/* All sentinels name one node, another than `old`, and that is a master; returns it. */
struct redis_server *trio_await_switch(struct trio *trio, const struct redis_server *old);

/* That, and all other nodes are linked to it, and the sentinels know all nodes and each other. */
void trio_await_whole(struct trio *trio);

/* SENTINEL FAILOVER: a sentinel leads it, and has chosen the replica. From now on the sentinels
 * take no master for dead. */
void trio_start_failover(struct trio *trio);

void trio_restart_sentinel(struct trio *trio, int i);
void trio_reset_sentinel(struct trio *trio, int i); /* SENTINEL RESET: it finds all others anew */

/* Stops sentinel i, starts another on another port, lets the others forget the old one, and waits
 * until all is whole. */
void trio_replace_sentinel(struct trio *trio, int i);

/*
 * Freezes sentinel i, which hears of no failover from now on. Thawed after one by
 * redis_server_thaw(trio_sentinel(trio, i)) it names the old master as long as the test wants.
 * It has no right to reconfigure nodes until trio_end_stale(), which lets it hear the others. All
 * nodes are up at both calls. (A sentinel that was only frozen is up to date soon after the thaw.)
 */
void trio_begin_stale(struct trio *trio, int i);
void trio_end_stale(struct trio *trio, int i);

#endif
