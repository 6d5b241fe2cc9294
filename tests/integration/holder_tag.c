/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The holder's tag tells other clients which process and thread holds the lock. It is never in the
 * lock itself, and never shows anything but the present holder.
 */

#include "lease/hold/hold.h"
#include "lease/hold/tag.h"
#include "lease/hold/watchdog.h"
#include "lease/state/name.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"
#include "tags.h"

static struct recorder told = RECORDER_INIT;

Law(holder_tag, says_host_process_and_thread_and_since_when)
{
    hl_lock *held = new_lock(open_client(TAGS), "stock"),
            *lock = new_lock(open_client(TAGS), "stock");
    name_me("stock keeper 7");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_tag(lock, "stock keeper 7");
    int64_t before_ms = inspected(lock).held_ms;
    deadline_nap();
    deadline_nap();
    check(inspected(lock).held_ms > before_ms);
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    check(recorder_wait(&told, 1));
    hl_lock_info info = inspected(held); /* the holder's own client is told, too */
    check(info.mine);
    check_str(info.thread, "stock keeper 7");
}

Law(holder_tag, is_in_a_key_of_its_own_that_expires)
{
    hl_lock *lock = new_lock(open_client(TAGS), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(redis_wait_int(server, 1, 10000, "EXISTS " KEY));
    check_int(redis_int(server, "HLEN stock"), 1);
    check_str(redis_str(server, "HVALS stock"), "1");
    check_int(redis_int(server, "DBSIZE"), 2);
    check(redis_int(server, "PTTL " KEY) > 60000);
    expect_ok(hl_lock_release(lock, NULL));
    check(redis_int(server, "PTTL " KEY) > 0); /* it is not taken away */
}

Law(holder_tag, is_off_by_default)
{
    hl_client *teller = open_client(TAGS);
    hl_lock *lock = new_lock(open_client(NULL), "stock"), *asks = new_lock(teller, "stock");
    hl_lock *later = new_lock(teller, "later");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(later, NULL));
    check(wait_until(has_tag, later, 10000)); /* so one of the other would be there, too */
    check_int(redis_int(server, "EXISTS " KEY), 0);
    hl_lock_info info = inspected(asks);
    check(info.locked);
    expect_no_tag(&info);
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_lock_acquire(asks, NULL));
    check(redis_wait_int(server, 1, 10000, "EXISTS " KEY));
    info = inspected(lock); /* who does not tell is not told */
    expect_no_tag(&info);
}

/* The text behind the prefix names the holder. */
static void expect_holder_in(const hl_error *err, const char *prefix, const char *thread)
{
    char host[64], holder[160];
    check_int(gethostname(host, sizeof host), 0);
    snprintf(holder, sizeof holder, "%sheld by %s, process %d%s, for ", prefix, host, (int)getpid(),
             thread);
    check_msg(strstr(err->text, holder) == err->text, "%s, expected %s", err->text, holder);
    check_msg(strcmp(err->text + strlen(err->text) - 3, " ms") == 0, "%s", err->text);
}

Law(holder_tag, is_in_the_text_of_a_busy_answer)
{
    hl_client *client = open_client(TAGS);
    hl_lock *held = new_lock(client, "stock"), *lock = new_lock(open_client(TAGS), "stock");
    hl_owner *other = new_owner(client);
    hl_error err = HL_ERROR_INIT;
    name_me("pro'be");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_tag(lock, "pro'be");
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EBUSY);
    expect_holder_in(&err, "acquire 'stock': ", ", thread 'pro\\x27be'");
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(3000), &err), HL_ETIMEDOUT);
    expect_holder_in(&err, "acquire 'stock': the wait time is over; ", ", thread 'pro\\x27be'");
    expect_outcome(hl_lock_acquire_with(held, ACQUIRE(.wait_ms = 0, .owner = other), &err),
                   HL_EBUSY); /* without a request */
    expect_holder_in(&err, "acquire 'stock': ", ", thread 'pro\\x27be'");
}

Law(holder_tag, is_in_a_busy_answer)
{
    hl_client *client = open_client(TAGS), *rival = open_client(TAGS);
    hl_lock *held = new_lock(client, "stock"), *lock = new_lock(rival, "stock");
    hl_lock *untold = new_lock(open_client(NULL), "stock");
    hl_owner *other = new_owner(client);
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    name_me("keeper");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_tag(lock, "keeper");
    expect_outcome(acquire_past(lock, ACQUIRE(.wait_ms = 0), &busy), HL_EBUSY);
    check_str(busy.thread, "keeper");
    check_int(busy.pid, getpid());
    check(busy.host[0] != '\0' && busy.held_ms >= 20);
    busy = (hl_lock_info)HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(lock, ACQUIRE(.wait_ms = slow_ms(3000)), &busy), HL_ETIMEDOUT);
    check_str(busy.thread, "keeper");
    check(busy.held_ms >= 30);
    busy = (hl_lock_info)HL_LOCK_INFO_INIT; /* by another owner of the same client: no request */
    expect_outcome(acquire_past(held, ACQUIRE(.wait_ms = 0, .owner = other), &busy), HL_EBUSY);
    check(busy.mine);
    check_str(busy.thread, "keeper");
    check_int(busy.pid, getpid());
    check(busy.held_ms >= 30);
    busy = (hl_lock_info)HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(untold, ACQUIRE(.wait_ms = 0), &busy), HL_EBUSY);
    expect_no_tag(&busy);
}

Law(holder_tag, costs_nothing_when_the_hold_is_short)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock");
    int64_t longest_ms = 0;
    expect_ok(hl_lock_acquire(lock, NULL)); /* from now on the server knows the scripts */
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(hl_client_ping(client, -1, NULL));
    redis_do(server, "DEL " KEY);
    uint64_t before = stats_of(client).commands;
    for (int i = 0; i < 50; i++) {
        int64_t began_ms = now_ms();
        expect_ok(hl_lock_acquire(lock, NULL));
        expect_ok(hl_lock_release(lock, NULL));
        longest_ms = now_ms() - began_ms > longest_ms ? now_ms() - began_ms : longest_ms;
    }
    if (longest_ms >= 19)
        skip("a hold of a moment took %d ms", (int)longest_ms);
    check_int(stats_of(client).commands, before + 100);
    check_int(redis_int(server, "EXISTS " KEY), 0);
}

Law(holder_tag, of_an_earlier_holder_is_not_shown)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock"), *plain = new_lock(open_client(NULL), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(redis_wait_int(server, 1, 10000, "EXISTS " KEY));
    expect_ok(hl_lock_release(lock, NULL));
    check_int(redis_int(server, "EXISTS " KEY), 1); /* it stands, and says nothing any more */
    hl_lock_info info = inspected(lock);
    check(!info.locked);
    expect_no_tag(&info);
    expect_ok(hl_lock_acquire(plain, NULL)); /* who tells nothing */
    info = inspected(lock);
    check(info.locked);
    expect_no_tag(&info);
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(lock, ACQUIRE(.wait_ms = 0), &busy), HL_EBUSY);
    expect_no_tag(&busy);
}

Law(holder_tag, of_a_key_that_rests_is_not_shown)
{
    hl_lock *lock = new_lock(open_client(TAGS), "stock"),
            *asks = new_lock(open_client(TAGS), "stock");
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .min_hold_ms = 60000), NULL));
    check(wait_until(has_tag, asks, 10000));
    expect_ok(hl_lock_release(lock, NULL));
    hl_lock_info info = inspected(asks);
    check(info.locked && info.hold_count == 0);
    expect_no_tag(&info);
    expect_outcome(acquire_past(asks, ACQUIRE(.wait_ms = 0), &busy), HL_EBUSY);
    expect_no_tag(&busy);
}

/* Strangers may write anything. */
Law(holder_tag, is_not_shown_if_its_text_is_no_tag)
{
    static const char *const odd[] = {"",         " ",      "x",    "%s",         "%s ",
                                      "%s x y z", "%s 1 2", "%s 1", "u:1 1 2 h t"};
    hl_lock *lock = new_lock(open_client(NULL), "stock"),
            *asks = new_lock(open_client(TAGS), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, odd[i], field_of(lock));
        redis_do(server, "SET " KEY " %s", text);
        hl_lock_info info = inspected(asks);
        expect_no_tag(&info);
    }
    redis_do(server, "DEL " KEY);
    redis_do(server, "LPUSH " KEY " 1");
    hl_lock_info info = inspected(asks);
    check(info.locked);
    expect_no_tag(&info);
    char text[1024];
    snprintf(text, sizeof text, "%s 1 2 %0400d %0400d", field_of(lock), 7, 8);
    redis_do(server, "SET " KEY " %s", text);
    info = inspected(asks); /* what is too long is cut */
    check(strlen(info.host) < sizeof info.host && strlen(info.thread) < sizeof info.thread);
}

Law(holder_tag, that_cannot_be_written_harms_no_hold)
{
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO, .watchdog_timeout_ms = slow_ms(9000),
                           .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    redis_do(server, "ACL SETUSER default -set");
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 1);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    redis_do(server, "ACL SETUSER default +set");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CONFIG SET maxmemory 1");
    wait_stat(client, renewals, 2);
    check(hl_lock_is_held(lock, NULL));
    redis_do(server, "CONFIG SET maxmemory 0");
    check(wait_until(has_tag, lock, 10000)); /* it is tried again */
    expect_ok(hl_lock_release(lock, NULL));
    check_int(recorder_count(&told), 0);
}

/* The tag is the first to hear that the key is gone: the next renewal is due in 10 s. A tag that
 * was written before the key was deleted proves nothing. */
Law(holder_tag, that_finds_no_hold_tells_of_the_loss)
{
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO, .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    struct deadline deadline = deadline_in(30000);
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "DEL stock");
    while (redis_int(server, "EXISTS " KEY) == 1) {
        check(!deadline_is_over(deadline));
        redis_do(server, "DEL " KEY);
        hl_lock_release(lock, NULL);
        expect_ok(hl_lock_acquire(lock, NULL));
        redis_do(server, "DEL stock");
    }
    check(recorder_wait_says(&told, "LOST gone"));
    check_int(stats_of(client).renewals, 0);
    check_int(redis_int(server, "EXISTS " KEY), 0); /* and it was not written without a hold */
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
}

Law(holder_tag, has_no_room_in_an_older_callers_info)
{
    struct {
        char before[offsetof(hl_lock_info, host)];
        char canary[8];
    } old;
    hl_lock *lock = new_lock(open_client(TAGS), "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(wait_until(has_tag, lock, 10000));
    memset(&old, 'c', sizeof old);
    memcpy(old.before, &(size_t){sizeof old.before}, sizeof(size_t));
    expect_ok(hl_lock_inspect(lock, (hl_lock_info *)(void *)&old, NULL));
    check(memcmp(old.canary, "cccccccc", 8) == 0);
}

/* Each holder inspects the lock: it sees its own tag, or none. */
struct keeper {
    hl_lock *lock;
    char name[16];
    int turns;
    pthread_t thread;
};

static atomic_int seen;

static void look_at_myself(const struct keeper *keeper)
{
    hl_lock_info info = inspected(keeper->lock);
    check(info.locked && info.mine);
    if (info.pid == 0)
        return;
    check_str(info.thread, keeper->name);
    atomic_fetch_add(&seen, 1);
}

static void *keep(void *arg)
{
    struct keeper *keeper = arg;
    name_me(keeper->name);
    for (int i = 0; i < keeper->turns; i++) {
        expect_ok(hl_lock_acquire(keeper->lock, NULL));
        struct deadline until = deadline_in(i % 3 == 0 ? 40 : 0); /* long, or for a moment */
        do
            look_at_myself(keeper);
        while (!deadline_is_over(until));
        expect_ok(hl_lock_release(keeper->lock, NULL));
    }
    return NULL;
}

enum { KEEPERS = 4 };

static void keep_in_turn(hl_lock *locks[KEEPERS], int turns)
{
    struct keeper keepers[KEEPERS];
    for (int i = 0; i < KEEPERS; i++) {
        keepers[i] = (struct keeper){.lock = locks[i], .turns = turns};
        snprintf(keepers[i].name, sizeof keepers[i].name, "keeper %d", i);
        check_int(pthread_create(&keepers[i].thread, NULL, keep, &keepers[i]), 0);
    }
    for (int i = 0; i < KEEPERS; i++)
        pthread_join(keepers[i].thread, NULL);
}

Law(holder_tag, is_never_another_threads_when_the_lock_is_passed_or_retained)
{
    hl_client *client = open_client(TAGS);
    hl_lock_options retains = HL_LOCK_OPTIONS_INIT;
    hl_lock *locks[KEEPERS];
    retains.retain_ms = 100;
    for (int i = 0; i < KEEPERS; i++)
        expect_ok(lock_new_with(client, "stock", &retains, &locks[i], NULL));
    for (int i = 0; i < 20 && (atomic_load(&seen) == 0 || stats_of(client).passes == 0); i++)
        keep_in_turn(locks, 15);
    check(atomic_load(&seen) > 0);
    check(stats_of(client).passes > 0);
    for (int i = 0; i < KEEPERS; i++)
        hl_lock_free(locks[i]);
}

Law(holder_tag, is_never_another_clients_when_the_lock_is_granted)
{
    hl_lock *locks[KEEPERS];
    for (int i = 0; i < KEEPERS; i++)
        locks[i] = new_lock(open_client(TAGS), "stock");
    for (int i = 0; i < 20 && atomic_load(&seen) == 0; i++)
        keep_in_turn(locks, 15);
    check(atomic_load(&seen) > 0);
}

/* As if the server had just said that no other client waits: then the lock would be passed on. */
Law(holder_tag, that_was_shown_ends_with_its_hold_and_not_with_its_tenure)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *first = new_owner(client), *second = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .owner = first), NULL));
    check(wait_until(has_tag, lock, 10000));
    expect_ok(
        hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = second), record_done, &told));
    expect_waiters(client, 1);
    pthread_mutex_lock(&lock->handle.name->mutex);
    lock->handle.name->current->no_waiters_at = hli_now();
    lock->handle.name->current->has_waiters = false;
    pthread_mutex_unlock(&lock->handle.name->mutex);
    expect_ok(hl_lock_release_as(lock, first, NULL));
    expect_story(&told, "done HL_OK");
    hl_lock_info info = inspected(lock);
    check(info.held_ms == 0 || info.held_ms < slow_ms(5000));
    check_int(stats_of(client).passes, 0);
}

/* It stands for five minutes, and is written again while the hold lasts. */
Law(holder_tag, is_written_again_while_the_hold_lasts)
{
    hl_client *client = open_client(TAGS);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(wait_until(has_tag, lock, 10000));
    redis_do(server, "DEL " KEY); /* as time would */
    pthread_mutex_lock(&lock->handle.name->mutex);
    struct hli_tenure *tenure = lock->handle.name->current;
    check(tenure->tag->shows_at > hli_now() + HLI_MS(60000));
    check(hli_hold_due(tenure) <= tenure->tag->shows_at);
    tenure->tag->shows_at = hli_now();
    pthread_mutex_unlock(&lock->handle.name->mutex);
    hli_tenure_ref(tenure); /* the watchdog's */
    hli_watchdog_wake_by(tenure, hli_now());
    check(wait_until(has_tag, lock, 10000));
}

/* What docs/semantics.md asks for beside what a lock needs; and no command of a tag is refused. */
SingleLaw(holder_tag, needs_set_and_get_and_its_own_key)
{
    redis_do(server,
             "ACL SETUSER teller on >pw resetkeys ~stock ~hirelock_queue:{stock} ~" KEY
             " resetchannels &redisson_lock__channel:{stock} &hirelock:* -@all +evalsha "
             "+script|load +hget +hset +hincrby +hrandfield +del +pttl +pexpire +time +zadd "
             "+zpopmin +zcard +zrem +publish +subscribe +unsubscribe +pubsub|numsub "
             "+set +get");
    hl_lock *lock = new_lock(
        open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO, .username = "teller", .password = "pw")),
        "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    check(wait_until(has_tag, lock, 10000));
}
