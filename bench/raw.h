/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The raw side: a blocking hiredis connection that runs the library's own two scripts, with the
 * library's own arguments, by EVALSHA. It is a lock without a library, and knows
 * nothing of renewal, waiting or a broken connection.
 */
#ifndef HL_BENCH_RAW_H
#define HL_BENCH_RAW_H

#include "server.h"

#include <stdbool.h>

struct tls;

struct raw {
    redisContext *link;
    struct tls *tls; /* tls.h: where the pairs go, if it is not NULL */
    const char *acquire_sha, *release_sha;
    char name[64], channel[96], queue[96], others[96], field[64], lease[24];
};

/* Connects, and loads the scripts. `number` is the field's, one for each raw side. */
void raw_open(struct raw *raw, const struct server *server, const char *name, unsigned number);
void raw_close(struct raw *raw);

void raw_name(struct raw *raw, const char *name); /* from now on it is about this lock */

bool raw_acquire(struct raw *raw); /* false: busy */
void raw_release(struct raw *raw);

/* A release without a grant, whose message goes to a channel without subscribers. */
void raw_release_unheard(struct raw *raw);

/* Acquires and releases (rounds.h); arg is the raw side. */
uint64_t raw_pairs(void *arg, int64_t until);

#endif
