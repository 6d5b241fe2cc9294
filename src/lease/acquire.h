/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquiring: one call from its arguments to its result. An owner without a hold joins the name's
 * waiters; one with a hold goes a level deeper. Blocking and async calls differ only in how they
 * are told.
 */
#ifndef HLI_LEASE_ACQUIRE_H
#define HLI_LEASE_ACQUIRE_H

#include "lease/turn.h"

/* How a handle acquires. */
struct hli_acquire_way {
    int64_t watch_ms;       /* the lease of a hold that the watchdog renews */
    bool is_flat;           /* a nested call is refused */
    bool is_fenced;         /* each hold has a fencing token */
    bool lingers;           /* what is released through it may be kept for the next owner */
    bool listens;           /* with backoff_ms: to the channel, too */
    int64_t backoff_ms;     /* looks in after so long, then after twice as long ... */
    int64_t backoff_max_ms; /* ... up to this; 0: waits for a message in the usual way */
    uint64_t under;         /* of a reader: the number of its owner's write lock; 0 without */
    bool goes_first;        /* of a writer that waits: new readers stay away */
    uint32_t need;          /* of a kind that counts: so much at once */
};

struct hli_acquire {
    struct hli_wait wait;
    TAILQ_ENTRY(hli_acquire) link; /* name mutex: in the name's waiters */
    bool is_waiting;               /* name mutex, as the next */
    bool is_asked; /* the request under way, of a kind that counts, asks for it too */

    struct hli_name *name;  /* counted, immutable, as all below */
    struct hl_owner *owner; /* counted */
    struct hli_acquire_way way;
    int64_t lease_ms; /* what Redis is asked for: its own lease time or the watchdog's */
    bool is_watched;  /* without a lease time of its own */
    bool is_try;      /* a busy answer is the end */
    int64_t max_hold_ms, min_hold_ms;
    hl_event_cb on_event;
    void *event_arg;
    hl_lock_info *ret_busy;
    uint64_t *ret_token;
    struct hli_tag *tag; /* owned; NULL once there is a hold, or without */

    hli_ns backoff_at; /* name mutex, as the next: looks in then */
    int64_t backoff_ms;
    struct hli_tenure *got; /* name mutex; counted: the hold that was begun for this call and is not
                               accepted yet */
};

/* Are they in range, and of use for this way? Errors: HL_EINVAL. */
int hli_acquire_check(const struct hli_acquire_way *way, const hl_acquire_options *options,
                      hl_error *err);

/* Checks the options and prepares the call; nothing is sent. Errors: HL_EINVAL, HL_ENOMEM. */
int hli_acquire_init(struct hli_acquire *acquire, struct hli_name *name,
                     const struct hli_acquire_way *way, const hl_acquire_options *options,
                     hl_error *err);
void hli_acquire_deinit(struct hli_acquire *acquire);

/* Of a call that blocks, before it begins: gives the core away for a moment if the lock was handed
 * to another process just now. */
void hli_acquire_make_way(struct hli_acquire *acquire);

/* Begins; the result comes through the wait. */
void hli_acquire_start(struct hli_acquire *acquire);

/* The same for a call that is one of several which are gathered for one (gather.h): it may have
 * been begun before. */
void hli_acquire_start_part(struct hli_acquire *acquire);

/* The same, if its first request would go out now; that is not sent but given to the caller, who
 * sends it, alone or together with others, or answers it by its `done`. It is NULL if there is none
 * for want of memory. False: not begun. */
bool hli_acquire_start_together(struct hli_acquire *acquire, struct hli_op **ret_op);

/* Takes it back without a result. False: it has one. What nobody else wants then is the caller's to
 * abandon. Name mutex. */
bool hli_acquire_leave(struct hli_turn *turn, struct hli_acquire *acquire);

/* Once the wait is finished: looks at the validity again, in the thread that is told. Returns the
 * code. Or what it got is over already: then the call goes on waiting, or, where a name is used
 * once, has to begin anew with another. */
enum { HLI_ACQUIRE_GOES_ON = 1, HLI_ACQUIRE_ANEW };
int hli_acquire_settle(struct hli_acquire *acquire);

/* Blocks until the end, which may be HLI_ACQUIRE_ANEW. */
int hli_acquire_block(struct hli_acquire *acquire);

/* The same call, with the time it has left, on its owner's next name. Errors: HL_ENOMEM. */
int hli_acquire_init_anew(struct hli_acquire *acquire, const struct hli_acquire *late,
                          hl_error *err);

/* Ends a call that waits, with what its error text says after "acquire 'name': ". Name mutex. */
void hli_acquire_fail(struct hli_turn *turn, struct hli_acquire *acquire, int code,
                      const char *text);

/* The first waiter, or another, is served, and nothing is held for it: of kinds without a hold.
 * Name mutex. */
void hli_acquire_serve(struct hli_turn *turn, struct hli_acquire *acquire);

/* The same, with the last busy answer as its reason. Name mutex. */
void hli_acquire_fail_busy(struct hli_turn *turn, struct hli_acquire *acquire, int code);

/* Its wait time is over, or nothing was heard for as long as it goes: with what there is to say.
 * Name mutex. */
void hli_acquire_time_out(struct hli_turn *turn, struct hli_acquire *acquire);
void hli_acquire_fail_unheard(struct hli_turn *turn, struct hli_acquire *acquire);

/* It is no longer one of the waiters; or waits for nothing any more. Name mutex. */
void hli_acquire_leave_line(struct hli_turn *turn, struct hli_acquire *acquire);
void hli_acquire_withdraw(struct hli_turn *turn, struct hli_acquire *acquire);

/* The client is closed: HL_ECANCELED for all that wait on the name. */
void hli_acquire_cancel_all(struct hli_turn *turn);

#endif
