/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A tenure: a process's time with a name, from its first wait to the release in Redis, under one
 * field that is never used again; and the hold, one owner's time within it. This file has the
 * states, the allowed steps and the arithmetic of validity, and does no I/O; ask.c, hold.c,
 * release.c and loss.c act on the states.
 *
 *     NEW --> ASK --> WAIT         asking; told that it is busy
 *      |       |       |
 *      |       +-------+--> OWN --> LOST         held; the hold ended before its release
 *      |       |       |    ^ |      |
 *      |       |       |    | v      |
 *      |       |       |    IDLE     |           kept for the next owner of this process
 *      |       |       |     |       |
 *      +-------+-------+-----+-------+--> RELEASING --> ENDED     release under way; over
 *
 * ASK, WAIT and LOST go straight to ENDED when there is nothing to release; NEW becomes RELEASING
 * to release a field that a late command left behind (an orphan).
 */
#ifndef HLI_LEASE_STATE_TENURE_H
#define HLI_LEASE_STATE_TENURE_H

#include "base/heap.h"
#include "lease/calls/callbacks.h"
#include "lease/calls/owner.h"
#include "redis/op.h"

struct hli_name;
struct hli_acquire;
struct hli_wait;
struct hli_write;
struct hli_tag;

enum hli_tenure_state {
    HLI_TENURE_NEW,
    HLI_TENURE_ASK,
    HLI_TENURE_WAIT,
    HLI_TENURE_OWN,
    HLI_TENURE_IDLE,
    HLI_TENURE_LOST,
    HLI_TENURE_RELEASING,
    HLI_TENURE_ENDED,
};

struct hli_hold {
    struct hl_owner
        *owner;          /* counted; NULL: the tenure had no hold yet; while IDLE, the last owner */
    uint32_t count;      /* levels */
    unsigned replicas;   /* how many must have each of its renewals (replicas.h) */
    bool is_kept_anyway; /* if fewer have it, it goes on, and an event says so */
    bool is_watched;     /* renewed until released */
    bool is_accepted;    /* its owner's call has checked the validity a second time, and reported
                            success */
    int64_t watch_ms;    /* the lease of its renewals */
    hli_ns began;
    hli_ns ends; /* of a hold that is not watched: when its lease time is over; else HLI_NEVER */
    hli_ns max_hold_at;    /* max_hold; HLI_NEVER without */
    hli_ns min_hold_until; /* min_hold; 0 without */
    uint64_t token;        /* the fencing token; 0 without */
    hl_event_cb on_event;
    void *event_arg;
};

/* An event to be delivered; embedded in the tenure, so that reporting a loss needs no memory. */
struct hli_notice {
    struct hli_callback callback;
    bool is_queued; /* name mutex, as all below */
    hl_event_kind kind;
    int64_t validity_ms;
    const char *reason;
};

/* The purpose of the `ask` request in flight. */
enum hli_asking {
    HLI_ASKING_NOTHING,
    HLI_ASKING_ACQUIRE,
    HLI_ASKING_REENTER,
    HLI_ASKING_COUNT,
    HLI_ASKING_KEEP,
    HLI_ASKING_TAG,
};

struct hli_tenure {     /* name mutex, unless it says otherwise */
    struct hli_ref ref; /* atomic: the name's, one for each request in flight, for the watchdog's
                           heap, for queued notices */
    _Atomic(enum hli_tenure_state) state; /* the connection reads it too, as it queues a request */
    struct hli_name *name;                /* counted, immutable */
    uint64_t number;                      /* of its field; immutable */
    TAILQ_ENTRY(hli_tenure) link;         /* in the name's `past`, when LOST or RELEASING */

    hli_ns valid_until; /* moves only on a positive reply or a grant; 0 when nothing is held */
    int64_t valid_ms;   /* the lease that valid_until was computed from */
    unsigned replicas;  /* so many have what valid_until was computed from (replicas.h) */
    unsigned term;      /* in which the server gave or confirmed it (grace.h) */
    struct hli_hold hold;

    struct hli_op ask;
    hli_ns ask_at; /* when the next request may go; an event that wakes the waiters sets it to 0 */
    int64_t asked_lease_ms;   /* by the request in flight, or the last one */
    int64_t longest_lease_ms; /* of all that were asked for, renewals included: bounds how long the
                                 key can stand */
    uint32_t asked_count;
    uint32_t asked_tokens; /* by the ACQUIRE in flight */
    enum hli_asking asking;
    uint32_t tokens; /* fencing tokens that no hold has had; `token` is the next one */
    uint64_t token;
    uint32_t count_kept; /* of a kind with is_counted: what its release leaves taken */
    bool asks_less;      /* the request lowers the count to asked_count; else it raises it */
    bool is_final;       /* nothing makes valid_until longer any more (grace.h) */
    /* Bounds of the count in Redis, which is a display only; they differ after a command without an
     * answer. */
    uint32_t least_count, most_count;
    hli_ns shows_at;  /* when the count is to be shown; 0 when nothing is planned */
    bool may_stand;   /* something of it may be in Redis: the key, or a place in the queue */
    bool is_queued;   /* an ACQUIRE was sent that may queue */
    bool is_unsure;   /* an ACQUIRE had no answer, and may run until the next link is up */
    bool has_waiters; /* another process waits */
    unsigned passes;
    hli_ns anchor_at;     /* the time before the last request that was answered busy, or before the
                             first of all; 0 on a new link: no grant can be judged yet */
    uint64_t busy_stamp;  /* the server's time of the last busy answer, in microseconds */
    uint64_t grant_stamp; /* the same of the grant that began the hold; 0: no grant did */

    hli_ns no_waiters_at;        /* when nobody else waited, by the server's word; 0: not known */
    hli_ns idle_no_waiters_at;   /* the no_waiters_at for which idle_until was set */
    hli_ns idle_until;           /* IDLE: when it is released */
    struct hli_acquire *reentry; /* the nested call that waits for a longer lease */

    struct hli_op release;
    bool is_releasing;       /* in flight */
    bool is_release_unsure;  /* one was sent whose answer never came */
    bool is_release_put_off; /* one was refused for now, or could not be sent */
    bool looks_again;        /* it is over; its release is sent once more for those who wait */
    bool releases_in_grace;  /* its release was worded in a grace (grace.h) */
    bool release_yields;     /* it lets Redisson's waiters go first */
    bool is_silent;          /* it publishes no message */
    bool is_posted;          /* its caller has returned; an event reports a failure */
    hli_ns was_valid_until;  /* as its release began; 0: it was over by then */
    hli_ns retry_at;         /* when the release is sent next; HLI_NEVER: when the link is up */
    hli_ns lost_at;    /* when the hold ended, for loss.reason, also if that was noticed later;
                          0: it was not lost */
    hli_ns give_up_at; /* when the lease is certainly over by itself */
    struct hli_wait *releaser; /* the call that waits for the release, or NULL */
    struct hli_write *write;   /* counted: what the release writes, or NULL */
    struct hli_tag *tag;       /* owned: the hold's tag, or NULL */

    struct hli_heap_node due;              /* watchdog mutex */
    struct hli_heap_node ready;            /* watchdog mutex: in its queue for a batch */
    STAILQ_ENTRY(hli_tenure) renewal_link; /* in a batch */
    STAILQ_ENTRY(hli_tenure) visit_link;   /* watchdog thread: in its list of this round */
    int64_t renew_lease_ms;                /* of that renewal; unchanged while it is queued or in
                                              flight, as the next */
    bool is_renewing;                      /* queued for, or in, a renewal */
    bool renews_alone;                     /* a batch with it was refused: the next request names
                                              no other */
    unsigned renew_failures;               /* since the last success */
    hli_ns renew_at;
    hli_ns visit_at;     /* the visit that the watchdog was last told of; HLI_NEVER: none */
    bool in_jeopardy;    /* JEOPARDY was reported */
    bool is_unconfirmed; /* UNCONFIRMED was reported */
    bool is_doubted;     /* a renewal is to find out whether the key is there, also of a hold with a
                            lease time */
    hli_ns doubted_at;   /* when news came that made it so; a renewal that was sent before cannot
                            tell; 0: none came */
    bool is_lease_changing; /* a call that sets its end anew is under way (lease_change.h) ... */
    bool is_returned; /* ... and gives the hold back: it counts as over, unless the answer says
                         otherwise */

    struct hli_notice warning, loss;
};

TAILQ_HEAD(hli_tenures, hli_tenure);

enum { HLI_FIELD_SIZE = 64 };

/* NEW, under this number. Takes a reference on the name. Errors: NULL when memory is out. */
struct hli_tenure *hli_tenure_new(struct hli_name *name, uint64_t number);
/* A number that was never used before. */
uint64_t hli_tenure_next_number(const struct hli_name *name);

void hli_tenure_ref(struct hli_tenure *tenure);
void hli_tenure_unref(struct hli_tenure *tenure);

/* The only place that assigns the state. */
void hli_tenure_move(struct hli_tenure *tenure, enum hli_tenure_state state);
const char *hli_tenure_state_name(enum hli_tenure_state state);

/* Is the tenure in ASK or WAIT? False for NULL. */
bool hli_tenure_is_contending(const struct hli_tenure *tenure);

/* Is the tenure in OWN or IDLE: is the key this tenure's, as far as we know? False for NULL. */
bool hli_tenure_has_key(const struct hli_tenure *tenure);

/* Does Redis show this count, for certain? */
bool hli_tenure_shows(const struct hli_tenure *tenure, uint32_t count);

/* Is the tenure LOST, RELEASING or ENDED? It never comes back from these. */
bool hli_tenure_is_over(const struct hli_tenure *tenure);

/* There is news for the waiters: the tenure asks as soon as it may, if it is in ASK or WAIT. NULL
 * is allowed. */
void hli_tenure_ask_soon(struct hli_tenure *tenure);

/* "<uuid>:<number>", and the kind's suffix; of a part of a Redlock ":<index>" of the master. */
const char *hli_tenure_field(const struct hli_tenure *tenure, char text[HLI_FIELD_SIZE]);
/* The same of a tenure of that number. */
const char *hli_tenure_write_field(const struct hli_name *name, uint64_t number,
                                   char text[HLI_FIELD_SIZE]);

/* Takes the next of its fencing tokens; there must be one. */
uint64_t hli_tenure_take_token(struct hli_tenure *tenure);

/* How much earlier than the server we count a lease as over: 1 % for clocks that drift, 2 ms for
 * the granularity of its expiry (redis.io, "Distributed Locks with Redis", uses the same shape). */
hli_ns hli_lease_margin(int64_t lease_ms);

/* A hold that is due for renewal takes along the holds that are due within this time. Otherwise
 * holds that were acquired one after the other would be renewed one by one, at several times the
 * cost for the server. */
hli_ns hli_lease_slack(int64_t lease_ms);

/* Until when a lease surely lasts; `sent_at` is the time before its request was written. */
hli_ns hli_lease_validity(hli_ns sent_at, int64_t lease_ms);

/* When the hold ends if nothing renews it: its own end or the tenure's validity, whichever comes
 * first. */
hli_ns hli_hold_validity(const struct hli_tenure *tenure);

/* Has the tenure a hold that is not over yet? */
bool hli_hold_is_valid(const struct hli_tenure *tenure, hli_ns now);

/* Does an answer that so many replicas have count for the hold? Name mutex. */
static inline bool hli_hold_takes(const struct hli_tenure *tenure, unsigned replicas)
{
    return tenure->hold.is_kept_anyway || hli_replicas_cover(replicas, tenure->hold.replicas);
}

/* A request of this term that was sent at `sent_at` succeeded, and so many replicas (replicas.h)
 * have it: moves the validity forward, never back. The replicas have a longer one, too, that was
 * answered before: they have all that the master wrote until then. */
void hli_tenure_extend(struct hli_tenure *tenure, hli_ns sent_at, int64_t lease_ms,
                       unsigned replicas, unsigned term);

#ifdef HL_TESTING
/* Called for every move, "7 ASK > OWN"; tests compare the lines. */
extern void (*hli_tenure_trace)(const struct hli_tenure *tenure, enum hli_tenure_state from);
#endif

#endif
