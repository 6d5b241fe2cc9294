/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Posted releases: the call returns while the request is on its way. The calls that wait for that
 * request, and the event that reports its failure.
 */

#include "redis/script.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "two_links.h"

#include <pthread.h>

static struct two_links links;
static hl_lock *stock, *rivals;
static hl_owner *first, *second;
static struct recorder told = RECORDER_INIT;

/* The releases that on_event reported. */
static struct {
    pthread_mutex_t mutex;
    int count, others;
    char name[64], reason[256];
} failed = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note_event(const hl_event *event, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&failed.mutex);
    if (event->kind == HL_EVENT_RELEASE_FAILED) {
        failed.count++;
        snprintf(failed.name, sizeof failed.name, "%.*s", (int)event->name_length, event->name);
        snprintf(failed.reason, sizeof failed.reason, "%s", event->reason);
    } else if (event->kind == HL_EVENT_LOST) {
        failed.others++;
    }
    pthread_mutex_unlock(&failed.mutex);
}

static int failures(void)
{
    pthread_mutex_lock(&failed.mutex);
    int count = failed.count;
    pthread_mutex_unlock(&failed.mutex);
    return count;
}

static bool has_failed(void *arg)
{
    return failures() >= *(int *)arg;
}

static void expect_failed(int n, int code)
{
    check(wait_until(has_failed, &n, 10000));
    check_int(failures(), n);
    check_str(failed.name, "stock");
    check_msg(strstr(failed.reason, hl_err_text(code)) != NULL, "the reason is \"%s\"",
              failed.reason);
}

static void begin(const hl_client_options *options)
{
    hl_client_options asked = *options;
    hl_lock_options posts = HL_LOCK_OPTIONS_INIT;
    posts.flags = HL_LOCK_ASYNC_RELEASE;
    asked.on_event = note_event;
    two_links_open(&links, &asked);
    stock = new_lock_with(links.client, "stock", &posts);
    first = new_owner(links.client);
    second = new_owner(links.client);
    rivals = new_lock(open_client(CLIENT(.poll_ms = 10000)), "stock");
    expect_ok(hl_lock_acquire(rivals, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_release(rivals, NULL));
}

static void stop(void)
{
    if (links.client)
        two_links_close(&links);
    links.client = NULL;
}

static void take(hl_owner *owner_)
{
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.wait_ms = -1, .owner = owner_), NULL));
}

static void ask_for(hl_owner *owner_, struct recorder *recorder)
{
    expect_ok(hl_lock_acquire_async(stock, ACQUIRE(.wait_ms = -1, .owner = owner_), record_done,
                                    recorder));
}

TcpLaw(posted_release, returns_without_waiting_for_the_answer)
{
    begin(CLIENT(.poll_ms = 1000, .request_timeout_ms = 60000));
    expect_ok(hl_lock_acquire(stock, NULL));
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    expect_ok(hl_lock_release(stock, NULL));
    check(!hl_lock_is_held(stock, NULL));
    expect_free(rivals); /* the server has it, and the answer is not here */
    expect_outcome(hl_lock_release(stock, NULL), HL_ENOTOWNER);
    proxy_pass(links.proxy);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(links.client, stock, 1);
    expect_ok(hl_lock_release(stock, NULL));
    stop();
    check_int(failures(), 0);
}

static int64_t pairs_ms(hl_lock *of)
{
    int64_t before_ms = now_ms();
    for (int i = 0; i < 5; i++) {
        expect_ok(hl_lock_acquire(of, NULL));
        expect_ok(hl_lock_release(of, NULL));
    }
    return now_ms() - before_ms;
}

/* Of the two of a pair whose release is waited for. They are measured in turns, and the best turn
 * counts: a machine that is too busy for a moment makes one longer, and none shorter. */
TcpLaw(posted_release, costs_a_pair_one_round_trip)
{
    int64_t posted_ms = INT64_MAX, waited_ms = INT64_MAX;
    begin(CLIENT(.poll_ms = 1000));
    hl_lock *waited = new_lock(links.client, "waited");
    proxy_delay(links.proxy, links.commands, PROXY_DOWN, slow_ms(40));
    for (int i = 0; i < 4; i++) {
        int64_t posted_now_ms = pairs_ms(stock), waited_now_ms = pairs_ms(waited);
        posted_ms = posted_now_ms < posted_ms ? posted_now_ms : posted_ms;
        waited_ms = waited_now_ms < waited_ms ? waited_now_ms : waited_ms;
    }
    check_msg(4 * posted_ms < 3 * waited_ms, "%lld ms beside %lld ms", (long long)posted_ms,
              (long long)waited_ms);
    stop();
    check_int(failures(), 0);
}

TcpLaw(posted_release, has_the_next_acquire_behind_it_at_once)
{
    begin(CLIENT(.poll_ms = 1000, .request_timeout_ms = 60000));
    take(first);
    char field[128];
    snprintf(field, sizeof field, "%s", field_of(stock));
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    int64_t calls = redis_evalsha_calls(server);
    expect_ok(hl_lock_release_as(stock, first, NULL));
    ask_for(second, &told);
    expect_calls(calls + 2);
    expect_held_by(links.client, stock, 1);
    check(strcmp(field_of(stock), field) != 0);
    check_int(recorder_count(&told), 0);
    proxy_pass(links.proxy);
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(stock, second));
    stop();
    check_int(failures(), 0);
}

/* ---- A request that bounced or was cut off is decided anew ---- */

/* The release comes back, and the acquire behind it does not. */
TcpLaw(a_bounce, of_a_posted_release_does_not_undo_the_acquire_behind_it)
{
    begin(CLIENT(.poll_ms = 10000));
    const struct hli_script *acquire = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE);
    hl_owner *owners[2] = {first, second};
    take(first);
    for (int i = 0; i < 50; i++) {
        redis_do(server, "SCRIPT FLUSH");
        redis_do(server, "SCRIPT LOAD %b", acquire->text, acquire->length);
        expect_ok(hl_lock_release_as(stock, owners[i % 2], NULL));
        ask_for(owners[(i + 1) % 2], &told);
        check(recorder_wait(&told, i + 1));
        expect_ok(recorder_entry(&told, i).code);
        expect_ok(hl_client_ping(links.client, -1, NULL));
        check(hl_lock_is_held(stock, owners[(i + 1) % 2]));
        expect_held_by(links.client, stock, 1);
        expect_outcome(hl_lock_try_acquire(rivals, NULL), HL_EBUSY);
    }
    stop();
    check_int(failures(), 0);
}

static bool is_delivered(void *arg)
{
    return proxy_kept(links.proxy, *(int *)arg, PROXY_UP) == 0;
}

/* The old connection's release runs when the new one has long done both. For that the server must
 * be one that refuses to kill it. */
TcpLaw(a_drop, between_a_posted_release_and_the_next_acquire_undoes_nothing)
{
    redis_deny(server, "default", "client|kill");
    begin(CLIENT(.poll_ms = 10000, .backoff_min_ms = 1, .request_timeout_ms = slow_ms(1500)));
    for (int i = 0; i < 3; i++) {
        int old = links.commands;
        take(first);
        proxy_hold(links.proxy, old, PROXY_UP);
        expect_ok(hl_lock_release_as(stock, first, NULL));
        wait_stat(links.client, reconnects, i + 1);
        ask_for(second, &told);
        check(recorder_wait(&told, i + 1));
        expect_ok(recorder_entry(&told, i).code);
        check(proxy_kept(links.proxy, old, PROXY_UP) > 0);
        proxy_release(links.proxy, old, PROXY_UP);
        check(wait_until(is_delivered, &old, 5000));
        check(redis_wait_clients(server, REDIS_NORMAL, 2, 5000)); /* it was read to its end */
        check(hl_lock_is_held(stock, second));
        expect_held_by(links.client, stock, 1);
        expect_outcome(hl_lock_try_acquire(rivals, NULL), HL_EBUSY);
        expect_ok(hl_lock_release_as(stock, second, NULL));
        expect_free(stock);
        two_links_find(&links);
    }
    stop();
    check_int(failures(), 0);
}

TcpLaw(posted_release, that_bounces_is_done_all_the_same)
{
    begin(CLIENT(.poll_ms = 1000));
    for (int i = 0; i < 10; i++) {
        expect_ok(hl_lock_acquire(stock, NULL));
        redis_do(server, "SCRIPT FLUSH");
        expect_ok(hl_lock_release(stock, NULL));
        expect_free(rivals);
    }
    stop();
    check_int(failures(), 0);
}

/* ---- Failures ---- */

TcpLaw(posted_release, of_a_lost_hold_is_told_by_an_event)
{
    begin(CLIENT(.poll_ms = 1000));
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_release(stock, NULL));
    expect_failed(1, HL_ELOST);
    stop();
    check_int(failures(), 1);
    check_int(failed.others, 0);
}

TcpLaw(posted_release, that_is_refused_is_told_by_an_event)
{
    begin(CLIENT(.poll_ms = 1000));
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "SET stock thing");
    expect_ok(hl_lock_release(stock, NULL));
    expect_failed(1, HL_ESERVER);
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_do(server, "ACL SETUSER default -evalsha");
    expect_ok(hl_lock_release(stock, NULL));
    expect_failed(2, HL_EDENIED);
    redis_do(server, "ACL SETUSER default +evalsha");
    stop();
}

TcpLaw(posted_release, without_an_answer_for_a_whole_lease_is_told_by_an_event)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(2000), .request_timeout_ms = slow_ms(500),
                 .backoff_min_ms = 1));
    expect_ok(hl_lock_acquire(stock, NULL));
    redis_server_freeze(server);
    expect_ok(hl_lock_release(stock, NULL));
    expect_failed(1, HL_EINDOUBT);
    redis_server_thaw(server);
    stop();
    check_int(failures(), 1);
}

/* Its copy finds nothing: the first one did it, or the hold was lost before. */
TcpLaw(posted_release, whose_answer_is_lost_is_told_by_an_event)
{
    begin(CLIENT(.poll_ms = 1000, .backoff_min_ms = 1));
    expect_ok(hl_lock_acquire(stock, NULL));
    proxy_hold(links.proxy, PROXY_EVERY, PROXY_DOWN);
    expect_ok(hl_lock_release(stock, NULL));
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    check_int(failures(), 0);
    proxy_kill_all(links.proxy);
    proxy_pass(links.proxy);
    expect_failed(1, HL_EINDOUBT);
    stop();
    check_int(failures(), 1);
    check_int(failed.others, 0);
}

TcpLaw(posted_release, of_a_hold_that_is_over_is_refused_at_once)
{
    begin(CLIENT(.poll_ms = 1000));
    expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.lease_ms = slow_ms(20)), NULL));
    while (hl_lock_is_held(stock, NULL))
        deadline_nap();
    expect_outcome(hl_lock_release(stock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(stock, NULL), HL_ENOTOWNER);
    stop();
    check_int(failures(), 0);
}

/* ---- The end ---- */

TcpLaw(posted_release, is_waited_for_by_a_close)
{
    enum { WAY_MS = 3000 };
    begin(CLIENT(.poll_ms = 1000, .request_timeout_ms = 60000));
    expect_ok(hl_lock_acquire(stock, NULL));
    proxy_delay(links.proxy, links.commands, PROXY_UP, WAY_MS);
    int64_t before_ms = now_ms();
    expect_ok(hl_lock_release(stock, NULL));
    check_int(redis_int(server, "EXISTS stock"), 1);
    close_client(links.client);
    check(now_ms() - before_ms >= WAY_MS);
    check_int(redis_int(server, "EXISTS stock"), 0);
    check_int(failures(), 0);
    free_proxy(links.proxy);
}

TcpLaw(posted_release, that_a_close_cannot_wait_for_is_told_by_an_event)
{
    begin(CLIENT(.request_timeout_ms = slow_ms(1500)));
    expect_ok(hl_lock_acquire(stock, NULL));
    proxy_hold(links.proxy, links.commands, PROXY_UP);
    expect_ok(hl_lock_release(stock, NULL));
    close_client(links.client);
    expect_failed(1, HL_EINDOUBT);
    free_proxy(links.proxy);
}

/* ---- Beside others ---- */

TcpLaw(posted_release, gives_the_lock_to_another_client_that_waits)
{
    begin(CLIENT(.poll_ms = 10000));
    struct actor *rival = actor_start();
    for (int i = 0; i < 10; i++) {
        expect_ok(hl_lock_acquire(stock, NULL));
        actor_begin_acquire(rival, rivals, ACQUIRE(.wait_ms = -1));
        expect_in_queue(1);
        expect_ok(hl_lock_release(stock, NULL));
        expect_ok(actor_end(rival));
        check(!hl_lock_is_held(stock, NULL));
        expect_ok(actor_release(rival, rivals, NULL));
    }
    stop();
    check_int(failures(), 0);
}

TcpLaw(posted_release, of_an_inner_level_sends_nothing_but_the_count)
{
    begin(CLIENT(.poll_ms = 1000));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(links.client, stock, 2);
    expect_ok(hl_lock_release(stock, NULL));
    check(hl_lock_is_held(stock, NULL));
    expect_held_by(links.client, stock, 1);
    expect_ok(hl_lock_release(stock, NULL));
    expect_free(rivals);
    stop();
    check_int(failures(), 0);
}
