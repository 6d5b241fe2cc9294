/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/ending.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

enum { ENDING_PATIENCE_S = 3 }; /* more than the end waits for a server that is away */

static atomic_int ending_signal;       /* any thread may be the one that a signal interrupts */
static struct termios ending_settings; /* of the terminal, as it was */

int top_ending_signal(void)
{
    return atomic_load(&ending_signal);
}

/* From a handler, too, in any thread. */
void top_ending_die(void)
{
    int number = top_ending_signal();
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

static void ending_see(int number)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&ending_signal, &none, number))
        alarm(ENDING_PATIENCE_S);
}

/* The settings do not wait until the terminal takes what was written. */
static void ending_give_up(int number)
{
    (void)number;
    if (top_ending_signal() == 0)
        return;
    tcsetattr(STDIN_FILENO, TCSANOW, &ending_settings);
    top_ending_die();
}

void top_ending_begin(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now, give_up = {.sa_handler = ending_give_up, .sa_flags = SA_RESTART},
                          see = {.sa_handler = ending_see, .sa_flags = SA_RESTART};
    sigset_t alarms;

    tcgetattr(STDIN_FILENO, &ending_settings);
    sigemptyset(&give_up.sa_mask);
    sigaddset(&give_up.sa_mask, SIGTTOU); /* it may be in the background by then */
    sigaction(SIGALRM, &give_up, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    sigemptyset(&see.sa_mask);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(ends[i], &see, NULL);
}
