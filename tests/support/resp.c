/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A scanner that only counts, and a parser for the one shape that commands have. */
#include "resp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One value is complete: so may be the arrays around it. */
static bool resp_scan_close_value(struct resp_scan *scan)
{
    while (scan->depth > 0 && --scan->open[scan->depth - 1] == 0)
        scan->depth--;
    return scan->depth == 0;
}

static bool resp_scan_open_array(struct resp_scan *scan, long elements)
{
    if (elements <= 0)
        return resp_scan_close_value(scan);
    if (scan->depth == sizeof scan->open / sizeof scan->open[0]) {
        scan->lost = true;
        return false;
    }
    scan->open[scan->depth++] = (size_t)elements;
    return false;
}

/* A line is complete; true when it also completes the value. */
static bool resp_scan_line(struct resp_scan *scan)
{
    scan->line[scan->line_length] = '\0';
    scan->line_length = 0;
    long number = strtol(scan->line + 1, NULL, 10);
    switch (scan->line[0]) {
    case '+':
    case '-':
    case ':':
        return resp_scan_close_value(scan);
    case '$':
        if (number < 0)
            return resp_scan_close_value(scan);
        scan->bulk_left = (size_t)number + 2;
        return false;
    case '*':
        return resp_scan_open_array(scan, number);
    default:
        scan->lost = true;
        return false;
    }
}

static size_t resp_scan_bulk(struct resp_scan *scan, size_t length, bool *ret_ended)
{
    size_t taken = length < scan->bulk_left ? length : scan->bulk_left;
    scan->bulk_left -= taken;
    if (scan->bulk_left == 0)
        *ret_ended = resp_scan_close_value(scan);
    return taken;
}

size_t resp_scan_take(struct resp_scan *scan, const char *bytes, size_t length, bool *ret_ended)
{
    size_t taken = 0;
    *ret_ended = false;
    while (taken < length && !*ret_ended && !scan->lost) {
        if (scan->bulk_left > 0) {
            taken += resp_scan_bulk(scan, length - taken, ret_ended);
            continue;
        }
        char byte = bytes[taken++];
        if (scan->line_length < sizeof scan->line - 1)
            scan->line[scan->line_length++] = byte;
        if (byte == '\n')
            *ret_ended = resp_scan_line(scan);
    }
    return scan->lost ? length : taken;
}

bool resp_scan_is_between(const struct resp_scan *scan)
{
    return scan->depth == 0 && scan->bulk_left == 0 && scan->line_length == 0 && !scan->lost;
}

/* Reads "<type><number>\r\n" at *at and moves behind it: 1 done, 0 incomplete, -1 something else.
 */
static int resp_read_count(char type, const char **at, const char *end, long *ret_number)
{
    char digits[24];
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
    if (!line_end)
        return end - *at < (ptrdiff_t)sizeof digits ? 0 : -1;
    size_t length = (size_t)(line_end - *at);
    if (length < 3 || length >= sizeof digits || **at != type || line_end[-1] != '\r')
        return -1;
    memcpy(digits, *at + 1, length - 2);
    digits[length - 2] = '\0';
    char *stop = NULL;
    *ret_number = strtol(digits, &stop, 10);
    *at = line_end + 1;
    return *stop == '\0' && *ret_number >= 0 ? 1 : -1;
}

static int resp_read_bulk(struct resp_command *command, const char **at, const char *end)
{
    long length = 0;
    int result = resp_read_count('$', at, end, &length);
    if (result != 1)
        return result;
    if (end - *at < length + 2)
        return 0;
    command->argv[command->argc] = *at;
    command->length[command->argc++] = (size_t)length;
    *at += length + 2;
    return 1;
}

ssize_t resp_command_parse(struct resp_command *command, const char *bytes, size_t length)
{
    const char *at = bytes, *end = bytes + length;
    long count = 0;
    command->argc = 0;
    int result = resp_read_count('*', &at, end, &count);
    if (result == 1 && (count < 1 || count > RESP_MAX_ARGS))
        return -1;
    while (result == 1 && command->argc < count)
        result = resp_read_bulk(command, &at, end);
    return result == 1 ? at - bytes : result;
}

bool resp_command_arg_is(const struct resp_command *command, int index, const char *text)
{
    return index < command->argc && command->length[index] == strlen(text) &&
           strncasecmp(command->argv[index], text, strlen(text)) == 0;
}

bool resp_command_begins(const struct resp_command *command, const char *words)
{
    for (int i = 0; *words; i++) {
        size_t length = strcspn(words, " ");
        if (i >= command->argc || command->length[i] != length ||
            strncasecmp(command->argv[i], words, length) != 0)
            return false;
        words += length + (words[length] == ' ');
    }
    return true;
}
