/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The codes that say what is wrong with the server, from every call that the headers name. */

#include "support/actor.h"
#include "support/fake_server.h"
#include "support/kit.h"
#include "support/listener.h"
#include "support/proxy.h"
#include "support/recorder.h"
#include "support/semaphore_support.h"

#include <sys/resource.h>

enum { OUTAGE_MS = 150 };

static void expect_from_semaphore_and_latch(hl_client *client, int code)
{
    hl_semaphore *semaphore = new_semaphore(client, "pool");
    hl_latch *latch = new_latch(client, "gate");
    int64_t count;
    expect_outcome(hl_semaphore_acquire(semaphore, 1, NULL), code);
    expect_outcome(hl_semaphore_try_acquire(semaphore, 1, NULL), code);
    expect_outcome(hl_semaphore_release(semaphore, 1, NULL), code);
    expect_outcome(hl_semaphore_release_if_exists(semaphore, 1, NULL), code);
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 1, 0, NULL), code);
    expect_outcome(hl_semaphore_add_permits(semaphore, 1, NULL), code);
    expect_outcome(hl_semaphore_drain(semaphore, &count, NULL), code);
    expect_outcome(hl_semaphore_available(semaphore, &count, NULL), code);
    expect_outcome(hl_latch_try_set_count(latch, 1, NULL), code);
    expect_outcome(hl_latch_count_down(latch, NULL), code);
    expect_outcome(hl_latch_count(latch, &count, NULL), code);
    expect_outcome(hl_latch_await(latch, NULL), code);
    expect_outcome(hl_latch_delete(latch, NULL), code);
}

struct known {
    hl_client *client;
    int code;
};

static bool is_known(void *arg)
{
    const struct known *known = arg;
    return hl_client_ping(known->client, -1, NULL) == known->code;
}

/* Every call that needs the server, of a client that was opened without waiting for it, and has met
 * it since. */
static void expect_from_every_call(const char *url, int code, const char *says)
{
    struct recorder told = RECORDER_INIT;
    hl_client *client = open_client_at(
        url, CLIENT(.flags = HL_CLIENT_LAZY, .backoff_min_ms = 5, .outage_timeout_ms = OUTAGE_MS));
    hl_lock *lock = new_lock(client, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    check(wait_until(is_known, &(struct known){client, code}, 10000));
    expect_outcome(hl_lock_acquire(lock, &err), code);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    check(strstr(err.text, "acquire 'stock': ") != NULL);
    expect_outcome(hl_lock_try_acquire(lock, NULL), code);
    expect_outcome(hl_lock_acquire_for(lock, 60000, NULL), code);
    expect_outcome(hl_lock_inspect(lock, &info, &err), code);
    check_msg(strstr(err.text, says) && strstr(err.text, "inspect 'stock': ") == err.text, "%s",
              err.text);
    expect_outcome(hl_lock_force_release(lock, NULL), code);
    expect_outcome(hl_client_ping(client, -1, &err), code);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.owner = new_owner(client), .wait_ms = -1),
                                    record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_lock_force_release_async(lock, record_done, &told));
    check(recorder_wait(&told, 3));
    expect_outcome(recorder_entry(&told, 0).code, code);
    expect_outcome(recorder_entry(&told, 1).code, code);
    expect_outcome(recorder_entry(&told, 2).code, code);
    expect_from_semaphore_and_latch(client, code);
    close_client(client);
}

static void expect_from_open(const char *url, int code, const char *says)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_client_open(url, CLIENT(.outage_timeout_ms = slow_ms(1500)), &client, &err),
                   code);
    check_int(err.code, code);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
    check(client == NULL);
}

Law(a_refused_connection, is_no_connection)
{
    char url[64], says[64];
    int port = listener_free_port();
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    snprintf(says, sizeof says, "connect 127.0.0.1:%d: connection refused", port);
    expect_from_open(url, HL_ECONN, says);
    expect_from_every_call(url, HL_ECONN, says);
    expect_from_open("unix:///nowhere/redis.sock", HL_ECONN, "/nowhere/redis.sock");
}

static bool answer_http(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)command, (void)arg;
    fake_reply_text(reply, "HTTP/1.1 400 Bad Request\r\n\r\n");
    return true;
}

Law(a_web_server, is_a_breach_of_the_protocol)
{
    struct fake_server *web = fake_server_start(answer_http, NULL);
    expect_from_open(fake_server_url(web), HL_EPROTO, "");
    expect_from_every_call(fake_server_url(web), HL_EPROTO, "");
    fake_server_stop(web);
}

Law(a_missing_password, is_a_denial_at_once)
{
    redis_do(server, "CONFIG SET requirepass TopSecret");
    int64_t before_ms = now_ms();
    expect_from_open(redis_server_url(server), HL_EDENIED, "NOAUTH");
    expect_from_every_call(redis_server_url(server), HL_EDENIED, "NOAUTH");
    check(now_ms() - before_ms < slow_ms(8000));
}

Law(a_replica, is_a_server_that_refuses)
{
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    expect_from_open(redis_server_url(server), HL_ESERVER, "READONLY");
    expect_from_every_call(redis_server_url(server), HL_ESERVER, "READONLY");
}

Law(a_database, that_is_not_there_is_refused_by_the_server)
{
    char url[256];
    snprintf(url, sizeof url, "%s?db=99", redis_server_url(server));
    expect_from_open(url, HL_ESERVER, "DB index");
    snprintf(url, sizeof url, "%s?db=3", redis_server_url(server));
    expect_ok(hl_lock_acquire(new_lock(open_client_at(url, NULL), "stock"), NULL));
    check_int(redis_int(server, "EXISTS stock"), 0);
    check(strstr(redis_str(server, "INFO keyspace"), "db3:keys=1") != NULL);
}

Law(a_url, of_a_later_version_is_not_supported)
{
    expect_from_open("redis-masters://127.0.0.1", HL_ENOTSUP, "not supported by this version");
    expect_from_open("nonsense", HL_EINVAL, "redis://");
}

Law(a_lack_of_descriptors, is_a_lack_of_memory)
{
    struct rlimit limit, none;
    check_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    check_int(setrlimit(RLIMIT_NOFILE, &none), 0);
    hl_client *client = NULL;
    int code = hl_client_open(redis_server_url(server), NULL, &client, NULL);
    check_int(setrlimit(RLIMIT_NOFILE, &limit), 0);
    expect_outcome(code, HL_ENOMEM);
}

Law(a_release, that_the_server_refuses_for_good_says_why)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    struct recorder told = RECORDER_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "SET stock x");
    expect_outcome(hl_lock_release(lock, &err), HL_ESERVER);
    check(strstr(err.text, "release 'stock': WRONGTYPE") != NULL);
    redis_do(server, "DEL stock");
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    redis_do(server, "ACL SETUSER default -evalsha");
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    expect_story(&told, "done HL_EDENIED");
    check(strstr(recorder_entry(&told, 0).said, "NOPERM") != NULL &&
          strstr(recorder_entry(&told, 0).said, "hirelock acl prints the rule") != NULL);
    check(!hl_lock_is_held(lock, owner));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EDENIED);
    expect_outcome(hl_lock_force_release(lock, NULL), HL_EDENIED);
}

static int forced;

static void job_force(void *lock)
{
    forced = hl_lock_force_release(lock, NULL);
}

TcpLaw(a_force_release, whose_answer_is_lost_is_in_doubt_and_not_repeated)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.backoff_min_ms = 1));
    hl_lock *lock = new_lock(client, "stock"), *next = new_lock(open_client(NULL), "stock");
    struct actor *actor = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_force_release(new_lock(client, "other"), NULL), HL_ENOENT);
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    actor_begin(actor, job_force, lock);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    expect_ok(hl_lock_acquire(next, NULL));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    actor_await(actor);
    expect_outcome(forced, HL_EINDOUBT);
    expect_ok(hl_client_ping(client, -1, NULL));
    check(hl_lock_is_held(next, NULL));
    check_int(redis_int(server, "EXISTS stock"), 1);
    close_client(client);
    proxy_stop(proxy);
}

Law(a_ping, is_answered_or_ends_in_time)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
    expect_ok(hl_client_ping(client, -1, NULL));
    expect_ok(hl_client_ping(client, 5000, NULL));
    redis_server_freeze(server);
    int64_t before_ms = now_ms();
    expect_outcome(hl_client_ping(client, 100, NULL), HL_ETIMEDOUT);
    check(now_ms() - before_ms >= 99 && now_ms() - before_ms < slow_ms(8000));
    redis_server_thaw(server);
    expect_ok(hl_client_ping(client, -1, NULL));
}

Law(a_lazy_client, begins_to_work_when_its_server_does)
{
    redis_server_kill(server);
    hl_client *client = open_client(
        CLIENT(.flags = HL_CLIENT_LAZY, .backoff_min_ms = 5, .outage_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    redis_server_restart(server);
    expect_ok(actor_end(actor));
    expect_held_by(client, lock, 1);
    check_str(hl_version(), "0.1.0");
}

static const char *mailbox_of(hl_client *client)
{
    static char channel[64];
    snprintf(channel, sizeof channel, "hirelock:%s", hl_client_id(client));
    return channel;
}

Law(a_client, has_a_uuid_of_its_own)
{
    hl_client *a = open_client(NULL), *b = open_client(CLIENT(.client_name = "shop"));
    check_int(strlen(hl_client_id(a)), 36);
    check(strcmp(hl_client_id(a), hl_client_id(b)) != 0);
    check(redis_wait_subscribers(server, mailbox_of(a), 1, 5000)); /* a connection to listen, */
    check(redis_wait_subscribers(server, mailbox_of(b), 1, 5000));
    check_int(redis_clients(server, REDIS_PUBSUB, "hirelock"), 1);
    check_int(redis_clients(server, REDIS_PUBSUB, "shop"), 1);
    check_int(redis_clients(server, REDIS_NORMAL, "hirelock"), 1); /* and one for commands */
    check_int(redis_clients(server, REDIS_NORMAL, "shop"), 1);
}
