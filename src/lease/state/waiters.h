/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A name's waiters: the calls that wait for it, in the order of their arrival. A call is in the
 * line until it has a hold, is served, or fails. A nested call that waits for a longer lease is not
 * in the line.
 */
#ifndef HLI_LEASE_STATE_WAITERS_H
#define HLI_LEASE_STATE_WAITERS_H

#include "lease/state/turn.h"

enum { HLI_TAG_THREAD = 16 }; /* bytes of a thread's name, with a NUL, as in hl_lock_info */

/* How a handle acquires. */
struct hli_acquire_mode {
    int64_t watch_ms;     /* the lease of a hold that the watchdog renews */
    bool is_nonreentrant; /* a nested call is refused */
    bool is_fenced;       /* each hold has a fencing token */
    bool retains; /* a tenure that is released through it may be retained for the next owner */
    bool listens; /* with backoff_ms: also subscribes to the channel */
    int64_t backoff_ms;     /* asks again after so long, then after twice as long ... */
    int64_t backoff_max_ms; /* ... up to this; 0: waits for a message as usual */
    uint64_t under;         /* of a reader: the number of its owner's write lock; 0 without */
    unsigned under_term;    /* the term in which its server has that; 0: none (grace.h) */
    bool goes_first;        /* of a writer that waits: new readers stay away */
    uint32_t need;          /* of a kind with is_counted: how many units it needs at once */
    unsigned replicas;      /* how many must have the hold (replicas.h) ... */
    bool is_kept_anyway;    /* ... and if fewer have it, it is held, and an event says so */
    /* A server that began so short ago may have forgotten a holder, and is not asked; 0: each is.
     */
    int64_t restart_ms;
    int64_t vote_ms; /* on several masters: how long each of them is waited for */
};

struct hli_acquire {
    HLI_PART
    struct hli_wait wait;
    TAILQ_ENTRY(hli_acquire) link; /* name mutex: in the name's waiters */
    bool is_waiting;               /* name mutex, as the next three */
    bool is_asked; /* of a kind with is_counted: the request under way asks for this call too */
    hli_ns
        tag_at; /* when it is to be shown next that the call waits (waiter_tag.h); or HLI_NEVER */
    struct hli_waiter_tag *tag; /* counted; NULL: it is not shown */

    struct hli_name *name;  /* counted, immutable, as all below */
    struct hl_owner *owner; /* counted */
    struct hli_acquire_mode mode;
    int64_t lease_ms; /* the lease that Redis is asked for: the call's or the watchdog's */
    bool is_watched;  /* without a lease time of its own */
    bool is_try;      /* a busy answer ends it */
    hl_acquire_options options;
    char thread[HLI_TAG_THREAD]; /* the caller's, for the hold's tag */

    hli_ns backoff_at; /* name mutex, as the next: when it asks again */
    int64_t backoff_ms;
    struct hli_tenure *got; /* name mutex; counted: the tenure of the hold that was begun or nested
                               for this call, until the call is settled */
    struct hli_hold before; /* name mutex: the hold as it was before this nested call made it
                               longer; count 0: it did not */
};

/* All with the turn's mutex. */

void hli_waiters_join(struct hli_turn *turn, struct hli_acquire *acquire, bool at_head);

/* Takes the call out of the line. */
void hli_waiters_leave(struct hli_turn *turn, struct hli_acquire *acquire);

/* Ends the call's waiting, be it in the line or for a longer lease. */
void hli_waiters_withdraw(struct hli_turn *turn, struct hli_acquire *acquire);

/* Ends the call with success and without a hold; for kinds that hold nothing. */
void hli_waiters_serve(struct hli_turn *turn, struct hli_acquire *acquire);

/* Ends a waiting call with an error; `text` follows "acquire 'name': " in it. */
void hli_waiters_fail(struct hli_turn *turn, struct hli_acquire *acquire, int code,
                      const char *text);
void hli_waiters_fail_all(struct hli_turn *turn, int code, const char *text);

/* Has the name a waiter that is to stand in the server's queue? Name mutex. */
bool hli_waiters_queue(const struct hli_name *name);

#endif
