/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A vote: the part of a ballot at one master. It is an acquire of the voter's name, then a hold
 * there, then its release. The thread that makes the ballot's steps calls these functions; results
 * come in any thread.
 */
#ifndef HLI_LEASE_SEVERAL_VOTE_H
#define HLI_LEASE_SEVERAL_VOTE_H

#include "lease/acquire/acquire.h"
#include "lease/hold/release_call.h"

enum hli_vote_state {
    HLI_VOTE_NONE,     /* nothing is under way, and nothing is held */
    HLI_VOTE_ASKS,     /* the acquire is begun, as in the states below the vote has a reference on
                          its ballot */
    HLI_VOTE_ANSWERED, /* the acquire has its result */
    HLI_VOTE_HELD,     /* accepted */
    HLI_VOTE_RELEASES, /* the release is begun */
    HLI_VOTE_RELEASED, /* it has its result */
};

struct hli_vote {
    struct hli_tenure *whole; /* of the ballot; borrowed; immutable, as the name */
    struct hli_name *name;    /* borrowed: the voter's */
    _Atomic int state;        /* hli_vote_state */
    int code;                 /* of the last acquire, or of its release; HL_ENOTOWNER: none yet */
    bool has_acquire;         /* `acquire` is initialised */
    struct hli_acquire acquire;
    struct hli_release_wait released;
    hl_error err;

    uint64_t number; /* the ballot's name mutex, as the next: of the tenure that may hold */
    hli_ns until;    /* its hold is valid until then; 0: it has none, or lost it */
    bool is_lost;
};

/* How a vote asks. */
struct hli_vote_spec {
    struct hl_owner *owner;
    int64_t lease_ms, min_hold_ms, restart_ms;
    bool is_watched, listens;
    uint64_t number; /* of the tenure; never used before */
};

static inline enum hli_vote_state hli_vote_state_of(const struct hli_vote *vote)
{
    return (enum hli_vote_state)atomic_load(&vote->state);
}

/* NONE to ASKS; the result may come before the return. */
void hli_vote_ask(struct hli_vote *vote, const struct hli_vote_spec *spec);
/* ANSWERED to HELD, and returns until when it is valid; or to NONE, and returns 0. */
hli_ns hli_vote_settle(struct hli_vote *vote);
/* ASKS to NONE, with this code: what the request may yet get is released behind it. False: its
 * result is about to be reported. */
bool hli_vote_withdraw(struct hli_vote *vote, int code);
/* HELD to NONE: the release goes out, without a message. */
void hli_vote_give_back(struct hli_vote *vote);
/* HELD: its master is asked now whether it is. */
void hli_vote_doubt(struct hli_vote *vote);
/* HELD to NONE: its owner has exited, and so the hold ends with its lease. */
void hli_vote_abandon(struct hli_vote *vote);
/* HELD to RELEASES, or to RELEASED before the return. */
void hli_vote_release(struct hli_vote *vote);
/* RELEASED to NONE; `code` has the result. */
void hli_vote_end(struct hli_vote *vote);
void hli_vote_deinit(struct hli_vote *vote); /* NONE */

/* Adds its result to the statistics of this client. */
void hli_vote_count(hl_client *client, const struct hli_vote *vote);

#endif
