/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The queue: to whom a release grants, whom it skips, and what becomes of a grant that nobody hears
 * or of a queue that is none; by the numbers of the traps.
 */

#include "support/process.h"
#include "support/redis_link.h"
#include "two_links.h"

#include <signal.h>

#define Law(suite, name) Test(suite, name, .init = server_up_tcp, .fini = server_down)

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
    redisContext *link = redis_link_connect(redis_server_socket(server));
    check(link != NULL);
    redisReply *reply = redisCommand(link, "SUBSCRIBE hirelock:%s", client);
    check(reply && reply->type == REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
    return link;
}

/* ---- F3: no message without the write, no write without a listener ---- */

Law(f3_a_grant, is_not_told_before_it_is_written)
{
    contest_begin(10000, 10000);
    redisContext *ear = ear_open("hirelock:*-*"), *link = listen_for(dead);
    queue_dead(dead, 1);
    redis_do(server, "CONFIG SET min-replicas-to-write 1"); /* every write is refused */
    check_int(hl_lock_release(held, NULL), HL_EUNKNOWN);
    redis_do(server, "PUBLISH hirelock:%s end", dead);
    check(strstr(ear_next(ear, 5000), " end") != NULL);
    check(strncmp(field_of(lock), hl_client_id(holder), 36) == 0);
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(strstr(ear_next(ear, 5000), dead) != NULL); /* repeated, and done */
    check(strncmp(field_of(lock), dead, 36) == 0);
    redisFree(ear);
    redisFree(link);
    contest_end();
}

Law(f3_a_monitor, of_all_channels_makes_no_dead_waiter_look_alive)
{
    contest_begin(10000, 10000);
    redisContext *ear = ear_open("*");
    queue_dead(dead, 1);
    expect_ok(hl_lock_release(held, NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    redisFree(ear);
    contest_end();
}

Law(f3_a_grant, whose_message_is_refused_is_found_by_asking)
{
    redis_do(server, "ACL SETUSER quiet on nopass ~* +@all resetchannels &redisson*");
    hl_client *quiet = open_client(CLIENT(.username = "quiet", .password = "any"));
    hl_lock *quiets = new_lock(quiet, "stock");
    contest_begin(10000, 300);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire(quiets, NULL));
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(quiets, NULL));
    expect_held_by(waiter.client, lock, 1);
    expect_story(&told, "done HL_OK");
    check(now_ms() - before_ms < slow_ms(1000)); /* a poll */
    check_int(stats_of(waiter.client).grants, 0);
    contest_end();
}

/* ---- F8: the dead in the queue ---- */

Law(f8_dead_waiters, that_still_listen_cost_one_claim_together)
{
    contest_begin(100, 100); /* claims of 400 ms */
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
    check_msg(took_ms < 2 * 400 + slow_ms(300), "5 turns took %d ms", (int)took_ms);
    redisFree(link);
    contest_end();
}

Law(f8_dead_waiters, of_the_releasers_own_are_skipped)
{
    contest_begin(1000, 10000);
    queue_dead(hl_client_id(holder), 1);
    queue_dead(hl_client_id(holder), 2);
    int64_t calls = redis_evalsha_calls(server) + 2;
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(3);
    expect_calls(calls);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(redis_evalsha_calls(server), calls + 1); /* at once, not by way of the dead */
    check_int(stats_of(waiter.client).grants, 1);
    expect_in_queue(0);
    contest_end();
}

Law(f8_dead_waiters, are_looked_at_sixteen_at_a_time_at_most)
{
    contest_begin(10000, 10000);
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
    contest_end();
}

Law(f8_a_queue, is_forgotten_after_ten_polls_without_a_new_member)
{
    contest_begin(10000, 100);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t left_ms = redis_int(server, "PTTL %s", queue);
    check(left_ms > 0 && left_ms <= 1000);
    contest_end();
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

Law(f8_a_forked_child, does_not_make_its_dead_parent_look_alive)
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

/* ---- F11: a grant that nobody waits for ---- */

Law(f11_a_grant, of_a_field_that_nobody_knows_is_given_back)
{
    contest_begin(10000, 10000);
    expect_ok(hl_lock_release(held, NULL));
    static const char *const names[] = {"stock", "unheard-of"};
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, "g %s:4294967295999 1 0 60000 0 %s",
                 hl_client_id(waiter.client), names[i]);
        redis_do(server, "HSET %s %s:4294967295999 1", names[i], hl_client_id(waiter.client));
        redis_do(server, "PEXPIRE %s 60000", names[i]);
        redis_do(server, "PUBLISH %s %s", mailbox_of(waiter.client), text);
        check(redis_wait_int(server, 0, 5000, "EXISTS %s", names[i]));
    }
    contest_end();
}

/* ---- F12: the queue is no key of the script's, and may be anything ---- */

Law(f12_a_queue, that_is_something_else_leaves_the_plain_lock)
{
    contest_begin(10000, 200);
    redis_do(server, "SET %s thing", queue);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 10000));
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
    contest_end();
}

Law(f12_a_queue, that_cannot_grow_leaves_busy_busy)
{
    contest_begin(10000, 200);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redis_do(server, "CONFIG SET maxmemory 1");
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, 50, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(held, NULL));
    expect_free(lock);
    redis_do(server, "CONFIG SET maxmemory 0");
    contest_end();
}

Law(f12_a_queue, is_not_among_the_keys_of_any_script)
{
    contest_begin(10000, 10000);
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
    contest_end();
}
