/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A record: what is known of one lock, in few bytes, since a server may have very many. It is made
 * of what each look at the lock says, and of what changed between the looks. Times are of this
 * machine (cli_now_ms()). No I/O.
 */
#ifndef CLI_TOP_RECORD_H
#define CLI_TOP_RECORD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A figure that is known, or only from below; less than 0: it is not known. */
struct top_figure {
    double value;
    bool is_least;
};

struct top_record {
    struct top_record *next; /* in its bucket (store.h) */
    char *holder;            /* owned, escaped; NULL: it is free, or memory was out */
    int64_t seen_ms;         /* the last look */
    int64_t since_ms;        /* held by this owner, or free */
    int64_t queued_ms;       /* since when the first is in the queue */
    int64_t lease_end_ms;    /* -1: it has no end */
    uint64_t owner;          /* a hash of the owner's field; 0: none */
    uint64_t token;          /* the last token of a fenced lock; 0: none */
    /* Between looks, and the longer ago the less: time, looks, new owners. */
    float watched_s, looks, changes;
    uint32_t waiters;
    uint32_t round; /* the survey that found it last */
    uint16_t length;
    uint8_t kind;
    bool is_free;
    bool is_counted; /* the last new owner was counted by its token */
    bool has_since;  /* the holder's tag says since when; else we have seen it since then */
    bool has_end;    /* lease_end_ms is known */
    bool is_queued;  /* queued_ms is known, and the queue is not empty */
    char name[];     /* length bytes, as in Redis, and a NUL */
};

uint64_t top_hash(const char *bytes, size_t length);

/* An empty record of a name that was not looked at yet. NULL when memory is out, and for a name
 * that no lock has. */
struct top_record *top_record_new(const char *name, size_t length);
void top_record_free(struct top_record *record);

/* Takes in a look; NULL: there is no key. */
void top_record_see(struct top_record *record, json_object *lock, int64_t now_ms);

/* "fair", "read" ...; "" when it was never seen held. */
const char *top_record_kind(const struct top_record *record);

struct top_figure top_record_held_ms(const struct top_record *record, int64_t now_ms);

/* How long the client that is first in the queue has been in it; less than 0: none, or not known.
 */
int64_t top_record_longest_ms(const struct top_record *record, int64_t now_ms);

/* New owners in a second, of late. */
struct top_figure top_record_pace(const struct top_record *record);

/* What is left of the lease; -1: it has no end; -2: not known, or it is free. */
int64_t top_record_lease_ms(const struct top_record *record, int64_t now_ms);

#endif
