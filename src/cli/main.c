/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock COMMAND ...: finds the command. */
#include "base/suggest.h"
#include "cli/cli.h"

#include <hirelock/hirelock.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN_NAME = 64 };

static const struct cli_command *const commands[] = {
    &cli_run,    &cli_list,  &cli_top,  &cli_doctor,    &cli_bench, &cli_inspect,
    &cli_unlock, &cli_watch, &cli_wait, &cli_deadlocks, &cli_acl,   &cli_exporter};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void main_help(FILE *to)
{
    fputs("Usage: hirelock COMMAND [OPTION...] ...\n"
          "Distributed locks on Redis, shared with programs of hirelock and Redisson.\n\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nThe server is that of --url, HIRELOCK_URL, REDIS_URL, or redis://127.0.0.1.\n"
          "hirelock COMMAND --help says more about each; so does hirelock(1).\n",
          to);
}

static const struct cli_command *main_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int main_unknown(const char *name)
{
    const char *names[COMMANDS];

    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *meant = hli_suggest(name, names, COMMANDS);
    if (meant)
        cli_say("'%s' is no command; did you mean '%s'?", name, meant);
    else
        cli_say("'%s' is no command; hirelock --help lists them", name);
    return CLI_FAILED;
}

static int main_run(const struct cli_command *command, int argc, char **argv)
{
    static char name[MAIN_NAME];

    snprintf(name, sizeof(name), "hirelock %s", command->name);
    argv[0] = name;
    return command->run(argc, argv);
}

/* hirelock help [COMMAND] */
static int main_help_on(int argc, char **argv)
{
    static char help[] = "--help";

    if (argc < 3) {
        main_help(stdout);
        return CLI_OK;
    }
    const struct cli_command *command = main_find(argv[2]);
    char *words[] = {argv[0], help, NULL};
    return command ? main_run(command, 2, words) : main_unknown(argv[2]);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* how wide a text is in a table */
    if (argc < 2) {
        main_help(stderr);
        return CLI_FAILED;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return main_help_on(argc, argv);
    if (strcmp(argv[1], "--version") == 0) {
        printf("hirelock %s\n", hl_version());
        return CLI_OK;
    }
    const struct cli_command *command = main_find(argv[1]);
    return command ? main_run(command, argc - 1, argv + 1) : main_unknown(argv[1]);
}
