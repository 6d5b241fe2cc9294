/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Data behind a fence: a larger token shuts smaller ones out; exact comparison, refused writes, and
 * requests in doubt. */

#include <pthread.h>
#include <sys/wait.h>

#include "support/actor.h"
#include "support/kit.h"
#include "support/proxy.h"
#include "support/recorder.h"

#define WRITE(...) (&(hl_fenced_write){.size = sizeof(hl_fenced_write), __VA_ARGS__})
#define TEXT(text) .value = (text), .value_length = strlen(text)

static struct recorder told = RECORDER_INIT;

static void expect_data(const char *value, const char *fence)
{
    check_str(redis_str(server, "GET data"), value);
    check_str(redis_str(server, "GET hirelock_fence:{data}"), fence);
}

static int set(hl_client *client, const char *value, uint64_t token)
{
    return hl_fence_set(client, WRITE(.key = "data", TEXT(value), .token = token), NULL);
}

Law(fenced_set, writes_what_any_client_of_redis_reads)
{
    hl_client *client = open_client(CLIENT(.name_prefix = "app:"));
    expect_ok(set(client, "a", 33));
    expect_data("a", "33"); /* as it is: the prefix is for locks */
    redis_do(server, "LPUSH list 1");
    expect_ok(hl_fence_set(client, WRITE(.key = "list", TEXT("now a string"), .token = 1), NULL));
    check_str(redis_str(server, "GET list"), "now a string");
}

Law(fenced_set, refuses_a_token_that_is_smaller_than_one_before)
{
    hl_client *client = open_client(NULL), *late = open_client(NULL);
    hl_error err = HL_ERROR_INIT;
    expect_ok(set(client, "newer", 34));
    expect_outcome(hl_fence_set(late, WRITE(.key = "data", TEXT("late"), .token = 33), &err),
                   HL_EFENCED);
    check_int(err.code, HL_EFENCED);
    check_str(err.text, "fence set: token 34 was there before");
    check(hl_err_is_outcome(HL_EFENCED) && !hl_err_is_transient(HL_EFENCED));
    expect_data("newer", "34");
    expect_outcome(set(late, "later", 1), HL_EFENCED);
    expect_ok(set(client, "again", 34)); /* a hold may write as often as it likes */
    expect_data("again", "34");
}

Law(fenced_set, compares_all_64_bits)
{
    hl_client *client = open_client(NULL);
    const uint64_t exact = (UINT64_C(1) << 53) + 1;
    expect_ok(set(client, "a", exact));
    expect_outcome(set(client, "b", exact - 1), HL_EFENCED);
    expect_data("a", "9007199254740993");
    expect_ok(set(client, "c", INT64_MAX));
    expect_outcome(set(client, "d", INT64_MAX - 1), HL_EFENCED);
    expect_data("c", "9223372036854775807");
    uint64_t last = 0;
    expect_ok(hl_fence_token(client, "data", 0, &last, NULL));
    check(last == INT64_MAX);
}

Law(fenced_set, takes_keys_and_values_of_any_bytes)
{
    static const char key[] = "a\0b {tag}", value[] = "\r\n\0\xff";
    hl_client *client = open_client(NULL);
    uint64_t last = 0;
    expect_ok(hl_fence_set(client,
                           WRITE(.key = key, .key_length = sizeof key - 1, .value = value,
                                 .value_length = sizeof value - 1, .token = 7),
                           NULL));
    redisReply *reply = redis_command(server, "GET %b", key, sizeof key - 1);
    check_int(reply->len, sizeof value - 1);
    check_int(memcmp(reply->str, value, sizeof value - 1), 0);
    freeReplyObject(reply);
    check_int(redis_int(server, "GET %b", "hirelock_fence:a\0b {tag}", (size_t)24), 7);
    expect_ok(hl_fence_token(client, key, sizeof key - 1, &last, NULL));
    check_int(last, 7);
    expect_ok(hl_fence_set(client, WRITE(.key = "data", .token = 7), NULL));
    expect_data("", "7");
    const size_t large = 3 << 20; /* more than a socket takes at once */
    char *filled = calloc(1, large);
    check(filled != NULL);
    expect_ok(hl_fence_set(
        client, WRITE(.key = "data", .value = filled, .value_length = large, .token = 7), NULL));
    check_int(redis_int(server, "STRLEN data"), large);
    free(filled);
}

Law(fenced_set, lets_value_and_fence_expire_if_it_is_told_to)
{
    hl_client *client = open_client(NULL);
    expect_ok(hl_fence_set(
        client, WRITE(.key = "data", .token = 7, .expire_ms = 50000, .remember_ms = 90000), NULL));
    check(redis_int(server, "PTTL data") > 30000 && redis_int(server, "PTTL data") <= 50000);
    check(redis_int(server, "PTTL hirelock_fence:{data}") > 60000);
    expect_ok(set(client, "for ever", 7));
    check_int(redis_int(server, "PTTL data"), -1);
    check_int(redis_int(server, "PTTL hirelock_fence:{data}"), -1);
}

Law(fenced_last, is_the_largest_token_and_0_before_the_first)
{
    hl_client *client = open_client(NULL);
    uint64_t last = 99;
    expect_ok(hl_fence_token(client, "data", 0, &last, NULL));
    check_int(last, 0);
    expect_ok(set(client, "a", 5));
    expect_ok(hl_fence_token(client, "data", 4, &last, NULL));
    check_int(last, 5);
    redis_do(server, "SET hirelock_fence:{data} junk");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_fence_token(client, "data", 0, &last, &err), HL_ESERVER);
    check_str(err.text, "fence token: the fence holds no token");
    check_int(last, 5);
    redis_do(server, "DEL hirelock_fence:{data}");
    redis_do(server, "LPUSH hirelock_fence:{data} 1");
    expect_outcome(hl_fence_token(client, "data", 0, &last, NULL), HL_ESERVER);
}

Law(fenced_calls, refuse_arguments_that_make_no_sense)
{
    static char long_key[513];
    hl_client *client = open_client(NULL);
    hl_error err = HL_ERROR_INIT;
    uint64_t last = 0;
    memset(long_key, 'k', sizeof long_key);
    const struct {
        hl_fenced_write write;
        const char *says;
    } bad[] = {
        {{0, .key = "data", .token = 1}, "size"},
        {{sizeof(hl_fenced_write) + 1, .key = "data", .token = 1}, "size"},
        {{sizeof(hl_fenced_write), .token = 1}, "key is NULL"},
        {{sizeof(hl_fenced_write), .key = "", .token = 1}, "key is empty"},
        {{sizeof(hl_fenced_write), .key = "a{}", .token = 1}, "braces"},
        {{sizeof(hl_fenced_write), .key = "hirelock_fence:{data}", .token = 1},
         "keys beside a lock"},
        {{sizeof(hl_fenced_write), .key = "hirelock_queue:{data}", .token = 1},
         "keys beside a lock"},
        {{sizeof(hl_fenced_write), .key = long_key, .key_length = 513, .token = 1}, "512"},
        {{sizeof(hl_fenced_write), .key = "data", .value_length = 1, .token = 1}, "NULL"},
        {{sizeof(hl_fenced_write), .key = "data", .value = "", .value_length = (16 << 20) + 1,
          .token = 1},
         "16 MiB"},
        {{sizeof(hl_fenced_write), .key = "data"}, "needs a token"},
        {{sizeof(hl_fenced_write), .key = "data", .token = UINT64_C(1) << 63}, "2^63"},
        {{sizeof(hl_fenced_write), .key = "data", .token = 1, .expire_ms = -1}, "expire_ms"},
        {{sizeof(hl_fenced_write), .key = "data", .token = 1, .expire_ms = INT64_MAX}, "expire_ms"},
        {{sizeof(hl_fenced_write), .key = "data", .token = 1, .remember_ms = -1}, "remember_ms"},
        {{sizeof(hl_fenced_write), .key = "data", .token = 1, .remember_ms = INT64_MAX},
         "remember_ms"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct {
            hl_fenced_write write;
            char newer[8]; /* what a longer struct would hold */
        } passed = {bad[i].write, "newer"};
        expect_outcome(hl_fence_set(client, &passed.write, &err), HL_EINVAL);
        check_msg(strstr(err.text, bad[i].says) != NULL, "%d: %s", (int)i, err.text);
        expect_outcome(hl_fence_set_async(client, &passed.write, record_done, &told), HL_EINVAL);
    }
    const hl_fenced_write *good = WRITE(.key = "data", .token = 1);
    expect_outcome(hl_fence_set(client, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_fence_set(NULL, good, &err), HL_EINVAL);
    expect_outcome(hl_fence_set_async(client, good, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_fence_token(client, "a}", 0, &last, NULL), HL_EINVAL);
    expect_outcome(hl_fence_token(client, NULL, 0, &last, NULL), HL_EINVAL);
    expect_outcome(hl_fence_token(client, "data", 0, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_fence_token(NULL, "data", 0, &last, NULL), HL_EINVAL);
    check_int(redis_int(server, "DBSIZE"), 0);
    check_int(recorder_count(&told), 0);
}

struct token_told {
    atomic_int count;
    int code;
    uint64_t token;
};

static void note_token(int code, uint64_t token, const hl_error *err, void *arg)
{
    struct token_told *noted = arg;
    check((code < 0) == (err != NULL));
    noted->code = code;
    noted->token = token;
    atomic_fetch_add(&noted->count, 1);
}

static bool token_is_told(void *arg)
{
    return atomic_load(&((struct token_told *)arg)->count) == 1;
}

Law(fenced_calls, have_twins_that_do_not_block)
{
    static struct token_told noted, refused;
    hl_client *client = open_client(NULL);
    char value[] = "a";
    expect_ok(hl_fence_set_async(client, WRITE(.key = "data", TEXT(value), .token = 8), record_done,
                                 &told));
    value[0] = 'z'; /* it was copied */
    expect_story(&told, "done HL_OK");
    expect_data("a", "8");
    expect_ok(hl_fence_set_async(client, WRITE(.key = "data", .token = 7), record_done, &told));
    expect_story(&told, "done HL_OK, done HL_EFENCED");
    check_str(recorder_entry(&told, 1).said, "fence set: token 8 was there before");
    expect_ok(hl_fence_token_async(client, "data", 0, note_token, &noted));
    check(wait_until(token_is_told, &noted, 5000));
    check_int(noted.code, HL_OK);
    check_int(noted.token, 8);
    redis_do(server, "SET hirelock_fence:{data} junk");
    expect_ok(hl_fence_token_async(client, "data", 0, note_token, &refused));
    check(wait_until(token_is_told, &refused, 5000));
    check_int(refused.code, HL_ESERVER);
}

Law(fenced_calls, say_why_the_server_refused)
{
    enum { OUTAGE_MS = 4000 };
    hl_client *client = open_client(CLIENT(.outage_timeout_ms = OUTAGE_MS));
    hl_error err = HL_ERROR_INIT;
    const hl_fenced_write *write = WRITE(.key = "data", .token = 8);
    uint64_t last = 0;
    redis_do(server, "CONFIG SET maxmemory 1");
    int64_t before_ms = now_ms();
    expect_outcome(hl_fence_set(client, write, &err), HL_ESERVER);
    check_msg(strstr(err.text, "fence set: OOM") == err.text, "%s", err.text);
    check(now_ms() - before_ms >= OUTAGE_MS - 1);
    redis_do(server, "CONFIG SET maxmemory 0");
    redis_do(server, "SET hirelock_fence:{data} junk");
    expect_outcome(hl_fence_set(client, write, &err), HL_ESERVER);
    check_msg(strstr(err.text, "WRONGTYPE") != NULL, "%s", err.text);
    redis_do(server, "ACL SETUSER default resetkeys ~data");
    expect_outcome(hl_fence_set(client, write, NULL), HL_EDENIED);
    expect_outcome(hl_fence_token(client, "data", 0, &last, NULL), HL_EDENIED);
    check_int(redis_int(server, "EXISTS data"), 0);
}

SingleLaw(fenced_calls, know_when_there_is_no_server_or_no_client)
{
    hl_client *client =
        open_client(CLIENT(.outage_timeout_ms = slow_ms(3000), .backoff_min_ms = 5));
    uint64_t last = 0;
    redis_server_kill(server);
    expect_outcome(hl_client_ping(client, -1, NULL), HL_ECONN); /* by now the link has noticed */
    expect_outcome(set(client, "a", 1), HL_ECONN);
    expect_outcome(hl_fence_token(client, "data", 0, &last, NULL), HL_ECONN);
    pid_t child = fork();
    if (child == 0)
        _exit(set(client, "a", 1) == HL_EFORKED &&
                      hl_fence_token(client, "data", 0, &last, NULL) == HL_EFORKED
                  ? 0
                  : 1);
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0);
    hl_lock *lock = new_lock(client, "stock"); /* keeps the client's memory */
    close_client(client);
    expect_outcome(set(client, "a", 1), HL_ECLOSED);
    expect_outcome(hl_fence_set_async(client, WRITE(.key = "data", .token = 1), record_done, &told),
                   HL_ECLOSED);
    expect_outcome(hl_fence_token(client, "data", 0, &last, NULL), HL_ECLOSED);
    free_lock(lock);
    redis_server_restart(server);
}

struct lost_answer {
    struct proxy *proxy;
    hl_client *client;
    int code;
};

static void job_set(void *arg)
{
    struct lost_answer *lost = arg;
    lost->code = set(lost->client, "mine", 33);
}

/* The server has run it, and the answer is kept by the network. */
static struct actor *begin_unanswered(struct lost_answer *lost, const hl_client_options *options)
{
    struct actor *actor = actor_start();
    lost->proxy = proxy_start_before(server);
    lost->client = open_client_at(proxy_url(lost->proxy), options);
    expect_ok(hl_fence_set(lost->client, WRITE(.key = "warm", .token = 1), NULL));
    proxy_hold(lost->proxy, PROXY_EVERY, PROXY_DOWN);
    actor_begin(actor, job_set, lost);
    check(redis_wait_int(server, 1, 5000, "EXISTS data"));
    return actor;
}

static void end_unanswered(struct lost_answer *lost, struct actor *actor)
{
    actor_await(actor);
    close_client(lost->client);
    proxy_stop(lost->proxy);
}

TcpLaw(fenced_set, asks_again_when_its_answer_is_lost)
{
    struct lost_answer lost;
    struct actor *actor = begin_unanswered(&lost, CLIENT(.backoff_min_ms = 1));
    proxy_kill_all(lost.proxy);
    proxy_pass(lost.proxy);
    end_unanswered(&lost, actor);
    expect_outcome(lost.code, HL_OK);
    expect_data("mine", "33");
}

TcpLaw(fenced_set, does_not_write_again_over_a_larger_token)
{
    struct lost_answer lost;
    struct actor *actor = begin_unanswered(&lost, CLIENT(.backoff_min_ms = 1));
    expect_ok(set(open_client(NULL), "next", 34));
    proxy_kill_all(lost.proxy);
    proxy_pass(lost.proxy);
    end_unanswered(&lost, actor);
    expect_outcome(lost.code, HL_EFENCED);
    expect_data("next", "34");
}

TcpLaw(fenced_set, is_in_doubt_when_no_answer_comes_at_all)
{
    struct lost_answer lost;
    struct actor *actor =
        begin_unanswered(&lost, CLIENT(.backoff_min_ms = 1, .outage_timeout_ms = slow_ms(4000)));
    proxy_kill_all(lost.proxy);
    proxy_refuse(lost.proxy, true);
    actor_await(actor);
    expect_outcome(lost.code, HL_EINDOUBT);
    proxy_pass(lost.proxy);
    end_unanswered(&lost, actor);
}

TcpLaw(fenced_set, is_in_doubt_while_its_first_copy_is_under_way)
{
    struct lost_answer lost;
    struct actor *actor = begin_unanswered(
        &lost, CLIENT(.request_timeout_ms = slow_ms(12000), .outage_timeout_ms = slow_ms(4000)));
    actor_await(actor);
    expect_outcome(lost.code, HL_EINDOUBT);
    proxy_pass(lost.proxy);
    end_unanswered(&lost, actor);
}

TcpLaw(fenced_set, is_in_doubt_when_the_client_is_closed_before_the_answer)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), NULL);
    expect_ok(set(client, "warm", 1));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_fence_set_async(client, WRITE(.key = "data", TEXT("mine"), .token = 33),
                                 record_done, &told));
    check(redis_wait_int(server, 33, 5000, "GET hirelock_fence:{data}"));
    close_client(client);
    expect_story(&told, "done HL_EINDOUBT");
    proxy_stop(proxy);
}

/* The rights that docs/fencing.md names in addition to a lock's. */
SingleLaw(fenced_calls, need_get_and_set_and_the_keys_of_data_and_fence)
{
    redis_do(server,
             "ACL SETUSER writer on >pw resetkeys ~data ~stock ~hirelock_fence:{data} "
             "resetchannels &redisson_lock__channel:{stock} &hirelock:* -@all +evalsha "
             "+script|load +hget +hset +hrandfield +pexpire +pttl +del +time +zcard +publish "
             "+subscribe +unsubscribe +pubsub|numsub +get +set");
    hl_client *client = open_client(CLIENT(.username = "writer", .password = "pw"));
    hl_lock *lock = new_lock(client, "stock");
    uint64_t last = 0;
    expect_ok(set(client, "a", 7));
    expect_ok(hl_fence_token(client, "data", 0, &last, NULL));
    check_int(last, 7);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_set_and_release(
        lock, NULL, WRITE(.key = "data", TEXT("b"), .token = 8, .expire_ms = 60000), NULL));
    expect_data("b", "8");
}
