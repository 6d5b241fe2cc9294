/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A tenure: a process's time with a name, from its first wait to the release in Redis, under one
 * field that is never used again; and the hold, one owner's time within it. This file is the state
 * machine's bones: its states, who may follow whom, and the arithmetic of validity. Pure; what is
 * done in each state is in ask.c, hold.c, release.c and loss.c.
 *
 *     NEW --> ASK --> WAIT         asking; told that it is busy
 *      |       |       |
 *      |       +-------+--> OWN --> LOST         held; the hold ended before its release
 *      |       |       |    ^ |      |
 *      |       |       |    | v      |
 *      |       |       |    IDLE     |           kept for the next owner of this process
 *      |       |       |     |       |
 *      +-------+-------+-----+-------+--> DYING --> DEAD     release under way; over
 *
 * From ASK, WAIT and LOST it is a short way to DEAD when there is nothing to release; NEW becomes
 * DYING when a field that a late command left behind is released (a ghost).
 */
#ifndef HLI_LEASE_TENURE_H
#define HLI_LEASE_TENURE_H

#include "base/heap.h"
#include "lease/callbacks.h"
#include "lease/owner.h"
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
    HLI_TENURE_DYING,
    HLI_TENURE_DEAD,
};

struct hli_hold {
    struct hl_owner
        *owner;       /* counted; NULL when the tenure had no hold; while IDLE, the last one */
    uint32_t count;   /* levels */
    bool is_watched;  /* renewed until released */
    int64_t watch_ms; /* and its lease then */
    bool is_accepted; /* its owner has looked at the validity a second time, and was told that it
                         holds */
    hli_ns began;
    hli_ns ends;        /* of a hold that is not watched: its lease time is over; else HLI_NEVER */
    hli_ns leash;       /* max_hold; HLI_NEVER without */
    hli_ns rests_until; /* min_hold; 0 without */
    uint64_t token;     /* the fencing token; 0 without */
    hl_event_cb on_event;
    void *event_arg;
};

/* What is told to event callbacks, embedded so that telling a loss cannot fail for want of memory.
 */
struct hli_notice {
    struct hli_callback callback;
    STAILQ_ENTRY(hli_notice) turn_link; /* of the turn that queues it */
    bool is_queued;                     /* name mutex, as all below */
    hl_event_kind kind;
    int64_t validity_ms;
    const char *reason;
};

/* What the `ask` request in flight is for. */
enum hli_asking {
    HLI_ASKING_NOTHING,
    HLI_ASKING_TAKE,
    HLI_ASKING_DEEPEN,
    HLI_ASKING_COUNT,
    HLI_ASKING_KEEP,
    HLI_ASKING_TAG,
};

struct hli_tenure {        /* name mutex, unless it says otherwise */
    struct hli_ref ref;    /* atomic: the name's, one for each request in flight, for the watchdog's
                              heap, for queued notices */
    struct hli_name *name; /* counted, immutable */
    uint64_t number;       /* of its field; immutable */
    enum hli_tenure_state state;
    TAILQ_ENTRY(hli_tenure) link; /* in the name's `past`, when LOST or DYING */

    hli_ns valid_until; /* moves only on a positive reply or a grant; 0 when nothing is held */
    int64_t valid_ms;   /* the lease that it comes from */
    struct hli_hold hold;

    struct hli_op ask;
    enum hli_asking asking;
    int64_t asked_lease_ms;   /* by the request in flight, or the last one */
    int64_t longest_lease_ms; /* of all that were asked for, renewals included: bounds how long the
                                 key can stand */
    uint32_t asked_count;
    uint32_t asked_tokens; /* by the TAKE in flight */
    uint32_t tokens;       /* fencing tokens that no hold has had; `token` is the next one */
    uint64_t token;
    uint32_t keeps; /* what stays taken when it is let go of, of a kind that counts */
    bool asks_less; /* the count is to be lowered to it, not raised */
    /* Between them is what stands in Redis, a display only; they differ after a command without an
     * answer. */
    uint32_t least_count, most_count;
    hli_ns shows_at;  /* when the count is to be shown; 0 when nothing is planned */
    bool may_stand;   /* something of it may be in Redis: the key, or a place in the queue */
    bool is_queued;   /* a TAKE was sent that queues */
    hli_ns anchor_at; /* before the last request that was answered busy was sent, or the first one
                         of all; 0 on a new link: no grant can be judged yet */
    uint64_t busy_stamp;  /* the server's time of the last busy answer, in microseconds */
    uint64_t grant_stamp; /* and of the grant that it was entered by; 0 without */

    hli_ns word_at;    /* when nobody else waited, as the server said; 0: it has not said so */
    hli_ns idle_word;  /* the word of which idle_until was counted */
    hli_ns idle_until; /* IDLE: let go of then */
    bool is_wanted;    /* somebody else waits */
    unsigned passes;
    struct hli_acquire *deepener; /* the nested call that waits for a longer lease */

    struct hli_op release;
    bool is_releasing;         /* in flight */
    bool is_release_unsure;    /* one was sent whose answer never came */
    bool is_release_courteous; /* it lets Redisson's waiters go first */
    bool is_silent;            /* nobody is told of it by a message */
    bool is_posted;            /* its caller has returned, and is told of a failure by an event */
    bool was_alive;            /* valid when the release was first sent */
    hli_ns retry_at;           /* of a refused release */
    hli_ns give_up_at;         /* by then the lease is over by itself */
    struct hli_wait *releaser; /* the call that waits for it, or NULL */
    struct hli_write *write;   /* counted: what the release writes, or NULL */
    struct hli_tag *tag;       /* owned: what the hold tells of itself, or NULL */

    struct hli_heap_node due;           /* watchdog mutex */
    TAILQ_ENTRY(hli_tenure) ready_link; /* watchdog mutex: in its queue for a batch */
    TAILQ_ENTRY(hli_tenure) look_link;  /* watchdog thread: in its list of this round */
    bool is_renewing;                   /* queued for, or in, a renewal */
    int64_t renew_lease_ms;             /* of that renewal; unchanged while is_renewing */
    unsigned renew_failures;            /* since the last success */
    hli_ns renew_at;
    hli_ns told_due;  /* when the watchdog was last told to look */
    bool in_jeopardy; /* told so */
    bool is_doubted;  /* a renewal is to find out whether it is there, also of a leased hold */
    bool is_retimed;  /* its lease is being set anew */

    struct hli_notice warning, loss;
};

TAILQ_HEAD(hli_tenures, hli_tenure);

enum { HLI_FIELD_SIZE = 64 };

/* NEW. Takes a reference on the name. Errors: NULL when memory is out. */
struct hli_tenure *hli_tenure_new(struct hli_name *name);

/* A number that no tenure of this client ever had. */
uint64_t hli_tenure_number(hl_client *client);
void hli_tenure_ref(struct hli_tenure *tenure);
void hli_tenure_unref(struct hli_tenure *tenure);

/* The only place that assigns the state. */
void hli_tenure_move(struct hli_tenure *tenure, enum hli_tenure_state state);
const char *hli_tenure_state_name(enum hli_tenure_state state);

/* Does it still ask? NULL does not. */
static inline bool hli_tenure_is_contending(const struct hli_tenure *tenure)
{
    return tenure && (tenure->state == HLI_TENURE_ASK || tenure->state == HLI_TENURE_WAIT);
}

/* Is the key this tenure's, as far as we know: held, or kept for the next owner? */
static inline bool hli_tenure_is_kept(const struct hli_tenure *tenure)
{
    return tenure && (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_IDLE);
}

/* "<uuid>:<number>", and the kind's suffix */
const char *hli_tenure_field(const struct hli_tenure *tenure, char text[HLI_FIELD_SIZE]);

/* The next of its fencing tokens, of which there is one. */
uint64_t hli_tenure_take_token(struct hli_tenure *tenure);

/* How much earlier than the server we count a lease as over: 1 % for clocks that drift, 2 ms for
 * the granularity of its expiry (redis.io, "Distributed Locks with Redis", uses the same shape). */
hli_ns hli_lease_margin(int64_t lease_ms);

/* Until when a lease is surely there that was asked for at `sent_at`, from the time before the
 * request was written. */
hli_ns hli_lease_validity(hli_ns sent_at, int64_t lease_ms);

/* When the hold ends if nothing renews it: its own end or the tenure's validity, whichever comes
 * first. */
hli_ns hli_hold_validity(const struct hli_tenure *tenure);

/* Something that succeeded and was sent then: validity moves, and never back. */
void hli_tenure_extend(struct hli_tenure *tenure, hli_ns sent_at, int64_t lease_ms);

#ifdef HL_TESTING
/* Told of every move, "7 ASK > OWN"; tests compare the lines. */
extern void (*hli_tenure_trace)(const struct hli_tenure *tenure, enum hli_tenure_state from);
#endif

#endif
