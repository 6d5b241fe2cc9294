/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Results for people and for programs. A command makes json-c objects of what it has found; with
 * --json they are printed as they are, a line each, else as a table or as lines "title: value".
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_column {
    const char *key;   /* of the objects */
    const char *title; /* of the column */
    /* How the value is said; NULL: as it is. The text is owned by the caller, from malloc(). */
    char *(*say)(const json_object *value);
    bool is_number; /* set to the right */
};

/* A table of the objects in an array. An object without a key leaves its place empty. */
void cli_print_table(FILE *to, const json_object *rows, const struct cli_column *columns,
                     size_t count);

/* One object, a line for each column whose key it has. */
void cli_print_lines(FILE *to, const json_object *row, const struct cli_column *columns,
                     size_t count);

/* JSON on one line. */
void cli_print_json(const json_object *value);

/* Milliseconds as "1.4s", "12m08s", "3h05m"; less than 0: "no end". */
enum { CLI_MS = 32 };
void cli_write_ms(long long ms, char text[CLI_MS]);

/* The same, for cli_column.say. */
char *cli_say_ms(const json_object *value);

#endif
