/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include "cli/cli.h"
#include "cli/escape.h"

#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *output_text(const json_object *row, const struct cli_column *column)
{
    json_object *value;

    if (!json_object_object_get_ex(row, column->key, &value) || !value)
        return strdup("");
    return column->say ? column->say(value) : cli_for_locale(json_object_get_string(value));
}

static void output_row(struct libscols_table *table, const json_object *row,
                       const struct cli_column *columns, size_t count)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);

    for (size_t i = 0; line && i < count; i++) {
        char *text = output_text(row, &columns[i]);
        scols_line_set_data(line, i, text); /* a copy */
        free(text);
    }
}

void cli_print_table(FILE *to, const json_object *rows, const struct cli_column *columns,
                     size_t count)
{
    struct libscols_table *table = scols_new_table();

    if (!table) {
        cli_say("there is no memory left");
        return;
    }
    for (size_t i = 0; i < count; i++)
        scols_table_new_column(table, columns[i].title, 0,
                               columns[i].is_number ? SCOLS_FL_RIGHT : 0);
    for (size_t i = 0; i < json_object_array_length(rows); i++)
        output_row(table, json_object_array_get_idx(rows, i), columns, count);
    /* It is escaped by now (escape.h). With bytes of UTF-8 in another locale libsmartcols 2.38
     * never ends; there are none. */
    scols_table_enable_noencoding(table, 1);
    scols_table_set_stream(table, to);
    if (to != stdout) /* whose width is no matter to it */
        scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
    scols_print_table(table);
    scols_unref_table(table);
}

void cli_print_lines(FILE *to, const json_object *row, const struct cli_column *columns,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!json_object_object_get_ex(row, columns[i].key, NULL))
            continue;
        char *text = output_text(row, &columns[i]);
        fprintf(to, "%-12s %s\n", columns[i].title, text ? text : "");
        free(text);
    }
}

void cli_print_json(const json_object *value)
{
    puts(json_object_to_json_string_ext((json_object *)value,
                                        JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

void cli_write_ms(long long ms, char text[CLI_MS])
{
    long long s = ms / 1000;

    if (ms < 0)
        snprintf(text, CLI_MS, "no end");
    else if (s < 60)
        snprintf(text, CLI_MS, "%lld.%llds", s, ms % 1000 / 100);
    else if (s < 3600)
        snprintf(text, CLI_MS, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, CLI_MS, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(text, CLI_MS, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

char *cli_say_ms(const json_object *value)
{
    char text[CLI_MS];

    cli_write_ms(json_object_get_int64(value), text);
    return strdup(text);
}
