/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A connection of the raw side through TLS: blocking, by the same OpenSSL as the library's. */
#ifndef HL_BENCH_TLS_H
#define HL_BENCH_TLS_H

#include "server.h"

struct tls;

/* Sends a command, and waits for its answer. */
redisReply *tls_command(struct tls *tls, int argc, const char **argv);

#endif
