/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include "base/suggest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLI_OPTIONS = 64, CLI_OPTION = 32 };

static const char *cli_name = "hirelock";

/* Those of the command, of what it shares with the others, and argp's own. The last one is {0}. */
static void cli_list_options(const struct argp *argp, struct argp_option ret_options[CLI_OPTIONS])
{
    static const struct argp_option own[] = {{.name = "help"}, {.name = "usage"}, {0}};
    const struct argp_option *const lists[] = {own, argp->options, argp->children[0].argp->options};
    size_t count = 0;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct argp_option *option = lists[i]; option && option->name; option++)
            if (count < CLI_OPTIONS - 1)
                ret_options[count++] = *option;
    ret_options[count] = (struct argp_option){0};
}

/* "--lease" or "-w": does its argument stand in the next word? */
static bool cli_takes_next(const struct argp_option *options, const char *word)
{
    bool is_long = word[1] == '-';

    for (; options->name; options++)
        if (is_long ? strcmp(word + 2, options->name) == 0
                    : word[0] == '-' && word[1] == options->key && !word[2])
            return options->arg;
    return false;
}

static void cli_suggest(const struct argp *argp, const struct argp_option *options,
                        const char *word)
{
    const char *known[CLI_OPTIONS];
    char typed[CLI_OPTION];
    size_t count = 0, length = strcspn(word, "=");

    if (length >= sizeof(typed))
        return;
    memcpy(typed, word, length);
    typed[length] = '\0';
    for (; options->name; options++) {
        if (strncmp(options->name, typed, length) == 0)
            return; /* getopt(3) knows what it begins */
        known[count++] = options->name;
    }
    const char *meant = hli_suggest(typed, known, count);
    if (!meant)
        return;
    cli_say("there is no option --%s; did you mean --%s?", typed, meant);
    argp_help(argp, stderr, ARGP_HELP_SEE, (char *)cli_name);
    exit(CLI_FAILED);
}

/* getopt(3) names an unknown option, but not the one that is meant. */
static void cli_look_at_options(const struct argp *argp, int argc, char *const *argv)
{
    struct argp_option options[CLI_OPTIONS];

    cli_list_options(argp, options);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            cli_suggest(argp, options, argv[i] + 2);
        i += cli_takes_next(options, argv[i]);
    }
}

void cli_parse(const struct cli_command *command, int argc, char **argv, void *arg)
{
    cli_name = argv[0];
    argp_err_exit_status = CLI_FAILED;
    cli_look_at_options(command->argp, argc, argv);
    if (argp_parse(command->argp, argc, argv, ARGP_IN_ORDER, NULL, arg) != 0)
        exit(CLI_FAILED);
}

error_t cli_take_name(const char **name, int key, char *word, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG && *name)
        argp_error(state, "one NAME, please");
    else if (key == ARGP_KEY_ARG)
        *name = word;
    else if (key == ARGP_KEY_END && !*name)
        argp_error(state, "which NAME?");
    else if (key != ARGP_KEY_END)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

error_t cli_take_pattern(const char **pattern, int key, char *word, struct argp_state *state)
{
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*pattern)
        argp_error(state, "one PATTERN, please; quote it for the shell");
    *pattern = word;
    return 0;
}

void cli_say(const char *format, ...)
{
    va_list words;

    va_start(words, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", cli_name);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    va_end(words);
}

long long cli_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

bool cli_has_colors(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

long long cli_read_time(const char *text)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *end;
    double number = strtod(text, &end);

    if (end == text || !(number >= 0) || number > 1e11)
        return -1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end, units[i].name) == 0)
            return number * units[i].ms <= 1e11 ? llround(number * units[i].ms) : -1;
    return -1;
}
