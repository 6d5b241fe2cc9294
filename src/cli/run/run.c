/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock run NAME... -- COMMAND: runs the command while it holds the lock.
 *
 *     the user's shell
 *       front    the process that the shell knows: signals, terminal, status (front.h)
 *         guard    the client and the lock (guard.h)
 *           command    in a process group of its own
 *
 * Each of the three ends those below it when the one above it is gone: the guard hears the end of
 * the front by their socket, the front that of the guard, and the kernel kills the command with the
 * guard (PR_SET_PDEATHSIG). A client does not survive a fork, so it is opened in the guard.
 */
#include "cli/run/command.h"
#include "cli/run/front.h"
#include "cli/run/guard.h"
#include "cli/run/message.h"
#include "cli/run/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Those that are passed on. One that the user had us ignore, as nohup(1) does, stays ignored. */
static void run_signals(sigset_t *ret_signals)
{
    static const int numbers[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

    sigemptyset(ret_signals);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(ret_signals, numbers[i]);
    }
}

static int run_failed(const char *what)
{
    cli_say("%s: %s", what, strerror(errno));
    return CLI_FAILED;
}

/* The guard, in a child: it ends by itself. */
static void run_be_guard(struct run_words *words, const struct run_place *place, int front)
{
    close(front);
    int status = run_guard(words, place);
    exit(status);
}

/* The front passes signals on, so they are blocked, and come by a descriptor. SIGTTOU would stop a
 * front in the background that takes the terminal back. */
static int run_apart(struct run_words *words, struct run_place *place, int socket)
{
    struct run_front front = {.words = words, .socket = socket, .terminal = place->terminal};
    sigset_t blocked;

    run_signals(&front.signals);
    blocked = front.signals;
    sigaddset(&blocked, SIGTTOU);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    front.guard = fork();
    if (front.guard < 0)
        return run_failed("fork");
    if (front.guard == 0)
        run_be_guard(words, place, socket);
    close(place->socket);
    return run_front(&front);
}

/* The guard is the child of a child that ends at once: the command, which we become, has no child
 * that it did not start. */
static int run_start_beside(struct run_words *words, struct run_place *place, int socket)
{
    pid_t middle = fork();

    if (middle < 0)
        return run_failed("fork");
    if (middle == 0) {
        pid_t guard = fork();
        if (guard == 0)
            run_be_guard(words, place, socket);
        _exit(guard < 0 ? CLI_FAILED : CLI_OK);
    }
    int status = 0;
    waitpid(middle, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

static int run_here(struct run_words *words, struct run_place *place, int socket)
{
    struct run_message message;

    place->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0); /* it is closed by exec */
    if (place->pidfd < 0)
        return run_failed("pidfd_open");
    int status = run_start_beside(words, place, socket);
    if (status != CLI_OK)
        return status;
    close(place->socket);
    while (run_hear(socket, &message)) {
        if (message.kind == RUN_ENDED)
            return message.value;
        if (message.kind == RUN_OPENED)
            run_tell(socket, RUN_GO, 0, 0);
        if (message.kind != RUN_STARTED)
            continue;
        return run_command_become(words, place, message.token);
    }
    cli_say("the process that was to hold the lock is gone");
    return CLI_FAILED;
}

/* A descriptor of ours that is stdin, stdout or stderr would get what is written there. The command
 * has them closed again. */
static void run_fill_standard(void)
{
    int null;

    do
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (null >= 0 && null <= STDERR_FILENO);
    if (null >= 0)
        close(null);
}

static void run_note_signals(struct run_place *place)
{
    struct sigaction now;

    sigprocmask(SIG_SETMASK, NULL, &place->mask);
    place->is_chld_ignored = sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int run_run(int argc, char **argv)
{
    struct run_words words;
    int ends[2];

    run_words_read(&words, argc, argv);
    struct run_place place = {.front = getpid(), .pidfd = -1};
    run_note_signals(&place);
    run_fill_standard();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return run_failed("socketpair");
    place.socket = ends[1];
    place.terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    int status =
        words.is_here ? run_here(&words, &place, ends[0]) : run_apart(&words, &place, ends[0]);
    cli_server_close(&words.server, NULL);
    return status;
}

const struct cli_command cli_run = {.name = "run",
                                    .summary = "run a command while a lock is held",
                                    .argp = &run_argp,
                                    .run = run_run};
