/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/command.h"

#include "cli/run/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_OWN = 3 };

struct environment {
    char **all; /* ours, and those of this process that ours do not replace */
    char *own[ENVIRONMENT_OWN];
    size_t count; /* of ours */
};

static void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->own[i]);
    free(environment->all);
}

/* "NAME=value"; false without memory. */
static bool environment_add(struct environment *environment, const char *name, const char *value)
{
    char *text;

    if (asprintf(&text, "%s=%s", name, value) < 0)
        return false;
    environment->own[environment->count++] = text;
    return true;
}

static bool environment_add_names(struct environment *environment, const struct run_words *words)
{
    char *names = NULL;
    size_t length = 0;
    FILE *list = open_memstream(&names, &length);

    for (size_t i = 0; list && i < words->name_count; i++)
        fprintf(list, "%s%s", i > 0 ? "," : "", words->names[i]);
    bool is_added =
        list && fclose(list) == 0 && environment_add(environment, "HIRELOCK_NAME", names);
    free(names);
    return is_added;
}

static bool environment_add_token(struct environment *environment, uint64_t token)
{
    char number[24];

    snprintf(number, sizeof(number), "%llu", (unsigned long long)token);
    return token == 0 || environment_add(environment, "HIRELOCK_TOKEN", number);
}

static bool environment_replaces(const struct environment *environment, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->own[i], variable, length) == 0)
            return true;
    return false;
}

static bool environment_gather(struct environment *environment)
{
    size_t count = 0, used = 0;

    while (environ[count])
        count++;
    environment->all = calloc(count + ENVIRONMENT_OWN + 1, sizeof(*environment->all));
    if (!environment->all)
        return false;
    for (size_t i = 0; i < environment->count; i++)
        environment->all[used++] = environment->own[i];
    for (size_t i = 0; i < count; i++)
        if (!environment_replaces(environment, environ[i]))
            environment->all[used++] = environ[i];
    return true;
}

/* `event` may be NULL. False without memory. */
static bool environment_make(struct environment *environment, const struct run_words *words,
                             uint64_t token, const char *event)
{
    *environment = (struct environment){0};
    return environment_add_names(environment, words) && environment_add_token(environment, token) &&
           (!event || environment_add(environment, "HIRELOCK_EVENT", event)) &&
           environment_gather(environment);
}

static void command_failed(const char *word)
{
    cli_say("%s cannot be started: %s", word, strerror(errno));
}

int run_command_become(const struct run_words *words, const struct run_place *place, uint64_t token)
{
    struct environment environment;
    int status = CLI_FAILED;

    if (environment_make(&environment, words, token, NULL))
        status = run_child_become(&(struct run_child){
            .words = words->command, .environment = environment.all, .place = place});
    else
        command_failed(words->command[0]);
    environment_free(&environment);
    return status;
}

bool run_has_terminal(int terminal, pid_t group)
{
    return terminal >= 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           tcgetpgrp(terminal) == group;
}

pid_t run_command_start(const struct run_words *words, const struct run_place *place,
                        uint64_t token)
{
    struct environment environment;
    struct run_child child = {.words = words->command, .place = place, .dies_with_us = true};
    pid_t pid = -1;

    if (environment_make(&environment, words, token, NULL)) {
        child.environment = environment.all;
        child.has_terminal = run_has_terminal(place->terminal, getpgid(place->front));
        pid = run_child_start(&child);
    }
    if (pid < 0)
        command_failed(words->command[0]);
    environment_free(&environment);
    return pid;
}

void run_command_on_lost(const struct run_words *words, const struct run_place *place,
                         const char *event)
{
    char shell[] = "/bin/sh", option[] = "-c";
    char *const shell_words[] = {shell, option, words->lost_command, NULL};
    struct environment environment;
    pid_t pid = -1;

    if (environment_make(&environment, words, 0, event))
        pid = run_child_start(&(struct run_child){
            .words = shell_words, .environment = environment.all, .place = place});
    if (pid < 0)
        command_failed("the command of --on-lost");
    environment_free(&environment);
}
