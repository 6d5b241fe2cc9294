/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A slot that is held open between two masters, with some keys of a lock at either: what goes on
 * there makes no key that the other node may have, or MIGRATE would end with BUSYKEY.
 */

#include "cluster_kinds.h"
#include "cluster_kit.h"

static hl_client *client, *other, *third;
static const char *name;

static void open_three(void)
{
    cluster_up();
    client = open_client_at(cluster_url(cluster), cluster_client(NULL));
    other = open_client_at(cluster_url(cluster), cluster_client(NULL));
    third = open_client_at(cluster_url(cluster), cluster_client(NULL));
    name = name_at(0, "stock");
}

#define HalvesLaw(suite, ...) Test(suite, __VA_ARGS__, .init = open_three, .fini = server_down)

static struct slot_move begin_move(void)
{
    return slot_move_begin(cluster, slot_of(name), cluster_node(cluster, 1));
}

/* From now on the test looks at the new node; an error of MIGRATE ends it. */
static void end_move(const struct slot_move *move)
{
    slot_move_end(move);
    server = move->to;
}

static const char *beside(const char *prefix)
{
    static char key[2][128];
    static int used;

    used = !used;
    snprintf(key[used], sizeof key[used], "%s%s", prefix, name);
    return key[used];
}

static bool is_redirected(void *arg)
{
    return stats_of(arg).redirects > 0;
}

static void take_turn(void *lock)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* The queue is at the old node, the lock at the new one, whose answers are those of a busy lock. */
HalvesLaw(open_slot, has_no_second_queue)
{
    hl_lock *lock = new_lock(client, name), *others = new_lock(other, name);
    hl_lock *thirds = new_lock(third, name);
    struct actor *actor = actor_start(), *late = actor_start();

    expect_ok(hl_lock_acquire(lock, ERR));
    actor_begin(actor, take_turn, others);
    expect_waiters(other, 1);
    struct slot_move move = begin_move();
    check(slot_move_key(&move, name));
    actor_begin(late, take_turn, thirds);
    expect_waiters(third, 1);
    check(wait_until(is_redirected, third, 10000));
    end_move(&move);
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    actor_await(actor);
    actor_await(late);
    expect_free(thirds);
}

static hl_lock *fenced(hl_client *owner)
{
    hl_lock *lock = NULL;

    expect_ok(fenced_lock_new(owner, name, NULL, &lock, ERR));
    return keep_lock(lock);
}

/* The counter is at the old node, and the lock, which is free, would be made at the new one. */
HalvesLaw(open_slot, has_no_second_counter_of_tokens)
{
    hl_lock *lock = fenced(client), *others = fenced(other);

    for (int i = 0; i < 5; i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
    }
    struct slot_move move = begin_move();
    struct actor *actor = actor_start_acquire(others, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ESERVER);
    check_has(err.text, "TRYAGAIN");
    end_move(&move);
    expect_ok(actor_end(actor));
    check_int(hl_lock_token(others, NULL), 0);
    check_int(actor_token(actor), 6);
    expect_ok(actor_release(actor, others, NULL));
    check_str(redis_str(server, "GET %s", beside("redisson_lock_token:")), "6");
}

static void take(void *thing)
{
    thing_take(thing);
}

static void give_back(void *thing)
{
    thing_give_back(thing);
}

static void take_turn_with(void *thing)
{
    thing_take(thing);
    thing_give_back(thing);
}

static bool needs_the_lock_alone(enum kind kind)
{
    return kind == LOCK || kind == FENCED || kind == SPIN || kind == MULTI;
}

static void begin_and_see(struct actor *actor, hl_client *caller, void (*job)(void *), void *thing)
{
    uint64_t before = stats_of(caller).commands;

    actor_begin(actor, job, thing);
    wait_stat(caller, commands, before + 1);
}

/* One has it, its key is at the new node, and its other keys, if any, are at the old one: ASK and
 * TRYAGAIN. The third asks when all is over, by an old map: MOVED. */
static void use_while_its_slot_moves(enum kind kind)
{
    name = cluster_name_in_slot((int)kind, kind_names[kind]);
    struct thing mine = thing_make(client, kind, name), others = thing_make(other, kind, name);
    struct thing thirds = thing_make(third, kind, name);
    struct actor *owner = actor_start(), *waiter = actor_start(), *late = actor_start();

    actor_do(late, take_turn_with, &thirds);
    actor_do(owner, take, &mine);
    struct slot_move move = begin_move();
    check(slot_move_key(&move, name));
    begin_and_see(waiter, other, take_turn_with, &others);
    begin_and_see(owner, client, give_back, &mine);
    if (needs_the_lock_alone(kind))
        actor_await(owner);
    end_move(&move);
    actor_await(owner);
    actor_await(waiter);
    actor_do(late, take_turn_with, &thirds);
    check_int(redis_int(move.from, "CLUSTER COUNTKEYSINSLOT %d", slot_of(name)), 0);
}

HalvesLaw(open_slot, lets_each_primitive_be_given_back_and_taken)
{
    for (int kind = 0; kind < KINDS; kind++)
        use_while_its_slot_moves((enum kind)kind);
    check(stats_of(client).redirects > 0 && stats_of(third).redirects > 0);
    check_int((int)stats_of(client).losses, 0);
}
