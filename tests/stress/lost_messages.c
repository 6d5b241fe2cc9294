/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A thousand releases whose message is lost, grants among them: no wait is longer than a poll. */

#include <hirelock/hirelock.h>
#include <pthread.h>

#include "support/proxy.h"
#include "support/redis_probe.h"
#include "support/test.h"

/* On a busy machine a few waits are longer, for want of a processor. */
enum { LINES = 10, ROUNDS = 100, POLL_MS = 200, LATE_MS = 10000, MOST_LATE = LINES * ROUNDS / 20 };

/* One name, its holder, and its waiter, which receives no message. */
struct line {
    struct redis_server *server;
    hl_client *holder, *deaf;
    int index, late;
    int64_t longest_ms;
    pthread_t thread;
};

struct line_wait {
    hl_lock *lock;
    hl_owner *owner;
    int code;
    int64_t got_ns;
};

static void *line_wait(void *arg)
{
    struct line_wait *wait = arg;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_WAIT_FOREVER;
    options.owner = wait->owner;
    wait->code = hl_lock_acquire_with(wait->lock, &options, NULL);
    wait->got_ns = now_ns();
    return NULL;
}

static bool line_has_waiter(void *deaf)
{
    hl_stats stats = {.size = sizeof stats};
    return hl_client_stats(deaf, &stats) == 0 && stats.waiters_now > 0;
}

static void line_round(struct line *line, hl_lock *held, struct line_wait *wait,
                       const char *channel)
{
    pthread_t waiter;
    check_int(hl_lock_acquire_for(held, slow_ms(20000), NULL), 0);
    check_int(pthread_create(&waiter, NULL, line_wait, wait), 0);
    check(redis_wait_subscribers(line->server, channel, 1, 20000));
    check(wait_until(line_has_waiter, line->deaf, 20000));
    int64_t released_ns = now_ns();
    check_int(hl_lock_release(held, NULL), 0);
    pthread_join(waiter, NULL);
    check_int(wait->code, 0);
    int64_t waited_ms = (wait->got_ns - released_ns) / 1000000;
    if (waited_ms > line->longest_ms)
        line->longest_ms = waited_ms;
    check_msg(waited_ms <= slow_ms(LATE_MS), "waited %d ms", (int)waited_ms);
    line->late += waited_ms > slow_ms(POLL_MS * 13 / 10 + 300);
    check_int(hl_lock_release_as(wait->lock, wait->owner, NULL), 0);
}

static void *line_run(void *arg)
{
    struct line *line = arg;
    struct line_wait wait = {.lock = NULL};
    char name[16], channel[64];
    hl_lock *held = NULL;
    snprintf(name, sizeof name, "n%d", line->index);
    snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
    check_int(hl_lock_new(line->holder, name, &held, NULL), 0);
    check_int(hl_lock_new(line->deaf, name, &wait.lock, NULL), 0);
    check_int(hl_owner_new(line->deaf, &wait.owner), 0);
    for (int i = 0; i < ROUNDS; i++)
        line_round(line, held, &wait, channel);
    hl_lock_free(held);
    hl_lock_free(wait.lock);
    hl_owner_free(wait.owner);
    return NULL;
}

static hl_client *line_client(const char *url)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    options.poll_ms = POLL_MS;
    check_int(hl_client_open(url, &options, &client, NULL), 0);
    return client;
}

Test(stress_lost_messages, cost_at_most_a_poll_a_thousand_times, .timeout = 600)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.tcp = true});
    struct proxy *proxy = proxy_start_before(server);
    struct line line[LINES];
    hl_client *holder = line_client(redis_server_url(server));
    int64_t longest_ms = 0;
    int late = 0;
    proxy_drop_messages(proxy, "", 1000000); /* all */
    for (int i = 0; i < LINES; i++) {
        line[i] = (struct line){
            .server = server, .holder = holder, .deaf = line_client(proxy_url(proxy)), .index = i};
        check_int(pthread_create(&line[i].thread, NULL, line_run, &line[i]), 0);
    }
    for (int i = 0; i < LINES; i++) {
        pthread_join(line[i].thread, NULL);
        hl_client_close(line[i].deaf);
        longest_ms = line[i].longest_ms > longest_ms ? line[i].longest_ms : longest_ms;
        late += line[i].late;
    }
    printf("%d waits, %d messages lost, the longest wait %d ms\n", LINES * ROUNDS,
           proxy_dropped(proxy), (int)longest_ms);
    check_msg(late <= MOST_LATE, "%d waits were longer than a poll", late);
    check(proxy_dropped(proxy) > LINES * ROUNDS * 3 / 2); /* most grants, and who got it releases */
    hl_client_close(holder);
    proxy_stop(proxy);
    redis_server_stop(server);
}
