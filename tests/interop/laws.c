/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The lock is called "stock" in all of them, and has other names, too, in those that are tried at
 * each node of a cluster. */
#include "laws.h"

#include "support/actor.h"

static const char illegal_state[] = "java.lang.IllegalMonitorStateException: attempt to unlock";

/* A wait that nothing but the other side can end. */
#define FOREVER ACQUIRE(.wait_ms = HL_WAIT_FOREVER)

void java_listens(const char *name, int n)
{
    char channel[256];
    snprintf(channel, sizeof channel,
             strchr(name, '{') ? "redisson_lock__channel:%s" : "redisson_lock__channel:{%s}", name);
    expect_listening(channel, n);
}

static hl_lock *make_for(const struct lock_kind *kind, const hl_client_options *options)
{
    return kind->make(open_client(options), "stock");
}

static int begin_java_wait(const struct lock_kind *kind, const char *who)
{
    return redisson_begin(who, "%s.lock stock", kind->java);
}

/* A thread of Java's waits, and no other one. */
static int java_waits_for(const struct lock_kind *kind, const char *name)
{
    int waits = redisson_begin("waiter", "%s.lock %s", kind->java, name);
    kind->expect_java_waits(name, 1);
    check(!redisson_is_done(waits));
    return waits;
}

static int java_waits(const struct lock_kind *kind)
{
    return java_waits_for(kind, "stock");
}

static struct actor *c_waits(hl_client *client, hl_lock *lock)
{
    struct actor *actor = actor_start();
    actor_begin_acquire(actor, lock, FOREVER);
    expect_waiters(client, 1);
    check(!actor_is_done(actor));
    return actor;
}

static void unlock_in(const char *who, const struct lock_kind *kind)
{
    redisson_do(who, "%s.unlock stock", kind->java);
}

static void expect_not_locked(const char *who, const struct lock_kind *kind)
{
    int tries = redisson_begin(who, "%s.unlock stock", kind->java);
    expect_thrown(tries, illegal_state);
}

/* ---- Waking ---- */

void law_release_wakes_java(const struct lock_kind *kind)
{
    hl_client *client = open_client(NULL);
    const char *name;
    for (int i = 0; (name = servers_name(i)) != NULL; i++)
        expect_release_wakes_java(kind, client, name);
}

void expect_release_wakes_java(const struct lock_kind *kind, hl_client *client, const char *name)
{
    hl_lock *lock = kind->make(client, name);
    server = server_of(name);
    expect_ok(hl_lock_acquire(lock, ERR));
    int waits = java_waits_for(kind, name);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_release(lock, ERR));
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
    expect_redisson("waiter", "true", "%s.isHeldByCurrentThread %s", kind->java, name);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_do("waiter", "%s.unlock %s", kind->java, name);
    expect_ok(hl_lock_try_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    expect_free(lock);
}

void law_unlock_wakes_c(const struct lock_kind *kind)
{
    hl_client *client = open_client_that_hardly_polls();
    const char *name;
    for (int i = 0; (name = servers_name(i)) != NULL; i++)
        expect_unlock_wakes_c(kind, client, name);
}

void expect_unlock_wakes_c(const struct lock_kind *kind, hl_client *client, const char *name)
{
    hl_lock *lock = kind->make(client, name);
    redisson_do("t1", "%s.lock %s", kind->java, name);
    struct actor *waiter = c_waits(client, lock);
    int64_t before_ms = monotonic_ms();
    redisson_do("t1", "%s.unlock %s", kind->java, name);
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_redisson("t1", "false", "%s.tryLock %s", kind->java, name);
    expect_ok(actor_release(waiter, lock, NULL));
    expect_redisson("t1", "true", "%s.tryLock %s", kind->java, name);
    redisson_do("t1", "%s.unlock %s", kind->java, name);
}

struct crowd_of_two {
    const struct lock_kind *kind;
    hl_lock *lock[2];
    struct actor *actor[2];
    const char *who[2];
    int waits[2];
    int served;
};

/* Each holder releases the lock in its turn. */
static bool all_are_served(void *arg)
{
    struct crowd_of_two *crowd = arg;
    for (int i = 0; i < 2; i++) {
        if (crowd->actor[i] && actor_is_done(crowd->actor[i])) {
            expect_ok(actor_end(crowd->actor[i]));
            expect_ok(actor_release(crowd->actor[i], crowd->lock[i], NULL));
            crowd->actor[i] = NULL;
            crowd->served++;
        }
        if (crowd->who[i] && redisson_is_done(crowd->waits[i])) {
            redisson_end(crowd->waits[i]);
            unlock_in(crowd->who[i], crowd->kind);
            crowd->who[i] = NULL;
            crowd->served++;
        }
    }
    return crowd->served == 4;
}

void law_all_are_served(const struct lock_kind *kind)
{
    struct crowd_of_two crowd = {.kind = kind, .who = {"t2", "second/t1"}};
    redisson_open("second", 0);
    redisson_do("t1", "%s.lock stock", kind->java);
    for (int i = 0; i < 2; i++) {
        hl_client *client = open_client_that_hardly_polls();
        crowd.lock[i] = kind->make(client, "stock");
        crowd.waits[i] = begin_java_wait(kind, crowd.who[i]);
        crowd.actor[i] = c_waits(client, crowd.lock[i]);
    }
    unlock_in("t1", kind);
    check(wait_until(all_are_served, &crowd, 2 * REDISSON_LEASE_MS));
    expect_free(crowd.lock[0]);
}

void law_force_release_wakes_java(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    redisson_do("t1", "%s.lock stock", kind->java);
    int waits = java_waits(kind);
    int64_t before_ms = monotonic_ms();
    expect_ok(hl_lock_force_release(lock, NULL));
    redisson_end(waits);
    expect_woken(redisson_ended_ms(waits), before_ms);
    expect_not_locked("t1", kind);
    unlock_in("waiter", kind);
    expect_outcome(hl_lock_force_release(lock, NULL), HL_ENOENT);
}

void law_force_unlock_wakes_c(const struct lock_kind *kind)
{
    hl_client *client = open_client_that_hardly_polls();
    hl_lock *lock = make_for(kind, NULL), *other = kind->make(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *waiter = c_waits(client, other);
    int64_t before_ms = monotonic_ms();
    expect_redisson("t1", "true", "%s.forceUnlock stock", kind->java);
    expect_ok(actor_end(waiter));
    expect_woken(monotonic_ms(), before_ms);
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(actor_holds(waiter, other, NULL));
    expect_ok(actor_release(waiter, other, NULL));
    expect_redisson("t1", "false", "%s.forceUnlock stock", kind->java);
}

/* ---- Waits that end otherwise ---- */

void law_waits_end_in_vain(const struct lock_kind *kind)
{
    enum { WAIT_MS = 300 };
    hl_lock *lock = make_for(kind, NULL);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_redisson("t1", "false", "%s.tryLock stock", kind->java);
    int64_t before_ms = monotonic_ms();
    int tries = redisson_begin("t1", "%s.tryLock stock %d -1", kind->java, WAIT_MS);
    check_str(redisson_end(tries), "false");
    /* It counts whole milliseconds, in several steps. */
    check(redisson_ended_ms(tries) - before_ms >= WAIT_MS - 10);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_redisson("t1", "true", "%s.tryLock stock %d -1", kind->java, WAIT_MS);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    before_ms = monotonic_ms();
    expect_outcome(hl_lock_acquire_for(lock, WAIT_MS, NULL), HL_ETIMEDOUT);
    check(monotonic_ms() - before_ms >= WAIT_MS);
    unlock_in("t1", kind);
    expect_ok(hl_lock_acquire_for(lock, LONG_BEFORE_MS, NULL));
}

/* A waiter of Redisson's fair lock that is interrupted before it sleeps may stay subscribed for
 * ever, and a subscribed waiter is taken for alive: then this test can show nothing. */
static bool has_no_listener_of_one_thread(void *arg)
{
    (void)arg;
    return redis_str(server, "PUBSUB %s redisson_lock__channel:{stock}:*",
                     servers_shard() ? "SHARDCHANNELS" : "CHANNELS")[0] == '\0';
}

void law_interrupted_waits(const struct lock_kind *kind)
{
    hl_client *client = open_client_that_hardly_polls();
    hl_lock *lock = kind->make(client, "stock");
    hl_cancel *cancel = new_cancel();
    struct actor *waiter = actor_start();
    redisson_do("t1", "%s.lock stock", kind->java);
    int waits = redisson_begin("waiter", "%s.lockInterruptibly stock", kind->java);
    kind->expect_java_waits("stock", 1);
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel));
    expect_waiters(client, 1);
    expect_asleep("waiter"); /* one that is interrupted earlier leaves its subscription behind */
    redisson_interrupt("waiter");
    const char *thrown = redisson_end_thrown(waits); /* of a request under way, in another's */
    check_msg(strstr(thrown, "java.lang.InterruptedException"), "%s", thrown);
    check(!actor_is_done(waiter));
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    if (!wait_until(has_no_listener_of_one_thread, NULL, 5000))
        skip("Redisson has kept the subscription of a thread that was interrupted");
    unlock_in("t1", kind);
    /* First C, for a fair lock of Redisson's keeps the place of who was interrupted. */
    expect_ok(hl_lock_acquire_for(lock, LONG_BEFORE_MS, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_redisson("t2", "true", "%s.tryLock stock %d", kind->java, LONG_BEFORE_MS);
}

void law_foreign_releases(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_not_locked("t1", kind);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_do("t1", "%s.lock stock", kind->java);
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
    expect_not_locked("t2", kind);
    expect_redisson("t1", "true", "%s.isHeldByCurrentThread stock", kind->java);
    unlock_in("t1", kind);
}

/* ---- Leases ---- */

enum { RENEWALS = 9 /* in three leases */ };

/* A key is renewed each time that it lasts longer than it did at the last look. */
bool was_renewed(void *arg)
{
    struct watch *watch = arg;
    int64_t left_ms = redis_int(server_of(watch->name), "PTTL %s", watch->name);
    check_msg(left_ms > 0, "%s has gone after %d renewals", watch->name, watch->renewals);
    if (left_ms > watch->last_ms)
        watch->renewals++;
    watch->last_ms = left_ms;
    return watch->renewals > RENEWALS;
}

static bool both_were_renewed(void *arg)
{
    struct watch *watch = arg;
    bool first = was_renewed(&watch[0]), second = was_renewed(&watch[1]);
    return first && second;
}

/* C holds "stock", which Java waits for; Java holds "store", which C waits for. */
void law_watchdogs(const struct lock_kind *kind)
{
    struct watch watch[] = {{.name = "stock"}, {.name = "store"}};
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_lock *lock = kind->make(client, "stock"), *store = kind->make(client, "store");
    redisson_open("brief", BRIEF_MS);
    redisson_do("brief/t1", "%s.lock store", kind->java);
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = java_waits(kind);
    struct actor *waiter = c_waits(client, store);
    check(wait_until(both_were_renewed, watch, 60000));
    check(!redisson_is_done(waits) && !actor_is_done(waiter));
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
    redisson_do("brief/t1", "%s.unlock store", kind->java);
    expect_ok(actor_end(waiter));
}

void law_lease_of_c_ends(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    struct actor *holder = actor_start();
    expect_ok(actor_acquire(holder, lock, ACQUIRE(.lease_ms = 1000)));
    redisson_end(begin_java_wait(kind, "t1"));
    check(!actor_holds(holder, lock, NULL));
    expect_outcome(actor_release(holder, lock, NULL), HL_ELOST);
    expect_redisson("t1", "true", "%s.isHeldByCurrentThread stock", kind->java);
    unlock_in("t1", kind);
}

/* A sooner end is the client's own: Redis keeps the longer lease, until the client releases the key
 * and so wakes the waiter. */
void law_new_lease_of_c_ends(const struct lock_kind *kind)
{
    enum { NEW_MS = 20 * REDISSON_LEASE_MS };
    hl_lock *lock = make_for(kind, NULL);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = slow_ms(10000)), NULL));
    expect_ok(hl_lock_update_lease(lock, NULL, NEW_MS, NULL));
    int64_t left_ms = redisson_number("t1", "%s.remainTimeToLive stock", kind->java);
    check_msg(left_ms > NEW_MS / 2 && left_ms <= NEW_MS, "%d ms", (int)left_ms);
    int waits = java_waits(kind);
    check(hl_lock_is_held(lock, NULL) && !redisson_is_done(waits));
    expect_ok(hl_lock_update_lease(lock, NULL, slow_ms(3000), NULL));
    check(redisson_number("t1", "%s.remainTimeToLive stock", kind->java) > NEW_MS / 2);
    redisson_end(waits);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    expect_redisson("waiter", "true", "%s.isHeldByCurrentThread stock", kind->java);
    unlock_in("waiter", kind);
}

void law_lease_of_java_ends(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    redisson_open("brief", BRIEF_MS); /* whose watchdog has something else to do */
    redisson_do("brief/t1", "%s.lock store", kind->java);
    expect_redisson("brief/t1", "true", "%s.tryLock stock 0 1000", kind->java);
    expect_ok(hl_lock_acquire_for(lock, 40000, NULL));
    expect_redisson("brief/t1", "false", "%s.isHeldByCurrentThread stock", kind->java);
    expect_not_locked("brief/t1", kind);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    redisson_do("brief/t1", "%s.unlock store", kind->java);
}

void law_killed_java_is_followed(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    redisson_open_apart(BRIEF_MS);
    redisson_do("other/t1", "%s.lock stock", kind->java);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_kill_apart();
    expect_ok(hl_lock_acquire_for(lock, 60000, NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

void law_c_that_leaves_is_followed(const struct lock_kind *kind)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = BRIEF_MS));
    hl_lock *lock = kind->make(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = java_waits(kind);
    close_client(client);
    redisson_end(waits);
    unlock_in("waiter", kind);
}

/* ---- Reentry ---- */

static hl_lock_info inspected(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    return info;
}

void law_reentry_of_java(const struct lock_kind *kind)
{
    const char *id = redisson_open("second", 0);
    hl_lock *lock = make_for(kind, NULL);
    redisson_do("second/t1", "%s.lock stock", kind->java);
    redisson_do("second/t1", "%s.lock stock", kind->java);
    hl_lock_info info = inspected(lock);
    check(info.locked && !info.mine);
    check_int(info.hold_count, 2);
    check(strncmp(info.owner, id, strlen(id)) == 0 && info.owner[strlen(id)] == ':');
    check(info.lease_left_ms > 0);
    redisson_do("second/t1", "%s.unlock stock", kind->java);
    check_int(inspected(lock).hold_count, 1);
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    redisson_do("second/t1", "%s.unlock stock", kind->java);
    expect_ok(hl_lock_try_acquire(lock, NULL));
}

void law_reentry_of_c(const struct lock_kind *kind)
{
    hl_lock *lock = make_for(kind, NULL);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    int waits = java_waits(kind);
    expect_redisson("t1", "true", "%s.isLocked stock", kind->java);
    expect_redisson("t1", "0", "%s.getHoldCount stock", kind->java);
    int64_t left_ms = redisson_number("t1", "%s.remainTimeToLive stock", kind->java);
    check(left_ms > 0 && left_ms <= REDISSON_LEASE_MS);
    expect_ok(hl_lock_release(lock, NULL));
    check(hl_lock_is_held(lock, NULL));
    check(!redisson_is_done(waits));
    expect_redisson("t1", "false", "%s.tryLock stock", kind->java);
    expect_ok(hl_lock_release(lock, NULL));
    redisson_end(waits);
}
