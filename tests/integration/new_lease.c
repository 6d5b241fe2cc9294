/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A hold whose end is set anew, later or sooner. */

#include "lease/state/name.h"
#include "support/actor.h"
#include "support/kit.h"
#include "support/proxy.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"

enum { FIVE_S = 5000, MINUTE = 60000 };

static struct recorder told = RECORDER_INIT;

static bool is_not_held(void *lock)
{
    return !hl_lock_is_held(lock, NULL);
}

static void take_for(hl_lock *lock, int64_t lease_ms)
{
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = lease_ms), NULL));
}

static int update(hl_lock *lock, int64_t lease_ms)
{
    return hl_lock_update_lease(lock, NULL, lease_ms, NULL);
}

/* Held here and in Redis for more than `more` and at most `most`. */
static void expect_lasts(hl_lock *lock, int64_t more, int64_t most)
{
    int64_t here_ms = hl_lock_validity_ms(lock, NULL), there_ms = pttl_of(lock);
    check_msg(here_ms > more && here_ms <= most, "here: %lld", (long long)here_ms);
    check_msg(there_ms > more && there_ms <= most, "there: %lld", (long long)there_ms);
}

Law(new_lease, makes_a_hold_of_each_kind_last_longer)
{
    hl_client *client = open_client(NULL);
    enum { KINDS = 7 };
    const hl_lock_options options[KINDS] = {
        {.size = sizeof options[0]},
        {.size = sizeof options[0], .kind = HL_LOCK_FENCED},
        {.size = sizeof options[0], .kind = HL_LOCK_SPIN},
        {.size = sizeof options[0], .kind = HL_LOCK_FAIR},
        {.size = sizeof options[0], .flags = HL_LOCK_NON_REENTRANT},
        {.size = sizeof options[0], .kind = HL_LOCK_READ},
        {.size = sizeof options[0], .kind = HL_LOCK_WRITE},
    };
    for (int i = 0; i < KINDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "kind:%d", i);
        hl_lock *lock = new_lock_with(client, name, &options[i]);
        take_for(lock, slow_ms(FIVE_S));
        expect_ok(update(lock, MINUTE * 10));
        expect_lasts(lock, MINUTE * 9, MINUTE * 10);
        expect_ok(update(lock, MINUTE * 20));
        expect_lasts(lock, MINUTE * 19, MINUTE * 20);
        expect_ok(hl_lock_release(lock, NULL));
        check_int(redis_int(server, "EXISTS %s", hl_lock_name(lock, NULL)), 0);
    }
}

/* The server's lease stays, and the client lets go of the lock in time. */
Law(new_lease, ends_a_hold_sooner_and_frees_the_lock_then)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock"), *next = new_lock(open_client(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    take_for(lock, MINUTE);
    expect_ok(update(lock, slow_ms(2000)));
    check(hl_lock_validity_ms(lock, NULL) <= slow_ms(2000));
    expect_ok(hl_lock_acquire_for(next, slow_ms(20000), NULL));
    expect_story(&told, "LOST expired");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    check(hl_lock_is_held(next, NULL));
    expect_ok(hl_lock_release(next, NULL));
}

/* A copy of the request that comes late can take nothing away. */
Law(new_lease, never_shortens_the_lease_in_redis)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    take_for(lock, MINUTE);
    expect_ok(update(lock, FIVE_S));
    check(pttl_of(lock) > MINUTE / 2);
    check(hl_lock_validity_ms(lock, NULL) <= FIVE_S);
    expect_ok(update(lock, MINUTE / 2)); /* and later again */
    check(hl_lock_validity_ms(lock, NULL) > FIVE_S);
    redis_do(server, "PERSIST stock");
    expect_ok(update(lock, FIVE_S));
    check(pttl_of(lock) > 0 && pttl_of(lock) <= FIVE_S);
}

Law(new_lease, gives_an_end_to_a_hold_that_the_watchdog_renews)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(2000), .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 1);
    expect_ok(update(lock, slow_ms(3000)));
    check(recorder_wait_says(&told, "LOST expired"));
    expect_free(lock);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
}

Law(new_lease, of_zero_hands_the_hold_to_the_watchdog)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *lock = new_lock(client, "stock");
    take_for(lock, slow_ms(FIVE_S));
    expect_ok(update(lock, 0));
    wait_stat(client, renewals, 15); /* longer than its lease time */
    check(hl_lock_is_held(lock, NULL) && stats_of(client).losses == 0);
    check(hl_lock_validity_ms(lock, NULL) <= slow_ms(FIVE_S));
    expect_ok(hl_lock_release(lock, NULL));
}

/* A retained lock may have a short lease only. */
Law(new_lease, of_zero_is_the_short_lease_of_a_retained_lock)
{
    const hl_lock_options options = {.size = sizeof options, .retain_ms = 100};
    hl_lock *lock = new_lock_with(open_client(NULL), "stock", &options);
    take_for(lock, 2000);
    expect_ok(update(lock, 0));
    check(pttl_of(lock) > 2000 && pttl_of(lock) <= 5000);
    expect_ok(hl_lock_release(lock, NULL));
    expect_outcome(update(lock, MINUTE), HL_ENOTOWNER); /* it may be retained */
}

Law(new_lease, applies_to_all_levels)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    take_for(lock, slow_ms(FIVE_S));
    take_for(lock, slow_ms(FIVE_S));
    expect_held_by(client, lock, 2);
    expect_ok(update(lock, MINUTE * 10));
    expect_held_by(client, lock, 2);
    check_int(hl_lock_hold_count(lock, NULL), 2);
    expect_lasts(lock, MINUTE * 9, MINUTE * 10);
    expect_ok(hl_lock_release(lock, NULL));
    expect_lasts(lock, MINUTE * 9, MINUTE * 10);
    take_for(lock, MINUTE * 20); /* a nested call still makes it longer */
    expect_lasts(lock, MINUTE * 19, MINUTE * 20);
    expect_ok(update(lock, slow_ms(2000)));
    expect_story(&told, "LOST expired");
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_free(lock);
}

/* It goes on where its lease ends that others need: a reader's is its own. */
Law(new_lease, of_one_reader_changes_no_other_readers_lease)
{
    hl_client *client = open_client(NULL), *others = open_client(NULL);
    const hl_lock_options reads = {.size = sizeof reads, .kind = HL_LOCK_READ};
    hl_lock *own = new_lock_with(client, "stock", &reads);
    hl_lock *other = new_lock_with(others, "stock", &reads);
    take_for(own, MINUTE);
    take_for(other, MINUTE);
    expect_ok(update(own, slow_ms(2000)));
    check(wait_until(is_not_held, own, 5000));
    check(redis_wait_int(server, 2, 5000, "HLEN stock")); /* the mode, and the other */
    expect_ok(update(other, MINUTE * 10));
    expect_lasts(other, MINUTE * 9, MINUTE * 10);
    expect_ok(hl_lock_release(other, NULL));
    expect_outcome(hl_lock_release(own, NULL), HL_ELOST);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(new_lease, does_not_outlast_the_longest_hold)
{
    hl_lock *lock = new_lock(open_client(CLIENT(.on_event = record_event, .arg = &told)), "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.max_hold_ms = SHORT_MS), NULL));
    int rc = update(lock, MINUTE);
    check(rc == HL_OK || rc == HL_ELOST);
    expect_story(&told, "LOST max_hold");
}

Law(new_lease, of_another_owners_lock_is_refused)
{
    hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock"), *theirs = new_lock(open_client(NULL), "stock");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_update_lease(lock, NULL, MINUTE, &err), HL_ENOTOWNER);
    check_str(err.text, "update lease 'stock': this owner does not hold the lock");
    take_for(lock, MINUTE);
    redis_do(server, "DEL stock");
    take_for(theirs, slow_ms(FIVE_S));
    expect_outcome(hl_lock_update_lease(lock, NULL, MINUTE * 10, &err), HL_ELOST);
    expect_story(&told, "LOST gone");
    check(!hl_lock_is_held(lock, NULL) && hl_lock_is_held(theirs, NULL));
    check(pttl_of(theirs) <= slow_ms(FIVE_S));
    expect_outcome(hl_lock_update_lease(lock, NULL, MINUTE, &err), HL_ELOST);
    check_msg(
        strstr(err.text,
               "update lease 'stock': the hold ended before its release (its key was found gone "),
        "%s", err.text);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_outcome(update(lock, MINUTE), HL_ENOTOWNER);
}

Law(new_lease, creates_no_lock)
{
    hl_lock *lock = new_lock(open_client(NULL), "stock");
    take_for(lock, MINUTE);
    redis_do(server, "DEL stock");
    expect_outcome(update(lock, MINUTE), HL_ELOST);
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(new_lease, refuses_what_makes_no_sense)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *member = new_lock(client, "member"), *both = NULL;
    hl_owner *owner = new_owner(client), *stranger = new_owner(open_client(NULL));
    hl_lock *const members[] = {lock, member};
    hl_error err = HL_ERROR_INIT;
    take_for(lock, MINUTE);
    expect_outcome(update(NULL, MINUTE), HL_EINVAL);
    expect_outcome(update(lock, 9), HL_EINVAL);
    expect_outcome(update(lock, -1), HL_EINVAL);
    expect_outcome(hl_lock_update_lease(lock, NULL, INT64_C(100000000001), &err), HL_EINVAL);
    check_str(err.text, "lease_ms is neither 0 nor from 10 to 10^11");
    expect_outcome(hl_lock_update_lease(lock, stranger, MINUTE, NULL), HL_EINVAL);
    expect_outcome(hl_lock_update_lease(lock, owner, MINUTE, NULL), HL_ENOTOWNER);
    expect_outcome(hl_lock_update_lease_async(lock, NULL, MINUTE, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_update_lease_async(lock, owner, MINUTE, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_lock_update_lease_async(lock, owner, MINUTE, record_done, &told),
                   HL_ENOTOWNER);
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    keep_lock(both);
    expect_outcome(hl_lock_update_lease(both, NULL, MINUTE, &err), HL_ENOTSUP);
    check(strstr(err.text, "update that of each member") != NULL);
    expect_ok(hl_lock_acquire_with(both, ACQUIRE(.lease_ms = slow_ms(FIVE_S)), NULL));
    expect_ok(update(member, MINUTE * 10));
    expect_lasts(member, MINUTE * 9, MINUTE * 10);
    check_int(recorder_count(&told), 0);
}

Law(new_lease, of_an_explicit_owner_has_an_async_twin)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    expect_ok(
        hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = slow_ms(FIVE_S)), NULL));
    expect_ok(hl_lock_update_lease_async(lock, owner, MINUTE * 10, record_done, &told));
    expect_story(&told, "done HL_OK");
    check(hl_lock_validity_ms(lock, owner) > MINUTE * 9);
    expect_ok(hl_lock_update_lease(lock, owner, MINUTE * 20, NULL));
    check(hl_lock_validity_ms(lock, owner) > MINUTE * 19);
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_update_lease_async(lock, owner, MINUTE, record_done, &told));
    expect_story(&told, "done HL_OK, done HL_ELOST");
}

static void set_in_jeopardy(const hl_lock *lock)
{
    pthread_mutex_lock(&lock->handle.name->mutex);
    lock->handle.name->current->in_jeopardy = true;
    pthread_mutex_unlock(&lock->handle.name->mutex);
}

Law(new_lease, ends_the_jeopardy)
{
    hl_lock *lock = new_lock(open_client(CLIENT(.on_event = record_event, .arg = &told)), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    set_in_jeopardy(lock);
    expect_ok(update(lock, MINUTE));
    expect_story(&told, "SAFE");
}

/* ---- while the network fails ---- */

static struct proxy *proxy;
static hl_client *client; /* behind it */
static hl_lock *lock;
static hl_owner *owner;

/* Held by `owner`; the server knows the scripts. */
static void begin(int64_t lease_ms, const hl_client_options *options)
{
    proxy = new_proxy();
    client = open_client_at(proxy_url(proxy), options);
    lock = new_lock(client, "stock");
    owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = MINUTE), NULL));
    expect_ok(hl_lock_update_lease(lock, owner, MINUTE, NULL));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner, .lease_ms = lease_ms), NULL));
}

static void update_async(int64_t lease_ms)
{
    expect_ok(hl_lock_update_lease_async(lock, owner, lease_ms, record_done, &told));
}

TcpLaw(new_lease, whose_request_is_lost_is_asked_for_again)
{
    begin(MINUTE, CLIENT(.backoff_min_ms = 1));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    update_async(MINUTE * 10);
    check(hl_lock_validity_ms(lock, owner) <= MINUTE); /* not before the answer */
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    expect_story(&told, "done HL_OK");
    check(hl_lock_validity_ms(lock, owner) > MINUTE * 9);
    check(pttl_of(lock) > MINUTE * 9);
}

/* The first copy ran; a second one says the same. */
TcpLaw(new_lease, whose_answer_is_lost_is_asked_for_again)
{
    begin(MINUTE, CLIENT(.backoff_min_ms = 1));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    update_async(MINUTE * 10);
    check(redis_wait_int(server, 1, 5000, "EVAL %s 1 stock",
                         "return redis.call('PTTL', 'stock') > 540000 and 1 or 0"));
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    expect_story(&told, "done HL_OK");
    check(hl_lock_validity_ms(lock, owner) > MINUTE * 9);
}

/* The hold goes on as before: here the watchdog's. */
TcpLaw(new_lease, without_an_answer_is_in_doubt_and_changes_nothing_here)
{
    begin(0, CLIENT(.backoff_min_ms = 1, .request_timeout_ms = 60000,
                    .watchdog_timeout_ms = slow_ms(6000), .outage_timeout_ms = slow_ms(1500)));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_outcome(hl_lock_update_lease(lock, owner, SHORT_MS, NULL), HL_EINDOUBT);
    check(hl_lock_is_held(lock, owner));
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    uint64_t renewals = stats_of(client).renewals;
    wait_stat(client, renewals, renewals + 2);
    check(hl_lock_is_held(lock, owner) && stats_of(client).losses == 0);
    expect_ok(hl_lock_update_lease(lock, owner, MINUTE, NULL)); /* and may be asked again */
}

TcpLaw(new_lease, without_a_server_changes_nothing)
{
    begin(MINUTE, CLIENT(.backoff_min_ms = 1, .outage_timeout_ms = slow_ms(1500),
                         .on_event = record_event, .arg = &told));
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(recorder_wait_says(&told, "DISCONNECTED"));
    expect_outcome(hl_lock_update_lease(lock, owner, MINUTE * 10, NULL), HL_ECONN);
    check(hl_lock_is_held(lock, owner) && hl_lock_validity_ms(lock, owner) <= MINUTE);
}

/* The caller learns it when it happens, and not when its call has waited long enough. */
TcpLaw(new_lease, of_a_hold_that_ends_meanwhile_is_lost)
{
    begin(MINUTE, CLIENT(.request_timeout_ms = 600000, .outage_timeout_ms = 600000,
                         .on_event = record_event, .arg = &told));
    expect_ok(hl_lock_update_lease(lock, owner, slow_ms(2000), NULL));
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    update_async(MINUTE * 10);
    check(recorder_wait_says(&told, "done HL_ELOST"));
    check(recorder_wait_says(&told, "LOST expired"));
    check(!hl_lock_is_held(lock, owner));
}

/* The server made it longer, and the answer comes too late: it does not come back, and no key is
 * left for so long. */
TcpLaw(new_lease, whose_answer_comes_after_the_end_leaves_nothing)
{
    begin(slow_ms(2000), CLIENT(.request_timeout_ms = 600000, .outage_timeout_ms = 600000,
                                .on_event = record_event, .arg = &told));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    update_async(MINUTE * 10);
    check(recorder_wait_says(&told, "LOST expired"));
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    check(recorder_wait_says(&told, "done HL_ELOST"));
    check(!hl_lock_is_held(lock, owner));
    expect_free(lock);
}

/* It is a release that ends the hold, and no pass: the new end is for this hold alone. */
TcpLaw(new_lease, under_way_goes_to_no_other_owner)
{
    begin(0, CLIENT(.request_timeout_ms = 60000));
    hl_owner *next = new_owner(client);
    static struct recorder released = RECORDER_INIT, acquired = RECORDER_INIT;
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.owner = next, .wait_ms = -1), record_done, &acquired));
    expect_waiters(client, 1);
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP);
    update_async(MINUTE * 10);
    pthread_mutex_lock(&lock->handle.name->mutex);
    lock->handle.name->current->no_waiters_at =
        hli_now() + HLI_MS(MINUTE); /* a pass would be allowed */
    lock->handle.name->current->has_waiters = false;
    pthread_mutex_unlock(&lock->handle.name->mutex);
    expect_ok(hl_lock_release_async(lock, owner, record_done, &released));
    check(!hl_lock_is_held(lock, owner) && !hl_lock_is_held(lock, next));
    check_int(stats_of(client).passes, 0);
    proxy_release(proxy, PROXY_EVERY, PROXY_UP);
    expect_story(&released, "done HL_OK");
    expect_story(&acquired, "done HL_OK");
    check(hl_lock_validity_ms(lock, next) <= 30000);
    check(recorder_wait(&told, 1));
}
