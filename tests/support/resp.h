/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * RESP as far as the tests' own servers need it: finds the end of a value, and parses a command (an
 * array of bulk strings, as a pub/sub message is too).
 */
#ifndef HL_TEST_RESP_H
#define HL_TEST_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Follows a stream of RESP2 values that comes in pieces of any size. All zero: the beginning. */
struct resp_scan {
    size_t open[16]; /* elements still to come, per level of nesting */
    unsigned depth;
    size_t bulk_left; /* bytes of the bulk string under way, CRLF included */
    char line[32];    /* its beginning is enough: type and length */
    size_t line_length;
    bool lost; /* not RESP, or nested too deep: no end of a value is found any more */
};

/* Takes bytes up to the end of the value under way, at most `length`, and returns their number.
 * *ret_ended: the value ended there. After .lost it takes all bytes and finds no end. */
size_t resp_scan_take(struct resp_scan *scan, const char *bytes, size_t length, bool *ret_ended);
bool resp_scan_is_between(const struct resp_scan *scan); /* values; the next byte begins one */

enum { RESP_MAX_ARGS = 512 };
struct resp_command {
    int argc;
    const char *argv[RESP_MAX_ARGS]; /* borrowed from the bytes parsed; not terminated */
    size_t length[RESP_MAX_ARGS];
};

/* Bytes used by the command at the beginning of `bytes`; 0: incomplete; -1: no command. */
ssize_t resp_command_parse(struct resp_command *command, const char *bytes, size_t length);

/* True if the command begins with these words ("CLIENT KILL"), in upper or lower case. */
bool resp_command_begins(const struct resp_command *command, const char *words);
bool resp_command_arg_is(const struct resp_command *command, int index, const char *text);

#endif
