/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/guard.h"

#include "cli/run/command.h"
#include "cli/run/hold.h"
#include "cli/run/message.h"
#include "cli/run/tree.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GUARD_THREAD = 16, /* what Linux keeps of a thread's name, with its NUL */
    GUARD_WAKE_MS = 50
};

struct run_guard {
    struct run_words *words;
    struct run_place place;
    struct run_hold hold;
    struct run_ending ending;
    int children;      /* signalfd of SIGCHLD */
    pid_t command;     /* 0: not started yet */
    bool has_ended;    /* the command */
    bool has_children; /* also those that lost their parents */
    bool is_front_gone;
    bool may_ask;        /* RUN_GO came */
    bool is_paused;      /* the front was stopped before the command was started */
    bool is_stopped;     /* the command */
    int stops;           /* those that were told to the front, and that it has not dealt with */
    bool is_ended_by_us; /* for a lock that was lost */
    int canceled_by;     /* the signal; 0: not cancelled */
    int status;          /* of the command, as a shell has it */
};

static bool guard_is_here(const struct run_guard *guard)
{
    return guard->words->is_here;
}

static void guard_end_tree(struct run_guard *guard, int64_t kill_after_ms)
{
    pid_t root = guard_is_here(guard) ? guard->place.front : getpid();

    run_ending_begin(&guard->ending, root, guard->place.pidfd, kill_after_ms);
}

/* The hold is in danger or over. */
static void guard_trouble(struct run_guard *guard)
{
    int trouble = guard->hold.trouble;

    guard->hold.trouble = 0;
    if (trouble == 0 || guard->command == 0 || guard->has_ended)
        return;
    switch (guard->words->lost) {
    case RUN_LOST_IGNORE:
        return;
    case RUN_LOST_COMMAND:
        run_command_on_lost(guard->words, &guard->place, hl_event_name((hl_event_kind)trouble));
        return;
    default:
        guard->is_ended_by_us = true;
        guard_end_tree(guard,
                       guard->words->lost == RUN_LOST_KILL ? 0 : guard->words->kill_after_ms);
    }
}

static void guard_tell_stop(struct run_guard *guard, int signal)
{
    guard->stops++;
    run_tell(guard->place.socket, RUN_STOPPED, signal, 0);
}

/* A signal that ends the wait, or goes to the command. */
static void guard_signal(struct run_guard *guard, int signal)
{
    if (guard->command > 0 && !guard->has_ended) {
        kill(-guard->command, signal);
    } else if (signal == SIGTSTP && guard->command == 0) {
        guard->is_paused = true;
        guard_tell_stop(guard, signal);
    } else if (signal == SIGCONT) {
        guard->is_paused = false;
    } else if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
        guard->canceled_by = signal;
        run_hold_cancel(&guard->hold);
    }
}

static void guard_front_is_gone(struct run_guard *guard)
{
    guard->is_front_gone = true;
    if (guard->command == 0)
        run_hold_cancel(&guard->hold);
    else if (!guard_is_here(guard))
        guard_end_tree(guard, guard->words->kill_after_ms);
}

static void guard_hear(struct run_guard *guard)
{
    struct run_message message;

    if (!run_hear(guard->place.socket, &message))
        guard_front_is_gone(guard);
    else if (message.kind == RUN_SIGNAL)
        guard_signal(guard, message.value);
    else if (message.kind == RUN_RESUMED)
        guard->stops--;
    else if (message.kind == RUN_GO)
        guard->may_ask = true;
}

static void guard_child(struct run_guard *guard, pid_t pid, int status)
{
    if (pid != guard->command)
        return;
    guard->is_stopped = WIFSTOPPED(status);
    if (WIFSTOPPED(status)) {
        if (!guard->ending.is_begun)
            guard_tell_stop(guard, WSTOPSIG(status));
    } else if (!WIFCONTINUED(status)) {
        guard->has_ended = true;
        guard->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* Orphans of the command's tree are our children, too. */
static void guard_reap(struct run_guard *guard)
{
    struct signalfd_siginfo told;
    int status;
    pid_t pid;

    while (read(guard->children, &told, sizeof(told)) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
        guard_child(guard, pid, status);
    guard->has_children = pid == 0;
}

static void guard_start(struct run_guard *guard)
{
    if (guard_is_here(guard)) {
        guard->command = guard->place.front;
        run_tell(guard->place.socket, RUN_STARTED, 0, guard->hold.token);
        return;
    }
    guard->command = run_command_start(guard->words, &guard->place, guard->hold.token);
    if (guard->command < 0) {
        guard->has_ended = true;
        guard->status = CLI_FAILED;
        return;
    }
    guard->has_children = true;
    run_tell(guard->place.socket, RUN_STARTED, guard->command, 0);
}

/* The front stops itself when it hears of a stop, and that may be after the command goes on or has
 * ended: a SIGCONT that comes too early is of no use, so it is sent until the front has answered.
 */
static bool guard_wakes_front(const struct run_guard *guard)
{
    return guard->stops > 0 && !guard->is_stopped && !guard->is_paused && !guard->is_front_gone;
}

static void guard_wake_front(const struct run_guard *guard)
{
    if (guard_wakes_front(guard) && getppid() == guard->place.front)
        kill(guard->place.front, SIGCONT);
}

/* What the front was told last is of no use to one that is stopped. */
static void guard_leave_front(struct run_guard *guard)
{
    struct pollfd front = {.fd = guard->place.socket, .events = POLLIN};

    guard->is_stopped = guard->is_paused = false;
    while (guard_wakes_front(guard)) {
        guard_wake_front(guard);
        if (poll(&front, 1, GUARD_WAKE_MS) > 0)
            guard_hear(guard);
    }
}

/* Starts the command as soon as it may. */
static void guard_step(struct run_guard *guard)
{
    bool may_run = guard->hold.state == RUN_HOLD_HELD || guard->hold.state == RUN_HOLD_NONE;

    if (may_run && guard->command == 0 && !guard->is_paused && !guard->hold.is_canceled &&
        !guard->hold.is_lost)
        guard_start(guard);
    guard_trouble(guard);
    guard_wake_front(guard);
    run_ending_step(&guard->ending);
}

static bool guard_is_over(const struct run_guard *guard)
{
    if (guard->hold.state == RUN_HOLD_REFUSED)
        return true;
    if (guard->command == 0)
        return guard->hold.state != RUN_HOLD_ASKING &&
               (guard->hold.is_canceled || guard->hold.is_lost);
    if (guard->ending.is_begun && !guard_is_here(guard))
        return !guard->has_children;
    return guard->has_ended;
}

static int guard_timeout(const struct run_guard *guard)
{
    int timeout = run_ending_timeout(&guard->ending);
    bool is_late = timeout < 0 || timeout > GUARD_WAKE_MS;

    return guard_wakes_front(guard) && is_late ? GUARD_WAKE_MS : timeout;
}

static void guard_wait(struct run_guard *guard)
{
    enum { HEARD, REAPED, TOLD, FRONT, SOURCES };
    struct pollfd from[SOURCES] = {
        [HEARD] = {.fd = guard->is_front_gone ? -1 : guard->place.socket, .events = POLLIN},
        [REAPED] = {.fd = guard->children, .events = POLLIN},
        [TOLD] = {.fd = run_hold_fd(&guard->hold), .events = POLLIN},
        [FRONT] = {.fd = guard->place.pidfd, .events = POLLIN}};

    if (poll(from, SOURCES, guard_timeout(guard)) < 0)
        return;
    if (from[HEARD].revents)
        guard_hear(guard);
    if (from[REAPED].revents)
        guard_reap(guard);
    if (from[FRONT].revents) {
        guard->has_ended = true;
        guard_front_is_gone(guard);
    }
    run_hold_dispatch(&guard->hold);
}

static int guard_status(const struct run_guard *guard, bool was_held)
{
    bool is_ours = guard->words->lost == RUN_LOST_TERM || guard->words->lost == RUN_LOST_KILL;

    if (guard->hold.state == RUN_HOLD_REFUSED)
        return guard->hold.status;
    if (guard->command == 0)
        return guard->hold.is_lost ? CLI_LOST : CLI_FAILED;
    return guard->is_ended_by_us || (!was_held && is_ours) ? CLI_LOST : guard->status;
}

/* Others see the command's name as the holder's thread. */
static void guard_be_named(const struct run_words *words)
{
    char name[GUARD_THREAD];
    const char *slash = strrchr(words->command[0], '/');

    snprintf(name, sizeof(name), "%.15s", slash ? slash + 1 : words->command[0]);
    pthread_setname_np(pthread_self(), name);
}

static void guard_begin(struct run_guard *guard)
{
    sigset_t all, child;

    setpgid(0, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    guard->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard_be_named(guard->words);
}

/* Until the front agrees, a signal may have it kill us: nothing may be held, nor be started. */
static void guard_agree(struct run_guard *guard)
{
    run_tell(guard->place.socket, RUN_OPENED, 0, 0);
    while (!guard->may_ask && !guard->is_front_gone)
        guard_hear(guard);
}

int run_guard(struct run_words *words, const struct run_place *place)
{
    struct run_guard guard = {.words = words, .place = *place};

    guard_begin(&guard);
    run_hold_open(&guard.hold, words);
    guard_agree(&guard);
    run_hold_ask(&guard.hold);
    for (guard_step(&guard); !guard_is_over(&guard); guard_step(&guard))
        guard_wait(&guard);
    int status = guard_status(&guard, run_hold_release(&guard.hold));
    run_hold_close(&guard.hold, words);
    if (guard.canceled_by && guard.command == 0)
        run_tell(place->socket, RUN_CANCELED, guard.canceled_by, 0);
    else
        run_tell(place->socket, RUN_ENDED, status, 0);
    guard_leave_front(&guard);
    return CLI_OK;
}
