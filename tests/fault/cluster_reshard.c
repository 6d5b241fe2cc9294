/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * redis-cli --cluster reshard of the very slots in use, forth and back, while threads of two
 * clients take turns with each primitive. No resharding ends with an error, no two threads have
 * what one of them may have, and each is served again behind each move.
 */

#include "cluster_kinds.h"
#include "cluster_kit.h"

#include "support/cluster_reshape.h"
#include "support/deadline.h"

#include <stdio.h>

enum {
    CLIENTS = 2,
    TURNS = CLIENTS * KINDS,
    SLOTS = 3,
    ROUNDS = 20,
    POLL_MS = 1000 /* on an idle machine */
};

static struct events events;
static atomic_bool is_over;
static atomic_int holders[KINDS];
static uint64_t last_token; /* of the one that holds the fenced lock */

static struct turns {
    struct thing thing;
    struct actor *actor;
    atomic_int count;
    int wanted;
    int64_t longest_ms; /* that it waited; behind the end */
} turns[TURNS];

/* Both halves of a read-write lock have one name. */
static const char *name_of(enum kind kind)
{
    return cluster_name_in_slot(kind == WRITER ? READER % SLOTS : (int)kind % SLOTS,
                                kind_names[kind]);
}

/* Beside a reader there may be readers. */
static void check_alone(const struct thing *mine)
{
    int before = atomic_fetch_add(&holders[mine->kind], 1);

    check_msg(before == 0 || mine->kind == READER, "%s has two holders", kind_names[mine->kind]);
    check(mine->kind != READER || atomic_load(&holders[WRITER]) == 0);
    check(mine->kind != WRITER || atomic_load(&holders[READER]) == 0);
    if (mine->kind == FENCED) {
        uint64_t token = hl_lock_token(mine->lock, NULL);
        check_msg(token > last_token, "token %llu behind %llu", (unsigned long long)token,
                  (unsigned long long)last_token);
        last_token = token;
    }
}

static void take_turns(void *arg)
{
    struct turns *mine = arg;

    while (!atomic_load(&is_over)) {
        int64_t asked_at = now_ms();
        thing_take(&mine->thing);
        int64_t waited_ms = now_ms() - asked_at;
        if (waited_ms > mine->longest_ms)
            mine->longest_ms = waited_ms;
        check_alone(&mine->thing);
        deadline_nap();
        atomic_fetch_sub(&holders[mine->thing.kind], 1);
        thing_give_back(&mine->thing);
        atomic_fetch_add(&mine->count, 1);
    }
}

static void begin_turns(void)
{
    const hl_client_options *options =
        CLIENT(.poll_ms = slow_ms(POLL_MS), .request_timeout_ms = patience_ms(6000),
               .outage_timeout_ms = slow_ms(60000), .on_event = count_event, .arg = &events);

    for (int i = 0; i < TURNS; i++) {
        static hl_client *client;
        enum kind kind = (enum kind)(i % KINDS);
        if (i % KINDS == 0)
            client = open_client_at(cluster_url(cluster), options);
        turns[i].thing = thing_make(client, kind, name_of(kind));
        turns[i].actor = actor_start();
    }
    for (int i = 0; i < TURNS; i++)
        actor_begin(turns[i].actor, take_turns, &turns[i]);
}

static bool are_served(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++)
        if (atomic_load(&turns[i].count) < turns[i].wanted)
            return false;
    return true;
}

/* Each thread twice from now on: the first turn may have begun before. */
static void expect_all_served(void)
{
    for (int i = 0; i < TURNS; i++)
        turns[i].wanted = atomic_load(&turns[i].count) + 2;
    if (wait_until(are_served, NULL, 30000))
        return;
    for (int i = 0; i < TURNS; i++)
        check_msg(atomic_load(&turns[i].count) >= turns[i].wanted, "client %d waits for its %s",
                  i / KINDS, kind_names[i % KINDS]);
}

/* A move and a poll, with its jitter; the rest is for a busy machine, and for the others' turns. */
static void expect_short_waits(int64_t longest_move_ms)
{
    int64_t most_ms = longest_move_ms + slow_ms(POLL_MS * 13 / 10 + 8000), longest_ms = 0;

    for (int i = 0; i < TURNS; i++) {
        if (i % KINDS == SPIN)
            continue; /* it stands in no queue: another may come first again and again */
        if (turns[i].longest_ms > longest_ms)
            longest_ms = turns[i].longest_ms;
        check_msg(turns[i].longest_ms <= most_ms, "client %d waited %d ms for its %s", i / KINDS,
                  (int)turns[i].longest_ms, kind_names[i % KINDS]);
    }
    fprintf(stderr, "longest move %d ms, longest wait %d ms\n", (int)longest_move_ms,
            (int)longest_ms);
}

static void end_turns(void)
{
    atomic_store(&is_over, true);
    for (int i = 0; i < TURNS; i++)
        actor_await(turns[i].actor);
}

/* What nobody holds or waits for is gone; a queue that nobody asks for ends after ten polls. */
static void expect_gone(struct redis_server *node, enum kind kind)
{
    static const char *const keys[] = {
        "EXISTS %s", "EXISTS hirelock_queue:%s", "EXISTS redisson_lock_queue:%s",
        "EXISTS redisson_lock_timeout:%s", "EXISTS hirelock_fair:%s"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        check_msg(redis_wait_int(node, 0, 30000, keys[i], name_of(kind)), keys[i], name_of(kind));
}

static void expect_nothing_left(struct redis_server *node, struct redis_server *empty)
{
    for (int slot = 0; slot < SLOTS; slot++)
        check_int(redis_int(empty, "CLUSTER COUNTKEYSINSLOT %d", slot), 0);
    for (int kind = LOCK; kind < SEMAPHORE; kind++)
        expect_gone(node, (enum kind)kind);
    check_str(redis_str(node, "GET %s", name_of(SEMAPHORE)), "1");
    check_str(redis_str(node, "GET %s", name_of(PERMITS)), "1");
}

static int64_t reshard(struct redis_server *from, struct redis_server *to)
{
    int64_t began = now_ms();

    cluster_reshard(cluster, from, to, SLOTS);
    int64_t moved_ms = now_ms() - began;
    expect_all_served();
    return moved_ms;
}

ClusterLaw(resharding, of_slots_in_use_ends_well_and_loses_nothing)
{
    struct redis_server *home = cluster_node_at(cluster, 0);
    struct redis_server *away = cluster_node(cluster, cluster_node(cluster, 0) == home);
    int64_t longest_ms = 0;

    begin_turns();
    expect_all_served();
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t ms = i % 2 == 0 ? reshard(home, away) : reshard(away, home);
        if (ms > longest_ms)
            longest_ms = ms;
    }
    end_turns();
    expect_short_waits(longest_ms);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_msg(events_told(&events, HL_EVENT_DISCONNECTED) == 0, "a connection was lost: %s",
              events.reason[HL_EVENT_DISCONNECTED]);
    expect_nothing_left(home, away);
}
