/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Connections that stand and bring nothing, or bring it late; and how often a client tries again.
 */

#include "connection_fixture.h"
#include "support/fake_server.h"
#include "support/listener.h"

struct silence {
    struct connection c;
    hl_client *client, *other;
    hl_lock *lock, *others_lock;
};

static void silence_start(struct silence *silence, const hl_client_options *options)
{
    hl_client_options direct = connection_options();
    silence->c = connection_start(NULL);
    silence->client = open_client_at(proxy_url(silence->c.proxy), options);
    silence->other = open_client_at(redis_server_url(silence->c.server), &direct);
    silence->lock = new_lock(silence->client, "silence");
    silence->others_lock = new_lock(silence->other, "silence");
}

static void silence_stop(struct silence *silence)
{
    free_lock(silence->lock);
    free_lock(silence->others_lock);
    close_client(silence->client);
    close_client(silence->other);
    connection_stop(&silence->c);
}

/* The commands' connection is the first of the two. */
enum { COMMANDS, PUBSUB };

static void check_half_open(enum proxy_direction direction)
{
    hl_client_options options = connection_options();
    struct silence silence;
    options.request_timeout_ms = slow_ms(1000);
    options.outage_timeout_ms = slow_ms(20000);
    silence_start(&silence, &options);
    expect_ok(hl_lock_acquire(silence.lock, ERR));
    expect_ok(hl_lock_release(silence.lock, ERR));
    expect_gone(silence.c.server, "silence");
    proxy_hold(silence.c.proxy, COMMANDS, direction);
    int64_t begin_ms = now_ms();
    expect_ok(hl_lock_acquire_for(silence.lock, slow_ms(15000), ERR));
    int64_t lasted_ms = now_ms() - begin_ms;
    check_msg(lasted_ms >= options.request_timeout_ms - 1 && lasted_ms < slow_ms(15000), "%lld ms",
              (long long)lasted_ms);
    check_str(redis_str(silence.c.server, "HVALS silence"), "1");
    expect_ok(hl_lock_release(silence.lock, ERR));
    expect_gone(silence.c.server, "silence");
    silence_stop(&silence);
}

Test(connection_silence, no_answers_are_noticed_by_the_request_timeout)
{
    check_half_open(PROXY_DOWN);
}

Test(connection_silence, no_requests_are_noticed_by_the_request_timeout)
{
    check_half_open(PROXY_UP);
}

/* Requests that go on being sent do not put off the end of the first. */
Test(connection_silence, a_busy_link_is_noticed_as_soon_as_an_idle_one)
{
    hl_client_options options = connection_options();
    struct silence silence;
    char name[16];
    options.request_timeout_ms = slow_ms(300);
    silence_start(&silence, &options);
    proxy_hold(silence.c.proxy, COMMANDS, PROXY_DOWN);
    int64_t begin_ms = now_ms();
    for (int i = 0; stats_of(silence.client).reconnects == 0; i++) {
        snprintf(name, sizeof name, "busy-%d", i);
        hl_lock *lock = new_lock(silence.client, name);
        (void)!hl_lock_acquire_for(lock, slow_ms(20), NULL);
        free_lock(lock);
        check_msg(now_ms() - begin_ms < slow_ms(10000), "%lld ms",
                  (long long)(now_ms() - begin_ms));
    }
    check(now_ms() - begin_ms >= slow_ms(300) - 1);
    silence_stop(&silence);
}

Test(connection_silence, a_lost_message_costs_a_poll_at_most)
{
    hl_client_options options = connection_options();
    struct silence silence;
    struct connection_call call;
    options.poll_ms = slow_ms(400);
    silence_start(&silence, &options);
    expect_ok(hl_lock_acquire(silence.others_lock, ERR));
    connection_call_start(&call, silence.lock, slow_ms(10000));
    check(redis_wait_subscribers(silence.c.server, "redisson_lock__channel:{silence}", 1, 5000));
    expect_ok(hl_client_ping(silence.client, -1, ERR));
    proxy_hold(silence.c.proxy, PUBSUB, PROXY_DOWN);
    int64_t begin_ms = now_ms();
    expect_ok(hl_lock_release(silence.others_lock, ERR));
    connection_join(&call);
    int64_t lasted_ms = now_ms() - begin_ms;
    check_msg(call.code == HL_OK && lasted_ms <= slow_ms(8000), "%lld ms: %s", (long long)lasted_ms,
              call.err.text);
    silence_stop(&silence);
}

Test(connection_silence, a_slow_server_is_waited_for)
{
    hl_client_options options = connection_options();
    struct silence silence;
    options.watchdog_timeout_ms = slow_ms(1500) + 3000;
    options.request_timeout_ms = slow_ms(5000);
    silence_start(&silence, &options);
    proxy_delay(silence.c.proxy, PROXY_EVERY, PROXY_UP, slow_ms(20));
    proxy_delay(silence.c.proxy, PROXY_EVERY, PROXY_DOWN, slow_ms(20));
    expect_ok(hl_lock_acquire(silence.lock, ERR));
    /* The lease counts from before the request was sent. */
    check(hl_lock_validity_ms(silence.lock, NULL) <= options.watchdog_timeout_ms - slow_ms(40));
    wait_stat(silence.client, renewals, 2);
    check(hl_lock_is_held(silence.lock, NULL));
    expect_ok(hl_lock_release(silence.lock, ERR));
    check_int(stats_of(silence.client).reconnects, 0);
    silence_stop(&silence);
}

/* Each answer comes after the client has given its connection up. */
Test(connection_silence, answers_that_are_always_late_leave_nothing_behind)
{
    hl_client_options options = connection_impatient_options();
    struct silence silence;
    options.connect_timeout_ms = slow_ms(5000);
    options.outage_timeout_ms = slow_ms(60000);
    silence_start(&silence, &options);
    proxy_delay(silence.c.proxy, PROXY_EVERY, PROXY_DOWN, slow_ms(CONNECTION_PATIENCE_MS) + 2000);
    int64_t begin_ms = now_ms();
    expect_outcome(hl_lock_acquire_for(silence.lock, slow_ms(700) + 4000, ERR), HL_ECONN);
    check(now_ms() - begin_ms < slow_ms(30000));
    check(!hl_lock_is_held(silence.lock, NULL));
    proxy_pass(silence.c.proxy);
    check(redis_wait_int(silence.c.server, 0, 5000, "EXISTS silence"));
    expect_ok(hl_lock_acquire_for(silence.others_lock, slow_ms(10000), ERR));
    check(connection_key_is_of(silence.c.server, "silence", silence.other));
    expect_ok(hl_lock_release(silence.others_lock, ERR));
    silence_stop(&silence);
}

/* An answer that comes when the lease it speaks of is over by our clock is not believed. */
Test(connection_silence, an_answer_that_outlives_the_lease_is_no_hold)
{
    hl_client_options options = connection_options();
    struct silence silence;
    hl_acquire_options leased = HL_ACQUIRE_OPTIONS_INIT;
    options.request_timeout_ms = slow_ms(5000);
    leased.lease_ms = slow_ms(100);
    leased.wait_ms = slow_ms(350);
    silence_start(&silence, &options);
    proxy_delay(silence.c.proxy, COMMANDS, PROXY_DOWN, slow_ms(150));
    int code = hl_lock_acquire_with(silence.lock, &leased, NULL);
    check_msg(code == HL_ECONN || code == HL_ETIMEDOUT, "%s", hl_err_name(code));
    check(!hl_lock_is_held(silence.lock, NULL));
    proxy_pass(silence.c.proxy);
    check(redis_wait_int(silence.c.server, 0, 5000, "EXISTS silence"));
    silence_stop(&silence);
}

/* The most connections that a client begins in this time while each of them fails: the pauses grow
 * to at least `pause_ms`, and each attempt is one connection or two. */
static int attempts_at_most(int64_t ms, int64_t pause_ms)
{
    return 2 * (int)(ms / pause_ms + 8);
}

struct attempts {
    struct proxy *proxy;
    int wanted;
};

static bool attempts_are_made(void *arg)
{
    const struct attempts *attempts = arg;
    return proxy_accepted(attempts->proxy) >= attempts->wanted;
}

Test(connection_silence, attempts_to_connect_are_spread_by_the_backoff)
{
    server = redis_server_start(NULL);
    struct proxy *proxy = proxy_start_before(server);
    hl_client_options options = connection_options();
    options.outage_timeout_ms = -1;
    options.backoff_min_ms = 20;
    options.backoff_max_ms = 100;
    hl_client *client = open_client_at(proxy_url(proxy), &options);
    int64_t begin_ms = now_ms();
    int before = proxy_accepted(proxy);
    redis_server_kill(server);
    check(hl_client_ping(client, 1000, NULL) < 0);
    check(wait_until(attempts_are_made, &(struct attempts){proxy, before + 4}, 5000));
    /* 20, 40, 80 and then 100 ms, each shortened by up to a half */
    int attempts = proxy_accepted(proxy) - before, most = attempts_at_most(now_ms() - begin_ms, 50);
    check_msg(attempts <= most, "%d attempts, not %d", attempts, most);
    close_client(client);
    proxy_stop(proxy);
    redis_server_stop(server);
}

static bool flapping_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    if (!resp_command_begins(command, "EVALSHA"))
        return false;
    reply->then = FAKE_RESET;
    return true;
}

/* A handshake is no success: the pauses grow until a link has lived for a while. */
Test(connection_silence, a_server_that_fails_after_each_handshake_is_not_stormed)
{
    struct fake_server *fake = fake_server_start(flapping_answer, NULL);
    hl_client_options options = connection_options();
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 200;
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "flapping");
    int64_t begin_ms = now_ms();
    expect_outcome(hl_lock_acquire_for(lock, 3000, ERR), HL_ECONN);
    int connections = fake_server_accepted(fake), most = attempts_at_most(now_ms() - begin_ms, 50);
    check_msg(connections >= 6 && connections <= most, "%d connections", connections);
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
}

/* Busy, and then it hangs up. */
static bool fading_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    if (!resp_command_begins(command, "EVALSHA"))
        return false;
    fake_reply_text(reply,
                    "*6\r\n:0\r\n:60000\r\n:1700000000\r\n:0\r\n$7\r\nother:1\r\n$1\r\n1\r\n");
    reply->then = FAKE_CLOSE;
    return true;
}

/* An answer is no success either. */
Test(connection_silence, a_server_that_fails_after_each_answer_is_not_stormed)
{
    struct fake_server *fake = fake_server_start(fading_answer, NULL);
    hl_client_options options = connection_options();
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 200;
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "fading");
    int64_t begin_ms = now_ms();
    check(hl_lock_acquire_for(lock, 3000, NULL) < 0);
    int connections = fake_server_accepted(fake), most = attempts_at_most(now_ms() - begin_ms, 50);
    check_msg(connections >= 6 && connections <= most, "%d connections", connections);
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
}

static bool busy_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    atomic_int *times = arg;
    if (resp_command_begins(command, "SUBSCRIBE redisson_lock__channel:{n}") &&
        atomic_fetch_sub(times, 1) > 0)
        fake_reply_text(reply, "-BUSY Redis is busy running a script.\r\n");
    else if (resp_command_begins(command, "EVALSHA"))
        fake_reply_text(reply,
                        "*6\r\n:0\r\n:60000\r\n:1700000000\r\n:0\r\n$7\r\nother:1\r\n$1\r\n1\r\n");
    return reply->length > 0;
}

/* Else the waiter would be deaf as long as the connection lives. */
Test(connection_silence, a_subscription_that_a_busy_server_refused_is_tried_again)
{
    atomic_int times = 1;
    struct fake_server *fake = fake_server_start(busy_answer, &times);
    hl_client_options options = connection_options();
    struct connection_call call;
    options.poll_ms = 100;
    options.request_timeout_ms = slow_ms(5000);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "n");
    connection_call_start(&call, lock, HL_WAIT_FOREVER);
    check(fake_server_wait_count(fake, "SUBSCRIBE redisson_lock__channel:{n}", 2, 10000));
    int reconnects = (int)stats_of(client).reconnects; /* each subscribes again */
    check_int(fake_server_count(fake, "SUBSCRIBE redisson_lock__channel:{n}"), 2 + reconnects);
    close_client(client); /* ends the call */
    connection_join(&call);
    free_lock(lock);
    fake_server_stop(fake);
}
