/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A member: the acquire of one name, in an acquire-all. */
#ifndef HLI_LEASE_SEVERAL_MEMBER_H
#define HLI_LEASE_SEVERAL_MEMBER_H

#include "lease/acquire/acquire.h"

enum hli_member_state {
    HLI_MEMBER_NEW,  /* nothing is begun, nothing is held */
    HLI_MEMBER_ASKS, /* begun; it has a reference on its acquire-all */
    HLI_MEMBER_DONE, /* it has its result: it is held if its code is HL_OK */
};

struct hli_member {
    struct hli_acquire acquire;
    struct hli_acquire_all *all; /* borrowed, immutable */
    _Atomic int state;           /* hli_member_state */
    bool is_nested;              /* immutable: its owner held it before the call */
    bool is_kept_alive;          /* of the thread that makes the acquire-all's steps */
    hl_error err;
};

/* The result of a member in DONE; HL_OK is a hold that is not accepted yet. */
static inline int hli_member_code(const struct hli_member *member)
{
    return member->acquire.wait.code;
}

static inline enum hli_member_state hli_member_state_of(const struct hli_member *member)
{
    return (enum hli_member_state)atomic_load(&member->state);
}

static inline bool hli_member_is_held(const struct hli_member *member)
{
    return hli_member_state_of(member) == HLI_MEMBER_DONE && hli_member_code(member) == HL_OK;
}

static inline bool hli_member_has_failed(const struct hli_member *member)
{
    return hli_member_state_of(member) == HLI_MEMBER_DONE && hli_member_code(member) < 0;
}

/* Returns whether the owner has a hold on the name; *ret_is_lost: that hold is over. */
bool hli_member_check_outer(struct hli_name *name, const struct hl_owner *owner, bool *ret_is_lost);

/* DONE and held: gives the member's hold or level back, and makes it NEW. An outer hold of the
 * owner stays. */
void hli_member_give_back(struct hli_member *member);

/* ASKS: withdraws the acquire; and handles this answer to its request, unless op is NULL. False: it
 * has its result, which is about to be reported. */
bool hli_member_withdraw(struct hli_member *member, struct hli_op *op,
                         const struct hli_answer *answer);

/* Stops the lease time while the call waits for other members: the watchdog renews the hold with
 * this lease. */
void hli_member_keep_alive(struct hli_member *member, int64_t lease_ms);

/* Can one request acquire it together with others, if they share a lane? */
bool hli_member_may_share(const struct hli_member *member);

/* Has the last answer said that the hold of `other` is in the way? Then both members are one lock,
 * by two clients of one server. */
bool hli_member_is_twin_of(const struct hli_member *member, const struct hli_member *other);

/* DONE: its client is closed, and has ended its hold; makes it NEW. */
void hli_member_forget(struct hli_member *member);

/* Is the member's hold still valid? */
bool hli_member_is_valid(const struct hli_member *member);

/* The call is about to return: accepts the hold, whose times count from now. False: too late. */
bool hli_member_accept(struct hli_member *member, const hl_acquire_options *options);

#endif
