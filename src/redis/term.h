/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The term: the time from one failover, or start of the server, to the next. It is asked for in the
 * handshake of each connection for commands, if the option failover_grace_ms is set. A term begins
 * with a grace, in which nobody takes a lock that is free (lua/term.lua).
 */
#ifndef HLI_REDIS_TERM_H
#define HLI_REDIS_TERM_H

#include "redis/op.h"

#include <stdatomic.h>

enum { HLI_TERM_ID_LENGTH = 40, HLI_TERM_TEXT = 320 };

/* The options of a client that are to be the same in all clients of a server. */
struct hli_term_options {
    int64_t grace_ms; /* failover_grace_ms; 0: the client asks for no term */
    int64_t old_master_ms;
};

/* What the server said of its term. */
struct hli_term_said {
    char id[HLI_TERM_ID_LENGTH + 1];
    struct hli_term_options options;      /* of the client that has told it last */
    int64_t grace_left_ms, grace_ends_ms; /* the second by the server's clock */
    hli_ns told_at;                       /* when the answer arrived */
    /* How long a master without replicas goes on, -1: it does not tell: how many replicas it needs
     * for writes, and how old their last word may be. */
    int64_t min_replicas, max_lag_s;
};

/* The term of the server of a link. A thread that has read the number finds the grace of that term,
 * or of a later one; then the connection does not send what was decided for the number. */
struct hli_term {
    /* Different for each term that this process has met, whatever server it was on; 1 before the
     * first; 0 always: without the option. */
    atomic_uint number;
    _Atomic hli_ns grace_until; /* by our clock, with a margin for its drift; 0: there is none */
    /* How far the server's clock is ahead of ours, at least: its time when it answered, less ours
     * when we had the answer. */
    _Atomic int64_t ahead_ms;

    /* Loop thread; of a first link: what one of the links to its server met last. */
    char id[HLI_TERM_ID_LENGTH + 1];
    unsigned latest;              /* its number */
    bool is_told;                 /* its grace was reported */
    struct hli_term_options told; /* what the server has told last */
};

void hli_term_init(struct hli_term *term, int64_t grace_ms);

/* Formats the question. Errors: HL_ENOMEM. */
int hli_term_ask(struct hli_op *op, const struct hli_term_options *options, bool is_cluster);

/* Reads the answer. Errors: that of the server; HL_EPROTO. */
int hli_term_read(const struct hli_answer *answer, struct hli_term_said *ret_said, hl_error *err);

/* Formats the question on a link that is up, and reads its answer: are the server's data of another
 * term? Errors of the first: HL_ENOMEM. */
int hli_term_ask_again(struct hli_op *op);
bool hli_term_is_another(const struct hli_answer *answer, const char *id);

/* Has another client of the server other options? Then writes a warning for an operator. */
bool hli_term_warns(const struct hli_term_said *said, const struct hli_term_options *own,
                    char text[HLI_TERM_TEXT]);

/* Formats the question how long an old master goes on, and reads the answer. Errors of the first:
 * HL_ENOMEM. */
int hli_term_ask_bounds(struct hli_op *op);
void hli_term_read_bounds(const struct hli_answer *answer, struct hli_term_said *said);

/* What is wrong with the server's settings if another one may take its place, in words for an
 * operator; NULL: nothing that it tells. */
const char *hli_term_advice(const struct hli_term_said *said, int64_t old_master_ms);

/* A link has met this term; `first` is that of the first link to the server, which may be the same:
 * all links to a server in one term have one number. Loop thread. */
void hli_term_meet(struct hli_term *term, struct hli_term *first, const struct hli_term_said *said);

#endif
