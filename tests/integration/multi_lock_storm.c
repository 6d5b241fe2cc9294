/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Many threads of several clients, each with any few of the same names: alone or several as one,
 * trying, waiting for a moment or for as long as it takes, with lease times and without, cancelled
 * at any moment, nested, async, with posted releases and retained locks. Each name has one holder
 * at a time, and nothing is left at the end; also when links are cut, scripts are flushed and keys
 * are deleted meanwhile.
 */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/proxy.h"
#include "support/recorder.h"

enum { NAMES = 5, CLIENTS = 3, THREADS = 3, ROUNDS = 120 };

struct rioter {
    hl_client *client;
    hl_lock *name[NAMES];
    hl_owner *owner;
    hl_cancel *cancel;
    unsigned seed;
    int served;
};

static struct rioter rioters[CLIENTS * THREADS];
static atomic_int inside[NAMES]; /* how many believe that they have it */
static atomic_bool is_cutting;   /* faults are about: holds may be lost */
static atomic_int told;

static unsigned rioter_random(struct rioter *rioter, unsigned below)
{
    rioter->seed = rioter->seed * 1103515245 + 12345;
    return rioter->seed / 65536 % below;
}

/* A set of names that is not empty, as bits. */
static unsigned some_names(struct rioter *rioter)
{
    return 1 + rioter_random(rioter, (1u << NAMES) - 1);
}

static hl_lock *lock_of(struct rioter *rioter, unsigned names)
{
    hl_lock *members[NAMES], *lock = NULL;
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    size_t count = 0;
    for (int i = NAMES; i-- > 0;)
        if (names & 1u << i)
            members[count++] = rioter->name[i];
    options.flags = rioter_random(rioter, 3) == 0 ? HL_LOCK_ASYNC_RELEASE : 0;
    options.retain_ms = rioter_random(rioter, 3) == 0 ? 15 : 0;
    expect_ok(hl_multi_lock_new(members, count, &options, &lock, NULL));
    return lock;
}

/* Alone with each, as long as the lock says so before and afterwards. */
static void work_inside(struct rioter *rioter, const hl_lock *lock, unsigned names)
{
    for (int i = 0; i < NAMES; i++)
        if (names & 1u << i) {
            int others = atomic_fetch_add(&inside[i], 1);
            check_msg(others == 0 || !hl_lock_is_held(lock, rioter->owner) ||
                          atomic_load(&is_cutting),
                      "two are inside");
        }
    if (rioter_random(rioter, 3) == 0)
        sched_yield();
    for (int i = 0; i < NAMES; i++)
        if (names & 1u << i)
            atomic_fetch_sub(&inside[i], 1);
}

static void nest(struct rioter *rioter, hl_lock *lock)
{
    int code = hl_lock_acquire_with(lock, ACQUIRE(.owner = rioter->owner), NULL);
    check_msg(code == HL_OK || atomic_load(&is_cutting), "nested: %s", hl_err_name(code));
    if (code == HL_OK)
        hl_lock_release_as(lock, rioter->owner, NULL);
}

static bool may_end_so(int code)
{
    return code == HL_OK || code == HL_EBUSY || code == HL_ETIMEDOUT || code == HL_ECANCELED ||
           (atomic_load(&is_cutting) &&
            (code == HL_ECONN || code == HL_ELOST || code == HL_EINDOUBT || code == HL_ENOTOWNER));
}

static void serve(struct rioter *rioter, hl_lock *lock, unsigned names)
{
    work_inside(rioter, lock, names);
    if (rioter_random(rioter, 4) == 0)
        nest(rioter, lock);
    int code = hl_lock_release_as(lock, rioter->owner, NULL);
    check_msg(may_end_so(code), "release: %s", hl_err_name(code));
    rioter->served++;
}

static void note_done(int code, const hl_error *err, void *arg)
{
    struct rioter *rioter = arg;
    check_msg(may_end_so(code), "async: %s (%s)", hl_err_name(code), err ? err->text : "");
    rioter->served = code;
    atomic_fetch_add(&told, 1);
}

static int64_t some_wait(struct rioter *rioter)
{
    static const int64_t waits[] = {0, 1, 5, 20, 60000, HL_WAIT_FOREVER};
    return waits[rioter_random(rioter, 6)];
}

static void riot(void *arg)
{
    struct rioter *rioter = arg;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned names = some_names(rioter);
        hl_lock *lock = lock_of(rioter, names);
        bool is_cancelled = rioter_random(rioter, 8) == 0;
        hl_cancel *cancel = NULL;
        expect_ok(hl_cancel_new(&cancel));
        hl_acquire_options options = {.size = sizeof options,
                                      .owner = rioter->owner,
                                      .wait_ms = some_wait(rioter),
                                      .cancel = cancel};
        options.lease_ms = rioter_random(rioter, 3) == 0 ? slow_ms(20000) : 0;
        if (is_cancelled)
            hl_cancel_fire(cancel);
        hl_error err = HL_ERROR_INIT;
        int code = hl_lock_acquire_with(lock, &options, &err);
        check_msg(may_end_so(code), "acquire: %s (%s)", hl_err_name(code), err.text);
        if (code == HL_OK)
            serve(rioter, lock, names);
        hl_lock_free(lock);
        hl_cancel_free(cancel);
    }
}

static void rioters_begin(const char *const *urls, struct actor **actor)
{
    for (int i = 0; i < CLIENTS * THREADS; i++) {
        struct rioter *rioter = &rioters[i];
        rioter->client =
            i % THREADS == 0
                ? open_client_at(urls[i / THREADS],
                                 CLIENT(.poll_ms = 100, .backoff_min_ms = 2, .backoff_max_ms = 10,
                                        .watchdog_timeout_ms = slow_ms(3000)))
                : rioters[i - 1].client;
        for (int k = 0; k < NAMES; k++) {
            char name[8];
            snprintf(name, sizeof name, "n%d", k);
            rioter->name[k] = new_lock(rioter->client, name);
        }
        rioter->owner = new_owner(rioter->client);
        rioter->seed = (unsigned)i * 7919 + 17;
        actor_begin(actor[i] = actor_start(), riot, rioter);
    }
}

static void rioters_end(struct actor **actor)
{
    int served = 0;
    for (int i = 0; i < CLIENTS * THREADS; i++) {
        actor_await(actor[i]);
        served += rioters[i].served;
    }
    check_msg(served > CLIENTS * THREADS * ROUNDS / 4, "%d were served", served);
    for (int i = 0; i < CLIENTS * THREADS; i += THREADS) {
        check_int(stats_of(rioters[i].client).holds_now, 0);
        check_int(stats_of(rioters[i].client).waiters_now, 0);
    }
}

Law(multi_storm, of_threads_and_clients_leaves_each_alone_and_nothing_behind)
{
    const char *url = redis_server_url(server), *urls[] = {url, url, url};
    struct actor *actor[CLIENTS * THREADS];
    rioters_begin(urls, actor);
    rioters_end(actor);
    expect_nothing_left();
    for (int i = 0; i < CLIENTS * THREADS; i += THREADS)
        check_int(stats_of(rioters[i].client).losses, 0);
}

static bool riot_is_over(struct actor **actor)
{
    for (int i = 0; i < CLIENTS * THREADS; i++)
        if (!actor_is_done(actor[i]))
            return false;
    return true;
}

TcpLaw(multi_storm, with_faults_all_the_time_comes_to_its_end_and_leaves_nothing)
{
    struct actor *actor[CLIENTS * THREADS];
    struct proxy *proxy[CLIENTS];
    const char *urls[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        urls[i] = proxy_url(proxy[i] = proxy_start_before(server));
    atomic_store(&is_cutting, true);
    rioters_begin(urls, actor);
    for (int i = 0; !riot_is_over(actor) && i < 150; i++) {
        proxy_cut_once(proxy[i % CLIENTS], PROXY_EVERY, i % 2 == 0 ? PROXY_UP : PROXY_DOWN,
                       (uint64_t)(i * 37 % 700), i % 3 == 0 ? PROXY_FIN : PROXY_RST);
        if (i % 5 == 0)
            redis_do(server, "SCRIPT FLUSH");
        if (i % 4 == 0)
            redis_do(server, "DEL n%d", i % NAMES);
        deadline_nap();
    }
    rioters_end(actor);
    expect_nothing_left();
    for (int i = 0; i < CLIENTS * THREADS; i += THREADS)
        close_client(rioters[i].client);
    for (int i = 0; i < CLIENTS; i++)
        proxy_stop(proxy[i]);
}

/* An async call that is cancelled at any moment of its life is told once, and leaves nothing. */
Law(multi_storm, of_async_calls_that_are_cancelled_leaves_nothing)
{
    enum { CALLS = 300 };
    struct rioter *rioter = &rioters[0];
    hl_client *client = open_client(CLIENT(.poll_ms = 100));
    rioter->client = client;
    for (int k = 0; k < NAMES; k++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", k);
        rioter->name[k] = new_lock(client, name);
    }
    for (int i = 0; i < CALLS; i++) {
        rioter->owner = new_owner(client);
        hl_cancel *cancel = NULL;
        expect_ok(hl_cancel_new(&cancel));
        hl_lock *lock = lock_of(rioter, some_names(rioter));
        expect_ok(hl_lock_acquire_async(
            lock, ACQUIRE(.owner = rioter->owner, .wait_ms = -1, .cancel = cancel), note_done,
            rioter));
        for (unsigned naps = rioter_random(rioter, 4); naps > 1; naps--)
            sched_yield();
        hl_cancel_fire(cancel);
        struct deadline deadline = deadline_in(10000);
        while (atomic_load(&told) <= i && !deadline_is_over(deadline))
            sched_yield();
        check_int(atomic_load(&told), i + 1);
        if (rioter->served == HL_OK)
            expect_ok(hl_lock_release_as(lock, rioter->owner, NULL));
        hl_lock_free(lock);
        hl_cancel_free(cancel);
        free_owner(rioter->owner);
    }
    expect_nothing_left();
    check_int(stats_of(client).holds_now, 0);
}
