/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Says what broke, then aborts. */
#include "fatal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fatal_print(const char *format, va_list args)
{
    fputs("test support: ", stderr);
    vfprintf(stderr, format, args);
}

void fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fatal_print(format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

void fatal_errno(const char *format, ...)
{
    int error = errno;
    va_list args;
    va_start(args, format);
    fatal_print(format, args);
    va_end(args);
    fprintf(stderr, ": %s\n", strerrordesc_np(error));
    abort();
}
