/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Asking: when a request is made again, and when it is not. */

#include "support/actor.h"
#include "support/fake_server.h"
#include "support/kit.h"
#include "support/proxy.h"

enum { PUBSUB_LINK = 1 }; /* the second connection of a client */

static bool asking_has_subscribed(void *arg)
{
    return proxy_kept(arg, PUBSUB_LINK, PROXY_UP) > 0;
}

/* Another client releases the lock between the busy answer and the subscription, without a grant,
 * as Redisson does. The waiter receives no message: only its try after the confirmation finds the
 * lock free. */
TcpLaw(asking, is_repeated_after_the_subscription_because_a_release_may_have_come_before)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *waiter = open_client_at(proxy_url(proxy), CLIENT(.poll_ms = 60000));
    hl_lock *wanted = new_lock(waiter, "gap");
    struct actor *actor = actor_start();

    redis_do(server, "HSET gap 00000000-0000-4000-8000-000000000000:1 1");
    redis_do(server, "PEXPIRE gap 60000");
    proxy_hold(proxy, PUBSUB_LINK, PROXY_UP);
    actor_begin_acquire(actor, wanted, ACQUIRE(.wait_ms = slow_ms(20000)));
    check(wait_until(asking_has_subscribed, proxy, 5000));
    redis_do(server, "DEL gap");
    redis_do(server, "PUBLISH redisson_lock__channel:{gap} 0");
    proxy_release(proxy, PUBSUB_LINK, PROXY_UP);

    check_int(actor_end(actor), HL_OK);
    check_msg(actor_took_ms(actor) < slow_ms(10000), "it took %lld ms",
              (long long)actor_took_ms(actor));
    actor_stop(actor);
    proxy_stop(proxy);
}

/* The acquire bounced, so it did not run, and its wait is over by then: the release behind it would
 * take back the lock. */
Test(asking, is_not_repeated_after_a_bounce_when_the_wait_is_over)
{
    static const struct fake_step late_bounce[] = {
        {.expect = "EVALSHA", .answer = "-NOSCRIPT No matching script.\r\n", .delay_ms = 4000},
    };
    struct fake_server *fake = fake_server_start(NULL, NULL);
    hl_client *client = open_client_at(fake_server_url(fake), CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "left");

    fake_server_play(fake, late_bounce, 1);
    expect_outcome(hl_lock_acquire_for(lock, 50, NULL), HL_ETIMEDOUT);
    check(fake_server_wait_count(fake, "EVALSHA", 2, 5000));
    check(fake_server_wait_count(fake, "SCRIPT LOAD", 1, 5000));
    expect_outcome(hl_client_ping(client, 5000, NULL), HL_OK); /* behind whatever was sent */
    check_int(fake_server_count(fake, "EVALSHA"), 2);
    close_client(client);
    fake_server_stop(fake);
}

/* The wait is over when the lock is granted to it. */
TcpLaw(asking, leaves_nothing_behind_when_the_answer_comes_after_the_wait)
{
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.request_timeout_ms = 60000));
    hl_lock *lock = new_lock(client, "late");

    expect_ok(hl_lock_acquire(lock, NULL)); /* loads the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    proxy_hold(proxy, 0, PROXY_DOWN);
    int64_t calls = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire_for(lock, 50, NULL), HL_ETIMEDOUT);
    while (redis_evalsha_calls(server) < calls + 2) /* the release does not wait for the answer */
        deadline_nap();
    check_int(redis_int(server, "EXISTS late"), 0);
    proxy_release(proxy, 0, PROXY_DOWN);
    close_client(client);
    proxy_stop(proxy);
}
