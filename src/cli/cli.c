/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *cli_name = "hirelock";

void cli_parse(const struct cli_command *command, int argc, char **argv, void *arg)
{
    cli_name = argv[0];
    argp_err_exit_status = CLI_FAILED;
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
