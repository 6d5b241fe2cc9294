/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Lingering: a lock that stays with its client for a moment after its release, for the next owner
 * there. How long, for whom, and what ends it.
 *
 * It needs fresh word that nobody else waits, which a busy machine may let grow old; so what must
 * linger is tried until it does.
 */

#include "lease/name.h"
#include "lease/watchdog.h"
#include "redis/script.h"
#include "support/actor.h"
#include "support/redis_link.h"
#include "sync/lock.h"
#include "two_links.h"

#include <stdatomic.h>
#include <sys/wait.h>

#define Law(suite, name) Test(suite, name, .init = server_up_tcp, .fini = end)

static hl_client *client;
static hl_lock *stock;
static hl_owner *someone;
static struct recorder events = RECORDER_INIT;

static void begin_at(const char *url, const hl_client_options *options, int64_t linger_ms)
{
    hl_lock_options lingers = HL_LOCK_OPTIONS_INIT;
    lingers.linger_ms = linger_ms;
    const struct hli_script *keep = hli_script_get(HLI_SCRIPT_LOCK_KEEP);
    client = open_client_at(url, options);
    redis_do(server, "SCRIPT LOAD %b", keep->text, keep->length);
    someone = new_owner(client);
    expect_ok(hl_lock_new_with(client, "stock", &lingers, &stock, NULL));
    expect_ok(hl_lock_acquire(stock, NULL)); /* from now on the server knows the others, too */
    expect_ok(hl_lock_release(stock, NULL));
}

static void begin(const hl_client_options *options, int64_t linger_ms)
{
    begin_at(redis_server_url(server), options, linger_ms);
}

static void end(void)
{
    hl_lock_free(stock);
    server_down();
}

static bool lingers(void)
{
    pthread_mutex_lock(&stock->name->mutex);
    bool does = stock->name->current && stock->name->current->state == HLI_TENURE_IDLE;
    pthread_mutex_unlock(&stock->name->mutex);
    return does;
}

static bool lingers_no_more(void *arg)
{
    (void)arg;
    return !lingers();
}

/* Taken and released, by this thread or by another owner, and it lingers now. */
static void linger(hl_owner *owner_)
{
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.wait_ms = -1, .owner = owner_), NULL));
        expect_ok(hl_lock_release_as(stock, owner_, NULL));
    } while (!lingers());
    check_int(stats_of(client).holds_now, 0);
}

Law(lingering, gives_the_lock_to_the_next_owner_without_a_request)
{
    begin(NULL, 1000);
    char field[128];
    for (bool is_done = false; !is_done;) {
        linger(someone);
        snprintf(field, sizeof field, "%s", field_of(stock));
        uint64_t before = stats_of(client).lingers, commands = stats_of(client).commands;
        expect_ok(hl_lock_try_acquire(stock, NULL)); /* this thread is another one */
        is_done = stats_of(client).lingers == before + 1 && stats_of(client).commands == commands &&
                  strcmp(field, field_of(stock)) == 0;
        check(hl_lock_is_held(stock, NULL) && !hl_lock_is_held(stock, someone));
        expect_ok(hl_lock_release(stock, NULL));
    }
}

Law(lingering, ends_with_its_time)
{
    begin(NULL, 100);
    linger(NULL);
    int64_t before_ms = now_ms();
    check_int(redis_int(server, "EXISTS stock"), 1);
    expect_free(stock);
    check(now_ms() - before_ms < 100 + slow_ms(500));
    check(!lingers());
}

/* The watchdog looks at it while somebody is inside, and comes again for a renewal. */
Law(lingering, ends_with_its_time_whatever_the_watchdog_saw)
{
    begin(NULL, 150);
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        linger(NULL);
        expect_ok(hl_lock_acquire(stock, NULL));
        hli_watchdog_review(client->watchdog);
        deadline_nap(); /* it looks */
        deadline_nap();
        expect_ok(hl_lock_release(stock, NULL));
    } while (!lingers());
    int64_t before_ms = now_ms();
    expect_free(stock);
    check_msg(now_ms() - before_ms < slow_ms(800), "after %d ms", (int)(now_ms() - before_ms));
}

Law(f9_what_lingers, is_let_go_at_once_when_another_client_asks)
{
    begin(NULL, 1000);
    hl_lock *rivals = new_lock(open_client(CLIENT(.poll_ms = 10000)), "stock");
    for (int i = 0; i < 3; i++) {
        linger(i % 2 ? someone : NULL);
        int64_t before_ms = now_ms();
        expect_ok(hl_lock_acquire(rivals, NULL));
        check_msg(now_ms() - before_ms < 600, "after %d ms", (int)(now_ms() - before_ms));
        expect_ok(hl_lock_release(rivals, NULL));
    }
}

/* Taken from what lingers, with a word so old that a new one is asked for. Does not release. */
static void take_up_with_old_word(void)
{
    struct deadline deadline = deadline_in(20000);
    for (;;) {
        check(!deadline_is_over(deadline));
        linger(NULL);
        uint64_t before = stats_of(client).lingers;
        pthread_mutex_lock(&stock->name->mutex);
        if (stock->name->current)
            stock->name->current->word_at = hli_now() - HLI_MS(11);
        pthread_mutex_unlock(&stock->name->mutex);
        expect_ok(hl_lock_acquire(stock, NULL));
        if (stats_of(client).lingers == before + 1)
            return;
        expect_ok(hl_lock_release(stock, NULL));
    }
}

static bool is_wanted(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&stock->name->mutex);
    bool is = stock->name->current && stock->name->current->is_wanted;
    pthread_mutex_unlock(&stock->name->mutex);
    return is;
}

/* A listener of Redisson's cannot say that it waits; it is seen when the word is renewed. */
Law(f9_what_lingers, is_not_kept_while_somebody_of_redissons_listens)
{
    begin(NULL, 1000);
    redisContext *link = redis_link_connect(redis_server_socket(server));
    redisReply *reply = NULL;
    check_int(redisAppendCommand(link, "SUBSCRIBE redisson_lock__channel:{stock}"), REDIS_OK);
    linger(NULL); /* before it listens */
    check_int(redisGetReply(link, (void **)&reply), REDIS_OK);
    freeReplyObject(reply);
    take_up_with_old_word();
    check(wait_until(is_wanted, NULL, 5000));
    expect_ok(hl_lock_release(stock, NULL));
    check(!lingers());
    redisFree(link);
}

Law(f14_what_lingers, is_not_for_a_hold_with_a_lease_time)
{
    begin(NULL, 1000);
    linger(NULL);
    char field[128];
    snprintf(field, sizeof field, "%s", field_of(stock));
    expect_ok(hl_lock_acquire_with(
        stock, ACQUIRE(.owner = someone, .wait_ms = -1, .lease_ms = 2000), NULL));
    check(strcmp(field, field_of(stock)) != 0);
    check(pttl_of(stock) <= 2000);
    expect_ok(hl_lock_release_as(stock, someone, NULL));
    check(!lingers()); /* nor does a hold with one linger */
    expect_free(stock);
}

Law(f20_what_lingers, outlives_its_process_by_five_seconds_at_most)
{
    begin(NULL, 1000);
    linger(NULL);
    check(pttl_of(stock) <= 5000);
    expect_ok(hl_lock_acquire(stock, NULL));
    check(pttl_of(stock) <= 5000);
}

Law(lingering, ends_before_its_lease_does)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(200)), 1000);
    linger(NULL);
    int64_t before_ms = now_ms(), releases = redis_calls(server, "del");
    expect_free(stock);
    check(now_ms() - before_ms < slow_ms(200));
    check(redis_calls(server, "del") > releases); /* by a release */
}

Law(lingering, is_ended_by_a_close)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    linger(NULL);
    close_client(client);
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_story(&events, "");
}

Law(lingering, is_ended_by_a_forced_release)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    linger(NULL);
    expect_ok(hl_lock_force_release(stock, NULL)); /* of its own client */
    check(!lingers());
    expect_ok(hl_lock_acquire(rivals, NULL));
    expect_outcome(hl_lock_try_acquire(stock, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_story(&events, "");
}

/* A hold of a key that a stranger took away, as any other: lost with the next word. */
Law(lingering, does_not_hide_that_a_stranger_took_the_lock_away)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    for (bool is_lost = false; !is_lost;) {
        linger(NULL);
        redis_do(server, "DEL stock");
        pthread_mutex_lock(&stock->name->mutex);
        if (stock->name->current)
            stock->name->current->word_at = hli_now() - HLI_MS(11);
        pthread_mutex_unlock(&stock->name->mutex);
        uint64_t before = stats_of(client).lingers;
        int64_t since_ms = now_ms();
        expect_ok(hl_lock_acquire(stock, NULL));
        /* If the server's word was faster than the call, the call has asked anew. */
        is_lost = stats_of(client).lingers == before + 1 && redis_int(server, "EXISTS stock") == 0;
        if (is_lost) {
            expect_story(&events, "LOST gone");
            check(now_ms() - since_ms < 1000); /* long before a renewal */
        }
        expect_outcome(hl_lock_release(stock, NULL), is_lost ? HL_ELOST : HL_OK);
    }
}

static void take_and_leave(void *arg)
{
    expect_ok(hl_lock_acquire(arg, NULL));
    expect_ok(hl_lock_release(arg, NULL));
}

Law(lingering, does_not_belong_to_the_thread_that_left_it)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    struct deadline deadline = deadline_in(20000);
    char field[128];
    do {
        check(!deadline_is_over(deadline));
        struct actor *actor = actor_start();
        actor_do(actor, take_and_leave, stock);
        snprintf(field, sizeof field, "%s", field_of(stock));
        actor_stop(actor);
    } while (!lingers());
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + 30) /* whatever looks after threads that end has looked */
        deadline_nap();
    check(lingers());
    check_str(field_of(stock), field);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(client, stock, 1);
    expect_ok(hl_lock_release(stock, NULL));
    close_client(client);
    expect_story(&events, "");
}

Law(lingering, is_not_for_a_forked_child)
{
    begin(NULL, 1000);
    linger(NULL);
    uint64_t lingered = stats_of(client).lingers;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int code = hl_lock_acquire(stock, NULL), released = hl_lock_release(stock, NULL);
        _exit(code == HL_EFORKED && released == HL_EFORKED ? 0 : 1);
    }
    int status = -1;
    check(waitpid(pid, &status, 0) == pid);
    check_int(status, 0);
    check_int(stats_of(client).lingers, lingered);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(client, stock, 1);
}

Law(lingering, is_ended_by_a_new_link)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), CLIENT(.backoff_min_ms = 1), 1000);
    linger(NULL);
    int64_t before_ms = now_ms();
    proxy_kill_all(proxy);
    expect_free(stock);
    check(now_ms() - before_ms < 700);
    check(!lingers());
    check_int(stats_of(client).reconnects, 1);
    close_client(client);
    proxy_stop(proxy);
}

/* Nested, with the count for the display held up by the network, and both levels released: does it
 * linger? By a post, for a release that has to go to the server must not wait there. */
static bool linger_with_a_count_on_its_way(struct proxy *proxy, hl_lock *posted)
{
    expect_ok(hl_lock_acquire(posted, NULL));
    proxy_hold(proxy, 0, PROXY_UP);
    uint64_t commands = stats_of(client).commands;
    expect_ok(hl_lock_acquire(posted, NULL));
    struct deadline deadline = deadline_in(1000);
    while (stats_of(client).commands == commands && !deadline_is_over(deadline))
        ;
    expect_ok(hl_lock_release(posted, NULL));
    expect_ok(hl_lock_release(posted, NULL));
    return lingers();
}

Law(lingering, is_over_without_a_word_when_a_late_count_finds_it_gone)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), NULL, 1000);
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.linger_ms = 1000;
    options.flags = HL_LOCK_POSTED_RELEASE;
    hl_lock *posted = NULL;
    expect_ok(hl_lock_new_with(client, "stock", &options, &posted, NULL));
    struct deadline deadline = deadline_in(20000);
    while (!linger_with_a_count_on_its_way(proxy, posted)) {
        check(!deadline_is_over(deadline));
        proxy_pass(proxy);
    }
    redis_do(server, "DEL stock"); /* a stranger's */
    proxy_pass(proxy);
    check(wait_until(lingers_no_more, NULL, 5000));
    expect_ok(hl_lock_acquire(posted, NULL));
    expect_held_by(client, posted, 1);
    expect_ok(hl_lock_release(posted, NULL));
    hl_lock_free(posted);
    close_client(client);
    proxy_stop(proxy);
}

/* ---- Several at once ---- */

static atomic_bool is_over;
static atomic_int inside, entered;

static void take_turns(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        expect_ok(hl_lock_acquire(stock, NULL));
        check_int(atomic_fetch_add(&inside, 1), 0);
        atomic_fetch_add(&entered, 1);
        atomic_fetch_sub(&inside, 1);
        expect_ok(hl_lock_release(stock, NULL));
    }
}

Law(lingering, and_passing_let_one_in_at_a_time)
{
    enum { THREADS = 4 };
    begin(NULL, 50);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    struct actor *actor[THREADS];
    for (int i = 0; i < THREADS; i++) {
        actor[i] = actor_start();
        actor_begin(actor[i], take_turns, NULL);
    }
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire(rivals, NULL));
        check_int(atomic_fetch_add(&inside, 1), 0);
        atomic_fetch_sub(&inside, 1);
        expect_ok(hl_lock_release(rivals, NULL));
        int before = atomic_load(&entered);
        while (atomic_load(&entered) < before + 100)
            deadline_nap();
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        actor_await(actor[i]);
    expect_free(stock);
}
