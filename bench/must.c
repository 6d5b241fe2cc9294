/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The end of a benchmark that cannot go on. */
#include "must.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("lock_bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1); /* NOLINT(concurrency-mt-unsafe): nothing is to be cleaned up */
}

void *must_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    must(memory != NULL, "out of memory");
    return memory;
}
