/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The raw side of a Redlock: a hiredis connection to each master, and the library's own two scripts
 * with the library's own arguments. It sends a command to all masters, waits in poll() for the
 * answers of more than half, and reads the late ones behind its next command: what one would write
 * without a library.
 */
#ifndef HL_BENCH_RAW_QUORUM_H
#define HL_BENCH_RAW_QUORUM_H

#include "nodes.h"

struct raw_quorum {
    int count;
    redisContext *link[NODES_MOST];
    unsigned behind[NODES_MOST]; /* commands of this one that are not answered yet */
    const char *acquire_sha, *release_sha;
    uint64_t number; /* of the value, which is new for each acquire */
    char name[64], channel[96], value[64];
};

/* Connects to the first `count` nodes, and loads the scripts. */
void raw_quorum_open(struct raw_quorum *raw, const struct nodes *nodes, int count,
                     const char *name);
void raw_quorum_close(struct raw_quorum *raw);

void raw_quorum_acquire(struct raw_quorum *raw);
void raw_quorum_release(struct raw_quorum *raw);

#endif
