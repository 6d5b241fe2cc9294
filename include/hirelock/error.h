/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Result codes. Every call returns HL_OK (0) or one of these negative codes; a call that does I/O
 * also takes an optional hl_error, which it fills on failure only, with a sentence that a person
 * can act on.
 *
 * There are two classes. An OUTCOME is an answer to expect from a lock (busy, timed out, lost);
 * handle it where you call. A FAULT says that something else is wrong (no server, bad argument);
 * forward it.
 *
 * After HL_EUNKNOWN of a release of a lock, or of a permit of this client, that may still stand in
 * Redis; the library never reports it as held, goes on releasing it until the server answers, and
 * it ends with its lease at the latest. Any other call that ended so was done, or will be, or was
 * not; nothing is repeated behind it.
 *
 * Threads: these functions are pure; hl_error is a plain value that belongs to whoever declares it.
 */
#ifndef HIRELOCK_ERROR_H
#define HIRELOCK_ERROR_H

#include <hirelock/version.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, text, class) */
#define HL_ERROR_MAP(X)                                                                            \
    X(EBUSY, -1, "held by another owner", OUTCOME)                                                 \
    X(ETIMEDOUT, -2, "the wait time is over", OUTCOME)                                             \
    X(ECANCELED, -3, "the wait was cancelled", OUTCOME)                                            \
    X(ENOTOWNER, -4, "this owner does not hold the lock", OUTCOME)                                 \
    X(ELOST, -5, "the hold ended before its release", OUTCOME)                                     \
    X(EUNKNOWN, -6, "the request was sent, its outcome is unknown", OUTCOME)                       \
    X(EFENCED, -7, "a larger token has been there before", OUTCOME)                                \
    X(EINVAL, -20, "invalid argument", FAULT)                                                      \
    X(ENOMEM, -21, "out of memory", FAULT)                                                         \
    X(ECONN, -22, "no server can be reached", FAULT)                                               \
    X(EPROTO, -23, "the peer does not speak Redis", FAULT)                                         \
    X(ESERVER, -24, "the server refused the command", FAULT)                                       \
    X(EDENIED, -25, "not authorised", FAULT)                                                       \
    X(ECLOSED, -26, "the client is closed", FAULT)                                                 \
    X(EDEADLK, -27, "a call that would wait for itself", FAULT)                                    \
    X(EFORKED, -28, "the handle belongs to the parent process", FAULT)                             \
    X(ENOTSUP, -29, "not supported by this version", FAULT)

enum {
#define HL_ERROR_ENUM(name, value, text, class) HL_##name = (value),
    HL_ERROR_MAP(HL_ERROR_ENUM)
#undef HL_ERROR_ENUM
        HL_OK = 0
};

/* What went wrong, in words: "acquire 'stock:42': connect 10.0.0.3:6379: connection refused". Never
 * a password. */
typedef struct hl_error {
    int code;
    char text[252];
} hl_error;

/* clang-format off */
#define HL_ERROR_INIT { 0, "" }
/* clang-format on */

/*
 * The general text of a code, "held by another owner".
 *
 * Threads: any.
 * Returns: a constant string, for unknown codes too.
 */
HL_API const char *hl_err_text(int code);

/*
 * The name of a code, "HL_EBUSY".
 *
 * Threads: any.
 * Returns: a constant string, for unknown codes too.
 */
HL_API const char *hl_err_name(int code);

/*
 * Is this an answer to expect from a lock, rather than a fault?
 *
 * Threads: any.
 * Returns: true for the codes of class OUTCOME.
 */
HL_API bool hl_err_is_outcome(int code);

/*
 * May the same call succeed later, without anybody changing the program or the server's set-up?
 *
 * Threads: any.
 * Returns: true for HL_EBUSY, HL_ETIMEDOUT, HL_EUNKNOWN, HL_ENOMEM, HL_ECONN and HL_ESERVER (most
 * of what a server refuses passes; WRONGTYPE does not).
 */
HL_API bool hl_err_is_retriable(int code);

#ifdef __cplusplus
}
#endif
#endif
