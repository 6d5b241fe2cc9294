/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The bare renewal: a script that does no more than HEXISTS and PEXPIRE for each of a hundred
 * locks, sent by a blocking connection. It is the least that a renewal by script can cost the
 * server.
 */
#ifndef HL_BENCH_BARE_H
#define HL_BENCH_BARE_H

#include "server.h"

struct bare;

/* Of the locks <prefix>0 to <prefix>(count - 1), which are held once each. */
struct bare *bare_open(const struct server *server, const char *prefix, int count, int stride,
                       int64_t lease_ms);
void bare_renew(struct bare *bare); /* each lock once; a lock that is not held ends the program */
void bare_close(struct bare *bare);

#endif
