/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The command `hirelock`, run at the test's server: what it said, and its status. */
#ifndef HL_TEST_SAID_H
#define HL_TEST_SAID_H

#include "support/kit.h"
#include "support/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID_SIZE = 64 * 1024 };

struct said {
    pid_t pid;
    int status;
    char out[SAID_SIZE], err[SAID_SIZE];
    char out_path[256], err_path[256], url[600];
};

static inline void said_read(const char *path, char text[SAID_SIZE])
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, SAID_SIZE - 1, file) : 0;

    text[length] = '\0';
    if (file)
        fclose(file);
}

/* What it has said so far. */
static inline struct said *said_look(struct said *said)
{
    said_read(said->out_path, said->out);
    said_read(said->err_path, said->err);
    return said;
}

static const char *said_locale = "LC_ALL=C.UTF-8";

/* The first word is a program, the last one NULL. input: a file, or NULL. */
static inline struct said *said_start_program(const char *input, const char *const *argv)
{
    static int number;
    struct said *said = free_at_end(calloc(1, sizeof *said), free);

    number++;
    snprintf(said->out_path, sizeof said->out_path, "%s/out%d", redis_server_dir(server), number);
    snprintf(said->err_path, sizeof said->err_path, "%s/err%d", redis_server_dir(server), number);
    snprintf(said->url, sizeof said->url, "HIRELOCK_URL=%s", redis_server_url(server));
    const struct spawn spawn = {.argv = (char *const *)argv,
                                .input = input,
                                .output = said->out_path,
                                .errors = said->err_path,
                                .environment = {said->url, said_locale}};
    unlink(said->out_path);
    unlink(said->err_path);
    said->pid = spawn_start(&spawn);
    return said;
}

/* words: behind "hirelock"; the last one is NULL. input: a file, or NULL. */
static inline struct said *said_start(const char *input, const char *const *words)
{
    const char *argv[32] = {HL_CLI_PATH};

    for (int count = 1; words[count - 1]; count++)
        argv[count] = words[count - 1];
    return said_start_program(input, argv);
}

static inline struct said *said_end(struct said *said)
{
    int status = 0;

    check_msg(spawn_reap(said->pid, 60000, &status), "hirelock does not end");
    check_msg(WIFEXITED(status), "hirelock ended by signal %d", WTERMSIG(status));
    said->status = WEXITSTATUS(status);
    return said_look(said);
}

#define START(...) said_start(NULL, (const char *const[]){__VA_ARGS__, NULL})
#define RUN(...) said_end(START(__VA_ARGS__))

/* A status, and no word of failure. */
#define expect_said(said, status_)                                                                 \
    check_msg((said)->status == (status_), "status %d: %s", (said)->status, (said)->err)

static inline int said_lines(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* --help of a subcommand has two examples and fits a screen. */
static inline void expect_help_fits(const char *name)
{
    const struct said *said = RUN(name, "--help");

    expect_said(said, 0);
    check_msg(said_lines(said->out) <= 40, "%d lines", said_lines(said->out));
    const char *first = strstr(said->out, "\n  hirelock ");
    check(first && strstr(first + 1, "\n  hirelock "));
}

/* Redisson's look of an owner (docs/redisson.md). */
#define JAVA "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

#endif
