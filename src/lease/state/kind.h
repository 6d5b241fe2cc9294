/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A kind: the properties of a lock, a read lock, a fair lock or a semaphore. The engine in this
 * folder asks, waits, holds, renews and releases for all kinds. A kind formats its requests, and
 * decides who waits for whom: all owners of a process in one line behind one request, or each owner
 * with its own name, tenure and requests.
 */
#ifndef HLI_LEASE_STATE_KIND_H
#define HLI_LEASE_STATE_KIND_H

#include "redis/op.h"
#include "redis/reader.h"

#include <stdbool.h>
#include <stdint.h>

struct hli_batch;
struct hli_name;
struct hli_quorum;
struct hli_tenure;
struct hli_turn;
struct hli_wait;
struct hli_write;

/* An ACQUIRE, or a request for a longer lease or count: `count` levels, absolute. */
struct hli_acquire_request {
    int64_t lease_ms;
    uint32_t count;
    uint32_t tokens; /* fencing tokens; 0 of a lock without */
    bool queues;     /* if the lock is busy, the script may put the field into the queue */
    int64_t
        young_ms; /* of a Redlock: data of the server that are younger give no lock; 0: any do */
};

/* A release, which leaves `count` levels with at least this lease; or, with a count of 0, nothing:
 * the key goes to the next waiter, or rests for min_hold_left_ms. */
struct hli_release_request {
    uint32_t count;
    int64_t lease_ms, min_hold_left_ms;
    bool yields;                   /* it checks for Redisson's waiters, and lets them go first */
    bool is_silent;                /* it publishes no message */
    bool is_of_wait;               /* it ends a wait without a hold, which may stand in the queue */
    const struct hli_write *write; /* the value to be written with it, or NULL */
};

/* The masters whose answers a blocked thread reads itself. */
struct hli_quorum_lead {
    struct hli_readers readers;
    uint32_t visited; /* a bit for each master: its client stays until the end */
};

/* What a lock on several masters (several/quorum.h) does in place of requests of its own. */
struct hli_quorum_hooks { /* immutable */
    /* A tenure of the name, zeroed, or NULL when memory is out; and frees what it has beside that.
     */
    struct hli_tenure *(*make)(const struct hli_name *name);
    void (*unmake)(struct hli_tenure *tenure);
    /* Sends one of a tenure's ops: asks or releases at all masters. Without a mutex. */
    void (*send)(struct hli_op *op);
    /* The tenure is LOST. Name mutex. */
    void (*lost)(struct hli_tenure *tenure);
    /* Part of the plan. Name mutex. */
    void (*plan)(struct hli_turn *turn);
    /* There is something to be done for the tenure (hli_turn_act()). Without a mutex. */
    void (*act)(struct hli_tenure *tenure);
    /* What the masters said to the last request, for an error's text. Name mutex. */
    const char *(*tally)(const struct hli_name *name);
    /* Around the start of a call that is about to block: from the first on this thread leads the
     * connections of all masters on which it sends, and the second reads their answers, until the
     * wait has ended or no answer is to come soon. Without a mutex. */
    void (*lead_begin)(const struct hli_name *name, struct hli_quorum_lead *lead);
    void (*lead)(const struct hli_name *name, struct hli_quorum_lead *lead, struct hli_wait *wait);
    void (*free)(struct hli_quorum *quorum);
};

struct hli_kind {      /* immutable */
    char id;           /* part of the key in the map of names */
    bool is_handed_on; /* its locks have a queue in Redis: grants, passes and retained tenures */
    bool is_per_owner; /* each owner has a name of its own */
    bool has_no_owner; /* one thread may wait for it several times */
    bool is_counted; /* each waiter wants a number of units: when the first waiter leaves, the next
                        may fit */
    bool is_forgotten; /* a hold that is lost need not be released: it is forgotten when its lease
                          is over for certain */
    bool is_always_renewed; /* a renewal is sent for holds with a lease time of their own, too */
    bool writes;            /* its releases may write data */
    bool is_braced;    /* its state is in keys {name}..., which the name "{name}" would share */
    bool is_tagged;    /* its key is a hash with one holder, which may show a tag */
    bool has_no_count; /* its key shows no count: a nested call changes nothing in Redis */
    const struct hli_kind *sibling; /* the other half of a read-write lock, or NULL */
    const char *channel;            /* prefix of its waiters' channel; the name in braces follows */
    const char *field_suffix;       /* of its fields: "" or ":write" */
    const char *lacks;              /* why it is busy: "too few permits"; NULL: an owner holds it */
    const char *verb;               /* in front of an error's text; NULL: "acquire" */
    /* The scripts; reclaim: the renewal in a grace, 0 of a kind that knows none (grace.h); tag: of
     * a kind that is tagged. */
    hli_script_id renew, reclaim, tag;

    /* Format requests; name mutex. Errors: HL_ENOMEM, and the op is unchanged. `release` is NULL if
     * an acquire takes nothing that would have to be given back. */
    int (*acquire)(const struct hli_tenure *tenure, struct hli_op *op,
                   const struct hli_acquire_request *request);
    int (*release)(const struct hli_tenure *tenure, struct hli_op *op,
                   const struct hli_release_request *release_request);

    /* Of a kind with is_handed_on: prolongs the lease, and asks whether others wait. */
    int (*keep)(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms);

    /* One request in place of those of several tenures (batch.h); NULL: each goes alone. Without a
     * mutex. */
    int (*acquire_all)(struct hli_batch *batch, const struct hli_acquire_request *request);
    int (*release_all)(struct hli_batch *batch);

    /* In a cluster, declares the keys that a renewal touches beside the name (command.h); NULL: it
     * touches none. Name mutex. */
    void (*declare)(const struct hli_tenure *tenure, struct hli_args *args);

    /* Adds the word by which a renewal names the hold; NULL: its field. Name mutex. */
    void (*renewed)(const struct hli_tenure *tenure, struct hli_args *args);

    /* How many of the units that a message announces this name's waiter needs; the rest may wake
     * other names. NULL: a message wakes every listener. Until its hold is accepted, that hold
     * stands for so many. */
    uint32_t (*need)(const struct hli_name *name);

    /* Writes the id that events give for the hold, with a NUL; NULL: events give the name alone.
     * Name mutex. */
    void (*write_id)(const struct hli_tenure *tenure, char *text);

    /* Writes the channel, with a NUL, of a kind in which each tenure has its own place in the
     * queue, and its own channel; NULL: as `channel` says. Returns its length. Name mutex. */
    size_t (*write_channel)(const struct hli_tenure *tenure, char *text);

    /* Of a lock: write the words of hl_lock_inspect and hl_lock_force_release, whose answers are
     * those of lock_inspect.lua and lock_force_release.lua. */
    void (*inspect)(const struct hli_name *name, struct hli_args *args);
    void (*force)(const struct hli_name *name, struct hli_args *args);

    /* Of a lock on several masters; else NULL. */
    const struct hli_quorum_hooks *quorum;
    /* Of the part of such a lock at one master, which counts and tells nothing itself; NULL of any
     * other kind. whole: the kind of that lock. changed: its hold is valid until then; 0: it is
     * lost. heard: a message came. Without a mutex. */
    const struct hli_kind *whole;
    void (*changed)(struct hli_tenure *tenure, hli_ns until);
    void (*heard)(struct hli_name *name);

    /* Handles the reply {1, ...}, success. NULL: the first waiter begins a hold. Name mutex. */
    void (*served)(struct hli_turn *turn, struct hli_tenure *tenure,
                   const struct hli_answer *answer);
};

/* Are its owners threads, which wait for each other? Those of permits and semaphores are not. */
static inline bool hli_kind_is_of_threads(const struct hli_kind *kind)
{
    return kind->is_tagged || kind->sibling;
}

#endif
