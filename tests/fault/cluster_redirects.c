/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake nodes that send each other's requests away: in circles, to nowhere, with words that are
 * none. The client follows a few times, and then waits as after a refusal. */

#include "cluster_fake.h"

#include "support/cluster_slot.h"
#include "support/events.h"

#include <sys/wait.h>
#include <unistd.h>

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .fini = server_down)

enum { SLOT = 1000 };

/* Slot 1000 is the first one's. */
struct pair {
    struct fake_node *first, *second;
};

static struct pair pair_up(void)
{
    struct pair pair = {new_fake_node(), new_fake_node()};
    struct fake_node *const both[] = {pair.first, pair.second};
    const struct fake_range ranges[] = {{0, 8000, fake_node_port(pair.first)},
                                        {8001, 16383, fake_node_port(pair.second)}};

    fake_nodes_set_map(both, 2, ranges, 2);
    return pair;
}

static hl_client *open_pair(const struct pair *pair)
{
    return open_client_at(fake_cluster_url(pair->first, NULL), NULL);
}

static hl_lock *lock_in_slot(hl_client *client)
{
    return new_lock(client, cluster_name_in_slot(SLOT, "stock"));
}

static int scripts_run(const struct pair *pair)
{
    return fake_server_count(pair->first->server, "EVALSHA") +
           fake_server_count(pair->second->server, "EVALSHA");
}

/* The client is closed at once when its releases are answered. */
static void end_redirects(const struct pair *pair, hl_client *client)
{
    fake_node_set_script(pair->first, "");
    fake_node_set_script(pair->second, "");
    close_client(client);
}

/* A try ends with the nodes' own words, a wait with those or in time; and the nodes were asked less
 * than 20 times for each of a few retries. */
static void expect_bounded(const struct pair *pair, const char *says)
{
    hl_client *client = open_pair(pair);
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_try_acquire(lock_in_slot(client), &err), HL_ESERVER);
    check_msg(strstr(err.text, says) != NULL, "%s, not %s", err.text, says);
    check_msg(scripts_run(pair) <= 40, "%d requests for a try", scripts_run(pair));
    int before = scripts_run(pair);
    expect_outcome(
        hl_lock_acquire_with(lock_in_slot(client), ACQUIRE(.wait_ms = slow_ms(1000)), &err),
        HL_ESERVER);
    check_msg(scripts_run(pair) - before <= 150 * slow_ms(1000) / 1000, "%d requests",
              scripts_run(pair) - before);
    end_redirects(pair, client);
}

FakeLaw(cluster_redirects, in_circles_are_followed_a_few_times)
{
    static const char *const words[][2] = {
        {"MOVED", "MOVED"}, {"ASK", "ASK"}, {"ASK", "MOVED"}, {"MOVED", "ASK"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct pair pair = pair_up();
        fake_node_redirect(pair.first, words[i][0], SLOT, "127.0.0.1", fake_node_port(pair.second));
        fake_node_redirect(pair.second, words[i][1], SLOT, "127.0.0.1", fake_node_port(pair.first));
        expect_bounded(&pair, strcmp(words[i][0], words[i][1]) == 0 ? words[i][0] : "");
    }
}

FakeLaw(cluster_redirects, to_oneself_are_followed_a_few_times)
{
    static const char *const words[] = {"MOVED", "ASK"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct pair pair = pair_up();
        fake_node_redirect(pair.first, words[i], SLOT, "127.0.0.1", fake_node_port(pair.first));
        expect_bounded(&pair, words[i]);
    }
}

FakeLaw(cluster_redirects, with_words_that_are_none_are_refusals)
{
    static const char *const texts[] = {"",
                                        " ",
                                        " x 127.0.0.1:1",
                                        " 1000",
                                        " 1000 ",
                                        " 1000 127.0.0.1",
                                        " 1000 127.0.0.1:",
                                        " 1000 127.0.0.1:0",
                                        " 1000 127.0.0.1:65536",
                                        " 1000 127.0.0.1:-1",
                                        " 16384 127.0.0.1:1",
                                        " -1 127.0.0.1:1",
                                        " 99999999999999999999 127.0.0.1:1",
                                        " 1000 a b:1",
                                        ":1 1000",
                                        " :",
                                        " 1000:1"};
    static const char *const words[] = {"MOVED", "ASK"};
    for (size_t i = 0; i < 2 * sizeof texts / sizeof texts[0]; i++) {
        struct pair pair = pair_up();
        char text[64];
        snprintf(text, sizeof text, "-%s%s\r\n", words[i % 2], texts[i / 2]);
        fake_node_set_script(pair.first, text);
        hl_client *client = open_pair(&pair);
        hl_error err = HL_ERROR_INIT;
        expect_outcome(hl_lock_try_acquire(lock_in_slot(client), &err), HL_ESERVER);
        check_has(err.text, words[i % 2]);
        check(scripts_run(&pair) <= 2); /* the release of what may stand, too */
        end_redirects(&pair, client);
    }
}

/* So say nodes that do not know their own name: it is the host that the client knows. */
FakeLaw(cluster_redirects, without_a_host_lead_to_the_host_of_the_one_that_says_so)
{
    static const char *const words[] = {"MOVED", "ASK"};
    for (size_t i = 0; i < 2; i++) {
        struct pair pair = pair_up();
        hl_client *client = open_pair(&pair);
        expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8001, "b")), ERR));
        fake_node_redirect(pair.first, words[i], SLOT, "", fake_node_port(pair.second));
        expect_ok(hl_lock_try_acquire(lock_in_slot(client), ERR));
        check_int(fake_server_count(pair.first->server, "EVALSHA"), 1);
        check_int(fake_server_count(pair.second->server, "EVALSHA"), 2);
        check_int(fake_server_count(pair.second->server, "ASKING"), (int)i);
        end_redirects(&pair, client);
    }
}

/* The node that has the slot is announced by names, and has none. The map has its address. */
FakeLaw(cluster_redirects, to_a_node_without_a_name_make_the_client_read_the_map)
{
    static const char *const words[] = {"MOVED", "ASK"};
    for (size_t i = 0; i < 2; i++) {
        struct pair pair = pair_up();
        hl_client *client = open_pair(&pair);
        hl_error err = HL_ERROR_INIT;
        int looks = fake_server_count(pair.first->server, "CLUSTER SLOTS");
        fake_node_redirect(pair.first, words[i], SLOT, "?", fake_node_port(pair.second));
        expect_outcome(hl_lock_try_acquire(lock_in_slot(client), &err), HL_ESERVER);
        check_has(err.text, "?:");
        check(fake_server_wait_count(pair.first->server, "CLUSTER SLOTS", looks + 1, 10000));
        check_int(fake_server_count(pair.second->server, "EVALSHA"), 0);
        end_redirects(&pair, client);
    }
}

static void ignore_node(const hl_node *node, void *arg)
{
    (void)node, (void)arg;
}

/* A node that is out of its mind: each word names another address, where nobody is. */
FakeLaw(cluster_redirects, to_ever_new_addresses_are_followed_to_a_few)
{
    static const char *const words[] = {"MOVED", "ASK"};
    for (int w = 0; w < 2; w++) {
        struct pair pair = pair_up();
        hl_client *client = open_pair(&pair);
        hl_error err = HL_ERROR_INIT;
        for (int i = 0; i < 60; i++) {
            char host[32];
            snprintf(host, sizeof host, "127.1.%d.%d", w, i + 1);
            fake_node_redirect(pair.first, words[w], SLOT, host, 1);
            check(hl_lock_try_acquire(lock_in_slot(client), &err) != HL_OK);
            check(hl_client_nodes(client, ignore_node, NULL) <= 2 + 8);
        }
        fake_node_redirect(pair.first, words[w], SLOT, "127.2.0.1", 1);
        expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8001, "b")), ERR));
        end_redirects(&pair, client);
    }
}

/* The node at the end of an ASK answers in place of the first; the map is as before. */
FakeLaw(cluster_redirects, by_ask_are_for_one_request)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    hl_lock *lock = lock_in_slot(client);

    expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8001, "b")), ERR));
    fake_node_redirect(pair.first, "ASK", SLOT, "127.0.0.1", fake_node_port(pair.second));
    expect_ok(hl_lock_try_acquire(lock, ERR));
    fake_node_set_script(pair.first, "");
    expect_ok(hl_lock_release(lock, ERR));
    check_int(fake_server_count(pair.first->server, "EVALSHA"), 2);
    check_int(fake_server_count(pair.second->server, "EVALSHA"), 2);
    check_int(fake_server_count(pair.second->server, "ASKING"), 1);
}

/* No map yet. */
static void end_begin_map(struct pair *pair)
{
    pair->first->slots_then = FAKE_STALL;
    fake_node_set_slots(pair->first, "");
}

static void end_await_map(struct pair *pair, hl_client *client)
{
    (void)client;
    check(fake_server_wait_count(pair->first->server, "CLUSTER SLOTS", 1, 10000));
}

/* The slots' node is not up yet. */
static void end_begin_node(struct pair *pair)
{
    static const struct fake_step silent[] = {{"", NULL, 0, FAKE_STALL, 0},
                                              {"", NULL, 0, FAKE_STALL, 0}};
    const struct fake_range all = {0, 16383, fake_node_port(pair->second)};

    fake_nodes_set_map(&pair->first, 1, &all, 1);
    fake_server_play(pair->second->server, silent, 2);
}

static void end_await_node(struct pair *pair, hl_client *client)
{
    (void)client;
    check(fake_server_wait_play(pair->second->server, 10000));
}

/* A request is behind ASKING. */
static void end_begin_ask(struct pair *pair)
{
    fake_node_redirect(pair->first, "ASK", SLOT, "127.0.0.1", fake_node_port(pair->second));
    fake_node_set_script(pair->second, "(silence)");
}

static void ignore_done(int code, const hl_error *err, void *arg)
{
    (void)code, (void)err, (void)arg;
}

static void end_await_ask(struct pair *pair, hl_client *client)
{
    expect_ok(hl_client_ping(client, -1, ERR));
    expect_ok(hl_lock_acquire_async(lock_in_slot(client),
                                    ACQUIRE(.owner = new_owner(client), .wait_ms = -1), ignore_done,
                                    NULL));
    check(fake_server_wait_count(pair->second->server, "ASKING", 1, 10000));
}

FakeLaw(cluster_end, in_each_state_is_quick_for_a_close_and_for_a_forked_child)
{
    static const struct {
        void (*begin)(struct pair *pair);
        void (*await)(struct pair *pair, hl_client *client);
    } states[] = {{end_begin_map, end_await_map},
                  {end_begin_node, end_await_node},
                  {end_begin_ask, end_await_ask}};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct pair pair = pair_up();
        states[i].begin(&pair);
        hl_client *client =
            open_client_at(fake_cluster_url(pair.first, NULL),
                           CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = 600000));
        states[i].await(&pair, client);
        pid_t child = fork();
        if (child == 0)
            _exit(hl_client_ping(client, 0, NULL) == HL_EFORKED ? 0 : 1);
        int status = 1;
        check(waitpid(child, &status, 0) == child);
        check_int(status, 0);
    }
}
