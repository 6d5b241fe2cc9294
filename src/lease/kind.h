/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A kind: what a read lock, a fair lock or a semaphore has of its own. The engine in this folder
 * asks, waits, holds, renews and releases for all of them; what it says to Redis is the kind's, and
 * so is who waits for whom: all owners of a process in one line behind one request, or each with a
 * name, a tenure and requests of his own.
 */
#ifndef HLI_LEASE_KIND_H
#define HLI_LEASE_KIND_H

#include "redis/op.h"

#include <stdbool.h>
#include <stdint.h>

struct hli_name;
struct hli_tenure;
struct hli_turn;
struct hli_write;

/* What a request asks for: `count` levels, absolute. */
struct hli_taking {
    int64_t lease_ms;
    uint32_t count;
    uint32_t tokens; /* fencing tokens; 0 of a lock without */
    bool queues;     /* it may stand in the queue when it is busy */
};

/* What a release leaves: `count` levels with at least this lease; or none, and the key goes to the
 * next one, or rests for so long. */
struct hli_leaving {
    uint32_t count;
    int64_t lease_ms, rest_ms;
    bool is_courteous;             /* Redisson's waiters are looked for */
    bool is_silent;                /* nobody is told by a message */
    const struct hli_write *write; /* what is written with it; NULL: nothing */
};

struct hli_kind {      /* immutable */
    char id;           /* in the map of names */
    bool is_handed_on; /* by grants, passes and lingering: has a queue and a word */
    bool is_per_owner; /* each owner has a name of its own */
    bool is_used_once; /* such a name serves for one tenure, whose number it knows */
    bool has_no_owner; /* one thread may wait for it several times */
    bool is_counted;   /* each waiter wants so many: when the first one leaves, the next may fit */
    bool is_forgotten; /* a hold that is lost need not be released: it is forgotten when its lease
                          is over for certain */
    bool is_kept_up;   /* a renewal is sent for holds with a lease time of their own, too */
    bool writes;       /* its releases may write data */
    bool is_bundled;   /* several of its names go into one request (bundle.h) */
    bool is_tagged;    /* its key is a hash that names one holder, who may tell of himself */
    const struct hli_kind *sister; /* the other half of its locks, or NULL: a deed on one may be one
                                      on both */
    const char *channel;           /* what its waiters listen to is this, and the name in braces */
    const char *field_suffix;      /* of its fields: "" or ":write" */
    const char *lacks;             /* why it is busy: "too few permits"; NULL: an owner holds it */
    const char *verb;              /* in front of an error's text; NULL: "acquire" */
    hli_script_id renew;

    /* Format requests; name mutex. Errors: HL_ENOMEM, and the op holds what it held. `leave` is
     * NULL when a request takes nothing that would have to be given back. */
    int (*take)(const struct hli_tenure *tenure, struct hli_op *op,
                const struct hli_taking *taking);
    int (*leave)(const struct hli_tenure *tenure, struct hli_op *op,
                 const struct hli_leaving *leaving);

    /* What a renewal calls the hold by; NULL: by its field. Borrowed from the tenure or the text.
     * Name mutex. */
    struct hli_bytes (*renewed)(const struct hli_tenure *tenure, char *text);

    /* How many of those that a message counts its waiter needs: the rest may be woken for others;
     * NULL: each message wakes all who listen. For so many a hold stands that is not accepted. */
    uint32_t (*need)(const struct hli_name *name);

    /* What events call the hold by, with a NUL; NULL: by the name alone. Name mutex. */
    void (*write_id)(const struct hli_tenure *tenure, char *text);

    /* The channel, with a NUL; NULL: as `channel` says. Returns its length. */
    size_t (*write_channel)(const struct hli_name *name, char *text);

    /* {1, ...}: the request was served. NULL: the first waiter begins a hold. Name mutex. */
    void (*taken)(struct hli_turn *turn, struct hli_tenure *tenure,
                  const struct hli_answer *answer);
};

/* The lock, in command.c. */
extern const struct hli_kind hli_kind_lock;

#endif
