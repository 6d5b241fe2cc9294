/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The wire format as far as the tests' own servers need it: where one value ends, and what a
 * command (an array of bulk strings, which a pub/sub message is too) consists of.
 */
#ifndef HL_TEST_RESP_H
#define HL_TEST_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Follows a stream of RESP2 values, in pieces of any size. All zero is the beginning. */
struct resp_scan {
    size_t open[16]; /* elements still to come, per level of nesting */
    unsigned depth;
    size_t bulk_left; /* bytes of the bulk string under way, CRLF included */
    char line[32];    /* its beginning is enough: type and length */
    size_t line_length;
    bool lost; /* not RESP, or nested too deep: ends of values are not known any more */
};

/* Takes bytes up to the end of the value under way, at most `length`, and returns how many.
 * *ret_ended says whether the value ended there. When lost, takes everything and ends nothing. */
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

/* Whether the command begins with these words ("CLIENT KILL"), in any case of letters. */
bool resp_command_begins(const struct resp_command *command, const char *words);
bool resp_command_arg_is(const struct resp_command *command, int index, const char *text);

#endif
