/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Sequences: which member comes first. */
#include "lease/several/sequence.h"

#include "lease/state/grace.h"

#include <string.h>

/* max_hold and min_hold begin when the call returns. */
static int sequence_add_member(struct hli_member *member, const struct hli_acquire_spec *spec,
                               hl_error *err)
{
    hl_acquire_options options = *spec->options;
    const struct hli_acquire_spec own = {spec->name, spec->mode, &options};

    int rc = HLI_GRACE_IS_ON(spec->name->client)
                 ? hli_grace_check(spec->name->client, "min_hold_ms", options.min_hold_ms, err)
                 : 0;
    if (rc < 0)
        return rc;
    options.max_hold_ms = options.min_hold_ms = 0;
    rc = hli_acquire_init(&member->acquire, &own, err);
    if (rc == 0)
        member->acquire.wait.is_finished = true; /* the member is not begun */
    return rc;
}

/* A nested member that is sure to fail comes first, because it ends the whole call. A nested member
 * that can succeed comes last: it need not wait, and its hold is not changed before all others are
 * held. */
enum sequence_rank { SEQUENCE_FAILS, SEQUENCE_FRESH, SEQUENCE_NESTED, SEQUENCE_RANKS };

static enum sequence_rank sequence_rank_of(const struct hli_acquire_spec *spec)
{
    bool is_lost = false;

    if (!hli_member_check_outer(spec->name, spec->options->owner, &is_lost))
        return SEQUENCE_FRESH;
    return is_lost || spec->mode.is_nonreentrant ? SEQUENCE_FAILS : SEQUENCE_NESTED;
}

int hli_sequence_add_members(struct hli_member *members, size_t *count,
                             const struct hli_acquire_spec *specs, size_t specs_count,
                             hl_error *err)
{
    enum sequence_rank rank[HLI_SEVERAL_LIMIT];

    for (size_t i = 0; i < specs_count; i++)
        rank[i] = sequence_rank_of(&specs[i]);
    for (int next = 0; next < SEQUENCE_RANKS; next++)
        for (size_t i = 0; i < specs_count; i++) {
            if ((int)rank[i] != next)
                continue;
            int rc = sequence_add_member(&members[*count], &specs[i], err);
            if (rc < 0)
                return rc;
            members[(*count)++].is_nested = rank[i] != SEQUENCE_FRESH;
        }
    return 0;
}

static bool sequence_same_name(const struct hli_member *one, const struct hli_member *other)
{
    const struct hli_name *name = one->acquire.name, *others = other->acquire.name;

    return name->client != others->client && name->slot == others->slot &&
           name->length == others->length && memcmp(name->bytes, others->bytes, name->length) == 0;
}

static uint64_t sequence_server(const struct hli_member *member)
{
    return hli_link_server(hli_name_link(member->acquire.name));
}

/* Moves the last of so many members forward to its place in its tie. */
static void sequence_settle_last(struct hli_member **at, size_t count)
{
    struct hli_member *last = at[count - 1];
    uint64_t server = 0;
    size_t place = count - 1;

    if (place == 0 || !sequence_same_name(at[place - 1], last))
        return;
    server = sequence_server(last);
    while (place > 0 && sequence_same_name(at[place - 1], last) &&
           sequence_server(at[place - 1]) > server) {
        at[place] = at[place - 1];
        place--;
    }
    at[place] = last;
}

void hli_sequence_be_strict(struct hli_sequence *sequence)
{
    sequence->is_strict = true;
    for (size_t i = 0; i < sequence->count; i++) {
        sequence->at[i] = &sequence->members[i];
        if (sequence->spans)
            sequence_settle_last(sequence->at, i + 1);
    }
}

static const hl_client *sequence_client(const struct hli_sequence *sequence, size_t index)
{
    return sequence->members[index].acquire.name->client;
}

/* Is this member behind one of its own client, with another client's between them? */
static bool sequence_is_apart(const struct hli_sequence *sequence, size_t index)
{
    const hl_client *client = sequence_client(sequence, index);

    if (index == 0 || sequence_client(sequence, index - 1) == client)
        return false;
    for (size_t i = 0; i < index; i++)
        if (sequence_client(sequence, i) == client)
            return true;
    return false;
}

/* A member that does not ask in a batch waits where it is busy, whatever the call holds. */
static bool sequence_gains(const struct hli_sequence *sequence)
{
    bool gains = false;

    for (size_t i = 0; i < sequence->count; i++) {
        const struct hli_member *member = &sequence->members[i];
        if (!member->is_nested && !hli_member_may_share(member))
            return false;
        gains = gains || sequence_is_apart(sequence, i);
    }
    return gains;
}

/* Does this member follow one of the same client at once? Those that the owner holds do not: they
 * stay behind all others. */
static bool sequence_follows(const struct hli_sequence *sequence, size_t first, size_t index)
{
    return index == first ||
           (!sequence->members[first].is_nested && !sequence->members[index].is_nested &&
            sequence_client(sequence, first) == sequence_client(sequence, index));
}

void hli_sequence_gather(struct hli_sequence *sequence)
{
    bool is_in[HLI_SEVERAL_LIMIT] = {false};
    size_t used = 0;

    if (!sequence_gains(sequence))
        return;
    sequence->is_strict = false;
    for (size_t first = 0; first < sequence->count; first++)
        for (size_t i = first; !is_in[first] && i < sequence->count; i++) {
            if (!sequence_follows(sequence, first, i))
                continue;
            sequence->at[used++] = &sequence->members[i];
            is_in[i] = i != first;
        }
}

size_t hli_sequence_tie(const struct hli_sequence *sequence, size_t place)
{
    size_t first = place;

    while (first > 0 && sequence_same_name(sequence->at[first - 1], sequence->at[place]))
        first--;
    return first;
}

void hli_sequence_prefer(struct hli_sequence *sequence, size_t first, size_t place)
{
    struct hli_member *preferred = sequence->at[place];

    memmove(&sequence->at[first + 1], &sequence->at[first],
            (place - first) * sizeof(struct hli_member *));
    sequence->at[first] = preferred;
}
