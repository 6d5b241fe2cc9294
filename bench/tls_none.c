/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A build without TLS has nothing to measure there. */
#include "tls.h"

#include "scenario.h"

#include <stddef.h>

redisReply *tls_command(struct tls *tls, int argc, const char **argv)
{
    (void)tls, (void)argc, (void)argv;
    return NULL;
}

void scenario_tls(struct bench *bench)
{
    (void)bench;
    report_heading("TLS: this build has none");
}
