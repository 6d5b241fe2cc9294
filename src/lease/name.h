/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A name: everything that this process knows and does about one lock. However many threads wait for
 * it, there is one tenure that asks Redis for it, one subscription, and one request under way.
 */
#ifndef HLI_LEASE_NAME_H
#define HLI_LEASE_NAME_H

#include "lease/client.h"
#include "lease/kind.h"
#include "lease/tenure.h"

enum {
    HLI_NAME_LIMIT = 512,                   /* bytes, with the client's prefix */
    HLI_CHANNEL_SIZE = HLI_NAME_LIMIT + 96, /* of what is derived from a name */
};

/* Whose it is, if the kind's owners have names of their own: an owner's number, or a permit's id.
 */
struct hli_lane {
    uint64_t half[2];
};

/* What finds a name. */
struct hli_name_key {
    const struct hli_kind *kind;
    const void *bytes;
    size_t length;
    struct hli_lane lane; /* zero unless the kind's owners have names of their own */
};

struct hli_contest;
struct hli_settled;
struct hli_acquire;
TAILQ_HEAD(hli_acquires, hli_acquire);

struct hli_name {
    struct hli_ref ref;          /* each handle, tenure, set timer and wanted channel has one */
    uint16_t length;             /* immutable, as bytes */
    atomic_bool is_spent;        /* of a kind whose names are used once: it has been */
    const struct hli_kind *kind; /* immutable */
    hl_client *client;           /* counted, immutable */
    struct hli_map_node node;    /* client's names mutex */

    pthread_mutex_t mutex;      /* guards the next group */
    struct hli_tenure *current; /* NEW, ASK, WAIT, OWN or IDLE */
    struct hli_tenures past;    /* LOST and DYING */
    struct hli_acquires waiters;
    hli_ns answered_at; /* the last answer that a waiter can use: busy, or held */
    hli_ns asked_at;    /* since when one is missing: the first TAKE without it; 0 when none is */
    struct hli_contest *contest; /* owned; NULL until there is something to know */
    struct hli_settled *settled; /* owned; the same, of a kind whose commands are noted (noted.h) */

    SLIST_ENTRY(hli_name) visit_link; /* loop thread: in the list of a visit to all names */

    char bytes[]; /* and a NUL; then what else belongs to its key, see name.c */
};

/* Finds or makes the name; the caller owns the reference. Errors: HL_ENOMEM. */
int hli_name_get(hl_client *client, const struct hli_name_key *key, struct hli_name **ret_name);
/* The same key's, when this one is used once and has been. */
int hli_name_get_next(const struct hli_name *name, struct hli_name **ret_name);
/* With a reference; NULL when this process does not know it. */
struct hli_name *hli_name_find(hl_client *client, const struct hli_name_key *key);
/* The same for a lock, by its bytes. */
struct hli_name_key hli_name_key_of_lock(const void *bytes, size_t length);

/* The lane of a kind whose owners have names of their own. */
struct hli_lane hli_name_lane(const struct hli_name *name);
/* The number of the one tenure that a name which is used once serves for. */
uint64_t hli_name_number(const struct hli_name *name);
void hli_name_ref(struct hli_name *name);
void hli_name_unref(struct hli_name *name);

/* What is derived from a lock's name by these prefixes: Redisson's channel, our own beside it, our
 * queue, and Redisson's count of fencing tokens, our holder's tag; and from the key of data: its
 * fence. */
#define HLI_NAME_REDISSON_CHANNEL "redisson_lock__channel:"
#define HLI_NAME_OWN_CHANNEL "hirelock:"
#define HLI_NAME_QUEUE "hirelock_queue:"
#define HLI_NAME_TOKEN "redisson_lock_token:"
#define HLI_NAME_FENCE "hirelock_fence:"
#define HLI_NAME_TAG "hirelock_holder:"
#define HLI_NAME_WRITER "hirelock_rw_writer:" /* of a read-write lock, whose writer waits */
#define HLI_NAME_FAIR "hirelock_fair:"

/* As Redisson derives one name from another: "prefix{name}", or "prefixname" for a name that has a
 * brace of its own; "{name}suffix", or "namesuffix". Returns the length; a NUL follows. */
size_t hli_name_write(const struct hli_name *name, const char *prefix, char text[HLI_CHANNEL_SIZE]);
size_t hli_name_derive(struct hli_bytes name, const char *prefix, char text[HLI_CHANNEL_SIZE]);
size_t hli_name_write_suffixed(const struct hli_name *name, const char *suffix,
                               char text[HLI_CHANNEL_SIZE]);

/* What its waiters listen to. */
size_t hli_name_write_channel(const struct hli_name *name, char text[HLI_CHANNEL_SIZE]);

/* 1 to 512 bytes that do not begin like a key of ours, and whose braces do not put key and channel
 * in different slots: Redisson writes channel:{name}, or channel:name when the name has a brace of
 * its own, and cluster hashes what stands between the first { and the next }. */
bool hli_name_is_valid(const void *bytes, size_t length);

/* The tenure in which this owner has a hold, live or lost; borrowed, NULL when there is none. Name
 * mutex. */
struct hli_tenure *hli_name_hold_of(const struct hli_name *name, const struct hl_owner *owner);

/* The tenure of that number that asks, holds, is lost or is being released; borrowed, NULL when
 * there is none. Name mutex. */
struct hli_tenure *hli_name_tenure(const struct hli_name *name, uint64_t number);

/* Calls visit for every name of the client, with a reference and no mutex. Needs no memory. On the
 * loop thread, and not from a visit. */
void hli_names_visit(hl_client *client, void (*visit)(struct hli_name *name, void *arg), void *arg);

#endif
