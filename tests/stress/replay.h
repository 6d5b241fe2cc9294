/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The replay: the server's append-only file, read as the log of a machine that has one holder for
 * each name. It tells every tenure that there was, in the server's order, and every step that such
 * a machine does not make.
 */
#ifndef HL_STRESS_REPLAY_H
#define HL_STRESS_REPLAY_H

#include <stddef.h>

#include "ledger.h"
#include "support/redis_server.h"

struct replay_tenure {
    uint32_t name, book;
    uint64_t number;
    size_t order;     /* of its beginning */
    bool is_repeated; /* the field took the lock again: an acquire whose answer came too late, or
                         never, is asked again */
    int64_t count;    /* levels, as last written */
    int64_t first_expiry_ms;          /* 0: none was ever set */
    int64_t last_expiry_ms;           /* what every renewal moves */
    int64_t longest_gap_ms;           /* between two moves of the expiry */
    int64_t deleted_s;                /* 0: not deleted */
    const struct replay_tenure *next; /* of the same name */
};

struct replay {
    const struct ledger *ledger;
    struct replay_tenure **tenure; /* in the order of their beginning */
    size_t count, room;
    struct replay_tenure *current[STRESS_NAMES], *last[STRESS_NAMES];
    uint32_t wrong;       /* steps that the machine does not make */
    char wrong_text[200]; /* the first of them */
};

void replay_read(struct replay *replay, const struct redis_server *server,
                 const struct ledger *ledger);
void replay_free(struct replay *replay);

/* The server's clock when it took the lock: the first expiry less the lease that all begin with. */
static inline int64_t replay_began_ms(const struct replay_tenure *tenure)
{
    return tenure->first_expiry_ms - STRESS_LEASE_MS;
}

/* Sorted by book, number and order from now on, for replay_find, which gives the last of those that
 * share a field: nobody may have believed in one before. */
void replay_sort(struct replay *replay);
const struct replay_tenure *replay_find(const struct replay *replay, uint32_t book,
                                        uint64_t number);

#endif
