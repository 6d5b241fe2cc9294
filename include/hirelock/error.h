/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Result codes. A call that can fail returns one of these negative codes when it fails, and HL_OK
 * (0) when it succeeds; hl_client_fd and hl_client_dispatch return a number from 0 then. A call
 * that does I/O also takes an optional hl_error, which it fills on failure only: with a sentence
 * that a person can act on and, when the lock is busy, with its holder.
 *
 * There are two classes. An OUTCOME is an answer to expect from a lock (busy, timed out, lost);
 * handle it where you call. A FAULT says that something else is wrong (no server, bad argument);
 * forward it. Later versions add codes: outcomes from -10 to -19, faults from -30 down. So handle
 * a code that you do not know by its class (hl_err_is_outcome).
 *
 * After HL_EINDOUBT of a release of a lock, or of a permit of this client, the key or permit may
 * still stand in Redis. The library no longer reports it as held, and repeats the release until the
 * server answers; at the latest the lease ends it. The hold may also have been lost before the
 * release. Any other call that returned HL_EINDOUBT may or may not take effect, even later; the
 * library does not repeat it.
 *
 * Threads: any; hl_error is a plain value that belongs to the caller.
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
    X(EINDOUBT, -6, "the request was sent, its outcome is in doubt", OUTCOME)                      \
    X(EFENCED, -7, "a larger token has been there before", OUTCOME)                                \
    X(EEXIST, -8, "it exists already", OUTCOME)                                                    \
    X(ENOENT, -9, "it does not exist", OUTCOME)                                                    \
    X(EINVAL, -20, "invalid argument", FAULT)                                                      \
    X(ENOMEM, -21, "out of memory", FAULT)                                                         \
    X(ECONN, -22, "no server can be reached", FAULT)                                               \
    X(EPROTO, -23, "the peer does not speak Redis", FAULT)                                         \
    X(ESERVER, -24, "the server refused the command", FAULT)                                       \
    X(EDENIED, -25, "not authorised", FAULT)                                                       \
    X(ECLOSED, -26, "the client is closed", FAULT)                                                 \
    X(EDEADLK, -27, "a call that would wait for itself", FAULT)                                    \
    X(EFORKED, -28, "the handle belongs to the parent process", FAULT)                             \
    X(ENOTSUP, -29, "not supported by this version", FAULT)                                        \
    X(EREPLICAS, -30, "too few replicas have confirmed it", FAULT)

enum {
#define HL_ERROR_ENUM(name, value, text, class) HL_##name = (value),
    HL_ERROR_MAP(HL_ERROR_ENUM)
#undef HL_ERROR_ENUM
        HL_OK = 0
};

/* The state of a lock by one reply of the server (hl_lock_inspect), or the holder that a call met
 * (hl_error). */
typedef struct hl_lock_info {
    size_t size;
    bool locked;
    bool mine;             /* held by this client, by any of its owners */
    uint32_t hold_count;   /* levels; 0 while the key rests after a release before min_hold_ms */
    int64_t lease_left_ms; /* -1: the key has no expiry (a client ran PERSIST) */
    char owner[64];        /* "<uuid>:<number>", cut when another program wrote a longer one */
    /* The holder's tag, if its client and this one have HL_CLIENT_HOLDER_INFO and the hold is older
     * than 20 ms; else empty, and 0. */
    char host[64];
    char thread[16]; /* the name of the thread that acquired; may be empty */
    int64_t pid;
    int64_t held_ms; /* the age of the hold */
    /* Of a semaphore or of permits: how many permits are available; below 0 when permits that are
     * out were taken away. Of a latch: its count. Of a lock: 0. */
    int64_t available;
} hl_lock_info;

/* clang-format off */
#define HL_LOCK_INFO_INIT                                                                          \
    { sizeof(hl_lock_info), false, false, 0, 0, "", "", "", 0, 0, 0 }
/* clang-format on */

/* The reason of a failure. The caller declares it, and need not initialise it: a failure writes all
 * of it, the reserved bytes as 0. It has 768 bytes in every version. Later versions turn `reserved`
 * into fields, and let `busy` grow into busy_reserved. */
typedef struct hl_error {
    int code;
    /* "acquire 'stock:42': connect 10.0.0.3:6379: connection refused". Never a password. */
    char text[252];
    unsigned char reserved[128];
    /* After an acquire that ended in HL_EBUSY or HL_ETIMEDOUT: the holder; busy.locked is false
     * when no answer came before the wait time was over. For permits and semaphores lease_left_ms
     * is the time until enough permits will have expired (-1: unknown). After any other failure
     * busy.locked is false. */
    hl_lock_info busy;
    unsigned char busy_reserved[384 - sizeof(hl_lock_info)];
} hl_error;

/* clang-format off */
#define HL_ERROR_INIT { 0, "", { 0 }, HL_LOCK_INFO_INIT, { 0 } }
/* clang-format on */

/*
 * The error of this thread's last failed call that takes no hl_error: the async calls,
 * hl_owner_new, hl_cancel_new, hl_client_fd, hl_client_dispatch, hl_client_stats,
 * hl_client_histogram, hl_client_close. Read it at once, and only when such a call has returned a
 * negative code: a success leaves it unchanged, and a failed call whose err was NULL may overwrite
 * it. A failure that a completion reports is in the completion's hl_error instead.
 *
 * Threads: any; each has its own.
 * Returns: never NULL; it lives as long as the thread, and the next failure overwrites it. The code
 * is 0 before the first.
 */
HL_API const hl_error *hl_err_last(void);

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
 * True if the code is an answer to expect from a lock, and not a fault.
 *
 * Threads: any.
 * Returns: true for the codes of class OUTCOME.
 */
HL_API bool hl_err_is_outcome(int code);

/*
 * True if the reason may pass without a change of the program or of the server's set-up. So a
 * program may repeat the call after a pause. Exceptions: after a failed release, or a failed
 * hl_lock_set_and_release, the hold is over unless the code is HL_ENOMEM; a repeated release then
 * returns HL_ENOTOWNER.
 *
 * Threads: any.
 * Returns: true for HL_EBUSY, HL_ETIMEDOUT, HL_ENOMEM, HL_ECONN, HL_EREPLICAS and HL_ESERVER (most
 * refusals of a server pass; WRONGTYPE does not). Never for HL_EINDOUBT or HL_EEXIST.
 */
HL_API bool hl_err_is_transient(int code);

/*
 * True if the call may have taken effect, or may still: a repeated call may take effect twice. Look
 * at the data first.
 *
 * Threads: any.
 * Returns: true for HL_EINDOUBT.
 */
HL_API bool hl_err_is_in_doubt(int code);

#ifdef __cplusplus
}
#endif
#endif
