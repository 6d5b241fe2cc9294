/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* fork and exec with a death signal; everything that allocates is done before the fork. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"

static bool spawn_replaces(const struct spawn *spawn, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < 4 && spawn->environment[i]; i++)
        if (strncmp(spawn->environment[i], entry, name) == 0)
            return true;
    return false;
}

static const char **spawn_environment(const struct spawn *spawn)
{
    size_t count = 0;
    while (environ[count])
        count++;
    const char **result = calloc(count + 5, sizeof *result);
    must(result);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!spawn_replaces(spawn, environ[i]))
            result[used++] = environ[i];
    for (size_t i = 0; i < 4 && spawn->environment[i]; i++)
        result[used++] = spawn->environment[i];
    return result;
}

static int spawn_open_output(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static bool spawn_redirect(const struct spawn *spawn)
{
    int input = open(spawn->input ? spawn->input : "/dev/null", O_RDONLY);
    int output = spawn_open_output(spawn->output);
    int errors = spawn->errors ? spawn_open_output(spawn->errors) : output;
    return input >= 0 && output >= 0 && errors >= 0 && dup2(input, 0) >= 0 &&
           dup2(output, 1) >= 0 && dup2(errors, 2) >= 0;
}

static _Noreturn void spawn_exec(const struct spawn *spawn, const char **environment, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126); /* the parent died before the death signal was set */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!spawn_redirect(spawn))
        _exit(126);
    close_range(3, ~0U, 0);
    execvpe(spawn->argv[0], spawn->argv, (char *const *)environment);
    static const char message[] = "cannot be executed\n";
    (void)!write(2, message, sizeof message - 1);
    _exit(127);
}

pid_t spawn_start(const struct spawn *spawn)
{
    const char **environment = spawn_environment(spawn);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        fatal_errno("fork");
    if (pid == 0)
        spawn_exec(spawn, environment, parent);
    free(environment);
    return pid;
}

bool spawn_reap(pid_t pid, int64_t ms, int *ret_status)
{
    struct deadline deadline = deadline_of_wait(ms);
    for (;;) {
        pid_t ended = waitpid(pid, ret_status, WNOHANG);
        if (ended == pid)
            return true;
        if (ended < 0 && errno != EINTR)
            fatal_errno("waitpid %d", (int)pid);
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
}
