/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The handshake: the first commands of a new connection, all sent at once. Their answers say
 * whether the client can use this server; the server may refuse commands that are not vital (such
 * as CLIENT SETNAME). Later a regular PING or ROLE checks that this is still so.
 */
#ifndef HLI_REDIS_HANDSHAKE_H
#define HLI_REDIS_HANDSHAKE_H

#include "redis/conn.h"
#include "redis/login.h"
#include "redis/term.h"

enum { HLI_HANDSHAKE_WORDS = 11, HLI_RUN_ID_LENGTH = 40 };

struct hli_handshake_word {
    struct hli_op op;
    struct hli_handshake *handshake;
    void (*check)(struct hli_handshake *handshake, const struct hli_answer *answer);
};

/* Identifies a connection: CLIENT IDs begin at 1 again when a server starts, so only the id and the
 * run id together are unique. */
struct hli_handshake_past {
    int64_t id; /* CLIENT ID, 0 while unknown */
    char run_id[HLI_RUN_ID_LENGTH + 1];
    struct hli_id node; /* of a cluster */
};

struct hli_handshake { /* loop thread */
    struct hli_conn *conn;
    /* Runs after the last answer, and after each answer to a beat; see err.code. */
    void (*done)(struct hli_handshake *handshake);
    struct hli_handshake_word word[HLI_HANDSHAKE_WORDS];
    unsigned words, answers;
    struct hli_handshake_past past; /* the connection that this one replaces and kills */
    struct hli_handshake_past now;
    bool may_be_cluster;              /* the client is one of a cluster; set before the first say */
    struct hli_term_options graceful; /* of a connection for commands; set as that */
    bool asks_bounds;          /* with a grace: how long an old master goes on; set as that */
    struct hli_term_said term; /* with a grace */
    bool has_login;            /* AUTH was sent, so that NOAUTH is no denial, but passes */
    bool tells_role;           /* the server answered ROLE */
    int64_t uptime_s;          /* the server's; -1: it does not tell */
    /* By the last answer to ROLE: the replication offset of the master (-1: unknown), and that of
     * its foremost replica (-1: it has none). */
    int64_t offset, replica_offset;
    unsigned replicas; /* how many it has, if offset is known */
    hl_error err;      /* the first reason not to use the server; code 0 when there is none */
};

/* A proxy whose connection to the server was replaced answers NOAUTH to what follows a login. */
extern const char hli_handshake_forgotten[];

/* Sends all commands, with AUTH if the login has a password. False when the connection is not open
 * or memory is out. */
bool hli_handshake_say(struct hli_handshake *handshake, struct hli_conn *conn,
                       const struct hli_login *login, uint32_t database, const char *client_name);

/* On a connection that may be idle: sends PING, to notice a silent server; or ROLE, to notice also
 * a master that became a replica while the client writes nothing. Sends nothing while the last one
 * is unanswered: then the connection's request timeout decides. */
void hli_handshake_beat(struct hli_handshake *handshake, bool asks_role);

/* Writes the command that ends a past connection at the server: what was sent by that one runs
 * before this command, or never. Errors: HL_ENOMEM. */
int hli_handshake_write_kill(const struct hli_handshake_past *past, struct hli_op *op);

void hli_handshake_deinit(struct hli_handshake *handshake);

#endif
