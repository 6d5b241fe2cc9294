/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The queue: the waiter that a release grants to, the waiters that it skips, a grant that no client
 * receives, and a key that is no queue.
 */

#include "support/ear.h"
#include "support/process.h"
#include "two_links.h"

#include <signal.h>

static struct recorder told = RECORDER_INIT;

static const char dead[] = "0a1b2c3d-0000-4000-8000-1234567890ab";
static const char queue[] = "hirelock_queue:{stock}";

/* A waiter that is not there any more, in front of all others. */
static void queue_dead(const char *client, int number)
{
    redis_do(server, "ZADD %s %d %s:%d", queue, number, client, number);
    redis_do(server, "PEXPIRE %s 60000", queue);
}

/* A connection that listens on a client's mailbox, for a client that does not answer any more. */
static redisContext *listen_for(const char *client)
{
    char channel[64];
    snprintf(channel, sizeof channel, "hirelock:%s", client);
    return ear_open(channel);
}

/* ---- No message without the write, no write without a listener ---- */

TcpLaw(a_grant, is_not_told_before_it_is_written)
{
    contention_begin(10000, 10000);
    redisContext *ear = ear_open_unseen("hirelock:*-*"), *link = listen_for(dead);
    queue_dead(dead, 1);
    redis_do(server, "CONFIG SET min-replicas-to-write 1"); /* every write is refused */
    check_int(hl_lock_release(held, NULL), HL_EINDOUBT);
    redis_do(server, "PUBLISH hirelock:%s end", dead);
    check(strstr(ear_next(ear), " end") != NULL);
    check(strncmp(field_of(lock), hl_client_id(holder), 36) == 0);
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(strstr(ear_next(ear), dead) != NULL); /* repeated, and done */
    check(strncmp(field_of(lock), dead, 36) == 0);
    redisFree(ear);
    redisFree(link);
    contention_end();
}

TcpLaw(a_monitor, of_all_channels_makes_no_dead_waiter_look_alive)
{
    contention_begin(10000, 10000);
    redisContext *ear = ear_open_unseen("*");
    queue_dead(dead, 1);
    expect_ok(hl_lock_release(held, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    redisFree(ear);
    contention_end();
}

TcpLaw(a_grant, whose_message_is_refused_is_found_by_asking)
{
    redis_do(server, "ACL SETUSER quiet on nopass ~* +@all resetchannels &redisson*");
    hl_client *quiet = open_client(CLIENT(.username = "quiet", .password = "any"));
    hl_lock *quiets = new_lock(quiet, "stock");
    contention_begin(10000, 300);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire(quiets, NULL));
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(quiets, NULL));
    expect_held_by(waiter.client, lock, 1);
    expect_story(&told, "done HL_OK");
    check(now_ms() - before_ms < slow_ms(8000)); /* a poll, and not the lease */
    check_int(stats_of(waiter.client).grants, 0);
    contention_end();
}

/* ---- The dead in the queue ---- */

TcpLaw(dead_waiters, that_still_listen_cost_one_claim_together)
{
    contention_begin(1000, 1000); /* claims of 4,000 ms */
    redisContext *link = listen_for(dead);
    for (int i = 1; i <= 10; i++)
        queue_dead(dead, i);
    int64_t before_ms = now_ms();
    for (int turn = 0; turn < 5; turn++) {
        wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
        expect_in_queue(turn == 0 ? 11 : 1);
        expect_ok(hl_lock_release(held, NULL));
        check(recorder_wait(&told, turn + 1));
        expect_ok(hl_lock_release_as(lock, owner, NULL));
        expect_ok(hl_lock_acquire(held, NULL));
    }
    int64_t took_ms = now_ms() - before_ms;
    /* One claim for each of the ten would be 40,000 ms, and one for each turn 20,000 ms. */
    check_msg(took_ms < slow_ms(15000), "5 turns took %d ms", (int)took_ms);
    redisFree(link);
    contention_end();
}

TcpLaw(dead_waiters, of_the_releasers_own_client_are_skipped)
{
    contention_begin(10000, 10000);
    queue_dead(hl_client_id(holder), 1);
    queue_dead(hl_client_id(holder), 2);
    int64_t calls = redis_evalsha_calls(server) + 2;
    wait_async(owner, &told, ACQUIRE(.lease_ms = 20000)); /* a grant is not renewed */
    expect_in_queue(3);
    expect_calls(calls);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(redis_evalsha_calls(server), calls + 1); /* at once, not by way of the dead */
    check_int(stats_of(waiter.client).grants, 1);
    expect_in_queue(0);
    contention_end();
}

TcpLaw(dead_waiters, are_looked_at_sixteen_at_a_time_at_most)
{
    contention_begin(10000, 10000);
    for (int i = 1; i <= 100; i++)
        queue_dead(dead, i);
    redisContext *watch = watch_begin();
    expect_ok(hl_lock_release(held, NULL));
    int looked = 0;
    for (const char *at = watch_end(watch); (at = strstr(at, "\"ZPOPMIN\"")); at++)
        looked++;
    check_int(looked, 16);
    expect_free(lock);
    expect_in_queue(84);
    expect_ok(hl_lock_acquire(held, NULL)); /* finds no key, and forgets the queue */
    expect_in_queue(0);
    contention_end();
}

TcpLaw(a_queue, is_forgotten_after_ten_polls_without_a_new_member)
{
    contention_begin(10000, 1000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t left_ms = redis_int(server, "PTTL %s", queue);
    check(left_ms > 0 && left_ms <= 10000);
    contention_end();
}

/* The grandchild has the dead parent's sockets, unless it closed them as it was forked. */
static void wait_and_fork(struct process *self, void *arg)
{
    (void)arg;
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    snprintf(process_shared(self), 64, "%s", mailbox_of(client));
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        process_tell(self, 0);
        for (;;)
            pause();
    }
    *(pid_t *)((char *)process_shared(self) + 64) = pid;
    process_tell(self, 1);
    for (;;)
        pause();
}

TcpLaw(a_forked_child, does_not_make_its_dead_parent_look_alive)
{
    struct process *process = process_start(wait_and_fork, NULL);
    check(process_await(process, 0, 1, 10000) && process_await(process, 1, 1, 10000));
    const char *mailbox = process_shared(process);
    pid_t child = *(pid_t *)((char *)process_shared(process) + 64);
    check(redis_wait_subscribers(server, mailbox, 1, 10000));
    process_kill(process);
    bool is_gone = redis_wait_subscribers(server, mailbox, 0, 5000);
    kill(child, SIGKILL);
    check(is_gone);
    process_finish(process, 5000);
}

/* ---- A grant for which no call waits ---- */

/* As a release would, a minute long. */
static void grant_to_waiter(const char *field, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "g %s 1 0 60000 0 %s", field, name);
    redis_do(server, "HSET %s %s 1", name, field);
    redis_do(server, "PEXPIRE %s 60000", name);
    redis_do(server, "PUBLISH %s %s", mailbox_of(waiter.client), text);
}

static void grant_to_nobody(const char *name)
{
    char field[64];
    snprintf(field, sizeof field, "%s:4294967295999", hl_client_id(waiter.client));
    grant_to_waiter(field, name);
    check(redis_wait_int(server, 0, 5000, "EXISTS %s", name));
}

TcpLaw(a_grant, of_a_field_without_a_tenure_is_given_back)
{
    contention_begin(10000, 10000);
    expect_ok(hl_lock_release(held, NULL));
    grant_to_nobody("stock");
    grant_to_nobody("unheard-of");
    contention_end();
}

TcpLaw(a_grant, behind_the_release_of_its_field_is_given_back)
{
    contention_begin(10000, 10000);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    char field[64];
    snprintf(field, sizeof field, "%s", field_of(lock));
    redis_do(server, "DEL stock");
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    expect_kept(&waiter, waiter.commands, PROXY_DOWN); /* it has found nothing */
    grant_to_waiter(field, "stock");
    grant_to_nobody("unheard-of"); /* by then the grant before it was heard */
    check_str(field_of(lock), field);
    proxy_release(waiter.proxy, waiter.commands, PROXY_DOWN);
    expect_story(&told, "done HL_ELOST");
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    contention_end();
}

/* ---- The queue is no key of the script's, and may be anything ---- */

TcpLaw(a_queue, that_is_something_else_leaves_the_plain_lock)
{
    contention_begin(10000, 200);
    redis_do(server, "SET %s thing", queue);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 10000));
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
    contention_end();
}

TcpLaw(a_queue, that_cannot_grow_leaves_busy_busy)
{
    contention_begin(10000, 200);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redis_do(server, "CONFIG SET maxmemory 1");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, 50, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_free(lock);
    redis_do(server, "CONFIG SET maxmemory 0");
    contention_end();
}

TcpLaw(a_queue, is_not_among_the_keys_of_any_script)
{
    contention_begin(10000, 10000);
    redisContext *watch = watch_begin();
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    int scripts = 0;
    for (const char *at = watch_end(watch); (at = strstr(at, "\"EVALSHA\"")); at++) {
        check(strncmp(at + strlen("\"EVALSHA\" \"") + 40, "\" \"1\" \"stock\"", 13) == 0);
        scripts++;
    }
    check(scripts >= 2);
    contention_end();
}
