/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Two links held apart, and watches. */

#include "two_links.h"

#include "support/redis_link.h"

const char *mailbox_of(hl_client *client)
{
    static _Thread_local char channel[4][64];
    static _Thread_local int next;
    char *text = channel[next++ % 4];
    snprintf(text, sizeof channel[0], "hirelock:%s", hl_client_id(client));
    return text;
}

void two_links_find(struct two_links *links)
{
    check(redis_wait_subscribers(server, mailbox_of(links->client), 1, 10000));
    links->messages = proxy_find(links->proxy, "SUBSCRIBE");
    check(links->messages >= 0);
    links->commands = links->messages % 2 == 0 ? links->messages + 1 : links->messages - 1;
}

void two_links_open(struct two_links *links, const hl_client_options *options)
{
    links->proxy = new_proxy();
    links->client = open_client_at(proxy_url(links->proxy), options);
    two_links_find(links);
}

void two_links_close(struct two_links *links)
{
    proxy_pass(links->proxy);
    close_client(links->client);
    free_proxy(links->proxy);
}

hl_client *holder;
struct two_links waiter;
hl_lock *held, *lock;
hl_owner *owner, *other;

void contention_begin(int64_t holders_poll_ms, int64_t poll_ms)
{
    /* A lease that does not end meanwhile: a waiter asks again then. */
    holder = open_client(CLIENT(.poll_ms = holders_poll_ms, .watchdog_timeout_ms = 300000));
    held = new_lock(holder, "stock");
    /* A direction that is held for a while does not cost the link. */
    two_links_open(&waiter, CLIENT(.poll_ms = poll_ms, .backoff_min_ms = 1,
                                   .request_timeout_ms = 60000, .outage_timeout_ms = 60000));
    lock = new_lock(waiter.client, "stock");
    owner = new_owner(waiter.client);
    other = new_owner(waiter.client);
    expect_ok(hl_lock_acquire(lock, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_acquire(held, NULL));
}

void contention_end(void)
{
    two_links_close(&waiter);
}

static int64_t calls_when_settled;

void wait_async(hl_owner *whose, struct recorder *recorder, const hl_acquire_options *options)
{
    hl_acquire_options asked = *options;
    asked.owner = whose;
    asked.wait_ms = HL_WAIT_FOREVER;
    /* It asks, and once more when it listens. */
    calls_when_settled = redis_evalsha_calls(server) + 1;
    if (redis_subscribers(server, "redisson_lock__channel:{stock}") == 0)
        calls_when_settled++;
    expect_ok(hl_lock_acquire_async(lock, &asked, record_done, recorder));
}

void expect_in_queue(int n)
{
    check(redis_wait_int(server, n, 10000, "ZCARD hirelock_queue:{stock}"));
}

void expect_settled(void)
{
    expect_in_queue(1);
    expect_calls(calls_when_settled);
    expect_ok(hl_client_ping(waiter.client, -1, NULL)); /* what was run is answered, too */
}

struct kept {
    struct two_links *links;
    int which;
    enum proxy_direction direction;
};

static bool is_kept(void *arg)
{
    const struct kept *kept = arg;
    return proxy_kept(kept->links->proxy, kept->which, kept->direction) > 0;
}

void expect_kept(struct two_links *links, int which, enum proxy_direction direction)
{
    check(wait_until(is_kept, &(struct kept){links, which, direction}, 10000));
}

static bool has_calls(void *arg)
{
    return redis_evalsha_calls(server) >= *(int64_t *)arg;
}

void expect_calls(int64_t calls)
{
    check_msg(wait_until(has_calls, &calls, 10000), "%d scripts were run, expected %d",
              (int)redis_evalsha_calls(server), (int)calls);
}

redisContext *watch_begin(void)
{
    redisContext *watch = redis_link_connect(redis_server_socket(server));
    check(watch != NULL);
    redisReply *reply = redisCommand(watch, "MONITOR");
    check(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    return watch;
}

/* A line is: time [db source] "WORD" "word" ... */
const char *watch_end(redisContext *watch)
{
    static char text[65536];
    size_t used = 0;
    bool is_over = false;
    redis_do(server, "ECHO the-watch-is-over");
    for (text[0] = '\0'; !is_over;) {
        redisReply *reply = NULL;
        check(redisGetReply(watch, (void **)&reply) == REDIS_OK);
        const char *words = strchr(reply->str, ']');
        is_over = strstr(reply->str, "the-watch-is-over") != NULL;
        if (words && used + strlen(words) + 2 < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", words + 2);
        freeReplyObject(reply);
    }
    redisFree(watch);
    return text;
}
