/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A name: everything that this process knows and does about one lock. However many threads wait for
 * it, there is one tenure that asks Redis for it, one subscription, and one request under way.
 */
#ifndef HLI_LEASE_NAME_H
#define HLI_LEASE_NAME_H

#include "lease/client.h"
#include "lease/tenure.h"

enum { HLI_NAME_LIMIT = 512 }; /* bytes, with the client's prefix */

struct hli_acquire;
TAILQ_HEAD(hli_acquires, hli_acquire);

/* What the last busy answer said. */
struct hli_busy {
    hli_ns at; /* 0: there was none */
    int64_t pttl_ms;
    uint32_t count;
    char owner[HLI_FIELD_SIZE];
};

struct hli_name {
    struct hli_ref ref;       /* each handle, tenure, set timer and wanted channel has one */
    hl_client *client;        /* counted, immutable */
    struct hli_map_node node; /* client's names mutex */
    size_t length;            /* immutable, as bytes and channel.name */

    pthread_mutex_t mutex;      /* guards the next group */
    struct hli_tenure *current; /* NEW, ASK, WAIT or OWN */
    struct hli_tenures past;    /* LOST and DYING */
    struct hli_acquires waiters;
    struct hli_busy busy;
    hli_ns answered_at; /* the last answer that a waiter can use: busy, or held */
    hli_ns asked_at;    /* since when one is missing: the first TAKE without it; 0 when none is */
    hli_ns heard_at; /* the last message; one that comes while a request is in flight may be about
                        what it missed */
    hli_ns quiet_until; /* messages that told nothing new are listened to again from then on */
    unsigned misled;    /* such messages in a row */
    hli_ns idle_since;  /* no waiters; the subscription lingers for a while */
    unsigned refusals;  /* of the current tenure's requests, in a row */
    int problem;        /* code of the last refusal, 0 when the last answer was none */
    char problem_text[128];

    struct hli_channel channel;       /* loop thread */
    bool has_channel_ref;             /* loop thread, as visit_link */
    SLIST_ENTRY(hli_name) visit_link; /* in the list of a visit to all names */
    struct hli_timer timer;

    char bytes[]; /* the name, NUL, the channel's name, NUL */
};

/* Finds or makes the name; the caller owns the reference. Errors: HL_ENOMEM. */
int hli_name_get(hl_client *client, const void *bytes, size_t length, struct hli_name **ret_name);
void hli_name_ref(struct hli_name *name);
void hli_name_unref(struct hli_name *name);

/* Subscribes to its channel, from now until hli_channel_drop(). Loop thread. */
void hli_name_want_channel(struct hli_name *name);

/* 1 to 512 bytes, whose braces do not put key and channel in different slots: Redisson writes
 * channel:{name}, or channel:name when the name has a brace of its own, and cluster hashes what
 * stands between the first { and the next }. */
bool hli_name_is_valid(const void *bytes, size_t length);

/* Why there is no answer that a waiter can use; told to those whose time is over. Name mutex. */
void hli_name_note_problem(struct hli_name *name, int code, const char *text);

/* The tenure in which this owner has a hold, live or lost; borrowed, NULL when there is none. Name
 * mutex. */
struct hli_tenure *hli_name_hold_of(const struct hli_name *name, const struct hl_owner *owner);

/* Calls visit for every name of the client, with a reference and no mutex. Needs no memory. On the
 * loop thread, and not from a visit. */
void hli_names_visit(hl_client *client, void (*visit)(struct hli_name *name, void *arg), void *arg);

#endif
