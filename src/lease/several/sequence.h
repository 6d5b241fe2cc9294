/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A sequence: in which order an acquire-all takes its members. All callers of all processes share
 * one order, the strict one: by slot, by the bytes of the name, and by the server's run id. A call
 * that waits holds only members before the one that it waits for. Until a member is busy a call of
 * several clients asks for all members of one client together instead, as then each client is asked
 * once.
 */
#ifndef HLI_LEASE_SEVERAL_SEQUENCE_H
#define HLI_LEASE_SEVERAL_SEQUENCE_H

#include "lease/several/batch.h"
#include "lease/several/member.h"

struct hli_sequence {           /* of the thread that makes the acquire-all's steps */
    struct hli_member *members; /* immutable, as the next */
    size_t count;
    bool spans; /* immutable: there are several clients */
    bool is_strict;
    struct hli_member **at; /* which member stands at this place */
};

/* Adds the members of a call: those that will fail first, and last those that the owner holds. The
 * specs are in the strict order. Errors: those of hli_acquire_init(). */
int hli_sequence_add_members(struct hli_member *members, size_t *count,
                             const struct hli_acquire_spec *specs, size_t specs_count,
                             hl_error *err);

/* The strict order, which the members have themselves; those of a tie stand in the order of their
 * servers, as far as these have told who they are. */
void hli_sequence_be_strict(struct hli_sequence *sequence);

/* From the strict order: the members of one client together, if they are not yet and one request
 * can ask for them. */
void hli_sequence_gather(struct hli_sequence *sequence);

/* Of the members before this place, its tie: those of the same slot and name, at other servers. Two
 * callers may take these in different orders, as a server has another run id after a restart or a
 * failover. Returns the place of the first of them. */
size_t hli_sequence_tie(const struct hli_sequence *sequence, size_t place);

/* Moves a member forward, before all others of its tie. */
void hli_sequence_prefer(struct hli_sequence *sequence, size_t first, size_t place);

#endif
