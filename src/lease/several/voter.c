/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What is told from a voter's name to the Redlock's. */
#include "lease/several/voter.h"

#include "lease/several/majority.h"

/* A turn of the Redlock's name, if it is still there; false: it is gone. A subscription, or a
 * tenure that is being released, may outlive it. */
static bool voter_begin_turn(struct hli_turn *turn, const struct hli_name *voter)
{
    hl_client *client = voter->voter->speaker;
    const struct hli_name_key key = {
        .kind = voter->kind->whole, .bytes = voter->bytes, .length = voter->length};

    if (!hli_client_visit(client))
        return false;
    struct hli_name *name = hli_name_find(client, &key);
    if (name) {
        hli_turn_begin(turn, name);
        if (name->quorum && name->quorum->voters[voter->voter->index] == voter)
            return true;
        hli_turn_end(turn);
        hli_name_unref(name);
    }
    hli_client_leave(client);
    return false;
}

static void voter_end_turn(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    hl_client *client = name->client;

    hli_turn_end(turn);
    hli_name_unref(name);
    hli_client_leave(client);
}

void hli_voter_changed(struct hli_tenure *vote, hli_ns until)
{
    const struct hli_voter *voter = vote->name->voter;
    struct hli_turn turn;

    if (!voter_begin_turn(&turn, vote->name))
        return;
    hli_majority_vote_changed(&turn, voter->index, vote, until);
    voter_end_turn(&turn);
}

void hli_voter_heard(struct hli_name *voter)
{
    struct hli_turn turn;

    if (!voter_begin_turn(&turn, voter))
        return;
    turn.name->quorum->heard |= 1u << voter->voter->index;
    voter_end_turn(&turn);
}
