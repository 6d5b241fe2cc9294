/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Releasing: the last level of a hold, and what a wait that is over may have got. */
#ifndef HLI_LEASE_RELEASE_H
#define HLI_LEASE_RELEASE_H

#include "lease/turn.h"

/* How a handle lets go. */
struct hli_release_way {
    bool is_posted;          /* the call does not wait for the answer */
    bool is_silent;          /* nobody is told by a message */
    int64_t linger_ms;       /* kept for the next owner of this client for so long; 0: not */
    struct hli_write *write; /* borrowed: what is written as it goes; then it is neither posted nor
                                kept. NULL: nothing */
};

/* A call of release that waits for its answer, for one request timeout at most. */
struct hli_released {
    struct hli_wait wait;
    struct hli_name *name; /* borrowed from the call */
    char problem[128];     /* name mutex: why there is no answer yet */
};

void hli_released_init(struct hli_released *released, struct hli_name *name, hl_error *err);
/* The code and text of a release that fails: "release 'name': ..."; returns the code. */
int hli_release_fail(hl_error *err, const struct hli_name *name, int code, const char *text);

/* Adds its result to the statistics. */
void hli_released_count(const struct hli_released *released);

/* Releases one level of the owner's hold; the result comes through the wait. */
void hli_release_start(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_way *way, struct hli_wait *wait);

/* The same; but a request that may go together with others is not sent but given to the caller, who
 * sends it or answers it by its `done`. NULL: there is none, or it has been sent. */
struct hli_op *hli_release_start_together(struct hli_name *name, struct hl_owner *owner,
                                          const struct hli_release_way *way, struct hli_wait *wait);

/* Lets go of a tenure without a caller: moves it to DYING, and posts its release. Name mutex. */
void hli_release_quietly(struct hli_turn *turn, struct hli_tenure *tenure);

/* Takes a field that is ours and that nobody uses (a late command put it there) out of Redis. Name
 * mutex. */
void hli_release_ghost(struct hli_turn *turn, uint64_t number);

/* Sends again what is not answered; gives up what is over by itself. Name mutex. */
void hli_release_retry(struct hli_turn *turn, bool link_came_up);

/* Is a release under way that a new tenure must not ask before it is answered? By then it has
 * handed the lock to whoever else waits. Behind a posted one it asks at once, unless Redisson's
 * waiters are about: a plain release is a race, and they would lose it. Name mutex. */
bool hli_release_is_in_the_way(const struct hli_name *name);

/* The client is closed, and its link too: nothing more will be answered. Name mutex. */
void hli_release_bury_all(struct hli_turn *turn);

/* DEAD: out of the name, and its reference is dropped at the turn's end. Name mutex. */
void hli_tenure_bury(struct hli_turn *turn, struct hli_tenure *tenure);

/* For release.c and release_answer.c. */

enum { HLI_RELEASE_RETRY_MS = 100 };

/* Sends it, unless it is in flight. Name mutex. */
void hli_release_send(struct hli_turn *turn, struct hli_tenure *tenure);

/* Its answer has come. */
void hli_release_done(struct hli_op *op, const struct hli_answer *answer);

/* The result, for the call that waits; of a posted one only a failure. Name mutex. */
void hli_release_tell(struct hli_turn *turn, struct hli_tenure *tenure, int code, const char *text);

#endif
