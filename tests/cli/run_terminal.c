/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock run in a terminal, under a shell with job control. What is typed is echoed, so the words
 * to wait for are spelt otherwise where they are typed. */
#include "run_kit.h"

#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

static int terminal = -1;
static pid_t shell;
static char seen[1 << 16];
static size_t seen_length, seen_before;

static void terminal_open(void)
{
    server_up_single();
    setenv("HIRELOCK_URL", redis_server_url(server), 1);
    setenv("DIR", redis_server_dir(server), 1);
    setenv("RUN", HL_CLI_PATH, 1);
    setenv("PS1", "ready> ", 1);
    unsetenv("PROMPT_COMMAND");
    shell = forkpty(&terminal, NULL, NULL, NULL);
    check(shell >= 0);
    if (shell == 0) {
        execlp("bash", "bash", "--norc", "--noediting", "-i", (char *)NULL);
        _exit(127);
    }
}

static void terminal_close(void)
{
    kill(shell, SIGHUP);
    close(terminal);
    kill(shell, SIGKILL);
    waitpid(shell, NULL, 0);
    server_down();
}

/* Reads until the text comes, behind what was awaited before. */
static void terminal_await(const char *text)
{
    struct deadline deadline = deadline_of_wait(RUN_LONG_MS);

    for (;;) {
        struct pollfd from = {.fd = terminal, .events = POLLIN};
        const char *at = strstr(seen + seen_before, text);
        if (at) {
            seen_before = (size_t)(at - seen) + strlen(text);
            return;
        }
        check_msg(!deadline_is_over(deadline), "\"%s\" did not come; seen: %s", text, seen);
        if (poll(&from, 1, 50) <= 0 || seen_length + 1 >= sizeof seen)
            continue;
        ssize_t got = read(terminal, seen + seen_length, sizeof seen - 1 - seen_length);
        seen_length += got > 0 ? (size_t)got : 0;
        seen[seen_length] = '\0';
    }
}

static void terminal_type(const char *text)
{
    check_int(write(terminal, text, strlen(text)), (intmax_t)strlen(text));
}

#define TerminalLaw(...)                                                                           \
    Test(run_terminal, __VA_ARGS__, .init = terminal_open, .fini = terminal_close)

TerminalLaw(the_command_reads_from_the_terminal)
{
    terminal_await("ready> ");
    terminal_type(
        "$RUN run job -- sh -c 'echo be''gun; read word; echo got-$word'; echo st''atus $?\n");
    terminal_await("begun");
    terminal_type("hello\n");
    terminal_await("got-hello");
    terminal_await("status 0");
    terminal_type("echo ho''me\n"); /* the shell has the terminal again */
    terminal_await("home");
}

TerminalLaw(the_interrupt_key_reaches_the_command)
{
    terminal_await("ready> ");
    terminal_type(
        "$RUN run job -- sh -c 'trap \"exit 9\" INT; echo be''gun; while :; do sleep .05; "
        "done'; echo st''atus $?\n");
    terminal_await("begun");
    terminal_type("\x03");
    terminal_await("status 9");
}

/* What is left of the lease goes down, and up by a renewal. */
static void expect_renewed(int times)
{
    struct deadline deadline = deadline_of_wait(60000);
    int64_t last_ms = redis_int(server, "PTTL job");

    while (times > 0 && !deadline_is_over(deadline)) {
        int64_t left_ms = redis_int(server, "PTTL job");
        check_msg(left_ms > 0, "it is not held");
        times -= left_ms > last_ms;
        last_ms = left_ms;
        deadline_nap();
    }
    check_int(times, 0);
}

TerminalLaw(a_stopped_command_keeps_the_lock_and_goes_on)
{
    terminal_await("ready> ");
    terminal_type("$RUN run --lease 9 job -- sh -c 'echo be''gun; read word; echo got-$word'\n");
    terminal_await("begun");
    terminal_type("\x1a");
    terminal_await("Stopped");
    terminal_await("ready> ");
    expect_renewed(2);
    terminal_type("fg\n");
    terminal_await("fg");
    terminal_type("again\n");
    terminal_await("got-again");
    terminal_type("$RUN run -n job -- echo fr''ee\n");
    terminal_await("free");
}

static bool is_held(void *arg)
{
    (void)arg;
    return redis_int(server, "EXISTS job") == 1;
}

/* It takes its turn, and begins when it is continued. */
TerminalLaw(a_stopped_wait_goes_on)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "job");

    expect_ok(hl_lock_acquire(lock, ERR));
    terminal_await("ready> ");
    terminal_type("$RUN run --verbose job -- sh -c 'echo > $DIR/begun; echo mi''ne'\n");
    terminal_await("waiting");
    terminal_type("\x1a");
    terminal_await("Stopped");
    terminal_await("ready> ");
    expect_ok(hl_lock_release(lock, ERR));
    check(wait_until(is_held, NULL, RUN_LONG_MS));
    check_str(run_text("begun"), "");
    terminal_type("fg\n");
    terminal_await("mine");
    terminal_type("$RUN run -n job -- echo fr''ee\n");
    terminal_await("free");
}

/* The shell of the command reads from a pipe itself. While it starts another program, by vfork(2),
 * it cannot be stopped: the program is, before it begins, and the shell waits for that. */
TerminalLaw(a_command_in_the_background_goes_on_there)
{
    check_int(mkfifo(run_file("pipe").path, 0600), 0);
    terminal_await("ready> ");
    terminal_type("$RUN run job -- sh -c 'echo be''gun; read word < $DIR/pipe; echo do''ne'\n");
    terminal_await("begun");
    terminal_type("\x1a");
    terminal_await("Stopped");
    terminal_type("bg\n");
    terminal_type("echo > $DIR/pipe; wait; echo st''atus $?\n");
    terminal_await("done");
    terminal_await("status 0");
}

TerminalLaw(a_command_in_a_pipeline_may_read_the_terminal)
{
    terminal_await("ready> ");
    terminal_type("$RUN run job -- sh -c 'echo be''gun >&2; read word; echo got-$word' | cat\n");
    terminal_await("begun");
    terminal_type("hello\n");
    terminal_await("got-hello");
}
