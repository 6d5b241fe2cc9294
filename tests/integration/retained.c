/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Retained locks: a lock stays with its client for a moment after its release, for the next owner
 * there. How long, for which owners, and what ends it.
 *
 * The client needs fresh word that no other client waits, and a busy machine may let that word grow
 * old; so a test repeats its release until the lock is retained.
 */

#include "lease/hold/watchdog.h"
#include "lease/state/name.h"
#include "redis/script.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/redis_link.h"
#include "sync/lock/lock.h"
#include "two_links.h"

#include <stdatomic.h>
#include <sys/wait.h>

static hl_client *client;
static hl_lock *stock;
static hl_owner *someone;
static struct recorder events = RECORDER_INIT;

static void begin_at(const char *url, const hl_client_options *options, int64_t retain_ms)
{
    hl_lock_options retains = HL_LOCK_OPTIONS_INIT;
    retains.retain_ms = retain_ms;
    const struct hli_script *keep = hli_script_get(HLI_SCRIPT_LOCK_KEEP);
    client = open_client_at(url, options);
    redis_do(server, "SCRIPT LOAD %b", keep->text, keep->length);
    someone = new_owner(client);
    stock = new_lock_with(client, "stock", &retains);
    expect_ok(hl_lock_acquire(stock, NULL)); /* from now on the server knows the others, too */
    expect_ok(hl_lock_release(stock, NULL));
}

static void begin(const hl_client_options *options, int64_t retain_ms)
{
    begin_at(redis_server_url(server), options, retain_ms);
}

static bool is_retained(void)
{
    pthread_mutex_lock(&stock->handle.name->mutex);
    bool does =
        stock->handle.name->current && stock->handle.name->current->state == HLI_TENURE_IDLE;
    pthread_mutex_unlock(&stock->handle.name->mutex);
    return does;
}

static bool is_not_retained_any_more(void *arg)
{
    (void)arg;
    return !is_retained();
}

/* This thread or another owner has acquired and released the lock, and it is retained now. */
static void retain(hl_owner *owner_)
{
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.wait_ms = -1, .owner = owner_), NULL));
        expect_ok(hl_lock_release_as(stock, owner_, NULL));
    } while (!is_retained());
    check_int(stats_of(client).holds_now, 0);
}

TcpLaw(retained, gives_the_lock_to_the_next_owner_without_a_request)
{
    begin(NULL, 1000);
    char field[128];
    for (bool is_done = false; !is_done;) {
        retain(someone);
        snprintf(field, sizeof field, "%s", field_of(stock));
        uint64_t before = stats_of(client).retained, commands = stats_of(client).commands;
        expect_ok(hl_lock_try_acquire(stock, NULL)); /* this thread is another one */
        is_done = stats_of(client).retained == before + 1 &&
                  stats_of(client).commands == commands && strcmp(field, field_of(stock)) == 0;
        check(hl_lock_is_held(stock, NULL) && !hl_lock_is_held(stock, someone));
        expect_ok(hl_lock_release(stock, NULL));
    }
}

/* Before the watchdog would look at it again, which is after a third of its lease. A machine that
 * is too busy for that once is not too busy each time. */
static void expect_ends_in_time(void (*retain_it)(void))
{
    enum { LOOK_MS = 5000 / 3 };
    struct deadline deadline = deadline_in(30000);
    int64_t before_ms;
    do {
        check_msg(!deadline_is_over(deadline), "it is retained for longer");
        retain_it();
        before_ms = now_ms();
        expect_free(stock);
        check(!is_retained());
    } while (now_ms() - before_ms >= LOOK_MS - 200);
}

static void retain_mine(void)
{
    int64_t is_there;
    do { /* until its time was not over by that look */
        retain(NULL);
        is_there = redis_int(server, "EXISTS stock");
    } while (!is_retained());
    check_int(is_there, 1);
}

TcpLaw(retained, ends_with_its_time)
{
    begin(NULL, 100);
    expect_ends_in_time(retain_mine);
}

/* A key that stands for an hour after this process ends is not a retained lock's. */
TcpLaw(retained, does_not_keep_a_long_lease)
{
    begin(NULL, 1000);
    for (int i = 0; i < 10; i++) {
        retain(NULL);
        expect_ok(hl_lock_acquire(stock, NULL));
        expect_ok(hl_lock_acquire_with(stock, ACQUIRE(.lease_ms = 3600000, .wait_ms = -1), NULL));
        expect_ok(hl_lock_release(stock, NULL));
        expect_ok(hl_lock_release(stock, NULL));
        check(!is_retained());
        expect_free(stock);
    }
}

static int64_t is_retained_for_ms(void)
{
    pthread_mutex_lock(&stock->handle.name->mutex);
    const struct hli_tenure *idle = stock->handle.name->current;
    int64_t left_ms =
        idle && idle->state == HLI_TENURE_IDLE ? hli_ms_left(hli_now(), idle->idle_until) : 0;
    pthread_mutex_unlock(&stock->handle.name->mutex);
    return left_ms;
}

/* The time is that of the handle by which release is called, whichever handle acquired. */
TcpLaw(retained, lasts_as_long_as_the_handle_says_that_released)
{
    hl_lock_options shortly = HL_LOCK_OPTIONS_INIT;
    begin(NULL, 1000);
    shortly.retain_ms = 5;
    hl_lock *brief = new_lock_with(client, "stock", &shortly);
    retain(NULL);
    expect_ok(hl_lock_acquire(brief, NULL));
    expect_ok(hl_lock_release(brief, NULL));
    check(is_retained_for_ms() <= 5);
    expect_free(stock);
}

/* The watchdog looks at it while an owner is inside, and comes again for a renewal. */
static void retain_watched(void)
{
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        retain(NULL);
        expect_ok(hl_lock_acquire(stock, NULL));
        hli_watchdog_review(client->watchdog);
        deadline_nap(); /* it looks */
        deadline_nap();
        expect_ok(hl_lock_release(stock, NULL));
    } while (!is_retained());
}

TcpLaw(retained, ends_with_its_time_whatever_the_watchdog_saw)
{
    begin(NULL, 150);
    expect_ends_in_time(retain_watched);
}

TcpLaw(a_retained_lock, is_released_at_once_when_another_client_asks)
{
    begin(NULL, 1000);
    hl_lock *rivals = new_lock(open_client(CLIENT(.poll_ms = 10000)), "stock");
    struct deadline deadline = deadline_in(20000);
    for (int i = 0, in_time = 0; in_time < 3; i++) {
        retain(i % 2 ? someone : NULL);
        int64_t until_ms = now_ms() + is_retained_for_ms();
        expect_ok(hl_lock_acquire(rivals, NULL));
        in_time += now_ms() < until_ms; /* else it may have ended with its time */
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_release(rivals, NULL));
    }
}

/* Resumes the retained lock, with a word so old that the client asks for a new one. Does not
 * release. False: its time was over, and the lock was acquired anew. */
static bool take_up_with_old_word(void)
{
    uint64_t before = stats_of(client).retained;
    pthread_mutex_lock(&stock->handle.name->mutex);
    if (stock->handle.name->current)
        stock->handle.name->current->no_waiters_at = hli_now() - HLI_MS(11);
    pthread_mutex_unlock(&stock->handle.name->mutex);
    expect_ok(hl_lock_acquire(stock, NULL));
    return stats_of(client).retained == before + 1;
}

/* Redisson's; it begins to listen to a lock that is retained already. */
static redisContext *listen_behind_retained(void)
{
    redisContext *link = redis_link_connect(redis_server_socket(server));
    redisReply *reply = NULL;
    check_int(redisAppendCommand(link, "SUBSCRIBE redisson_lock__channel:{stock}"), REDIS_OK);
    retain(NULL);
    check_int(redisGetReply(link, (void **)&reply), REDIS_OK); /* sends it, too */
    freeReplyObject(reply);
    return link;
}

static bool is_wanted(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&stock->handle.name->mutex);
    bool is = stock->handle.name->current && stock->handle.name->current->has_waiters;
    pthread_mutex_unlock(&stock->handle.name->mutex);
    return is;
}

/* A listener of Redisson's cannot say that it waits; it is seen when the word is renewed. */
TcpLaw(a_retained_lock, is_not_kept_while_a_waiter_of_redissons_listens)
{
    begin(NULL, 1000);
    struct deadline deadline = deadline_of_wait(20000);
    redisContext *link = listen_behind_retained();
    while (!take_up_with_old_word()) {
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_release(stock, NULL));
        redisFree(link);
        check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 0, 5000));
        link = listen_behind_retained();
    }
    check(wait_until(is_wanted, NULL, 5000));
    expect_ok(hl_lock_release(stock, NULL));
    check(!is_retained());
    redisFree(link);
}

TcpLaw(a_retained_lock, is_never_a_hold_with_a_lease_time)
{
    begin(NULL, 1000);
    retain(NULL);
    char field[128];
    snprintf(field, sizeof field, "%s", field_of(stock));
    expect_ok(hl_lock_acquire_with(
        stock, ACQUIRE(.owner = someone, .wait_ms = -1, .lease_ms = 2000), NULL));
    check(strcmp(field, field_of(stock)) != 0);
    check(pttl_of(stock) <= 2000);
    expect_ok(hl_lock_release_as(stock, someone, NULL));
    check(!is_retained()); /* nor does a hold with one get retained */
    expect_free(stock);
}

TcpLaw(a_retained_lock, outlives_its_process_by_five_seconds_at_most)
{
    begin(NULL, 1000);
    retain(NULL);
    check(pttl_of(stock) <= 5000);
    expect_ok(hl_lock_acquire(stock, NULL));
    check(pttl_of(stock) <= 5000);
}

TcpLaw(retained, ends_before_its_lease_does)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(900)), 1000);
    struct deadline deadline = deadline_in(30000);
    int64_t releases;
    do { /* a machine that is too busy for that once is not too busy each time */
        check_msg(!deadline_is_over(deadline), "no release ends it");
        retain(NULL);
        releases = redis_calls(server, "del");
        expect_free(stock);
    } while (redis_calls(server, "del") == releases);
}

TcpLaw(retained, is_ended_by_a_close)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    retain(NULL);
    close_client(client);
    check_int(redis_int(server, "EXISTS stock"), 0);
    expect_story(&events, "");
}

TcpLaw(retained, is_ended_by_a_forced_release)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    struct deadline deadline = deadline_in(20000);
    int code;
    do { /* until it has not ended with its time */
        check(!deadline_is_over(deadline));
        retain(NULL);
        code = hl_lock_force_release(stock, NULL); /* of its own client */
    } while (code == HL_ENOENT);
    expect_ok(code);
    check(!is_retained());
    expect_ok(hl_lock_acquire(rivals, NULL));
    expect_outcome(hl_lock_try_acquire(stock, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_story(&events, "");
}

/* A hold of a key that a foreign client deleted: lost with the next word, as any other hold. */
TcpLaw(retained, does_not_hide_that_a_stranger_took_the_lock_away)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(30000), .on_event = record_event, .arg = &events),
          1000);
    for (bool is_lost = false; !is_lost;) {
        retain(NULL);
        redis_do(server, "DEL stock");
        pthread_mutex_lock(&stock->handle.name->mutex);
        if (stock->handle.name->current)
            stock->handle.name->current->no_waiters_at = hli_now() - HLI_MS(11);
        pthread_mutex_unlock(&stock->handle.name->mutex);
        uint64_t before = stats_of(client).retained;
        int64_t since_ms = now_ms();
        expect_ok(hl_lock_acquire(stock, NULL));
        /* If the server's word was faster than the call, the call has asked anew. */
        is_lost = stats_of(client).retained == before + 1 && redis_int(server, "EXISTS stock") == 0;
        if (is_lost) {
            expect_story(&events, "LOST gone");
            check(now_ms() - since_ms < slow_ms(5000)); /* long before a renewal */
        }
        expect_outcome(hl_lock_release(stock, NULL), is_lost ? HL_ELOST : HL_OK);
    }
}

static void take_and_leave(void *arg)
{
    expect_ok(hl_lock_acquire(arg, NULL));
    expect_ok(hl_lock_release(arg, NULL));
}

TcpLaw(retained, does_not_belong_to_the_thread_that_left_it)
{
    begin(CLIENT(.on_event = record_event, .arg = &events), 1000);
    struct deadline deadline = deadline_in(20000);
    char field[128];
    bool in_time;
    do { /* until it has not ended with its time */
        check(!deadline_is_over(deadline));
        struct actor *actor = actor_start();
        actor_do(actor, take_and_leave, stock);
        snprintf(field, sizeof field, "%s", field_of(stock));
        actor_stop(actor);
        int64_t since_ms = now_ms(), until_ms = since_ms + is_retained_for_ms();
        while (now_ms() < since_ms + 30) /* whatever looks after threads that end has looked */
            deadline_nap();
        bool is_the_same = is_retained() && strcmp(field_of(stock), field) == 0;
        in_time = now_ms() < until_ms;
        check(is_the_same || !in_time);
    } while (!in_time);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(client, stock, 1);
    expect_ok(hl_lock_release(stock, NULL));
    close_client(client);
    expect_story(&events, "");
}

TcpLaw(retained, is_not_for_a_forked_child)
{
    begin(NULL, 1000);
    retain(NULL);
    uint64_t before = stats_of(client).retained;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int code = hl_lock_acquire(stock, NULL), released = hl_lock_release(stock, NULL);
        _exit(code == HL_EFORKED && released == HL_EFORKED ? 0 : 1);
    }
    int status = -1;
    check(waitpid(pid, &status, 0) == pid);
    check_int(status, 0);
    check_int(stats_of(client).retained, before);
    expect_ok(hl_lock_acquire(stock, NULL));
    expect_held_by(client, stock, 1);
}

TcpLaw(retained, is_ended_by_a_new_link)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), CLIENT(.backoff_min_ms = 1), 1000);
    struct deadline deadline = deadline_in(20000);
    int64_t until_ms;
    int cuts = 0;
    do { /* until it has not ended with its time */
        check(!deadline_is_over(deadline));
        retain(NULL);
        until_ms = now_ms() + is_retained_for_ms();
        proxy_kill_all(proxy);
        cuts++;
        expect_free(stock);
    } while (now_ms() >= until_ms);
    check(!is_retained());
    check_int(stats_of(client).reconnects, cuts);
    close_client(client);
    proxy_stop(proxy);
}

/* True if the lock is retained after a nested hold whose count for the display is held up by the
 * network. The release is posted, because the caller must not wait for the server here. */
static bool is_retained_with_a_count_on_its_way(struct proxy *proxy, hl_lock *posted)
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
    return is_retained();
}

TcpLaw(retained, is_over_without_a_word_when_a_late_count_finds_it_gone)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), NULL, 1000);
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.retain_ms = 1000;
    options.flags = HL_LOCK_ASYNC_RELEASE;
    hl_lock *posted = new_lock_with(client, "stock", &options);
    struct deadline deadline = deadline_in(20000);
    while (!is_retained_with_a_count_on_its_way(proxy, posted)) {
        check(!deadline_is_over(deadline));
        proxy_pass(proxy);
    }
    redis_do(server, "DEL stock"); /* a stranger's */
    proxy_pass(proxy);
    check(wait_until(is_not_retained_any_more, NULL, 5000));
    expect_ok(hl_lock_acquire(posted, NULL));
    expect_held_by(client, posted, 1);
    expect_ok(hl_lock_release(posted, NULL));
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

TcpLaw(retained, and_passing_let_one_in_at_a_time)
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
