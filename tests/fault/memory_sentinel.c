/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A failover that a sentinel tells of while memory is short, with each allocation failing once: the
 * client comes to the new master all the same. The masters are real. The sentinel is a fake one in
 * a process of its own, whose memory is not short: real ones take seconds for each failover. */

#include "memory_kit.h"
#include "sentinel_kit.h"

#include "support/process.h"

enum { SWITCH, DONE };

/* Shared with the sentinels' process. */
struct page {
    int sentinels[2], master; /* ports */
    int epoch;                /* grows with each switch */
};

static struct redis_server *both[2];
static struct process *child;
static struct page *page;
static hl_client *client;
static uint32_t told;
static int files_before;

/* Of any length, unlike the kit's. */
static const char *long_epoch(int number)
{
    static char texts[2][64];
    char *text = texts[number % 2], digits[16];
    int length = snprintf(digits, sizeof digits, "%d", number);

    snprintf(text, sizeof texts[0], "*2\r\n$12\r\nconfig-epoch\r\n$%d\r\n%s\r\n", length, digits);
    return text;
}

static void fake_sentinels(struct process *self, void *arg)
{
    static struct manner manner;
    struct page *mine = process_shared(self);
    struct fake_server *sentinel[2] = {NULL};
    char text[64];

    (void)arg;
    manner.peers = no_peers;
    for (uint32_t i = 1; process_await(self, SWITCH, i, 600000); i++) {
        manner.address = address_of(mine->master);
        manner.epoch = long_epoch(mine->epoch);
        snprintf(text, sizeof text, "mymaster 127.0.0.1 1 127.0.0.1 %d", mine->master);
        for (int j = 0; j < 2; j++) {
            sentinel[j] = sentinel[j] ? sentinel[j] : new_sentinel(&manner);
            mine->sentinels[j] = fake_server_port(sentinel[j]);
            fake_server_publish(sentinel[j], "+switch-master", text);
        }
        process_tell(self, DONE);
    }
}

static hl_client *open_at_sentinels(void)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    char url[64];

    options.outage_timeout_ms = slow_ms(60000);
    snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d/mymaster",
             page->sentinels[0], page->sentinels[1]);
    return open_client_at(url, &options);
}

static void tell_sentinels(void)
{
    process_tell(child, SWITCH);
    check(process_await(child, DONE, ++told, 20000));
}

/* Both servers are masters; the sentinels name the first. */
static void memory_sentinel_up(void)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    for (int i = 0; i < 2; i++)
        both[i] = redis_server_start(&(struct redis_options){.tcp = true});
    server = both[0];
    child = process_start(fake_sentinels, NULL);
    page = process_shared(child);
    page->master = redis_server_port(server);
    page->epoch = 1;
    tell_sentinels();
}

static void memory_sentinel_down(void)
{
    process_kill(child);
    server = both[0];
    redis_server_stop(both[1]);
    server_down();
}

static bool is_at_next(void *arg)
{
    hl_stats stats = stats_of(client);

    return stats.master_changes > *(uint64_t *)arg && stats.nodes_now == 1;
}

static void switch_run(void *arg)
{
    uint64_t changes = stats_of(client).master_changes;

    page->epoch++;
    page->master = redis_server_port(both[page->epoch % 2 == 0]);
    tell_sentinels();
    *(bool *)arg = wait_until(is_at_next, &changes, 30000);
}

/* No call was under way, and so none has failed: the client is at the new master. */
static void switch_verify(void *arg, bool failed)
{
    struct redis_server *master = both[page->epoch % 2 == 0];
    hl_lock *lock = new_lock(client, "stock");

    check_msg(*(bool *)arg, "it stays at the old master (%d)", failed);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    check_int(redis_int(master, "EXISTS stock"), 1);
    kit_release(lock, NULL);
    free_lock(lock);
    check_int(census_files(), files_before);
}

Test(memory_sentinel, one_failure_keeps_no_client_from_a_new_master, .init = memory_sentinel_up,
     .fini = memory_sentinel_down)
{
    bool is_there;
    struct failing_scenario scenario = {
        .scope = FAILING_PROCESS, .run = switch_run, .verify = switch_verify, .arg = &is_there};

    client = open_at_sentinels();
    for (int i = 0; i < 2; i++) {
        redis_do(both[i], "PING"); /* by a connection that the test keeps */
        switch_run(&is_there);
        check(is_there);
    }
    files_before = census_files();
    check(failing_malloc_sweep(&scenario) >= 20);
    scenario.step = 6; /* the client asks ten times a second at most */
    sweep_without_leaks(&scenario);
    close_client(client);
    kit_expect_no_threads();
}
