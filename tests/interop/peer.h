/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Helpers of tests beside a library of Go, Node.js or Python that writes the classic lock or the
 * Redlock. All tests of a program share one worker of that language; each test has masters of its
 * own (support/masters.h). An owner, `who`, has clients of its own there, and does one thing after
 * the other.
 */
#ifndef HL_INTEROP_PEER_H
#define HL_INTEROP_PEER_H

#include "support/masters.h"

/* The library that a program is about. */
struct library {
    const char *word;     /* README.md */
    const char *language; /* folder of the worker */
    const char *asks;     /* the command by which it tries */
    const char *busy;     /* in what it says when another holds */
    const char *lost;     /* in what its release says when its lease is over */
};
extern const struct library library;

/* For .init and .fini; with owners "a" and "b" at all masters. */
void peer_up_one(void);
void peer_up_five(void);
void peer_down(void);
void expect_peer_silence(void); /* closes all of its clients, too */
void peer_close(void);          /* the same, and what it has logged is forgotten */

/* Another owner: at all masters; or at the first `count`, and the others are out of reach. */
void peer_open(const char *who);
void peer_open_reaching(const char *who, size_t count);

/* An owner begins to do what README.md lists; the number. */
int peer_begin(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool peer_is_done(int number);
const char *peer_end(int number); /* its value, or "CLASS: MESSAGE" */

/* Begin and end. */
const char *peer_do(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define expect_peer(who, value, ...) check_str(peer_do((who), __VA_ARGS__), (value))
#define expect_peer_says(who, part, ...) check_has(peer_do((who), __VA_ARGS__), (part))

#endif
