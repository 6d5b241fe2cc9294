/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A part: one name's acquire among those that a gather takes for one call. */
#ifndef HLI_LEASE_PART_H
#define HLI_LEASE_PART_H

#include "lease/acquire.h"

enum hli_part_state {
    HLI_PART_RESTS, /* nothing is begun, nothing is held */
    HLI_PART_ASKS,  /* begun; it has a reference on its gather */
    HLI_PART_TOLD,  /* it has its result: held, if its code is HL_OK */
};

struct hli_part {
    struct hli_acquire acquire;
    struct hli_gather *gather; /* borrowed, immutable */
    _Atomic int state;         /* hli_part_state */
    bool is_nested;            /* immutable: its owner held it before the call */
    bool is_tamed;             /* of whoever makes the gather's next step */
    hl_error err;
};

/* The result that it was told; HL_OK is a hold that is not accepted yet. Of one that is TOLD. */
static inline int hli_part_code(const struct hli_part *part)
{
    return part->acquire.wait.code;
}

static inline enum hli_part_state hli_part_state_of(const struct hli_part *part)
{
    return (enum hli_part_state)atomic_load(&part->state);
}

static inline bool hli_part_is_held(const struct hli_part *part)
{
    return hli_part_state_of(part) == HLI_PART_TOLD && hli_part_code(part) == HL_OK;
}

static inline bool hli_part_has_failed(const struct hli_part *part)
{
    return hli_part_state_of(part) == HLI_PART_TOLD && hli_part_code(part) < 0;
}

/* Does the owner hold the name, and is that hold over meanwhile? Returns the first. */
bool hli_part_look_at_outer(struct hli_name *name, const struct hl_owner *owner, bool *ret_is_lost);

/* TOLD and held: gives back what was taken, and rests. What the owner held before stays. */
void hli_part_give_back(struct hli_part *part);

/* ASKS: takes the acquire back. False: it has its result, and is about to be told. */
bool hli_part_leave(struct hli_part *part);

/* Takes it back with a request under way that is answered so. */
bool hli_part_leave_answered(struct hli_part *part, struct hli_op *op,
                             const struct hli_answer *answer);

/* While others are waited for, a lease time does not run: the watchdog renews it with this lease.
 */
void hli_part_tame(struct hli_part *part, int64_t lease_ms);

/* Is what was taken still held? */
bool hli_part_is_valid(const struct hli_part *part);

/* The call is about to return: its owner holds this from now on, for as long as the options say.
 * False: too late. */
bool hli_part_accept(struct hli_part *part, const hl_acquire_options *options);

#endif
