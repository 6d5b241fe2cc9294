/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* SIGKILL of a process that holds and of a process that waits: no code of theirs runs any more, and
 * only the server can end their hold or their wait. */
#include "process_kit.h"

#include <signal.h>

#include "support/process.h"
#include "support/redis_probe.h"

enum { NAMES = 500, ROUNDS = 2 };
enum { GO, HELD, WAITING, DONE };

static void start(void)
{
    server = redis_server_start(NULL);
}

static void stop(void)
{
    redis_server_stop(server);
}

static int64_t kill_lease_ms(void)
{
    return slow_ms(900) + 2100;
}

static hl_client *kill_open(void)
{
    hl_client_options options = kit_options(kill_lease_ms(), NULL);
    return open_client(&options);
}

static void hold_all_until_killed(struct process *self, void *arg)
{
    const int *round = arg;
    char prefix[16];
    check(process_await(self, GO, 1, 60000));
    hl_client *client = kill_open();
    snprintf(prefix, sizeof prefix, "round%d", *round);
    for (int i = 0; i < NAMES; i++)
        expect_ok(hl_lock_acquire(kit_lock_number(client, prefix, i), ERR));
    process_tell(self, HELD);
    process_await(self, DONE, 1, 60000);
}

struct grant {
    hl_lock *lock;
    hl_owner *owner;
    _Atomic int64_t at_ms; /* 0: not yet */
    atomic_int code;
};

static void grant_note(int code, const hl_error *err, void *arg)
{
    struct grant *grant = arg;
    (void)err;
    atomic_store(&grant->code, code);
    atomic_store(&grant->at_ms, now_ms());
}

static void grants_ask(hl_client *client, struct grant *grant, const char *prefix)
{
    for (int i = 0; i < NAMES; i++) {
        hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
        grant[i] = (struct grant){.lock = kit_lock_number(client, prefix, i)};
        expect_ok(hl_owner_new(client, &grant[i].owner));
        options.wait_ms = HL_WAIT_FOREVER;
        options.owner = grant[i].owner;
        expect_ok(hl_lock_acquire_async(grant[i].lock, &options, grant_note, &grant[i]));
    }
}

static void await_subscriptions(const char *prefix)
{
    char channel[64];
    for (int i = 0; i < NAMES; i++) {
        snprintf(channel, sizeof channel, "redisson_lock__channel:{%s:%d}", prefix, i);
        check(redis_wait_subscribers(server, channel, 1, 5000));
    }
}

struct bounds {
    int64_t not_before_ms, not_after_ms;
};

/* When the dead holder's leases end, as of one instant, and the poll (with its jitter) after that.
 */
static void bounds_read(struct bounds *bounds, const char *prefix)
{
    static const char read_all[] =
        "local left = {} for i = 1, tonumber(ARGV[1]) do "
        "left[i] = redis.call('PTTL', KEYS[1] .. ':' .. (i - 1)) end return left";
    const int64_t poll_ms = 260, before = now_ms();
    redisReply *left = redis_command(server, "EVAL %s 1 %s %d", read_all, prefix, NAMES);
    int64_t after = now_ms();
    check(left && left->type == REDIS_REPLY_ARRAY && left->elements == NAMES);
    for (int i = 0; i < NAMES; i++) {
        int64_t pttl = left->element[i]->integer;
        check(pttl > 0);
        bounds[i] = (struct bounds){before + pttl - 1, after + pttl + 1 + poll_ms};
    }
    freeReplyObject(left);
}

static void grants_check(struct grant *grant, const struct bounds *bounds)
{
    struct deadline deadline = deadline_of_wait(10000);
    for (int i = 0; i < NAMES; i++) {
        while (atomic_load(&grant[i].at_ms) == 0 && !deadline_is_over(deadline))
            deadline_nap();
        check_int(atomic_load(&grant[i].code), HL_OK);
        int64_t at = atomic_load(&grant[i].at_ms);
        check_msg(at >= bounds[i].not_before_ms, "granted %d ms before the dead one's lease ended",
                  (int)(bounds[i].not_before_ms - at));
        check_msg(at <= bounds[i].not_after_ms + slow_ms(6000), "granted %d ms after the poll",
                  (int)(at - bounds[i].not_after_ms));
    }
}

static void kill_one_round(hl_client *client, struct process *holder, int round)
{
    static struct grant grant[ROUNDS][NAMES];
    struct bounds bounds[NAMES];
    char prefix[16];
    snprintf(prefix, sizeof prefix, "round%d", round);
    process_tell(holder, GO);
    check(process_await(holder, HELD, 1, 20000));
    grants_ask(client, grant[round], prefix);
    await_subscriptions(prefix);
    process_kill(holder);
    bounds_read(bounds, prefix);
    grants_check(grant[round], bounds);
    for (int i = 0; i < NAMES; i++) {
        free_owner(grant[round][i].owner);
        free_lock(grant[round][i].lock);
    }
}

Test(process_kill, a_killed_holder_is_followed_within_its_lease_and_a_poll, .init = start,
     .fini = stop)
{
    struct process *holder[ROUNDS];
    int number[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        number[i] = i;
        holder[i] = process_start(hold_all_until_killed, &number[i]);
    }
    hl_client *client = kill_open();
    for (int i = 0; i < ROUNDS; i++) {
        kill_one_round(client, holder[i], i);
        check_int(process_finish(holder[i], 0), -SIGKILL);
    }
    close_client(client);
}

static void hold_one_until_told(struct process *self, void *arg)
{
    (void)arg;
    hl_client *client = kill_open();
    hl_lock *lock = new_lock(client, "one");
    expect_ok(hl_lock_acquire(lock, ERR));
    process_tell(self, HELD);
    check(process_await(self, GO, 1, 60000));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
}

static void wait_for_one(struct process *self, void *arg)
{
    (void)arg;
    check(process_await(self, GO, 1, 60000));
    hl_client *client = kill_open();
    hl_lock *lock = new_lock(client, "one");
    process_tell(self, WAITING);
    expect_ok(hl_lock_acquire(lock, ERR));
    process_tell(self, DONE);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
}

Test(process_kill, a_killed_waiter_leaves_nothing_and_disturbs_no_client, .init = start,
     .fini = stop)
{
    static const char channel[] = "redisson_lock__channel:{one}";
    enum { WAITERS = 3, KILLED = 2 };
    struct process *waiter[WAITERS];
    struct process *holder = process_start(hold_one_until_told, NULL);
    for (int i = 0; i < WAITERS; i++)
        waiter[i] = process_start(wait_for_one, NULL);
    check(process_await(holder, HELD, 1, 20000));
    for (int i = 0; i < WAITERS; i++)
        process_tell(waiter[i], GO);
    check(redis_wait_subscribers(server, channel, WAITERS, 20000));

    for (int i = 0; i < KILLED; i++)
        process_kill(waiter[i]);
    check(redis_wait_subscribers(server, channel, WAITERS - KILLED, 5000));
    check(redis_wait_clients(server, REDIS_NORMAL, 2, 5000)); /* the holder's, the waiter's */
    check(redis_wait_clients(server, REDIS_PUBSUB, 2, 5000));
    check_int(redis_int(server, "HLEN one"), 1);

    process_tell(holder, GO);
    check(process_await(waiter[KILLED], DONE, 1, 5000));
    check_int(process_finish(waiter[KILLED], 10000), 0);
    check_int(process_finish(holder, 10000), 0);
    check(redis_wait_subscribers(server, channel, 0, 5000));
    check(redis_wait_clients(server, REDIS_NORMAL, 0, 5000));
    check(redis_wait_clients(server, REDIS_PUBSUB, 0, 5000));
    check_str(redis_str(server, "KEYS *"), "");
    for (int i = 0; i < KILLED; i++)
        check_int(process_finish(waiter[i], 0), -SIGKILL);
}
