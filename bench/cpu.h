/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* CPU time of this process. */
#ifndef HL_BENCH_CPU_H
#define HL_BENCH_CPU_H

#include <sys/resource.h>

/* Of all its threads, user and system, in microseconds. */
static inline double cpu_own_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

#endif
