/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Helpers of tests beside Redisson. All tests of a program share one JVM, and servers if they are
 * more than one (servers.h); each test has Redisson clients of its own, begun by redisson_up() and
 * ended by redisson_down(), which fails the test when Java has logged a warning or an error.
 *
 * `who` is a thread of a client, "CLIENT/THREAD", or "THREAD" of the client "java". An action is
 * one of those of README.md: "lock.tryLock stock 500 -1".
 */
#ifndef HL_INTEROP_REDISSON_H
#define HL_INTEROP_REDISSON_H

#include <stdbool.h>
#include <stdint.h>

#include "java.h"
#include "servers.h"

/* The lease of a Redisson client's watchdog, by default, and what is long before its end. */
enum { REDISSON_LEASE_MS = 30000, LONG_BEFORE_MS = 15000 };

/* A test with a client "java" with defaults, which fails when Java logs something. The body checks
 * that, because Criterion passes a test whose .fini fails. Of the laws in files that are parts of
 * several programs, this is tried at servers of all kinds, and a RedissonLaw at one server only. */
#define EverywhereLaw(suite, name) LAW_WITH(redisson_up, suite, name)
#define LAW_WITH(up, suite, name)                                                                  \
    static void suite##_##name##_law(void);                                                        \
    Test(suite, name, .init = up, .fini = redisson_down)                                           \
    {                                                                                              \
        suite##_##name##_law();                                                                    \
        expect_silence();                                                                          \
    }                                                                                              \
    static void suite##_##name##_law(void)

#ifdef HL_INTEROP_SEVERAL_SERVERS
#define RedissonLaw(suite, name)                                                                   \
    __attribute__((unused)) static void suite##_##name##_law(void);                                \
    static void suite##_##name##_law(void)
#else
#define RedissonLaw(suite, name) EverywhereLaw(suite, name)
#endif

/* A test that breaks its servers; of a cluster without sharded messages. Java may log what it likes
 * then. */
#define BreakingLaw(suite, name) BREAKING_LAW_WITH(redisson_up_own, suite, name)
#define PlainLaw(suite, name) BREAKING_LAW_WITH(redisson_up_plain, suite, name)
#define BREAKING_LAW_WITH(up, suite, name)                                                         \
    static void suite##_##name##_law(void);                                                        \
    Test(suite, name, .init = up, .fini = redisson_down)                                           \
    {                                                                                              \
        suite##_##name##_law();                                                                    \
        close_all();                                                                               \
        redisson_take_log();                                                                       \
    }                                                                                              \
    static void suite##_##name##_law(void)

void redisson_up(void);
void redisson_up_own(void); /* with servers of the test's own */
void redisson_up_plain(void);
void close_all(void);      /* of the clients in the JVM that all tests share */
void expect_silence(void); /* closes all of Java's clients, too */
void redisson_down(void);

/* Another client, or the first one anew; gives its id. watchdog_ms 0: the default. */
const char *redisson_open(const char *client, int64_t watchdog_ms);
void redisson_close(const char *client);

/* The same in a JVM of the test's own: its client "other", which the test can kill. */
void redisson_open_apart(int64_t watchdog_ms);
void redisson_kill_apart(void);

/* Begins an action, and returns its number; the action ends by itself. */
int redisson_begin(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool redisson_is_done(int number);
const char *redisson_end(int number);        /* its value; an exception fails the test */
const char *redisson_end_thrown(int number); /* "CLASS: MESSAGE"; a value fails the test */
int64_t redisson_ended_ms(int number);       /* when, by monotonic_ms() */

/* Begin and end. */
const char *redisson_do(const char *who, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int64_t redisson_number(const char *who, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void redisson_interrupt(const char *who);

/* Its value, or the class that it throws. */
#define expect_redisson(who, value, ...) check_str(redisson_do((who), __VA_ARGS__), (value))
#define expect_thrown(number, class)                                                               \
    check_msg(strncmp(redisson_end_thrown(number), (class), strlen(class)) == 0, "%s threw %s",    \
              #number, redisson_end_thrown(number))

/* How many of both sides listen to it; and so many do, soon. */
int listeners(const char *channel);
void expect_listening(const char *channel, int n);

/* A thread of Java's waits, and has gone to sleep over it, soon. */
void expect_asleep(const char *who);

/* A client whose waiters are woken by messages, for by itself it would look too late. */
hl_client *open_client_that_hardly_polls(void);

/* Checks that a wait that ended at then_ms was woken by the event at since_ms, and did not sleep
 * until the lease's end. */
void expect_woken(int64_t then_ms, int64_t since_ms);

int64_t monotonic_ms(void);

/* Returns the log, which then does not fail the test. */
const char *redisson_take_log(void);

#endif
