/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The replay: the server's append-only file, read as the log of a machine that has one holder for
 * each name, and a queue. It tells every tenure that there was, in the server's order, and every
 * step that such a machine does not make.
 */
#ifndef HL_STRESS_REPLAY_H
#define HL_STRESS_REPLAY_H

#include <stddef.h>

#include "ledger.h"
#include "queue.h"

struct replay_tenure {
    uint32_t name, book;
    uint64_t number;
    size_t order;           /* of its beginning */
    bool is_granted;        /* written by the release of another one */
    int64_t count, most;    /* levels, as last written; the most that were */
    int64_t began_ms;       /* the server's clock when it took the lock; 0: it has no expiry */
    int64_t last_expiry_ms; /* what every renewal moves */
    int64_t *expiry_ms;     /* all of them */
    size_t expiries, room;
    int64_t gone_by_ms; /* it was deleted before then; 0: not deleted, or nothing came after */
    struct replay_tenure *next;  /* of the same name */
    struct replay_tenure *again; /* of the same field */

    int64_t first_ns, seen_ns; /* of all beliefs in it; 0: none; see verdict.c */
    uint32_t beliefs;
    uint32_t deepest;  /* levels that its calls asked for */
    bool is_prolonged; /* a call asked for a longer lease */
};

struct replay {
    const struct ledger *ledger;
    struct replay_tenure **tenure; /* in the order of their beginning */
    size_t count, room;
    struct replay_tenure *current[STRESS_NAMES], *last[STRESS_NAMES], *first[STRESS_NAMES];
    struct replay_tenure *deleted[STRESS_NAMES]; /* and the clock was not read since */
    struct queue queue[STRESS_NAMES];
    bool is_inside;               /* a transaction: what one script wrote */
    bool has_taken[STRESS_NAMES]; /* in it, what was free */
    uint64_t grants;
    uint32_t wrong;       /* steps that the machine does not make */
    char wrong_text[200]; /* the first of them */
};

/* dir: the server's. */
void replay_read(struct replay *replay, const char *dir, const struct ledger *ledger);
void replay_free(struct replay *replay);

/* Sorted by book, number and order from now on, for replay_find, which gives the first of those
 * that share a field: a late request may take the lock again for a field that is over, and then it
 * is let go of as soon as its client hears of that. */
void replay_sort(struct replay *replay);
struct replay_tenure *replay_find(const struct replay *replay, uint32_t book, uint64_t number);

#endif
