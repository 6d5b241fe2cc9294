/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake nodes whose map changes while requests are under way, and while nodes come and go. */

#include "cluster_fake.h"

#include "support/actor.h"
#include "support/cluster_slot.h"
#include "support/events.h"
#include "support/recorder.h"

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .fini = server_down)

static void expect_works(hl_client *client, int slot)
{
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "stock"));
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(5000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

/* The node, which serves this slot, makes the client read the map. */
static void look_again(hl_client *client, struct fake_node *node, int slot)
{
    int looks = fake_server_count(node->server, "CLUSTER SLOTS");
    struct deadline deadline = deadline_of_wait(10000);
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "look"));

    fake_node_redirect(node, "MOVED", (unsigned)slot, "127.0.0.1", fake_node_port(node));
    do { /* a look that is under way was asked for before */
        check(!deadline_is_over(deadline));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ESERVER);
    } while (!fake_server_wait_count(node->server, "CLUSTER SLOTS", looks + 1, 200));
    fake_node_set_script(node, "");
}

/* Slot 1000 moves from one node to another, both of which are connected; the first one keeps some
 * slots or none. */
enum { SLOT = 1000 };

struct pair {
    struct fake_node *node[2];
};

static void pair_set_map(const struct pair *pair, int kept)
{
    const struct fake_range ranges[] = {{kept, 16383, fake_node_port(pair->node[1])},
                                        {0, kept - 1, fake_node_port(pair->node[0])}};
    fake_nodes_set_map(pair->node, 2, ranges, kept > 0 ? 2 : 1);
}

static struct pair pair_up(void)
{
    struct pair pair = {{new_fake_node(), new_fake_node()}};
    pair_set_map(&pair, 8000);
    return pair;
}

static hl_client *open_pair(const struct pair *pair)
{
    return open_client_at(fake_cluster_url(pair->node[1], NULL),
                          CLIENT(.poll_ms = slow_ms(60000), .request_timeout_ms = slow_ms(60000),
                                 .outage_timeout_ms = slow_ms(100000)));
}

static void pair_move(struct pair *pair, hl_client *client, int kept)
{
    expect_works(client, 16000);
    pair_set_map(pair, kept);
    look_again(client, pair->node[1], 16000);
}

static hl_lock *hold_at_first(hl_client *client, struct pair *pair)
{
    hl_lock *lock = new_lock_with(
        client, cluster_name_in_slot(SLOT, "stock"),
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_ASYNC_RELEASE});
    expect_ok(hl_lock_acquire(lock, ERR));
    pair->node[0]->script_then = FAKE_STALL; /* it answers no PING either */
    fake_node_set_script(pair->node[0], "(silence)");
    for (int i = 0; i < 2; i++)
        fake_node_watch(pair->node[i], cluster_name_in_slot(SLOT, "stock"));
    return lock;
}

static void expect_release_at_second(struct pair *pair, hl_lock *lock, hl_client *client, int kept)
{
    expect_ok(hl_lock_release(lock, ERR));
    check(wait_until(fake_node_has_released, pair->node[0], 10000));
    pair_move(pair, client, kept);
    expect_works(client, 16000);
    if (kept > 0)
        fake_server_close_all(pair->node[0]->server, FAKE_CLOSE);
    check(wait_until(fake_node_has_released, pair->node[1], 10000));
}

FakeLaw(cluster_maps, that_leave_a_node_without_slots_take_a_release_in_flight_along)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    expect_release_at_second(&pair, hold_at_first(client, &pair), client, 0);
}

FakeLaw(cluster_maps, that_have_moved_a_slot_take_a_release_along_whose_node_is_lost_later)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    expect_release_at_second(&pair, hold_at_first(client, &pair), client, 10);
}

/* The second map does not name the slot of the release again. */
FakeLaw(cluster_maps, that_leave_a_node_without_slots_take_along_what_strayed_there_before)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    hl_lock *lock = hold_at_first(client, &pair);

    expect_ok(hl_lock_release(lock, ERR));
    check(wait_until(fake_node_has_released, pair.node[0], 10000));
    pair_move(&pair, client, 10);
    pair_move(&pair, client, 0);
    expect_works(client, 16000);
    check(wait_until(fake_node_has_released, pair.node[1], 10000));
}

/* A replica has taken its place; what the old master says late must not count. */
FakeLaw(cluster_maps, that_leave_a_node_without_slots_count_more_than_a_word_from_when_it_had_some)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);

    expect_works(client, 16000);
    fake_node_redirect(pair.node[1], "ASK", 16000, "127.0.0.1", fake_node_port(pair.node[0]));
    expect_works(client, 16000); /* by the first node */
    fake_node_set_script(pair.node[1], "");
    expect_release_at_second(&pair, hold_at_first(client, &pair), client, 0);
}

static bool is_done(void *actor)
{
    return actor_is_done(actor);
}

static void open_job(void *arg)
{
    struct pair *pair = arg;

    open_client_at(
        fake_cluster_url(pair->node[1], NULL),
        CLIENT(.connect_timeout_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000)));
}

/* The first node accepts the connection, and says nothing. */
FakeLaw(cluster_maps, that_leave_out_a_silent_node_end_an_open_that_waits_for_it)
{
    static const struct fake_step silent[] = {{"", NULL, 0, FAKE_STALL, 0},
                                              {"", NULL, 0, FAKE_STALL, 0}};
    struct pair pair = pair_up();
    struct actor *actor = actor_start();

    fake_server_play(pair.node[0]->server, silent, 2);
    actor_begin(actor, open_job, &pair);
    check(fake_server_wait_play(pair.node[0]->server, 20000));
    pair_set_map(&pair, 0);
    check(wait_until(is_done, actor, 20000));
    actor_await(actor);
}

/* Of 16 ranges and more that change hands in turn, each master that goes is told of once. */
FakeLaw(cluster_maps, of_slots_that_alternate_tell_of_each_master_once)
{
    enum { RANGES = 64, SLOTS = 16384 / RANGES };
    static struct events events;
    struct fake_node *node[] = {new_fake_node(), new_fake_node(), new_fake_node(), new_fake_node()};
    struct fake_range ranges[RANGES];
    char moved[64];

    for (int i = 0; i < RANGES; i++)
        ranges[i] =
            (struct fake_range){i * SLOTS, (i + 1) * SLOTS - 1, fake_node_port(node[i % 2])};
    fake_nodes_set_map(node, 4, ranges, RANGES);
    hl_client *client = open_client_at(fake_cluster_url(node[0], node[2]),
                                       CLIENT(.on_event = count_event, .arg = &events));
    expect_works(client, 0);
    for (int i = 0; i < RANGES; i++)
        ranges[i].port = fake_node_port(node[2 + i % 2]);
    fake_nodes_set_map(node, 4, ranges, RANGES);
    snprintf(moved, sizeof moved, "-MOVED 0 127.0.0.1:%d\r\n", fake_node_port(node[2]));
    fake_node_set_script(node[0], moved);
    expect_ok(hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(0, "a")),
                                   ACQUIRE(.wait_ms = slow_ms(5000)), ERR));
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 2, 10000));
    expect_works(client, 0);
    check_int(events_told(&events, HL_EVENT_MASTER_CHANGED), 2);
}

static bool has_one_node(void *client)
{
    return stats_of(client).nodes_now == 1;
}

/* As `redis-cli --cluster reshard` does with the last slot of a node: its keys go along. */
FakeLaw(cluster_maps, that_leave_a_node_without_slots_tell_of_no_other_master)
{
    static struct recorder lines = RECORDER_INIT;
    struct fake_node *node[] = {new_fake_node(), new_fake_node()};
    struct fake_range ranges[] = {{0, 8000, fake_node_port(node[0])},
                                  {8001, 16383, fake_node_port(node[1])}};
    char moved[64];

    fake_nodes_set_map(node, 2, ranges, 2);
    hl_client *client =
        open_client_at(fake_cluster_url(node[0], node[1]),
                       CLIENT(.on_log = record_log, .log_level = HL_LOG_INFO, .arg = &lines));
    expect_works(client, 0);
    ranges[0].port = fake_node_port(node[1]);
    fake_nodes_set_map(node, 2, ranges, 2);
    snprintf(moved, sizeof moved, "-MOVED 0 127.0.0.1:%d\r\n", fake_node_port(node[1]));
    fake_node_set_script(node[0], moved);
    expect_works(client, 0);
    check(wait_until(has_one_node, client, 20000));
    expect_works(client, 8000);
    check(recorder_wait_says(&lines, "serves no slots any more"));
    check_int(stats_of(client).master_changes, 0);
}

/* The room of a node that has left is that of the next. What was wrong with the first is not said
 * of the second, which is not connected yet. */
FakeLaw(cluster_maps, with_a_node_in_the_room_of_another_do_not_mix_them_up)
{
    static const struct fake_step silent[] = {{"", NULL, 0, FAKE_STALL, 0},
                                              {"", NULL, 0, FAKE_STALL, 0}};
    struct fake_node *node = new_fake_node(), *next = new_fake_node();
    struct fake_range ranges[] = {{0, 8000, fake_node_port(node)}, {8001, 16383, 1}};
    hl_error err = HL_ERROR_INIT;
    char where[32];

    fake_nodes_set_map(&node, 1, ranges, 2);
    hl_client *client =
        open_client_at(fake_cluster_url(node, NULL), CLIENT(.connect_timeout_ms = slow_ms(2000)));
    hl_lock *lock = new_lock(client, cluster_name_in_slot(8001, "stock"));
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    check_has(err.text, "connection refused");
    ranges[1].port = fake_node_port(node);
    fake_nodes_set_map(&node, 1, ranges, 2);
    look_again(client, node, 0);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(10000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    ranges[1].port = fake_node_port(next);
    snprintf(where, sizeof where, "127.0.0.1:%d", fake_node_port(next));
    fake_server_play(next->server, silent, 2);
    fake_nodes_set_map(&node, 1, ranges, 2);
    look_again(client, node, 0);
    check(fake_server_wait_play(next->server, 10000));
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    check_has(err.text, where);
    check_msg(!strstr(err.text, "refused"), "%s", err.text);
}

static void say_epoch(struct fake_node *node, int epoch)
{
    char text[64];

    snprintf(text, sizeof text, "cluster_state:ok\r\ncluster_current_epoch:%d\r\n", epoch);
    fake_node_set_info(node, text);
}

/* A node that has missed something says an old map. */
static void set_old_map(struct fake_node *node, const struct fake_node *to)
{
    const struct fake_range all = {0, 16383, fake_node_port(to)};

    say_epoch(node, 3);
    fake_nodes_set_map(&node, 1, &all, 1);
}

FakeLaw(cluster_maps, of_an_older_epoch_count_only_if_no_node_has_a_newer_one)
{
    struct pair pair = pair_up();
    struct fake_node *past = new_fake_node();

    for (int i = 0; i < 2; i++)
        say_epoch(pair.node[i], 5);
    hl_client *client = open_pair(&pair);
    expect_works(client, SLOT);
    set_old_map(pair.node[1], past);
    int looks = fake_server_count(pair.node[0]->server, "CLUSTER SLOTS");
    look_again(client, pair.node[1], 16000);
    check(fake_server_wait_count(pair.node[0]->server, "CLUSTER SLOTS", looks + 1, 10000));
    expect_works(client, SLOT);
    check_int(fake_server_accepted(past->server), 0);
    set_old_map(pair.node[0], past);
    fake_node_redirect(pair.node[0], "MOVED", SLOT, "127.0.0.1", fake_node_port(pair.node[0]));
    expect_works(client, SLOT);
    check(fake_server_count(past->server, "EVALSHA") > 0);
}

static int looks_of(const struct pair *pair)
{
    return fake_server_count(pair->node[0]->server, "CLUSTER SLOTS") +
           fake_server_count(pair->node[1]->server, "CLUSTER SLOTS");
}

/* Until the two were asked so many times for their map. */
static void look_around(hl_client *client, const struct pair *pair, int times)
{
    struct deadline deadline = deadline_of_wait(20000);
    hl_lock *lock = new_lock(client, cluster_name_in_slot(16000, "look"));
    int looks = looks_of(pair);

    fake_node_redirect(pair->node[1], "MOVED", 16000, "127.0.0.1", fake_node_port(pair->node[1]));
    while (looks_of(pair) < looks + times) {
        check(!deadline_is_over(deadline));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ESERVER);
        fake_server_wait_count(pair->node[1]->server, "CLUSTER SLOTS", looks + times, 100);
    }
    fake_node_set_script(pair->node[1], "");
    free_lock(lock);
}

/* For a while all nodes tell an old epoch, and are believed as there is no other. That makes no
 * map of an epoch in between a new one. */
FakeLaw(cluster_maps, of_the_newest_epoch_count_also_after_an_old_one_did)
{
    struct pair pair = pair_up();
    struct fake_node *past = new_fake_node();
    bool was_first = false;

    for (int i = 0; i < 2; i++)
        say_epoch(pair.node[i], 5);
    hl_client *client = open_pair(&pair);
    expect_works(client, SLOT);
    for (int n = 0; !was_first; n++) { /* until the older of the two is asked first */
        struct fake_node *older = pair.node[n % 2];
        const struct fake_range all = {0, 16383, fake_node_port(past)};
        check(n < 10);
        for (int i = 0; i < 2; i++)
            say_epoch(pair.node[i], 3);
        look_around(client, &pair, 7); /* two rounds, and the one that was under way */
        say_epoch(older, 4);
        fake_nodes_set_map(&older, 1, &all, 1);
        say_epoch(pair.node[1 - n % 2], 5);
        int looks = fake_server_count(older->server, "CLUSTER SLOTS");
        look_around(client, &pair, 4);
        was_first = fake_server_count(older->server, "CLUSTER SLOTS") > looks;
        expect_works(client, SLOT);
        pair_set_map(&pair, 8000);
    }
    check_int(fake_server_accepted(past->server), 0);
}

/* As soon as the client has the map that says so. */
static void expect_works_at(hl_client *client, int slot, struct fake_node *node)
{
    struct deadline deadline = deadline_of_wait(10000);
    int before = fake_server_count(node->server, "EVALSHA");

    do {
        check(!deadline_is_over(deadline));
        expect_works(client, slot);
    } while (fake_server_count(node->server, "EVALSHA") == before);
}

/* MOVED has named this node a moment ago, and a map since. */
FakeLaw(cluster_maps, that_leave_a_node_without_slots_count_more_than_an_earlier_word_for_it)
{
    struct pair pair = pair_up();
    pair_set_map(&pair, 0);
    hl_client *client = open_pair(&pair);

    fake_node_redirect(pair.node[1], "MOVED", 16000, "127.0.0.1", fake_node_port(pair.node[0]));
    expect_works(client, 16000);
    fake_node_set_script(pair.node[1], "");
    pair_set_map(&pair, 8000);
    look_again(client, pair.node[1], 15000);
    expect_works_at(client, SLOT, pair.node[0]);
    expect_release_at_second(&pair, hold_at_first(client, &pair), client, 0);
}

static void ignore_done(int code, const hl_error *err, void *arg)
{
    (void)code, (void)err, (void)arg;
}

static const char busy[] = "*6\r\n:0\r\n:600000\r\n:1\r\n:0\r\n$3\r\nx:1\r\n$1\r\n1\r\n";

static void begin_to_wait(hl_client *client, const char *name)
{
    expect_ok(hl_lock_acquire_async(new_lock(client, name),
                                    ACQUIRE(.owner = new_owner(client), .wait_ms = -1), ignore_done,
                                    NULL));
}

/* The node that the slot leaves keeps others, and does not say that the subscription has ended. */
FakeLaw(cluster_maps, that_have_moved_a_slot_take_its_subscriptions_along)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);

    for (int i = 0; i < 2; i++)
        fake_node_set_script(pair.node[i], busy);
    begin_to_wait(client, cluster_name_in_slot(SLOT, "stock"));
    check(fake_server_wait_count(pair.node[0]->server, "EVALSHA", 2, 10000));
    check_int(fake_server_count(pair.node[0]->server, "SSUBSCRIBE"), 1);
    pair_set_map(&pair, 10);
    fake_node_redirect(pair.node[0], "MOVED", 5, "127.0.0.1", fake_node_port(pair.node[0]));
    expect_outcome(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(5, "look")), NULL),
                   HL_ESERVER);
    check(fake_server_wait_count(pair.node[1]->server, "SSUBSCRIBE", 1, 10000));
    fake_node_set_script(pair.node[0], "");
    fake_node_set_script(pair.node[1], "");
    close_client(client);
}

/* A waiter of such a cluster has subscribed when it asks for the second time. */
static void expect_subscription(bool is_old, const char *by, const char *not_by)
{
    struct fake_node *node = new_fake_node();

    node->is_old = is_old;
    fake_node_set_alone(node);
    fake_node_set_script(node, busy);
    hl_client *client = open_client_at(fake_cluster_url(node, NULL), NULL);
    int before = fake_server_count(node->server, by);
    begin_to_wait(client, "stock");
    check(fake_server_wait_count(node->server, "EVALSHA", 2, 10000));
    check_int(fake_server_count(node->server, by), before + 1);
    check_int(fake_server_count(node->server, not_by), 0);
    fake_node_set_script(node, "");
    close_client(client);
}

FakeLaw(cluster_pubsub, is_sharded_if_the_first_node_knows_that)
{
    expect_subscription(false, "SSUBSCRIBE", "SUBSCRIBE");
    expect_subscription(true, "SUBSCRIBE", "SSUBSCRIBE");
}
