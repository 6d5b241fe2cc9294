/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Escape sequences, and the progress line. */
#define _POSIX_C_SOURCE 200809L
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TERMINAL_BAR = 30 };

static bool terminal_is_one(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static bool terminal_has_colours(void)
{
    const char *refused = getenv("NO_COLOR");

    return terminal_is_one() && !(refused && *refused);
}

const char *terminal_style(enum terminal_style style)
{
    static const char *const sequences[] = {[TERMINAL_PLAIN] = "",
                                            [TERMINAL_BOLD] = "\033[1m",
                                            [TERMINAL_DIM] = "\033[2m",
                                            [TERMINAL_GOOD] = "\033[1;32m",
                                            [TERMINAL_BAD] = "\033[1;31m"};

    return terminal_has_colours() ? sequences[style] : "";
}

const char *terminal_end(void)
{
    return terminal_has_colours() ? "\033[0m" : "";
}

enum { TERMINAL_PAUSE_US = 200000 };

static bool terminal_is_paused(const struct sale *sale)
{
    return atomic_load(&sale->killed_us) != 0 &&
           sale_now_us() - atomic_load(&sale->held_us) > TERMINAL_PAUSE_US;
}

/* At most 80 columns: a line that wraps cannot be drawn over. */
void terminal_progress(const struct sale *sale)
{
    unsigned done = atomic_load(&sale->sold) + atomic_load(&sale->refused);
    size_t length = (size_t)done * TERMINAL_BAR / sale->orders;
    char bar[TERMINAL_BAR + 1];

    if (!terminal_is_one())
        return;
    memset(bar, '.', TERMINAL_BAR);
    memset(bar, '#', length < TERMINAL_BAR ? length : TERMINAL_BAR);
    bar[TERMINAL_BAR] = '\0';
    printf("\r\033[K  %s  %s  ", sale->is_locked ? "with hirelock " : "without a lock", bar);
    if (terminal_is_paused(sale))
        printf(sale->killed_process >= 0 ? "holder killed, lease runs out"
                                         : "the lock's server was killed");
    else
        printf("%u of %u orders", done, sale->orders);
    fflush(stdout);
}

void terminal_clear_progress(void)
{
    if (!terminal_is_one())
        return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
}
