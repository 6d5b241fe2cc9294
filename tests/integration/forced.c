/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A lock that is taken from its holder, by force or by a DEL: the holder's own process notices it,
 * long before a renewal, and its threads that wait are served. */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/events.h"
#include "support/kinds.h"

enum { HOUR_MS = 3600000, POLL_MS = 50 };

static struct events told;

/* Nothing but a look or a message finds out in time: renewals come every twenty minutes. */
#define PATIENT CLIENT(.watchdog_timeout_ms = HOUR_MS, .poll_ms = HOUR_MS)
#define LOOKS                                                                                      \
    CLIENT(.watchdog_timeout_ms = HOUR_MS, .poll_ms = POLL_MS, .on_event = count_event,            \
           .arg = &told)
#define HEARS                                                                                      \
    CLIENT(.watchdog_timeout_ms = HOUR_MS, .poll_ms = HOUR_MS, .on_event = count_event,            \
           .arg = &told)

struct kind {
    const char *name;
    hl_lock_kind kind;
    unsigned flags;
};

/* Those whose owners wait in one line in a process, and those of which each asks for itself. */
static const struct kind kinds[] = {
    {"plain", HL_LOCK_REENTRANT, 0}, {"single", HL_LOCK_REENTRANT, HL_LOCK_NON_REENTRANT},
    {"fenced", HL_LOCK_FENCED, 0},   {"spin", HL_LOCK_SPIN, 0},
    {"write", HL_LOCK_WRITE, 0},     {"fair", HL_LOCK_FAIR, 0},
    {"read", HL_LOCK_READ, 0}};
enum { IN_ONE_LINE = 5, KINDS = 7 };

static hl_lock *new_of(hl_client *client, const struct kind *kind)
{
    return new_lock_with(client, kind->name,
                         &(hl_lock_options){.size = sizeof(hl_lock_options),
                                            .kind = kind->kind,
                                            .flags = kind->flags});
}

/* How a hold is acquired: by the watchdog or for an hour, by a thread or as an owner. */
struct way {
    int64_t lease_ms;
    bool is_named;
};
static const struct way ways[] = {{0, false}, {0, true}, {HOUR_MS, false}, {HOUR_MS, true}};
enum { WAYS = 4 };

/* A hold that is taken away. */
struct taken {
    hl_lock *lock;
    hl_owner *owner;
    struct actor *actor;
    int losses; /* that were told before */
};

static void taken_begin(struct taken *taken, hl_lock *lock, hl_owner *owner, int64_t lease_ms)
{
    *taken = (struct taken){lock, owner, actor_start(), events_told(&told, HL_EVENT_LOST)};
    expect_ok(actor_acquire(taken->actor, lock,
                            ACQUIRE(.wait_ms = 0, .lease_ms = lease_ms, .owner = owner)));
    check(actor_holds(taken->actor, lock, owner));
}

/* Its client knows, and says so. */
static void expect_lost(struct taken *taken)
{
    check(events_wait(&told, HL_EVENT_LOST, taken->losses + 1, 20000));
    check_str(told.reason[HL_EVENT_LOST], "gone");
    check(!actor_holds(taken->actor, taken->lock, taken->owner));
    expect_outcome(actor_release(taken->actor, taken->lock, taken->owner), HL_ELOST);
    actor_stop(taken->actor);
}

static void wait_behind(hl_client *client, struct actor *waiter, hl_lock *lock)
{
    actor_begin_acquire(waiter, lock, ACQUIRE(.wait_ms = slow_ms(20000)));
    expect_waiters(client, 1);
}

static void serve_behind_del(hl_client *client, const struct kind *kind, const struct way *way)
{
    hl_lock *lock = new_of(client, kind);
    struct actor *waiter = actor_start();
    struct taken taken;

    taken_begin(&taken, lock, way->is_named ? new_owner(client) : NULL, way->lease_ms);
    wait_behind(client, waiter, lock);
    redis_do(server, "DEL %s", kind->name);
    expect_ok(actor_end(waiter));
    expect_lost(&taken);
    expect_ok(actor_release(waiter, lock, NULL));
    actor_stop(waiter);
}

Law(forced, hold_is_looked_at_for_the_waiters_of_its_own_process)
{
    hl_client *client = open_client(LOOKS);
    for (int i = 0; i < IN_ONE_LINE; i++)
        for (int j = 0; j < WAYS; j++)
            serve_behind_del(client, &kinds[i], &ways[j]);
    check_int(stats_of(client).losses, IN_ONE_LINE * WAYS);
}

/* By the server's clock. */
static int64_t expires_at(const char *name)
{
    return redis_int(server, "EVAL %s 1 %s",
                     "local t = redis.call('TIME') "
                     "return t[1] * 1000 + math.floor(t[2] / 1000) + redis.call('PTTL', KEYS[1])",
                     name);
}

Law(forced, hold_with_a_lease_time_gets_no_longer_by_a_look)
{
    hl_client *client = open_client(LOOKS);
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_REENTRANT);
    hl_cancel *cancel = new_cancel();
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = HOUR_MS), ERR));
    int64_t before = expires_at("stock");
    struct actor *waiter =
        actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel));
    wait_stat(client, renewals, 3);
    int64_t after = expires_at("stock");
    check_msg(after < before + POLL_MS, "%d ms longer", (int)(after - before));
    check(hl_lock_is_held(lock, NULL));
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(waiter), HL_ECANCELED);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(stats_of(client).losses, 0);
}

Law(forced, member_of_a_multi_lock_is_looked_at)
{
    hl_client *client = open_client(LOOKS);
    hl_lock *multi = new_multi(client, "area bay");
    struct actor *waiter = actor_start();
    struct taken taken;
    taken_begin(&taken, multi, NULL, HOUR_MS);
    wait_behind(client, waiter, multi);
    redis_do(server, "DEL area bay");
    expect_ok(actor_end(waiter));
    check(events_wait(&told, HL_EVENT_LOST, 2, 20000));
    check(!actor_holds(taken.actor, multi, NULL));
    expect_outcome(actor_release(taken.actor, multi, NULL), HL_ELOST);
    expect_ok(actor_release(waiter, multi, NULL));
}

static void force_away(hl_client *client, const struct kind *kind, const struct way *way,
                       hl_lock *forcing)
{
    hl_lock *lock = new_of(client, kind);
    struct taken taken;

    taken_begin(&taken, lock, way->is_named ? new_owner(client) : NULL, way->lease_ms);
    expect_ok(hl_lock_force_release(forcing, ERR));
    expect_lost(&taken);
}

/* In a cluster its client listens for a name only as long as it waits, or has just waited. */
SingleLaw(forced, hold_hears_of_it_without_a_waiter_in_its_process)
{
    hl_client *client = open_client(HEARS), *other = open_client(PATIENT);
    for (int i = 0; i < KINDS; i++) {
        hl_lock *forcing = new_of(other, &kinds[i]);
        for (int j = 0; j < WAYS; j++)
            force_away(client, &kinds[i], &ways[j], forcing);
    }
    check_int(stats_of(client).losses, KINDS * WAYS);
}

/* An operator's handle is of the kind that the key looks like. */
SingleLaw(forced, fair_hold_hears_of_it_by_a_handle_of_another_kind)
{
    static const struct kind fair = {"stock", HL_LOCK_FAIR, 0};
    static const struct kind plain = {"stock", HL_LOCK_REENTRANT, 0};
    hl_client *client = open_client(HEARS);
    force_away(client, &fair, &ways[2], new_of(open_client(PATIENT), &plain));
}

SingleLaw(forced, readers_of_several_clients_hear_of_it)
{
    static const struct kind read = {"stock", HL_LOCK_READ, 0};
    hl_client *client[2] = {open_client(PATIENT), open_client(PATIENT)};
    struct taken taken[2];
    for (int i = 0; i < 2; i++)
        taken_begin(&taken[i], new_of(client[i], &read), NULL, HOUR_MS);
    expect_ok(hl_lock_force_release(new_of(open_client(PATIENT), &read), ERR));
    for (int i = 0; i < 2; i++) {
        wait_stat(client[i], losses, 1);
        check(!actor_holds(taken[i].actor, taken[i].lock, NULL));
        expect_outcome(actor_release(taken[i].actor, taken[i].lock, NULL), HL_ELOST);
    }
}

/* Its client listens to the lock's channel, as two of its threads have met another holder there.
 * Redisson's forceUnlock() is this DEL and this message. */
Law(forced, hold_hears_the_message_of_redisson)
{
    hl_client *client = open_client(HEARS);
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_REENTRANT);
    hl_lock *others = new_kind(open_client(PATIENT), "stock", HL_LOCK_REENTRANT);
    struct actor *first = actor_start(), *second = actor_start();
    expect_ok(hl_lock_acquire(others, ERR));
    actor_begin_acquire(first, lock, ACQUIRE(.wait_ms = slow_ms(20000), .lease_ms = HOUR_MS));
    expect_waiters(client, 1);
    actor_begin_acquire(second, lock, ACQUIRE(.wait_ms = slow_ms(20000), .lease_ms = HOUR_MS));
    expect_waiters(client, 2);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 20000));
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(actor_end(first));
    redis_do(server, "DEL stock");
    redis_do(server, "PUBLISH redisson_lock__channel:{stock} 0");
    expect_ok(actor_end(second));
    expect_outcome(actor_release(first, lock, NULL), HL_ELOST);
    expect_ok(actor_release(second, lock, NULL));
}

static void publish_look(const char *mailbox, const char *name)
{
    check_int(redis_int(server, "EVAL %s 0 %s %b",
                        "return redis.call('PUBLISH', ARGV[1], 'l ' .. ARGV[2])", mailbox, name,
                        strlen(name)),
              1);
}

/* Anybody may publish. */
SingleLaw(forced, message_that_is_not_true_costs_a_look)
{
    hl_client *client = open_client(HEARS);
    hl_lock *lock = new_kind(client, "stock", HL_LOCK_REENTRANT);
    char mailbox[64], long_name[600];
    snprintf(mailbox, sizeof mailbox, "hirelock:%s", hl_client_id(client));
    memset(long_name, 's', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.lease_ms = HOUR_MS), ERR));
    check(redis_wait_subscribers(server, mailbox, 1, 5000));
    int64_t left_ms = pttl_of(lock);
    redis_do(server, "PUBLISH %s %s", mailbox, "l");
    publish_look(mailbox, "");
    publish_look(mailbox, long_name);
    publish_look(mailbox, "nothing");
    check_int(stats_of(client).renewals, 0);
    publish_look(mailbox, "stock");
    wait_stat(client, renewals, 1);
    check(hl_lock_is_held(lock, NULL));
    check(pttl_of(lock) <= left_ms);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(stats_of(client).renewals, 1);
    check_int(events_told(&told, HL_EVENT_LOST), 0);
}
