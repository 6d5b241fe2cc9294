/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A server that is far away: behind a relay (lag.c) that delivers every byte later. The relay is a
 * process of its own, and ends with this program, whatever ends it. */
#ifndef HL_BENCH_FAR_H
#define HL_BENCH_FAR_H

#include "server.h"

/* The same server by a relay that takes so long in each direction. Its pid is that of the relay;
 * questions go to the server itself. */
struct server far_begin(const struct server *server, int64_t lag_us);
void far_end(struct server *far);

#endif
