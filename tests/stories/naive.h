/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Locks as teams first write them, by plain commands. A naive machine prints each command and its
 * answer, so that a reader sees what happens.
 */
#ifndef HL_STORIES_NAIVE_H
#define HL_STORIES_NAIVE_H

#include "support/kit.h"

struct naive {
    const char *who; /* also what it writes as its lock's value */
    redisContext *redis;
    bool is_quiet; /* it prints nothing */
};

/* A machine with a connection of its own, until the end of the test. */
struct naive *naive_at(struct redis_server *at, const char *who);

/* A command, and its answer as text, borrowed until this machine's next command. */
const char *naive_do(struct naive *naive, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each is true when the machine believes that it has the lock. */
bool naive_setnx(struct naive *naive, const char *name);
bool naive_take(struct naive *naive, const char *name, int64_t lease_ms);         /* SET NX PX */
bool naive_take_by_stamp(struct naive *naive, const char *name, int64_t lease_s); /* GETSET */

void naive_drop(struct naive *naive, const char *name); /* DEL, whoever holds it */

#endif
