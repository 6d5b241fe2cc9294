/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* No token, no hold: what becomes of an acquire when the server does not count. */

#include "support/actor.h"
#include "support/kinds.h"
#include "support/kit.h"

#define COUNTER "redisson_lock_token:{stock}"

enum { OUTAGE_MS = 300 };

static hl_lock *fenced, *rivals;
static hl_error err;

static hl_lock *new_fenced(hl_client *client)
{
    hl_lock *lock = NULL;
    expect_ok(fenced_lock_new(client, "stock", NULL, &lock, NULL));
    return keep_lock(lock);
}

static hl_client *begin(const hl_client_options *options)
{
    hl_client *client = open_client(options);
    fenced = new_fenced(client);
    return client;
}

/* At once, with the server's own words; and nothing is held. */
static void expect_refused_at_once(int code, const char *says)
{
    int64_t before_ms = now_ms();
    expect_outcome(hl_lock_acquire_for(fenced, 60000, &err), code);
    check(now_ms() - before_ms < slow_ms(5000));
    check_msg(strstr(err.text, "acquire 'stock': ") == err.text && strstr(err.text, says), "%s",
              err.text);
    check_int(hl_lock_token(fenced, NULL), 0);
    check(!hl_lock_is_held(fenced, NULL));
    expect_free(fenced);
}

Law(a_counter_of_another_type, is_a_clear_error_and_nothing_is_held)
{
    begin(NULL);
    redis_do(server, "LPUSH " COUNTER " 1");
    expect_refused_at_once(HL_ESERVER, "WRONGTYPE");
    redis_do(server, "DEL " COUNTER);
    expect_ok(hl_lock_acquire(fenced, NULL));
    check_int(hl_lock_token(fenced, NULL), 1);
}

Law(a_counter_that_is_no_number, is_a_clear_error_and_nothing_is_held)
{
    begin(NULL);
    redis_do(server, "SET " COUNTER " junk");
    expect_refused_at_once(HL_ESERVER, "not an integer");
    redis_do(server, "SET " COUNTER " 1.5");
    expect_refused_at_once(HL_ESERVER, "not an integer");
    check_str(redis_str(server, "GET " COUNTER), "1.5");
}

Law(a_counter_that_is_used_up, is_a_clear_error_and_nothing_is_held)
{
    begin(NULL);
    redis_do(server, "SET " COUNTER " 9223372036854775806");
    expect_ok(hl_lock_acquire(fenced, NULL));
    check(hl_lock_token(fenced, NULL) == INT64_MAX);
    expect_ok(hl_lock_release(fenced, NULL));
    expect_refused_at_once(HL_ESERVER, "overflow");
    check_str(redis_str(server, "GET " COUNTER), "9223372036854775807");
}

Law(a_user_without_the_right_to_count, is_told_so_and_holds_nothing)
{
    begin(NULL);
    redis_do(server, "ACL SETUSER default -incrby");
    expect_refused_at_once(HL_EDENIED, "");
    redis_do(server, "ACL SETUSER default +incrby -get");
    expect_refused_at_once(HL_EDENIED, "");
    redis_do(server, "ACL SETUSER default +get");
    expect_ok(hl_lock_acquire(fenced, NULL));
}

/* The rights that docs/fenced-lock.md names. */
SingleLaw(a_user, needs_incrby_get_and_the_key_of_the_counter)
{
    redis_do(server,
             "ACL SETUSER locker on >pw resetkeys ~stock ~hirelock_queue:{stock} ~" COUNTER
             " resetchannels &redisson_lock__channel:{stock} &hirelock:* -@all +evalsha "
             "+script|load +hget +hset +hincrby +hrandfield +del +pttl +pexpire +time +zadd "
             "+zpopmin +zcard +zrem +publish +subscribe +unsubscribe +pubsub|numsub "
             "+incrby +get");
    struct actor *actor = actor_start();
    uint64_t token = 0;
    begin(CLIENT(.username = "locker", .password = "pw"));
    hl_client *rival = open_client(CLIENT(.username = "locker", .password = "pw"));
    rivals = new_fenced(rival);
    redis_do(server, "ACL LOG RESET"); /* of the handshake's attempts */
    expect_ok(hl_lock_acquire(fenced, NULL));
    actor_begin_acquire(actor, rivals, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    expect_ok(hl_lock_release(fenced, NULL));
    expect_ok(actor_end(actor));
    token = actor_token(actor);
    check(token >= 2);
    check(!strstr(redis_str(server, "ACL LOG"), "context lua")); /* not even quietly */
}

Law(a_full_server, gives_no_hold_without_a_token)
{
    begin(CLIENT(.outage_timeout_ms = slow_ms(4000)));
    expect_ok(hl_lock_acquire(fenced, NULL));
    expect_ok(hl_lock_release(fenced, NULL));
    redis_do(server, "CONFIG SET maxmemory 1");
    expect_outcome(hl_lock_acquire(fenced, &err), HL_ESERVER);
    check_msg(strstr(err.text, "OOM") != NULL, "%s", err.text);
    expect_free(fenced);
    check_int(redis_int(server, "GET " COUNTER), 1);
    redis_do(server, "CONFIG SET maxmemory 0");
    expect_ok(hl_lock_acquire(fenced, NULL));
    check_int(hl_lock_token(fenced, NULL), 2);
}

/* A release frees memory, so what it writes after that may be written: the next one's token, too.
 */
Law(a_full_server, hands_the_lock_on_with_a_token)
{
    struct actor *actor = actor_start();
    uint64_t token = 0;
    begin(NULL);
    hl_client *rival = open_client(CLIENT(.poll_ms = 10000));
    rivals = new_fenced(rival);
    expect_ok(hl_lock_acquire(fenced, NULL));
    actor_begin_acquire(actor, rivals, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    redis_do(server, "CONFIG SET maxmemory 1");
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(fenced, NULL));
    expect_ok(actor_end(actor));
    token = actor_token(actor);
    check(now_ms() - before_ms < slow_ms(5000));
    check(token >= 2);
    redis_do(server, "CONFIG SET maxmemory 0");
}

/* A grant without a token is no hold for a fenced waiter: it asks, and its call returns the reason.
 */
Law(a_counter_that_breaks_while_a_client_waits, is_reported_to_the_waiter_that_is_granted_the_lock)
{
    struct actor *actor = actor_start();
    begin(NULL);
    hl_client *rival = open_client(CLIENT(.poll_ms = 10000));
    rivals = new_fenced(rival);
    expect_ok(hl_lock_acquire(fenced, NULL));
    actor_begin_acquire(actor, rivals, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    redis_do(server, "SET " COUNTER " junk");
    expect_ok(hl_lock_release(fenced, NULL));
    expect_outcome(actor_end(actor), HL_ESERVER);
    check_msg(strstr(actor_error(actor), "not an integer") != NULL, "%s", actor_error(actor));
    expect_free(fenced);
    redis_do(server, "DEL " COUNTER);
    expect_ok(hl_lock_acquire(fenced, NULL));
}

/* One without a token hands on none: then the next one asks for it. */
Law(a_grant_by_a_plain_lock, brings_no_token_and_the_next_holder_asks_for_its_own)
{
    struct actor *actor = actor_start();
    uint64_t token = 0;
    hl_client *client = begin(NULL), *rival = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *plain = new_lock(client, "stock");
    rivals = new_fenced(rival);
    expect_ok(hl_lock_acquire(plain, NULL));
    actor_begin_acquire(actor, rivals, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(plain, NULL));
    expect_ok(actor_end(actor));
    token = actor_token(actor);
    check(now_ms() - before_ms < slow_ms(5000));
    check_int(token, 1);
    expect_held_by(rival, rivals, 1);
}

Law(fenced_handles, are_made_like_the_handles_of_any_lock)
{
    hl_client *client = open_client(NULL);
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    expect_outcome(fenced_lock_new(NULL, "stock", NULL, &fenced, NULL), HL_EINVAL);
    expect_outcome(fenced_lock_new(client, NULL, NULL, &fenced, NULL), HL_EINVAL);
    expect_outcome(fenced_lock_new(client, "a}", NULL, &fenced, NULL), HL_EINVAL);
    expect_outcome(fenced_lock_new(client, "stock", NULL, NULL, NULL), HL_EINVAL);
    options.retain_ms = -1;
    expect_outcome(fenced_lock_new(client, "stock", &options, &fenced, NULL), HL_EINVAL);
    options.retain_ms = 0;
    options.name_length = 3; /* of any bytes */
    expect_ok(fenced_lock_new(client, "a\0b", &options, &fenced, NULL));
    keep_lock(fenced);
    expect_ok(hl_lock_acquire(fenced, NULL));
    check_int(redis_int(server, "GET %b", "redisson_lock_token:{a\0b}", (size_t)25), 1);
    expect_ok(hl_lock_release(fenced, NULL));
}

Law(a_counter, outlives_every_release)
{
    hl_client *client = begin(NULL);
    expect_ok(hl_lock_acquire(fenced, NULL));
    expect_ok(hl_lock_force_release(fenced, NULL));
    expect_outcome(hl_lock_release(fenced, NULL), HL_ELOST);
    check_int(redis_int(server, "GET " COUNTER), 1);
    check_int(redis_int(server, "PTTL " COUNTER), -1);
    expect_ok(hl_lock_acquire(fenced, NULL));
    check_int(hl_lock_token(fenced, NULL), 2);
    close_client(client); /* which lets the hold expire */
    check_int(redis_int(server, "GET " COUNTER), 2);
}
