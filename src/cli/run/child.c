/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* As the user had it. */
static void child_signals(const struct run_place *place)
{
    if (place->is_chld_ignored)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &place->mask, NULL);
}

/* As cli_say(), without stdio. */
static void child_say(const char *word, const char *reason)
{
    const char *const parts[] = {"hirelock run: ", word, ": ", reason, "\n"};
    ssize_t written = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && written >= 0; i++)
        written = write(STDERR_FILENO, parts[i], strlen(parts[i]));
}

int run_child_become(const struct run_child *child)
{
    child_signals(child->place);
    execvpe(child->words[0], child->words, child->environment);
    int reason = errno;
    child_say(child->words[0], strerrordesc_np(reason));
    return reason == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

/* Not later than here, when the guard has died before the request was made. */
static bool child_dies_with(pid_t guard)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == guard;
}

pid_t run_child_start(const struct run_child *child)
{
    pid_t guard = getpid(), pid = fork();

    if (pid != 0) {
        if (pid > 0)
            setpgid(pid, pid); /* here too, so that it is so for both */
        return pid;
    }
    if (child->dies_with_us && !child_dies_with(guard))
        _exit(CLI_FAILED);
    setpgid(0, 0);
    if (child->has_terminal)
        tcsetpgrp(child->place->terminal, getpid()); /* SIGTTOU is blocked yet */
    _exit(run_child_become(child));
}
