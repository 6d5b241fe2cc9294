/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The queue of a name, followed through the server's log: its waiters, and those that were taken
 * from its head. */
#ifndef HL_STRESS_QUEUE_H
#define HL_STRESS_QUEUE_H

#include "support/resp.h"

enum { QUEUE_ROOM = 512, QUEUE_FIELD = 64 };

struct queue_member {
    double score;
    char field[QUEUE_FIELD];
};

struct queue {
    struct queue_member member[QUEUE_ROOM];
    unsigned count;
    char popped[QUEUE_FIELD]; /* the last one that was; empty: none since queue_forget_popped */
};

/* A command of the log that changes it: ZADD NX, ZPOPMIN, ZREM, DEL, and expiries. False: it is
 * none that a queue knows, or the head of an empty one is taken. */
bool queue_step(struct queue *queue, const struct resp_command *command);

#endif
