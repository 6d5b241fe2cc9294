/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the fair lock's laws: a server whose lock "stock" is fair, its queue as Redisson
 * sees it, waiters in processes of their own and in threads. Every law leaves the queue as if it
 * had never been.
 */
#ifndef HL_TEST_FAIR_KIT_H
#define HL_TEST_FAIR_KIT_H

#include "support/actor.h"
#include "support/ear.h"
#include "support/kit.h"
#include "support/process.h"

#define FAIR_QUEUE "redisson_lock_queue:{stock}"
#define FAIR_ENDS "redisson_lock_timeout:{stock}"
#define FAIR_SIGNS "hirelock_fair:{stock}"
#define FAIR_CHANNEL "redisson_lock__channel:{stock}:"

/* What is checked after the test's end fails no test, so it is checked at the end of its body. */
#define FairLaw(suite, name) FairLawWith(suite, name, fair_up, fair_check_gone)
#define FairLawWith(suite, name, up, checked)                                                      \
    static void law_##suite##_##name(void);                                                        \
    Test(suite, name, .init = up, .fini = server_down)                                             \
    {                                                                                              \
        law_##suite##_##name();                                                                    \
        checked();                                                                                 \
    }                                                                                              \
    static void law_##suite##_##name(void)

/* new_lock() makes a fair one from now on. */
static inline void fair_up(void)
{
    setenv("HL_TEST_HANDLE", "fair", 1);
    server_up();
}

/* No key is left. A wait that was given up may leave the queue a little later than its call. */
static inline void fair_check_gone(void)
{
    static const char *const patterns[] = {"redisson_lock_queue*", "redisson_lock_timeout*",
                                           "hirelock_*"};
    for (int i = 0; i < 3; i++) {
        struct deadline deadline = deadline_of_wait(5000);
        while (strcmp(redis_str(server, "KEYS %s", patterns[i]), "") != 0) {
            check_msg(!deadline_is_over(deadline), "%s is left",
                      redis_str(server, "KEYS %s", patterns[i]));
            deadline_nap();
        }
    }
}

/* Soon so many wait for "stock", in both of Redisson's keys. */
static inline void expect_queued(int n)
{
    check_msg(redis_wait_int(server, n, 10000, "LLEN " FAIR_QUEUE), "%s queue, not %d",
              redis_str(server, "LRANGE " FAIR_QUEUE " 0 -1"), n);
    check_int(redis_int(server, "ZCARD " FAIR_ENDS), n);
}

/* Who stands there, from 0; borrowed like redis_str(). */
static inline const char *queued(int place)
{
    return redis_str(server, "LINDEX " FAIR_QUEUE " %d", place);
}

/* Its owner has asked again since it subscribed: what is published now, it hears. */
static inline void expect_listens(const char *field)
{
    char channel[160];
    snprintf(channel, sizeof channel, FAIR_CHANNEL "%s", field);
    check_msg(redis_wait_subscribers(server, channel, 1, 5000), "nobody listens to %s", channel);
}

/* So it is not taken for dead. */
static inline redisContext *fair_listens(const char *field)
{
    char channel[160];
    snprintf(channel, sizeof channel, FAIR_CHANNEL "%s", field);
    return ear_open(channel);
}

/* A process of one waiter. */
enum { FAIR_GO, FAIR_HELD, FAIR_LET_GO };

struct fair_waiter {
    int64_t poll_ms;
    struct process *process;
};

static inline void fair_wait_in_process(struct process *self, void *arg)
{
    const struct fair_waiter *waiter = arg;
    check(process_await(self, FAIR_GO, 1, 60000));
    hl_client *client = open_client(CLIENT(.poll_ms = waiter->poll_ms));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    process_tell(self, FAIR_HELD);
    check(process_await(self, FAIR_LET_GO, 1, 60000));
    expect_ok(hl_lock_release(lock, NULL));
    close_client(client);
}

/* Before the test has other threads. */
static inline void fair_waiter_start(struct fair_waiter *waiter, int64_t poll_ms)
{
    waiter->poll_ms = poll_ms;
    waiter->process = process_start(fair_wait_in_process, waiter);
}

/* It is the nth in the queue then. */
static inline void fair_waiter_queue(struct fair_waiter *waiter, int n)
{
    process_tell(waiter->process, FAIR_GO);
    expect_queued(n);
    expect_listens(queued(n - 1));
}

static inline void fair_waiter_expect_turn(struct fair_waiter *waiter)
{
    check(process_await(waiter->process, FAIR_HELD, 1, 20000));
}

static inline void fair_waiter_end(struct fair_waiter *waiter)
{
    process_tell(waiter->process, FAIR_LET_GO);
    check_int(process_finish(waiter->process, 20000), 0);
}

static inline void fair_waiter_kill(struct fair_waiter *waiter)
{
    process_kill(waiter->process);
    check_int(process_finish(waiter->process, 20000), -9);
}

/*
 * The scene of most laws: one client holds `held`, another is to wait for `lock`, and polls so
 * often, or too seldom for it to matter.
 */
static hl_client *holder, *waiter;
static hl_lock *held, *lock;

static inline void begin_polling(int64_t poll_ms)
{
    holder = open_client(CLIENT(.outage_timeout_ms = 60000));
    waiter = open_client(CLIENT(.poll_ms = poll_ms, .outage_timeout_ms = 60000));
    held = new_lock(holder, "stock");
    lock = new_lock(waiter, "stock");
    expect_ok(hl_lock_acquire(held, NULL));
}

static inline void begin(void)
{
    begin_polling(10000);
}

/* A thread that waits, and is so many-th in the queue then. */
static inline struct actor *wait_as(int place, hl_lock *of, int64_t wait_ms)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, of, ACQUIRE(.wait_ms = wait_ms));
    expect_queued(place);
    expect_listens(queued(place - 1));
    return actor;
}

static inline void expect_turn(struct actor *actor, hl_lock *of)
{
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, of, NULL));
}

#endif
