/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A name: everything that this process knows and does about one lock. However many threads wait for
 * it, there is one tenure that asks Redis for it, one subscription, and one request under way.
 */
#ifndef HLI_LEASE_STATE_NAME_H
#define HLI_LEASE_STATE_NAME_H

#include "lease/calls/client.h"
#include "lease/state/kind.h"
#include "lease/state/tenure.h"

enum {
    HLI_NAME_LIMIT = 512,                   /* bytes, with the client's prefix */
    HLI_CHANNEL_SIZE = HLI_NAME_LIMIT + 96, /* of a key or channel derived from a name */
};

/* The owner of a name whose kind has is_per_owner: an owner's number, or a permit's id. */
struct hli_owner_key {
    uint64_t half[2];
};

/* The key by which a name is found. */
struct hli_name_key {
    const struct hli_kind *kind;
    const void *bytes;
    size_t length;
    struct hli_owner_key owner_key; /* zero unless the kind has is_per_owner */
};

struct hli_contention;
struct hli_acked;
struct hli_acquire;
struct hli_quorum;
TAILQ_HEAD(hli_acquires, hli_acquire);

/* Of a name that is the part of a Redlock at one master (several/quorum.h). */
struct hli_voter {
    hl_client *speaker;          /* counted, immutable: its id begins the fields, at all masters */
    unsigned index;              /* immutable: which master it is */
    atomic_uint_fast64_t number; /* of the next tenure: that of the attempt at all masters; 0: it
                                    has been used */
};

struct hli_name {
    struct hli_ref ref;          /* each handle, tenure, set timer and wanted channel has one */
    uint16_t length, slot;       /* immutable, as bytes */
    atomic_uint lane;            /* the number of its lane (lanes.h); another one is taken under the
                                    mutex, while nothing about the name is under way */
    atomic_bool was_handed_over; /* our last release granted the lock to another client */
    const struct hli_kind *kind; /* immutable */
    hl_client *client;           /* counted, immutable */
    struct hli_name *shared;     /* of an owner's name of a lock: the lock's name without an owner,
                                    which its handles have; counted, immutable; else NULL */
    atomic_uint holds;           /* of a shared name: the live holds of all owners ... */
    atomic_uint_fast64_t last_holder; /* ... and the number of the owner whose hold began last */
    _Atomic hli_ns
        alone_until;          /* until then its requests declare the lock's key alone (command.h) */
    struct hli_map_node node; /* client's names mutex */

    hli_mutex mutex;            /* guards the next group */
    struct hli_tenure *current; /* NEW, ASK, WAIT, OWN or IDLE */
    struct hli_tenures past;    /* LOST and RELEASING */
    struct hli_acquires waiters;
    hli_ns asked_at; /* since when an answer that a waiter can use is missing, busy or held: when
                        the first unanswered ACQUIRE was sent; 0: none is missing */
    unsigned calls;  /* of one request (call.h), under way */
    struct hli_contention *contention; /* owned; NULL until there is something to know */
    union {                            /* owned, by the kind */
        struct hli_acked *settled;     /* the same, with once commands (once.h) */
        struct hli_quorum *quorum;     /* immutable, of a Redlock: its masters */
        struct hli_voter *voter;       /* immutable, of a Redlock at one of them */
    };

    SLIST_ENTRY(hli_name) visit_link; /* loop thread: in the list of a visit to all names */

    char bytes[]; /* and a NUL; then the rest of its map key, see name.c */
};

/* Finds or makes the name; the caller owns the reference. NULL when memory is out. */
struct hli_name *hli_name_get(hl_client *client, const struct hli_name_key *key);
/* Returns the name with a reference; NULL when this process does not know it. */
struct hli_name *hli_name_find(hl_client *client, const struct hli_name_key *key);

/* Any thread: the link for requests about this name (hli_client_link()). */
struct hli_link *hli_name_link(const struct hli_name *name);
/* The same for a call that is about to block for an acquire. If that link is busy with others'
 * requests, and nothing about this name is under way, the name takes another lane. */
struct hli_link *hli_name_choose_link(struct hli_name *name);
/* The name takes the lane of another one of its slot, in whose request it is to be, unless
 * something about it is under way; but not the lane for requests that replicas confirm. */
void hli_name_join_lane(struct hli_name *name, const struct hli_name *other);
/* The name takes the lane for requests that replicas confirm, unless something about it is under
 * way. It never leaves that lane. */
void hli_name_take_confirmed_lane(struct hli_name *name);
/* May one request be about both? Only if their client, slot and lane are the same. */
bool hli_name_shares_lane(const struct hli_name *name, const struct hli_name *other);
/* If the name's lane is not open, as its slot has moved or the lane cannot come back, the name has
 * the first one from now on: the same link. A slot may return to the old server, where requests are
 * on the way by the first lane (ASK). True if the name had another lane. */
bool hli_name_forget_lane(struct hli_name *name);

/* A call of one request about the name begins and ends; it takes the lane that the first
 * returns. */
unsigned hli_name_begin_call(struct hli_name *name);
void hli_name_end_call(struct hli_name *name);

/* The owner key of a name whose kind has is_per_owner. */
struct hli_owner_key hli_name_owner_key(const struct hli_name *name);
void hli_name_ref(struct hli_name *name);
void hli_name_unref(struct hli_name *name);

/* Prefixes of the keys and channels beside a lock: Redisson's channel, our own channel, our queue,
 * Redisson's counter of fencing tokens, the holder's tag; and beside the key of data: its fence. */
#define HLI_NAME_REDISSON_CHANNEL "redisson_lock__channel:"
#define HLI_NAME_OWN_CHANNEL "hirelock:"
#define HLI_NAME_REDLOCK_CHANNEL "hirelock_redlock:" /* of a lock of redlock.h */
#define HLI_NAME_QUEUE "hirelock_queue:"
#define HLI_NAME_TOKEN "redisson_lock_token:"
#define HLI_NAME_FENCE "hirelock_fence:"
#define HLI_NAME_TAG "hirelock_holder:"
#define HLI_NAME_WAITER "hirelock_waiter:"    /* the key of a waiter's tag begins so */
#define HLI_NAME_WRITER "hirelock_rw_writer:" /* of a read-write lock with a waiting writer */
#define HLI_NAME_FAIR "hirelock_fair:"
#define HLI_NAME_NOTE "hirelock_note:" /* the note of a once command */
/* A key of no name, one in each database: since when a master of Redlocks has its data. */
#define HLI_NAME_DATA "hirelock_data"

/* As Redisson derives one name from another: "prefix{name}", or "prefixname" for a name that has a
 * brace of its own; "{name}suffix", or "namesuffix". Returns the length; a NUL follows. */
size_t hli_name_write(const struct hli_name *name, const char *prefix, char text[HLI_CHANNEL_SIZE]);
size_t hli_name_derive(struct hli_bytes name, const char *prefix, char text[HLI_CHANNEL_SIZE]);
size_t hli_name_write_suffixed(const struct hli_name *name, const char *suffix,
                               char text[HLI_CHANNEL_SIZE]);

/* 1 to 512 bytes that do not begin like a key of ours, and whose braces do not put key and channel
 * in different slots: Redisson writes channel:{name}, or channel:name when the name has a brace of
 * its own, and Redis Cluster hashes the bytes between the first { and the next }. `what` names it
 * in the error's text: "name" or "key". Errors: HL_EINVAL, with the broken rule in its text. */
int hli_name_check(const char *what, const void *bytes, size_t length, hl_error *err);

/* Sets the error "verb 'name': text"; returns the code. */
int hli_name_fail(hl_error *err, int code, const struct hli_name *name, const char *verb,
                  const char *text);
/* The same for an acquire or a release that ends before it is in a turn, or behind its turns; it is
 * counted. */
int hli_name_refuse(hl_error *err, int code, const struct hli_name *name, hl_call call,
                    const char *text);

/* The tenure in which this owner has a hold, live or lost; borrowed, NULL when there is none. Name
 * mutex. */
struct hli_tenure *hli_name_hold_of(const struct hli_name *name, const struct hl_owner *owner);

/* Of an owner that two calls use at once. */
#define HLI_NAME_IN_USE                                                                            \
    "its owner has another call under way: each needs an owner of its own (hl_owner_new)"
/* Why an owner that has no hold may not release it or change it; a constant. Name mutex. */
const char *hli_name_not_owner(const struct hli_name *name);

/* The tenure of that number that asks, holds, is lost or is being released; borrowed, NULL when
 * there is none. Name mutex. */
struct hli_tenure *hli_name_tenure(const struct hli_name *name, uint64_t number);

/* Calls visit for every name of the client, with a reference and no mutex. Needs no memory. On the
 * loop thread, and not from a visit. */
void hli_names_visit(hl_client *client, void (*visit)(struct hli_name *name, void *arg), void *arg);

#endif
