/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/front.h"

#include "cli/run/command.h"
#include "cli/run/message.h"
#include "cli/run/tree.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct front_run {
    const struct run_front *front;
    int signals;    /* signalfd */
    pid_t command;  /* its process group, too; 0: not started */
    bool is_opened; /* the guard attends to signals */
    bool is_told;   /* status is that of the end */
    int status;
    int canceled_by;
    bool had_terminal; /* the command had it when it stopped */
};

static void front_give_terminal(const struct front_run *run)
{
    if (run->front->terminal >= 0 && run->command > 0)
        tcsetpgrp(run->front->terminal, run->command); /* SIGTTOU is blocked */
}

/* Returns true when the command had it. */
static bool front_take_terminal(const struct front_run *run)
{
    int terminal = run->front->terminal;

    return terminal >= 0 && run->command > 0 && tcgetpgrp(terminal) == run->command &&
           tcsetpgrp(terminal, getpgrp()) == 0;
}

static bool front_is_foreground(const struct front_run *run)
{
    return run->front->terminal >= 0 && tcgetpgrp(run->front->terminal) == getpgrp();
}

/* Dies as one whom the signal has killed; no core for the sake of the status. */
static _Noreturn void front_die(int number)
{
    const struct rlimit none = {0, 0};
    sigset_t only;

    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    _exit(128 + number);
}

static void front_tell(const struct front_run *run, int signal)
{
    run_tell(run->front->socket, RUN_SIGNAL, signal, 0);
}

/* Stops by this signal; returns when continued, or at once where nobody could continue us (an
 * orphaned process group, POSIX "General Terminal Interface"). */
static void front_stop(int number)
{
    sigset_t only, before;
    struct sigaction usual = {.sa_handler = SIG_DFL}, old = usual;

    sigemptyset(&only);
    sigaddset(&only, number);
    sigaction(number, &usual, &old);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(number, &old, NULL);
}

static void front_continue(struct front_run *run)
{
    if (front_is_foreground(run) &&
        (run->had_terminal || run_has_terminal(run->front->terminal, getpgrp())))
        front_give_terminal(run);
    front_tell(run, SIGCONT);
}

/* The command has stopped, or is not to be started yet. If only because it wants the terminal, and
 * we have that, it gets it. */
static void front_stopped(struct front_run *run, int number)
{
    if ((number == SIGTTIN || number == SIGTTOU) && front_is_foreground(run)) {
        run->had_terminal = true;
    } else {
        run->had_terminal = front_take_terminal(run) || run->had_terminal;
        front_stop(number);
    }
    run_tell(run->front->socket, RUN_RESUMED, 0, 0);
    front_continue(run);
}

static bool front_ends_wait(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void front_signal(struct front_run *run, int number)
{
    if (!run->is_opened && front_ends_wait(number)) {
        kill(run->front->guard, SIGKILL); /* without RUN_GO it holds nothing */
        waitpid(run->front->guard, NULL, 0);
        front_die(number);
    }
    if (number == SIGCONT)
        front_continue(run);
    else if (number == SIGTSTP && !run->is_opened)
        front_stop(number); /* the guard waits for RUN_GO */
    else
        front_tell(run, number);
}

static void front_signals(struct front_run *run)
{
    struct signalfd_siginfo told;

    while (read(run->signals, &told, sizeof(told)) == sizeof(told))
        if (told.ssi_signo != SIGCHLD)
            front_signal(run, (int)told.ssi_signo);
}

/* False at the end of the socket: the guard is gone. */
static bool front_hear(struct front_run *run)
{
    struct run_message message;

    if (!run_hear(run->front->socket, &message))
        return false;
    switch (message.kind) {
    case RUN_OPENED:
        run->is_opened = true;
        run_tell(run->front->socket, RUN_GO, 0, 0);
        break;
    case RUN_STARTED:
        run->command = message.value;
        break;
    case RUN_STOPPED:
        front_stopped(run, message.value);
        break;
    case RUN_CANCELED:
        run->canceled_by = message.value;
        run->is_told = true;
        break;
    case RUN_ENDED:
        run->status = message.value;
        run->is_told = true;
        break;
    default:
        break;
    }
    return true;
}

static void front_listen(struct front_run *run)
{
    struct pollfd from[] = {{.fd = run->front->socket, .events = POLLIN},
                            {.fd = run->signals, .events = POLLIN}};
    bool has_guard = true;

    while (has_guard) {
        if (poll(from, 2, -1) < 0)
            continue;
        if (from[1].revents)
            front_signals(run);
        if (from[0].revents)
            has_guard = front_hear(run);
    }
}

/* The guard was killed: what it had is a tree of ours now. */
static int front_end_tree(struct front_run *run)
{
    struct run_ending ending = {0};
    struct pollfd none = {.fd = -1};
    pid_t pid;

    cli_say("the process that held the lock was killed: the lock is not renewed any more, and the "
            "command is ended");
    run_ending_begin(&ending, getpid(), -1, run->front->words->kill_after_ms);
    for (;;) {
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return run->command > 0 ? CLI_LOST : CLI_FAILED;
        poll(&none, 1, 50);
        run_ending_step(&ending);
    }
}

int run_front(const struct run_front *front)
{
    struct front_run run = {.front = front,
                            .signals = signalfd(-1, &front->signals, SFD_CLOEXEC | SFD_NONBLOCK)};

    front_listen(&run);
    front_take_terminal(&run);
    if (!run.is_told)
        return front_end_tree(&run);
    waitpid(front->guard, NULL, 0);
    if (run.canceled_by)
        front_die(run.canceled_by);
    return run.status;
}
