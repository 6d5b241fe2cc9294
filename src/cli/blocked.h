/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Who is blocked by whom: the graph of owners and the locks for which they wait. Each wait leads
 * from the owner that waits to the owner that holds; a circle of such waits is a deadlock.
 *
 * The server's data are read one after the other, not at one moment. So a circle counts only if a
 * second reading finds the same waits and the same holders: then all of them stood together between
 * the two, because a wait has its begin, and a holder's field is never used again.
 */
#ifndef CLI_BLOCKED_H
#define CLI_BLOCKED_H

#include "cli/waits.h"

enum { CLI_LABEL = 600 };
#define CLI_NONE SIZE_MAX /* in place of an index */

struct cli_blocked_lock {
    struct cli_name name; /* owned */
    json_object *look;    /* look.h; NULL: nobody has it at the moment */
    size_t holder;        /* an owner */
    bool is_awaited;      /* by a wait that is not over */
};

struct cli_blocked_owner {
    char label[CLI_LABEL]; /* "web-1 4711 worker", or what is known */
    size_t wait;           /* its own; CLI_NONE: it waits for nothing that is known */
    size_t first;          /* of the waits that it blocks */
    size_t behind;         /* so many waits end only behind it; in a circle: those in front of it */
    size_t pending;        /* scratch */
    unsigned deadlock;     /* the number of its circle; 0: none */
    bool is_shown;
};

struct cli_blocked_wait {
    struct cli_wait wait; /* without its name, which the lock has */
    size_t waiter, lock;
    size_t next;       /* of the waits that the same owner blocks */
    bool is_over;      /* by now, or it has another holder */
    bool is_confirmed; /* a second look has found it as it was, with its holder */
    bool is_shown;
};

struct cli_blocked {
    hl_client *client;
    const char *prefix; /* of the names; NULL: none */
    struct cli_blocked_lock *locks;
    struct cli_blocked_owner *owners;
    struct cli_blocked_wait *waits;
    size_t lock_count, owner_count, wait_count;
    json_object *lock_places, *owner_places; /* a place by a key */
    unsigned deadlocks;
    size_t denied; /* tags that the user may not read */
    int unread;    /* CLI_OK, or the exit status for a node whose tags were not read */
    bool lacks_memory;
};

/* Reads the graph, without the nodes that cannot be read: it says which. Returns an exit status; it
 * has said why it failed. */
int cli_blocked_read(struct cli_blocked *blocked, hl_client *client, const char *prefix);
void cli_blocked_free(struct cli_blocked *blocked);

static inline struct cli_blocked_lock *cli_blocked_lock_of(const struct cli_blocked *blocked,
                                                           size_t wait)
{
    return &blocked->locks[blocked->waits[wait].lock];
}

/* Who is in the way of this wait: an owner. */
static inline size_t cli_blocked_holder(const struct cli_blocked *blocked, size_t wait)
{
    return cli_blocked_lock_of(blocked, wait)->holder;
}

/* Is this the wait by which its waiter is in the graph? An owner may have others, which it shares
 * among its threads against the rules. */
static inline bool cli_blocked_is_first(const struct cli_blocked *blocked, size_t wait)
{
    return blocked->owners[blocked->waits[wait].waiter].wait == wait;
}

#endif
