/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The waiter's tag tells who waits for a lock: it stands while a call waits for longer than a
 * second, and goes with the wait, however that ends.
 */

#include "lease/calls/owner.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/process.h"
#include "support/recorder.h"
#include "tags.h"

#include <stdio.h>
#include <stdlib.h>

static struct recorder told = RECORDER_INIT;

/* The key of this owner's tag: it waits for the lock "stock". */
static const char *key_of(hl_client *client, const hl_owner *owner)
{
    static _Thread_local char key[160];
    snprintf(key, sizeof key, "hirelock_waiter:{stock}:%s:%llu", hl_client_id(client),
             (unsigned long long)owner->number);
    return key;
}

static void expect_shown(hl_client *client, const hl_owner *owner)
{
    check(redis_wait_int(server, 1, 10000, "EXISTS %s", key_of(client, owner)));
}

/* It is removed: a wait that has ended left 20 s of it at least. */
static void expect_removed(const char *key)
{
    int64_t left_ms;

    while ((left_ms = redis_int(server, "PTTL %s", key)) > 0) {
        check_msg(left_ms > 10000, "%s is left to expire", key);
        deadline_nap();
    }
    check_int(left_ms, -2);
}

static void expect_gone(hl_client *client, const hl_owner *owner)
{
    expect_removed(key_of(client, owner));
}

static int64_t server_ms(void)
{
    return redis_int(server, "EVAL %s 1 stock",
                     "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)");
}

/* Somebody has the lock "stock", for as long as the law lasts. */
static void let_others_hold(void)
{
    redis_do(server, "HSET stock 0d1c2b3a-4f5e-6789-abcd-ef0123456789:1 1");
    redis_do(server, "PEXPIRE stock 600000");
}

static void wait_async(hl_lock *lock, hl_owner *owner)
{
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = owner), record_done, &told));
}

static void expect_words(hl_client *client, const hl_owner *owner, const char *thread)
{
    char host[64] = "", words[128], *end = NULL;
    int64_t before_ms = server_ms();
    expect_shown(client, owner);
    const char *text = redis_str(server, "GET %s", key_of(client, owner));
    int64_t since_ms = strtoll(text, &end, 10), now_ms = server_ms();
    gethostname(host, sizeof host - 1);
    snprintf(words, sizeof words, " %d %s %s", (int)getpid(), host, thread);
    check_str(end, words);
    check_msg(now_ms - since_ms >= 990 && since_ms <= before_ms + slow_ms(500), "%s, now %lld",
              text, (long long)now_ms);
    int64_t pttl = redis_int(server, "PTTL %s", key_of(client, owner));
    check_msg(pttl > 0 && pttl <= 30000, "PTTL %lld", (long long)pttl);
}

Law(waiter_tag, says_host_process_and_thread_and_since_when)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    let_others_hold();
    name_me("stock keeper 7");
    wait_async(new_lock(client, "stock"), owner);
    expect_words(client, owner, "stock keeper 7");
}

struct blocked {
    hl_lock *lock;
    hl_owner *owner;
};

static void block(void *arg)
{
    const struct blocked *blocked = arg;
    name_me("blocked");
    expect_ok(
        hl_lock_acquire_with(blocked->lock, ACQUIRE(.wait_ms = -1, .owner = blocked->owner), ERR));
    expect_ok(hl_lock_release_as(blocked->lock, blocked->owner, ERR));
}

Law(waiter_tag, of_a_blocked_thread_goes_when_it_has_the_lock)
{
    hl_client *client = open_client(TAGS);
    struct blocked blocked = {new_lock(client, "stock"), new_owner(client)};
    struct actor *actor = actor_start();
    hl_lock *held = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(held, ERR));
    actor_begin(actor, block, &blocked);
    expect_words(client, blocked.owner, "blocked");
    expect_ok(hl_lock_release(held, ERR));
    actor_await(actor);
    expect_gone(client, blocked.owner);
}

Law(waiter_tag, is_off_by_default)
{
    hl_client *client = open_client(NULL), *teller = open_client(TAGS);
    hl_owner *owner = new_owner(client), *tells = new_owner(teller);
    let_others_hold();
    wait_async(new_lock(client, "stock"), owner);
    wait_async(new_lock(teller, "stock"), tells);
    expect_shown(teller, tells); /* which waits for less long */
    check_int(redis_int(server, "EXISTS %s", key_of(client, owner)), 0);
}

SingleLaw(waiter_tag, costs_nothing_when_the_wait_is_short)
{
    hl_lock *lock = new_lock(open_client(TAGS), "stock");
    int64_t began_ms = now_ms();
    let_others_hold();
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(lock, 300, NULL), HL_ETIMEDOUT);
    if (now_ms() - began_ms > 900)
        skip("a wait of 300 ms took %d ms", (int)(now_ms() - began_ms));
    check_int(redis_calls(server, "set"), 0);
}

Law(waiter_tag, goes_at_each_end_of_a_wait)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *cancelled = new_owner(client), *late = new_owner(client), *served = new_owner(client);
    hl_cancel *cancel = new_cancel();
    let_others_hold();
    expect_ok(hl_lock_acquire_async(
        lock, ACQUIRE(.wait_ms = -1, .owner = cancelled, .cancel = cancel), record_done, &told));
    expect_shown(client, cancelled);
    hl_cancel_fire(cancel);
    check(recorder_wait_says(&told, "done HL_ECANCELED"));
    expect_gone(client, cancelled);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = slow_ms(3000), .owner = late),
                                    record_done, &told));
    expect_shown(client, late);
    check(recorder_wait_says(&told, "done HL_ETIMEDOUT"));
    expect_gone(client, late);
    wait_async(lock, served);
    expect_shown(client, served);
    redis_do(server, "DEL stock");
    check(recorder_wait_says(&told, "done HL_OK"));
    expect_gone(client, served);
}

Law(waiter_tag, goes_when_the_client_is_closed)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    char key[160];
    let_others_hold();
    wait_async(new_lock(client, "stock"), owner);
    expect_shown(client, owner);
    snprintf(key, sizeof key, "%s", key_of(client, owner));
    close_client(client);
    expect_removed(key);
}

enum { CROWD = 10 };

Law(waiter_tag, is_each_waiters_own)
{
    hl_client *clients[] = {open_client(TAGS), open_client(TAGS)};
    hl_owner *owners[CROWD];
    let_others_hold();
    for (int i = 0; i < CROWD; i++) {
        owners[i] = new_owner(clients[i % 2]);
        wait_async(new_lock(clients[i % 2], "stock"), owners[i]);
    }
    for (int i = 0; i < CROWD; i++)
        expect_shown(clients[i % 2], owners[i]);
    redis_do(server, "DEL stock"); /* one of them gets it, and nobody releases */
    check(recorder_wait(&told, 1));
    int shown = CROWD;
    for (struct deadline deadline = deadline_in(5000); shown != CROWD - 1; deadline_nap()) {
        check_msg(!deadline_is_over(deadline), "%d are shown", shown);
        shown = 0;
        for (int i = 0; i < CROWD; i++)
            shown += (int)redis_int(server, "EXISTS %s", key_of(clients[i % 2], owners[i]));
    }
}

static void expect_shown_of(hl_lock_kind kind)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    wait_async(new_kind(client, "stock", kind), owner);
    expect_shown(client, owner);
    close_client(client);
}

/* Whoever may wait for a holder with a tag. */
Law(waiter_tag, is_of_each_kind_with_one_holder_and_of_readers)
{
    let_others_hold();
    expect_shown_of(HL_LOCK_FAIR);
    expect_shown_of(HL_LOCK_FENCED);
    expect_shown_of(HL_LOCK_SPIN);
    redis_do(server, "HSET stock mode write");
    redis_do(server, "HDEL stock 0d1c2b3a-4f5e-6789-abcd-ef0123456789:1");
    redis_do(server, "HSET stock 0d1c2b3a-4f5e-6789-abcd-ef0123456789:1:write 1");
    expect_shown_of(HL_LOCK_WRITE);
    expect_shown_of(HL_LOCK_READ);
}

Law(waiter_tag, is_of_the_member_for_which_a_multi_lock_waits)
{
    hl_client *client = open_client(TAGS);
    hl_lock *members[] = {new_lock(client, "area"), new_lock(client, "stock")}, *both = NULL;
    hl_owner *owner = new_owner(client);
    let_others_hold();
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    name_me("multi");
    wait_async(keep_lock(both), owner);
    expect_words(client, owner, "multi");
    redis_do(server, "DEL stock");
    check(recorder_wait_says(&told, "done HL_OK"));
    expect_gone(client, owner);
}

/* Its key is gone by its time, or with a server that kept the lock. */
Law(waiter_tag, is_written_again_while_the_wait_lasts)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    let_others_hold();
    wait_async(new_lock(client, "stock"), owner);
    expect_shown(client, owner);
    redis_do(server, "DEL %s", key_of(client, owner));
    check(redis_wait_int(server, 1, 30000, "EXISTS %s", key_of(client, owner)));
    check_int(recorder_count(&told), 0);
}

/* The wait goes on over the outage, and so does what it shows. */
SingleLaw(waiter_tag, is_written_by_a_wait_that_outlives_its_server)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    let_others_hold();
    redis_do(server, "SAVE");
    wait_async(new_lock(client, "stock"), owner);
    redis_server_kill(server);
    redis_server_restart(server);
    check(redis_wait_int(server, 1, 30000, "EXISTS %s", key_of(client, owner)));
    check_int(recorder_count(&told), 0);
}

Law(waiter_tag, that_cannot_be_written_harms_no_wait)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock"), *later = new_lock(open_client(TAGS), "later");
    hl_owner *owner = new_owner(client);
    let_others_hold();
    redis_do(server, "ACL SETUSER default -set");
    wait_async(lock, owner);
    redis_do(server, "HSET later 0d1c2b3a-4f5e-6789-abcd-ef0123456789:1 1");
    redis_do(server, "PEXPIRE later 600000");
    expect_outcome(hl_lock_acquire_for(later, slow_ms(1500), NULL), HL_ETIMEDOUT);
    redis_do(server, "ACL SETUSER default +set");
    check_int(redis_int(server, "EXISTS %s", key_of(client, owner)), 0);
    redis_do(server, "DEL stock");
    check(recorder_wait_says(&told, "done HL_OK"));
    expect_ok(hl_lock_release_as(lock, owner, ERR));
}

static bool was_refused(void *arg)
{
    redisReply *log = redis_command(server, "ACL LOG");
    bool has_one = log && log->type == REDIS_REPLY_ARRAY && log->elements > 0;
    (void)arg;
    freeReplyObject(log);
    return has_one;
}

SingleLaw(waiter_tag, that_may_not_be_written_again_is_removed)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    let_others_hold();
    wait_async(lock, owner);
    expect_shown(client, owner);
    redis_do(server, "ACL LOG RESET");
    redis_do(server, "ACL SETUSER default -set");
    check(wait_until(was_refused, NULL, 30000));
    redis_do(server, "DEL stock");
    check(recorder_wait_says(&told, "done HL_OK"));
    expect_gone(client, owner);
    expect_ok(hl_lock_release_as(lock, owner, ERR));
}

struct nesting {
    hl_lock *lock;
    int64_t cpu_ms;
    int code;
};

static int64_t cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void nest(void *arg)
{
    struct nesting *nesting = arg;
    expect_ok(hl_lock_acquire_with(nesting->lock, ACQUIRE(.lease_ms = 60000), ERR));
    redis_server_freeze(server);
    int64_t before_ms = cpu_ms();
    nesting->code =
        hl_lock_acquire_with(nesting->lock, ACQUIRE(.wait_ms = -1, .lease_ms = 120000), NULL);
    nesting->cpu_ms = cpu_ms() - before_ms;
    redis_server_thaw(server);
}

/* It waits for the server's answer, not in the line; and it sleeps meanwhile. */
SingleLaw(waiter_tag, is_none_of_a_nested_call)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO,
                                           .outage_timeout_ms = 4000, .request_timeout_ms = 10000));
    struct nesting nesting = {.lock = new_lock(client, "stock")};
    struct actor *actor = actor_start();
    actor_begin(actor, nest, &nesting);
    actor_await(actor);
    expect_outcome(nesting.code, HL_ECONN);
    check_msg(nesting.cpu_ms < 150, "%d ms of processor time", (int)nesting.cpu_ms);
}

enum { WAITS = 0 };

struct doomed {
    char key[160];
};

static void wait_until_killed(struct process *self, void *arg)
{
    hl_client *client = open_client(TAGS);
    hl_owner *owner = new_owner(client);
    struct doomed *doomed = process_shared(self);
    (void)arg;
    wait_async(new_lock(client, "stock"), owner);
    expect_shown(client, owner);
    snprintf(doomed->key, sizeof doomed->key, "%s", key_of(client, owner));
    process_tell(self, WAITS);
    process_await(self, WAITS + 1, 1, 60000);
}

Law(waiter_tag, of_a_killed_process_expires)
{
    let_others_hold();
    struct process *process = process_start(wait_until_killed, NULL);
    const struct doomed *doomed = process_shared(process);
    check(process_await(process, WAITS, 1, 30000));
    process_kill(process);
    check_int(redis_int(server, "EXISTS %s", doomed->key), 1);
    int64_t pttl = redis_int(server, "PTTL %s", doomed->key);
    check_msg(pttl > 0 && pttl <= 30000, "PTTL %lld", (long long)pttl);
    process_finish(process, 10000);
}

/* So the waiter's tag of one lock can be joined to the holder's tag of another. */
Law(waiter_tag, and_the_holders_name_the_owner_by_one_number)
{
    hl_client *client = open_client(TAGS);
    hl_lock *other = new_lock(client, "other");
    char begins[96];
    for (int i = 0; i < 5; i++)
        new_owner(client); /* owners and tenures are counted apart */
    hl_owner *owner = new_owner(client);
    let_others_hold();
    expect_ok(hl_lock_acquire_with(other, ACQUIRE(.wait_ms = 0, .owner = owner), ERR));
    wait_async(new_lock(client, "stock"), owner);
    expect_shown(client, owner);
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{other}"));
    snprintf(begins, sizeof begins, "%s %llu ", redis_str(server, "HKEYS other"),
             (unsigned long long)owner->number);
    const char *tag = redis_str(server, "GET hirelock_holder:{other}");
    check_msg(strncmp(tag, begins, strlen(begins)) == 0, "%s, not %s", tag, begins);
}

Test(waiter_tag, is_no_locks_name, .init = server_up, .fini = server_down)
{
    hl_lock *lock = NULL;
    expect_outcome(hl_lock_new(open_client(NULL), "hirelock_waiter:{a}:b:1", &lock, NULL),
                   HL_EINVAL);
}
