/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The command `hirelock`: what its subcommands share. They use the library as any program does, by
 * its public headers.
 *
 * Each subcommand is a `struct cli_command` in a file of its own, and a line in main.c. Its options
 * are an argp (glibc manual, "Parsing Program Options with Argp"), from which --help, the checks of
 * words and the shells' completions come.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <stdbool.h>

/* Exit statuses. Those from 124 on are as those of timeout(1) and env(1), so that a command's own
 * status can be told from ours. */
enum cli_exit {
    CLI_OK = 0,
    CLI_NO = 1,          /* the answer is no: not held, not found, something is wrong */
    CLI_LOST = 122,      /* run: the lock was lost, and the command was ended */
    CLI_NO_SERVER = 123, /* no usable server */
    CLI_CONFLICT = 124,  /* run, wait: others held it for too long */
    CLI_FAILED = 125,    /* all other failures, bad words on the command line too */
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
};

struct cli_command {
    const char *name;
    const char *summary; /* for the list of commands */
    const struct argp *argp;
    /* argv[0] is "hirelock NAME". Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* Of the command line. An unknown option ends the process with CLI_FAILED, and so does what the
 * parser refuses. The argp's one child is that of the server; `arg` is for the parser. */
void cli_parse(const struct cli_command *command, int argc, char **argv, void *arg);

/* For the parser of a command that takes one NAME: its word, and the end of the words. */
error_t cli_take_name(const char **name, int key, char *word, struct argp_state *state);

/* The same of a command that takes one PATTERN, or none. */
error_t cli_take_pattern(const char **pattern, int key, char *word, struct argp_state *state);

/* "hirelock list: <text>" on standard error, the first word being the command's. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Milliseconds on CLOCK_BOOTTIME, for deadlines. */
long long cli_now_ms(void);

/* May output be coloured? Only on a terminal, and not with NO_COLOR (no-color.org) in the
 * environment. */
bool cli_has_colors(int fd);

/* "10s", "1.5", "200ms", "5m", "2h", "1d": seconds where no unit is given, as flock(1) has them. In
 * milliseconds; -1 if it is none, or is negative. */
long long cli_read_time(const char *text);

extern const struct cli_command cli_acl;
extern const struct cli_command cli_bench;
extern const struct cli_command cli_deadlocks;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_exporter;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_list;
extern const struct cli_command cli_run;
extern const struct cli_command cli_top;
extern const struct cli_command cli_unlock;
extern const struct cli_command cli_wait;
extern const struct cli_command cli_watch;

#endif
