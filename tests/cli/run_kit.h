/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Tests of `hirelock run`: the program is started as a user does, at the test's `server`, and what
 * it and its command write stands in files beside the server. */
#ifndef HL_TEST_RUN_KIT_H
#define HL_TEST_RUN_KIT_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/deadline.h"
#include "support/kit.h"
#include "support/redis_server.h"
#include "support/spawn.h"

enum { RUN_WORDS = 32, RUN_PATH = 256, RUN_TEXT = 8192, RUN_LONG_MS = 20000 };

struct run_file {
    char path[RUN_PATH];
};

/* The path of a file of this test. */
static inline struct run_file run_file(const char *name)
{
    struct run_file file;

    snprintf(file.path, sizeof file.path, "%s/%s", redis_server_dir(server), name);
    return file;
}

/* What stands in it so far; "" when there is no such file. */
static inline const char *run_text(const char *name)
{
    static char text[RUN_TEXT];
    FILE *file = fopen(run_file(name).path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    text[length] = '\0';
    return text;
}

static inline void run_await_text(const char *name, const char *part)
{
    struct deadline deadline = deadline_of_wait(RUN_LONG_MS);

    while (!strstr(run_text(name), part) && !deadline_is_over(deadline))
        deadline_nap();
    check_has(run_text(name), part);
}

/* hirelock run WORD...; ends with NULL. The command finds the files' directory in $DIR. Its output
 * is in "out", and ours and its errors in "err". */
static inline pid_t run_start_with(const char *input, const char *url, va_list words)
{
    static char run[] = "run";
    char *argv[RUN_WORDS] = {HL_CLI_PATH, run};
    char url_word[RUN_PATH], dir_word[RUN_PATH];
    struct run_file out = run_file("out"), errors = run_file("err");
    int count = 2;

    while (count < RUN_WORDS - 1 && (argv[count] = va_arg(words, char *)))
        count++;
    argv[count] = NULL;
    snprintf(url_word, sizeof url_word, "HIRELOCK_URL=%s", url);
    snprintf(dir_word, sizeof dir_word, "DIR=%s", redis_server_dir(server));
    return spawn_start(&(struct spawn){.argv = argv,
                                       .input = input,
                                       .output = out.path,
                                       .errors = errors.path,
                                       .environment = {url_word, dir_word}});
}

static inline pid_t run_start(const char *first, ...)
{
    va_list words;

    va_start(words, first);
    pid_t pid = run_start_with(first, redis_server_url(server), words);
    va_end(words);
    return pid;
}

static inline pid_t run_start_at(const char *url, ...)
{
    va_list words;

    va_start(words, url);
    pid_t pid = run_start_with(NULL, url, words);
    va_end(words);
    return pid;
}

/* The exit status, or minus the signal that ended it. */
static inline int run_end(pid_t pid)
{
    int status = 0;

    check_msg(spawn_reap(pid, RUN_LONG_MS, &status), "it still runs; err: %s", run_text("err"));
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* No input; the words of a run that ends by itself, and its status. */
#define RUN(...) run_start(NULL, __VA_ARGS__, NULL)
#define RUN_STATUS(...) run_end(RUN(__VA_ARGS__))

/* The number that a command has written to a file with a newline. */
static inline pid_t run_pid(const char *name)
{
    run_await_text(name, "\n");
    return (pid_t)strtol(run_text(name), NULL, 10);
}

/* The first child of a process; 0: it has none. */
static inline pid_t run_child(pid_t pid)
{
    char path[64], line[512] = "";

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[length] = '\0';
    return (pid_t)strtol(line, NULL, 10);
}

static inline bool run_has_child(void *arg)
{
    return run_child(*(const pid_t *)arg) > 0;
}

static inline pid_t run_await_child(pid_t pid)
{
    check_msg(wait_until(run_has_child, &pid, RUN_LONG_MS), "process %d has no child", (int)pid);
    return run_child(pid);
}

static inline void run_await_stopped(pid_t pid)
{
    struct deadline deadline = deadline_of_wait(RUN_LONG_MS);
    int status = 0;

    while (waitpid(pid, &status, WUNTRACED | WNOHANG) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    check_msg(WIFSTOPPED(status), "process %d does not stop", (int)pid);
}

/* A zombie that nobody reaps is gone, too. */
static inline bool run_is_gone(void *arg)
{
    char path[64], line[512] = "";
    const pid_t *pid = arg;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)*pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    size_t length = fread(line, 1, sizeof line - 1, file);
    line[length] = '\0';
    fclose(file);
    const char *behind = strrchr(line, ')');
    return !behind || behind[2] == 'Z' || behind[2] == 'X';
}

static inline void run_await_gone(pid_t pid)
{
    check_msg(wait_until(run_is_gone, &pid, RUN_LONG_MS), "process %d still runs; err: %s",
              (int)pid, run_text("err"));
}

static inline bool run_is_free(void *arg)
{
    return redis_int(server, "EXISTS %s", (const char *)arg) == 0;
}

static inline void run_await_free(char *name)
{
    check_msg(wait_until(run_is_free, name, RUN_LONG_MS), "%s is still held", name);
}

#endif
