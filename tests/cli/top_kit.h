/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A terminal that can be read: tmux with a socket of its own, in which a shell runs `hirelock top`
 * at the test's `server`, as a user does. What is typed is seen by the shell's echo, so the words
 * to wait for are spelt otherwise where they are typed.
 */
#ifndef HL_TEST_TOP_KIT_H
#define HL_TEST_TOP_KIT_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/said.h"
#include "support/actor.h"
#include "support/deadline.h"

enum { TOP_WORDS = 24, TOP_SCREEN = 1 << 16, TOP_LONG_MS = 60000 };

static pid_t top_terminal;
static char top_screen[TOP_SCREEN];

/* tmux WORD...; NULL ends them. What it prints goes to top_screen. Returns its wait status. */
static inline int top_tmux(const char *first, ...)
{
    char socket[300], out[300], *argv[TOP_WORDS] = {"tmux", "-S", socket, "-f", "/dev/null", "-N"};
    int count = 6, status = -1;
    va_list words;

    snprintf(socket, sizeof socket, "%s/tmux", redis_server_dir(server));
    snprintf(out, sizeof out, "%s/tmux.out", redis_server_dir(server));
    va_start(words, first);
    for (const char *word = first; word && count < TOP_WORDS - 1; word = va_arg(words, char *))
        argv[count++] = (char *)word;
    va_end(words);
    unlink(out);
    pid_t pid = spawn_start(&(struct spawn){.argv = argv, .output = out, .errors = "/dev/null"});
    check_msg(spawn_reap(pid, TOP_LONG_MS, &status), "tmux %s does not end", first);
    FILE *file = fopen(out, "re");
    size_t length = file ? fread(top_screen, 1, sizeof top_screen - 1, file) : 0;
    top_screen[length] = '\0';
    if (file)
        fclose(file);
    return status;
}

#define TMUX(...) check_int(top_tmux(__VA_ARGS__, NULL), 0)

/* What is on the screen now; with_style: with the sequences of colours and the like. */
static inline const char *top_look(bool with_style)
{
    if (with_style)
        TMUX("capture-pane", "-p", "-e");
    else
        TMUX("capture-pane", "-p");
    return top_screen;
}

static inline void top_await_styled(const char *text, bool with_style, bool is_there)
{
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);

    while ((strstr(top_look(with_style), text) != NULL) != is_there && !deadline_is_over(deadline))
        deadline_nap();
    check_msg((strstr(top_screen, text) != NULL) == is_there, "\"%s\" %s:\n%s", text,
              is_there ? "does not come" : "stays", top_screen);
}

#define top_await(text) top_await_styled((text), false, true)
#define top_await_gone(text) top_await_styled((text), false, false)

/* The line with this number, from 0. */
static inline const char *top_line(int number)
{
    static char line[4096];
    const char *at = top_look(false);

    for (; number > 0 && at; number--)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    snprintf(line, sizeof line, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    return line;
}

/* The line has this text soon. */
static inline void top_await_line(int number, const char *text)
{
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);

    while (!strstr(top_line(number), text) && !deadline_is_over(deadline))
        deadline_nap();
    check_msg(strstr(top_line(number), text), "line %d is \"%s\", without \"%s\":\n%s", number,
              top_line(number), text, top_look(false));
}

/* Names of keys, as tmux knows them: "Enter", "C-c", "PPage", "j". */
#define top_press(...) TMUX("send-keys", __VA_ARGS__)
static inline void top_type(const char *text)
{
    TMUX("send-keys", "-l", text);
}

static inline void top_resize(const char *columns, const char *rows)
{
    TMUX("resize-window", "-x", columns, "-y", rows);
}

/* A shell in a terminal of this size, without another shell around it, which would take the prompt
 * away; what it types finds the program in $RUN. */
static inline void top_open(const char *columns, const char *rows)
{
    char socket[300], *argv[] = {"tmux", "-D", "-S", socket, "-f", "/dev/null", NULL};
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);

    snprintf(socket, sizeof socket, "%s/tmux", redis_server_dir(server));
    setenv("HIRELOCK_URL", redis_server_url(server), 1);
    setenv("DIR", redis_server_dir(server), 1);
    setenv("RUN", HL_CLI_PATH, 1);
    setenv("PS1", "ready> ", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("PROMPT_COMMAND");
    unsetenv("NO_COLOR");
    unsetenv("TMUX");
    top_terminal = spawn_start(&(struct spawn){.argv = argv, .output = "/dev/null"});
    while (top_tmux("new-session", "-d", "-x", columns, "-y", rows, "bash", "--norc", "--noediting",
                    "-i", NULL) != 0 &&
           !deadline_is_over(deadline))
        deadline_nap();
    top_await("ready>");
}

static inline void top_close(void)
{
    int status = 0;

    if (top_terminal <= 0)
        return;
    top_tmux("kill-server", NULL);
    kill(top_terminal, SIGTERM);
    spawn_reap(top_terminal, TOP_LONG_MS, &status);
    top_terminal = 0;
}

/* hirelock top WORDS in a terminal of 80 columns, until it shows something. */
static inline void top_start(const char *words)
{
    char line[512];

    top_open("80", "24");
    snprintf(line, sizeof line, "$RUN top %s; echo st''atus $?", words);
    top_type(line);
    top_press("Enter");
    top_await("WAITERS");
}

static inline void top_down(void)
{
    top_close();
    server_down();
}

#define TopLaw(suite, ...) Test(suite, __VA_ARGS__, .init = server_up, .fini = top_down)
#define TopSingleLaw(suite, ...)                                                                   \
    Test(suite, __VA_ARGS__, .init = server_up_single, .fini = top_down)

#endif
