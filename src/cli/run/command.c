/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { COMMAND_NUMBER = 24 };

void run_command_environment(const struct run_words *words, uint64_t token)
{
    char number[COMMAND_NUMBER];
    char *names = NULL;
    size_t length = 0;
    FILE *list = open_memstream(&names, &length);

    for (size_t i = 0; list && i < words->name_count; i++)
        fprintf(list, "%s%s", i > 0 ? "," : "", words->names[i]);
    if (list && fclose(list) == 0)
        setenv("HIRELOCK_NAME", names, 1);
    free(names);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)token);
    if (token > 0)
        setenv("HIRELOCK_TOKEN", number, 1);
}

/* As the user had it. */
static void command_signals(const struct run_place *place)
{
    if (place->is_chld_ignored)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &place->mask, NULL);
}

int run_command_become(const struct run_words *words, const struct run_place *place)
{
    command_signals(place);
    execvp(words->command[0], words->command);
    int reason = errno;
    cli_say("%s: %s", words->command[0], strerror(reason));
    return reason == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

bool run_has_terminal(int terminal, pid_t group)
{
    return terminal >= 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           tcgetpgrp(terminal) == group;
}

/* A command dies with its guard, whatever happens to the front; and not later than here, when the
 * guard has died before the request was made. */
static bool command_dies_with(pid_t guard)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == guard;
}

pid_t run_command_start(const struct run_words *words, const struct run_place *place,
                        uint64_t token)
{
    pid_t guard = getpid(), child = fork();

    if (child != 0) {
        if (child > 0)
            setpgid(child, child); /* here too, so that it is so for both */
        return child;
    }
    if (!command_dies_with(guard))
        _exit(CLI_FAILED);
    setpgid(0, 0);
    if (run_has_terminal(place->terminal, getpgid(place->front)))
        tcsetpgrp(place->terminal, getpid()); /* SIGTTOU is blocked yet */
    run_command_environment(words, token);
    _exit(run_command_become(words, place));
}

void run_command_on_lost(const struct run_words *words, const struct run_place *place,
                         const char *event)
{
    if (fork() != 0)
        return;
    setpgid(0, 0);
    run_command_environment(words, 0);
    setenv("HIRELOCK_EVENT", event, 1);
    command_signals(place);
    execl("/bin/sh", "sh", "-c", words->lost_command, (char *)NULL);
    _exit(CLI_NOT_FOUND);
}
