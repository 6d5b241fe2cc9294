/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A quorum: the masters of a Redlock (redis.io, "Distributed Locks with Redis"). The Redlock is one
 * name of its first client, in which the owners of this process wait, hold and are told as in any
 * other; and a name of each client for its master (hli_voter). A tenure of the first is a ballot
 * (ballot.h): it asks all masters at once, and has the lock while more than half of them have it
 * for it. At each master an ordinary tenure asks, is renewed by that client's watchdog, and is
 * released again and again until an answer comes.
 */
#ifndef HLI_LEASE_SEVERAL_QUORUM_H
#define HLI_LEASE_SEVERAL_QUORUM_H

#include "lease/state/turn.h"

enum { HLI_QUORUM_LIMIT = 31, HLI_QUORUM_TALLY = 192 };

struct hli_quorum {
    size_t count; /* of masters: odd; immutable, as the majority and the voters */
    size_t majority;
    char tally[HLI_QUORUM_TALLY]; /* name mutex: what they said to the last attempt */
    uint32_t heard;               /* name mutex: the masters that told of a release since then */
    struct hli_name *voters[];    /* counted */
};

/* Gives this name of the first client its masters, if it has none; the voters are of this kind.
 * Errors: HL_ENOMEM; HL_EINVAL if it has others. */
int hli_quorum_set(struct hli_name *name, hl_client *const *clients, size_t count,
                   const struct hli_kind *voter, hl_error *err);

/* The hooks of a quorum's kind (kind.h). */
void hli_quorum_lead_begin(const struct hli_name *name, struct hli_quorum_lead *lead);
void hli_quorum_lead(const struct hli_name *name, struct hli_quorum_lead *lead,
                     struct hli_wait *wait);

void hli_quorum_free(struct hli_quorum *quorum); /* or NULL */

/* Both masters are the same server; false if it is not known. */
bool hli_quorum_is_one_server(const struct hli_quorum *quorum, size_t one, size_t other);

/* Cuts a holder's value to what it has in common at all masters: "<uuid>:<number>" of a Redlock of
 * this library, which writes the master's index behind it; any other one stays whole. */
void hli_quorum_cut_index(char *value);

/* "127.0.0.1:6379", a master's address. */
void hli_quorum_where(const struct hli_quorum *quorum, size_t index, char text[HLI_WHERE_SIZE]);

/* From now on releases at any master are heard. Without a mutex. */
void hli_quorum_listen(struct hli_quorum *quorum);

#endif
