/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Write and release in one step: the next holder finds the value, and a caller that has lost the
 * lock writes nothing, however late its request comes. */

#include <sys/wait.h>

#include "support/actor.h"
#include "support/kinds.h"
#include "two_links.h"

#define WRITE(...) (&(hl_fenced_write){.size = sizeof(hl_fenced_write), __VA_ARGS__})
#define TEXT(text) .value = (text), .value_length = strlen(text)

static struct recorder told = RECORDER_INIT;
static hl_error err;

static int set_and_release(hl_lock *stock, const char *value)
{
    return hl_lock_set_and_release(stock, NULL, WRITE(.key = "data", TEXT(value)), &err);
}

static void expect_data(const char *value)
{
    check_str(redis_str(server, "GET data"), value);
}

Law(set_and_release, writes_and_frees_the_lock)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(set_and_release(stock, "a"));
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_data("a");
    check(!hl_lock_is_held(stock, NULL));
    check_int(stats_of(client).releases, 1);
    check_int(redis_int(server, "EXISTS hirelock_fence:{data}"), 0);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_set_and_release(stock, NULL,
                                      WRITE(.key = "data", TEXT("b"), .expire_ms = 50000), NULL));
    expect_data("b");
    check(redis_int(server, "PTTL data") > 30000);
}

Law(set_and_release, is_for_the_last_level_only)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_outcome(set_and_release(stock, "inner"), HL_EINVAL);
    check_msg(strstr(err.text, "last level") != NULL, "%s", err.text);
    check_int(hl_lock_hold_count(stock, NULL), 2);
    expect_data("(nil)");
    expect_held_by(client, stock, 2); /* and when the count in Redis is not what it is here: */
    expect_ok(hl_lock_release(stock, NULL));
    expect_ok(set_and_release(stock, "outer"));
    expect_data("outer");
    expect_free(stock);
}

/* A key that the user may not touch, or of another slot, refuses the whole request. */
Law(set_and_release, of_a_key_that_is_refused_releases_all_the_same)
{
    redis_do(server, "ACL SETUSER locker on >pw ~stock ~hirelock* ~redisson* &* +@all");
    hl_client *client = open_client(CLIENT(.username = "locker", .password = "pw"));
    hl_lock *stock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_outcome(set_and_release(stock, "x"), HL_EDENIED);
    check_msg(strstr(err.text, "NOPERM") && strstr(err.text, "hirelock acl prints the rule"), "%s",
              err.text);
    check(!hl_lock_is_held(stock, NULL));
    expect_ok(hl_lock_acquire_for(rivals, 5000, NULL));
    expect_data("(nil)");
    expect_ok(hl_lock_release(rivals, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_release(stock, NULL));
}

Law(set_and_release, of_an_owner_that_holds_nothing_writes_nothing)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    hl_owner *mine = new_owner(client), *strange = new_owner(open_client(NULL));
    expect_outcome(set_and_release(stock, "x"), HL_ENOTOWNER);
    expect_ok(hl_lock_acquire(rivals, NULL));
    expect_outcome(set_and_release(stock, "x"), HL_ENOTOWNER);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.owner = mine), NULL));
    expect_outcome(set_and_release(stock, "x"), HL_ENOTOWNER);
    const hl_fenced_write *write = WRITE(.key = "data", TEXT("y"));
    expect_outcome(hl_lock_set_and_release(stock, strange, write, NULL), HL_EINVAL);
    expect_data("(nil)");
    expect_ok(hl_lock_set_and_release(stock, mine, write, NULL));
    expect_data("y");
}

Law(set_and_release, of_a_hold_that_was_taken_away_writes_nothing)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock"), *rivals = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "DEL stock"); /* this client does not know yet */
    expect_outcome(set_and_release(stock, "x"), HL_ELOST);
    expect_data("(nil)");
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_acquire(rivals, NULL));
    expect_outcome(set_and_release(stock, "x"), HL_ELOST);
    check_msg(strstr(err.text, "nothing is written") != NULL, "%s", err.text);
    expect_data("(nil)");
    check(hl_lock_is_held(rivals, NULL));
    check_int(redis_int(server, "HLEN stock"), 1);
}

Law(set_and_release, of_a_hold_that_is_known_to_be_over_writes_nothing)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.lease_ms = slow_ms(50)), NULL));
    struct deadline deadline = deadline_in(5000);
    while (hl_lock_is_held(stock, NULL) && !deadline_is_over(deadline))
        deadline_nap();
    expect_outcome(set_and_release(stock, "x"), HL_ELOST);
    expect_outcome(set_and_release(stock, "x"), HL_ENOTOWNER);
    expect_data("(nil)");
}

Law(set_and_release, asks_the_server_with_handles_that_post_or_retain)
{
    hl_client *client = open_client(NULL);
    hl_lock_options kept = HL_LOCK_OPTIONS_INIT;
    hl_lock *stock = NULL;
    kept.flags = HL_LOCK_ASYNC_RELEASE;
    kept.retain_ms = 1000;
    expect_ok(lock_new_with(client, "stock", &kept, &stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(set_and_release(stock, "a"));
    check_int(redis_int(server, "EXISTS stock"), 0); /* by now */
    expect_data("a");
    hl_lock_free(stock);
}

static hl_lock *stocks;

static void job_read_behind(void *value)
{
    expect_ok(hl_lock_acquire(stocks, NULL));
    snprintf(value, 64, "%s", redis_str(server, "GET data"));
    expect_ok(hl_lock_release(stocks, NULL));
}

Law(set_and_release, is_seen_by_the_next_owner_of_the_same_process)
{
    hl_client *client = open_client(NULL);
    struct actor *next = actor_start();
    char value[64] = "";
    stocks = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stocks, NULL));
    actor_begin(next, job_read_behind, value);
    expect_waiters(client, 1);
    expect_ok(set_and_release(stocks, "a"));
    actor_await(next);
    check_str(value, "a");
    check_int(stats_of(client).passes, 0);
}

Law(set_and_release, is_seen_by_the_process_that_is_granted_the_lock)
{
    hl_client *client = open_client(NULL), *other_client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *stock = new_lock(client, "stock");
    struct actor *next = actor_start();
    char value[64] = "";
    stocks = new_lock(other_client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    actor_begin(next, job_read_behind, value);
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    int64_t before_ms = now_ms();
    expect_ok(set_and_release(stock, "a"));
    actor_await(next);
    check(now_ms() - before_ms < slow_ms(5000));
    check_str(value, "a");
}

Law(set_and_release, judges_and_raises_the_fence_when_it_has_a_token)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    uint64_t last = 0;
    const hl_fenced_write *newer = WRITE(.key = "data", TEXT("newer"), .token = 34);
    const hl_fenced_write *older = WRITE(.key = "data", TEXT("older"), .token = 33);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_set_and_release(stock, NULL, newer, NULL));
    expect_ok(hl_fence_token(client, "data", 0, &last, NULL));
    check_int(last, 34);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_outcome(hl_lock_set_and_release(stock, NULL, older, &err), HL_EFENCED);
    check_str(err.text, "release 'stock': set 'data': token 34 was there before");
    check_int(redis_int(server, "EXISTS stock"), 0);
    check(!hl_lock_is_held(stock, NULL));
    expect_data("newer");
}

static hl_lock *new_fenced(hl_client *client)
{
    hl_lock *fenced = NULL;
    expect_ok(fenced_lock_new(client, "stock", NULL, &fenced, NULL));
    return fenced;
}

Law(set_and_release, of_a_fenced_lock_writes_with_its_token_and_grants_the_next_one)
{
    hl_client *client = open_client(NULL);
    hl_lock *mine = new_fenced(client), *next = new_fenced(open_client(CLIENT(.poll_ms = 10000)));
    struct actor *actor = actor_start();
    uint64_t token = 0, last = 0;
    expect_ok(hl_lock_acquire(mine, NULL));
    uint64_t first = hl_lock_token(mine, NULL);
    check(first > 0);
    actor_begin_acquire(actor, next, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
    int64_t before_ms = now_ms();
    expect_ok(set_and_release(mine, "a"));
    expect_ok(actor_end(actor));
    token = actor_token(actor);
    check(now_ms() - before_ms < slow_ms(5000));
    expect_data("a");
    expect_ok(hl_fence_token(client, "data", 0, &last, NULL));
    check(last == first && token > first);
    expect_outcome(hl_fence_set(client, WRITE(.key = "data", .token = first - 1), NULL),
                   first > 1 ? HL_EFENCED : HL_EINVAL);
    expect_ok(hl_fence_set(client, WRITE(.key = "data", .token = token), NULL));
    expect_outcome(hl_fence_set(client, WRITE(.key = "data", .token = first), NULL), HL_EFENCED);
    expect_ok(actor_release(actor, next, NULL));
    hl_lock_free(mine);
    hl_lock_free(next);
}

Law(set_and_release, releases_when_the_server_refuses_the_value)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "CONFIG SET maxmemory 1");
    expect_outcome(set_and_release(stock, "a"), HL_ESERVER);
    check_msg(strstr(err.text, "release 'stock': set 'data': OOM") == err.text, "%s", err.text);
    redis_do(server, "CONFIG SET maxmemory 0");
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "ACL SETUSER default -set");
    expect_outcome(set_and_release(stock, "a"), HL_EDENIED);
    check_msg(strstr(err.text, "set 'data': ") != NULL, "%s", err.text);
    redis_do(server, "ACL SETUSER default +set");
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "SET hirelock_fence:{data} junk");
    expect_outcome(hl_lock_set_and_release(stock, NULL, WRITE(.key = "data", .token = 1), NULL),
                   HL_ESERVER);
    check_int(redis_int(server, "EXISTS stock data"), 0);
}

Law(set_and_release, goes_on_behind_when_the_server_takes_no_writes_for_now)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = slow_ms(1500)));
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    expect_outcome(set_and_release(stock, "a"), HL_EINDOUBT);
    check_msg(strstr(err.text, "NOREPLICAS") != NULL, "%s", err.text);
    check_int(redis_int(server, "EXISTS data"), 0);
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    expect_data("a"); /* in one step, so not without the release */
}

Law(set_and_release, leaves_the_key_to_rest_and_writes_once)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.min_hold_ms = slow_ms(60000)), NULL));
    expect_ok(set_and_release(stock, "a"));
    check_int(redis_int(server, "EXISTS stock"), 1);
    expect_data("a");
    expect_outcome(hl_lock_try_acquire(stock, NULL), HL_EBUSY);
}

Law(set_and_release, refuses_arguments_that_make_no_sense)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    hl_owner *mine = new_owner(client);
    const hl_fenced_write *good = WRITE(.key = "data");
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_outcome(hl_lock_set_and_release(stock, NULL, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_set_and_release(NULL, NULL, good, NULL), HL_EINVAL);
    expect_outcome(hl_lock_set_and_release(stock, NULL, WRITE(.key = "a}"), NULL), HL_EINVAL);
    expect_outcome(hl_lock_set_and_release(stock, NULL, WRITE(.key = "stock"), &err), HL_EINVAL);
    check_str(err.text, "the key is the lock's own");
    expect_outcome(hl_lock_set_and_release_async(stock, NULL, good, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_set_and_release_async(stock, mine, good, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_set_and_release_async(stock, mine, NULL, record_done, &told), HL_EINVAL);
    expect_held_by(client, stock, 1);
    check_int(redis_int(server, "EXISTS data"), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(set_and_release(stock, "x") == HL_EFORKED ? 0 : 1);
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0);
    close_client(client);
    expect_outcome(set_and_release(stock, "x"), HL_ECLOSED);
    check_int(recorder_count(&told), 0);
}

/* A release that would forget the value is none. */
Law(set_and_release, is_not_for_kinds_whose_release_does_not_write)
{
    hl_client *client = open_client(NULL);
    hl_lock *plain = new_lock(client, "stock"), *kind[4] = {NULL};
    expect_ok(fair_lock_new(client, "fair", NULL, &kind[0], NULL));
    expect_ok(hl_multi_lock_new(&plain, 1, NULL, &kind[1], NULL));
    expect_ok(rw_lock_new(client, "rw", NULL, &kind[2], &kind[3], NULL));
    for (int i = 0; i < 4; i++) {
        expect_ok(hl_lock_acquire(kind[i], NULL));
        expect_outcome(set_and_release(kind[i], "x"), HL_ENOTSUP);
        check(hl_lock_is_held(kind[i], NULL));
        expect_ok(hl_lock_release(kind[i], NULL));
        hl_lock_free(kind[i]);
    }
    expect_data("(nil)");
}

Law(set_and_release, has_a_twin_that_does_not_block)
{
    hl_client *client = open_client(NULL);
    hl_lock *stock = new_lock(client, "stock");
    hl_owner *mine = new_owner(client);
    char value[] = "a";
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.owner = mine), NULL));
    expect_ok(hl_lock_set_and_release_async(stock, mine, WRITE(.key = "data", TEXT(value)),
                                            record_done, &told));
    value[0] = 'z'; /* it was copied */
    expect_story(&told, "done HL_OK");
    expect_data("a");
    expect_free(stock);
    expect_ok(hl_lock_set_and_release_async(stock, mine, WRITE(.key = "data"), record_done, &told));
    expect_story(&told, "done HL_OK, done HL_ENOTOWNER");
}

/* A lock held behind a proxy, whose release begins in an actor's thread. */
struct unheard {
    struct two_links links;
    hl_lock *stock, *rivals;
    struct actor *actor;
    int code;
};

static void job_begin(void *arg)
{
    struct unheard *unheard = arg;
    expect_ok(hl_lock_acquire(unheard->stock, NULL));
    unheard->code =
        hl_lock_set_and_release(unheard->stock, NULL, WRITE(.key = "warm", TEXT("up")), NULL);
    expect_ok(hl_lock_acquire(unheard->stock, NULL));
}

static void job_set_and_release(void *arg)
{
    struct unheard *unheard = arg;
    unheard->code = set_and_release(unheard->stock, "mine");
}

static void unheard_begin(struct unheard *unheard, const hl_client_options *options)
{
    two_links_open(&unheard->links, options);
    unheard->stock = new_lock(unheard->links.client, "stock");
    unheard->rivals = new_lock(open_client(NULL), "stock");
    unheard->actor = actor_start();
    actor_do(unheard->actor, job_begin, unheard);
    expect_ok(unheard->code);
}

static void unheard_end(struct unheard *unheard, int code)
{
    actor_await(unheard->actor);
    expect_outcome(unheard->code, code);
    free_lock(unheard->stock);
    two_links_close(&unheard->links);
}

/* It ran, and the answer is lost; the copy finds nothing to judge by. */
TcpLaw(set_and_release, is_in_doubt_when_its_answer_is_lost_and_writes_once)
{
    struct unheard unheard;
    unheard_begin(&unheard, CLIENT(.backoff_min_ms = 1));
    proxy_hold(unheard.links.proxy, PROXY_EVERY, PROXY_DOWN);
    actor_begin(unheard.actor, job_set_and_release, &unheard);
    check(redis_wait_int(server, 1, 5000, "EXISTS data"));
    expect_ok(hl_lock_acquire(unheard.rivals, NULL));
    redis_do(server, "SET data next");
    proxy_kill_all(unheard.links.proxy);
    proxy_pass(unheard.links.proxy);
    unheard_end(&unheard, HL_EINDOUBT);
    expect_data("next");
    check(hl_lock_is_held(unheard.rivals, NULL));
}

/* It never arrived; the copy is the first that runs. */
TcpLaw(set_and_release, is_written_by_a_copy_when_the_request_is_lost)
{
    struct unheard unheard;
    unheard_begin(&unheard, CLIENT(.backoff_min_ms = 1, .request_timeout_ms = 60000));
    proxy_hold(unheard.links.proxy, unheard.links.commands, PROXY_UP);
    actor_begin(unheard.actor, job_set_and_release, &unheard);
    expect_kept(&unheard.links, unheard.links.commands, PROXY_UP);
    proxy_kill_all(unheard.links.proxy);
    proxy_pass(unheard.links.proxy);
    unheard_end(&unheard, HL_OK);
    expect_data("mine");
    check_int(redis_int(server, "EXISTS stock"), 0);
}

/* The request lies in the network until the lease is over and another client has written. */
TcpLaw(set_and_release, writes_nothing_when_it_arrives_in_anothers_time)
{
    struct unheard unheard;
    redis_deny(server, "default", "client|kill"); /* let the late one run */
    unheard_begin(&unheard, CLIENT(.backoff_min_ms = 1, .watchdog_timeout_ms = slow_ms(3000),
                                   .request_timeout_ms = slow_ms(1000)));
    proxy_hold(unheard.links.proxy, PROXY_EVERY, PROXY_UP);
    actor_begin(unheard.actor, job_set_and_release, &unheard);
    expect_kept(&unheard.links, unheard.links.commands, PROXY_UP);
    actor_await(unheard.actor);
    expect_ok(hl_lock_acquire_for(unheard.rivals, slow_ms(10000), NULL));
    redis_do(server, "SET data next");
    int64_t ran = redis_evalsha_calls(server);
    proxy_pass(unheard.links.proxy);
    struct deadline deadline = deadline_in(5000);
    while (redis_evalsha_calls(server) == ran && !deadline_is_over(deadline))
        deadline_nap();
    expect_ok(hl_client_ping(unheard.links.client, -1, NULL));
    unheard_end(&unheard, HL_EINDOUBT);
    expect_data("next");
    check(hl_lock_is_held(unheard.rivals, NULL));
}
