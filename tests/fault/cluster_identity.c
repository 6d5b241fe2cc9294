/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake nodes whose addresses change, or lead to other nodes, or to another cluster. A node is known
 * by its id; an address is how to reach it. */

#include "cluster_fake.h"

#include "support/cluster_slot.h"
#include "support/recorder.h"

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .fini = server_down)

/* A node as maps announce it. Its replica, by which the maps of one cluster are kin, has the id of
 * the cluster. */
struct face {
    const char *host;
    int port, id, cluster;
};

static void face_write(FILE *out, int first, int last, const struct face *face)
{
    fprintf(out,
            "*4\r\n:%d\r\n:%d\r\n*3\r\n$%zu\r\n%s\r\n:%d\r\n$40\r\n%040d\r\n"
            "*3\r\n$9\r\n127.0.0.1\r\n:1\r\n$40\r\n%040d\r\n",
            first, last, strlen(face->host), face->host, face->port, face->id, face->cluster);
}

/* The two have half of the slots each. */
static void say_map(struct fake_node *node, struct face first, struct face second)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    check(out != NULL);
    fprintf(out, "*2\r\n");
    face_write(out, 0, 8191, &first);
    face_write(out, 8192, 16383, &second);
    fclose(out);
    fake_node_set_slots(node, text);
    free(text);
}

static void say_epoch(struct fake_node *node, int epoch)
{
    char text[64];

    snprintf(text, sizeof text, "cluster_state:ok\r\ncluster_current_epoch:%d\r\n", epoch);
    fake_node_set_info(node, text);
}

enum { OURS = 1, THEIRS = 2 };
enum { FIRST_SLOT = 0, SECOND_SLOT = 16000 };

struct pair {
    struct fake_node *node[2];
    struct face face[2];
};

static void pair_say(const struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        say_map(pair->node[i], pair->face[0], pair->face[1]);
}

static struct pair pair_up(void)
{
    struct pair pair = {{new_fake_node(), new_fake_node()}, {{0}}};

    for (int i = 0; i < 2; i++)
        pair.face[i] = (struct face){"127.0.0.1", fake_node_port(pair.node[i]), 11 + i, OURS};
    pair_say(&pair);
    return pair;
}

static struct recorder lines;

static hl_client *open_pair(const struct pair *pair)
{
    lines = (struct recorder)RECORDER_INIT;
    return open_client_at(fake_cluster_url(pair->node[0], pair->node[1]),
                          CLIENT(.on_log = record_log, .log_level = HL_LOG_INFO, .arg = &lines,
                                 .outage_timeout_ms = slow_ms(60000)));
}

static void expect_works(hl_client *client, int slot)
{
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "stock"));

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

/* The second node, which serves this slot, makes the client read the map: the first one's, or that
 * of both. */
static void look_again(hl_client *client, const struct pair *pair, struct fake_node *asked)
{
    int looks = fake_server_count(asked->server, "CLUSTER SLOTS");
    struct deadline deadline = deadline_of_wait(20000);
    hl_lock *lock = new_lock(client, cluster_name_in_slot(SECOND_SLOT, "look"));

    fake_node_set_script(pair->node[1], "-CLUSTERDOWN The cluster is down\r\n");
    do { /* a look that is under way was asked for before */
        check(!deadline_is_over(deadline));
        expect_outcome(hl_lock_try_acquire(lock, NULL), HL_ESERVER);
    } while (!fake_server_wait_count(asked->server, "CLUSTER SLOTS", looks + 1, 200));
    fake_node_set_script(pair->node[1], "");
    expect_works(client, SECOND_SLOT);
    free_lock(lock);
}

static void note_second(const hl_node *node, void *ret_where)
{
    if (node->slots == 8192 && !((char *)ret_where)[0] && !strstr(node->address, "127.0.0.1"))
        snprintf(ret_where, 64, "%s", node->address);
}

static bool is_at_its_name(void *client)
{
    char where[64] = "";

    hl_client_nodes(client, note_second, where);
    return strncmp(where, "localhost:", strlen("localhost:")) == 0;
}

static int arrivals_of(const struct fake_node *node)
{
    return fake_server_count(node->server, "CLIENT SETNAME");
}

/* As CONFIG SET cluster-preferred-endpoint-type hostname does, on one node after the other. The
 * connections that are there stay; the next ones go to the name. */
FakeLaw(cluster_identity, of_a_node_that_is_announced_by_its_name_is_as_before)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    hl_lock *lock = new_lock(client, cluster_name_in_slot(FIRST_SLOT, "held"));

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_works(client, SECOND_SLOT);
    int arrivals = arrivals_of(pair.node[1]);
    for (int i = 0; i < 4; i++) { /* there and back: two nodes that do not agree yet */
        pair.face[1].host = i % 2 == 0 ? "localhost" : "127.0.0.1";
        pair_say(&pair);
        look_again(client, &pair, pair.node[0]);
    }
    check_int(arrivals_of(pair.node[1]), arrivals);
    check_int(recorder_says(&lines, "serves no slots any more"), false);
    check_int(stats_of(client).master_changes, 0);
    pair.face[1].host = "localhost";
    pair_say(&pair);
    look_again(client, &pair, pair.node[0]);
    fake_server_close_all(pair.node[1]->server, FAKE_CLOSE);
    check(wait_until(is_at_its_name, client, 20000));
    expect_works(client, SECOND_SLOT);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
}

/* Its files are lost, and it has joined the cluster again: another node, at the same address. */
FakeLaw(cluster_identity, of_a_node_with_a_new_id_is_that_of_its_address)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);

    expect_works(client, SECOND_SLOT);
    int arrivals = arrivals_of(pair.node[1]);
    pair.face[1].id = 99;
    pair_say(&pair);
    look_again(client, &pair, pair.node[0]);
    check_int(arrivals_of(pair.node[1]), arrivals);
    check_int(hl_client_nodes(client, note_second, (char[64]){"-"}), 2);
}

/* Two pods were started anew, each at the other's address, and a connection outlived it, as by a
 * proxy: the node there says that the slot is elsewhere. */
FakeLaw(cluster_identity, of_nodes_that_change_places_is_found_at_the_new_ones)
{
    struct pair pair = pair_up();
    hl_client *client = open_pair(&pair);
    int port = pair.face[0].port;

    expect_works(client, FIRST_SLOT);
    expect_works(client, SECOND_SLOT);
    pair.face[0].port = pair.face[1].port;
    pair.face[1].port = port;
    pair_say(&pair);
    look_again(client, &pair, pair.node[0]);
    int before = fake_server_count(pair.node[1]->server, "EVALSHA");
    fake_node_redirect(pair.node[0], "MOVED", FIRST_SLOT, "127.0.0.1",
                       fake_node_port(pair.node[1]));
    expect_works(client, FIRST_SLOT);
    check(fake_server_count(pair.node[1]->server, "EVALSHA") > before);
}

/* Longer than the pauses between attempts. */
static void expect_out_of_reach(hl_client *client, int slot)
{
    hl_lock *lock = new_lock(client, cluster_name_in_slot(slot, "stock"));
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(1000)), &err), HL_ECONN);
    check_has(err.text, "is there, and not node");
    free_lock(lock);
}

/* It serves the same slots, and would grant the same locks. */
FakeLaw(cluster_identity, of_another_node_at_its_address_is_not_taken_for_it)
{
    struct pair pair = pair_up();

    fake_node_set_id(pair.node[0], pair.face[0].id);
    fake_node_set_id(pair.node[1], 99);
    hl_client *client = open_pair(&pair);
    expect_works(client, FIRST_SLOT);
    expect_out_of_reach(client, SECOND_SLOT);
    check_int(fake_server_count(pair.node[1]->server, "EVALSHA"), 0);
    check(recorder_says(&lines, "is there, and not node"));
    fake_node_set_id(pair.node[1], pair.face[1].id);
    expect_works(client, SECOND_SLOT);
}

/* MOVED names an address, and no id: what was reached there is compared with the next map. */
FakeLaw(cluster_identity, of_an_address_that_moved_named_is_that_of_the_next_map)
{
    struct pair pair = pair_up();
    struct fake_node *named = new_fake_node();
    hl_client *client = open_pair(&pair);

    fake_node_set_id(named, 99);
    fake_node_redirect(pair.node[0], "MOVED", FIRST_SLOT, "127.0.0.1", fake_node_port(named));
    expect_works(client, FIRST_SLOT);
    int before = fake_server_count(named->server, "EVALSHA");
    check(before > 0);
    pair.face[0] = (struct face){"127.0.0.1", fake_node_port(named), 13, OURS};
    pair_say(&pair);
    look_again(client, &pair, pair.node[0]);
    expect_out_of_reach(client, FIRST_SLOT);
    check_int(fake_server_count(named->server, "EVALSHA"), before);
    fake_node_set_id(named, 13);
    expect_works(client, FIRST_SLOT);
}

/* Its host died, and another cluster's node came up at the address: with a newer epoch, and all
 * slots at its own nodes. */
FakeLaw(cluster_strangers, at_an_address_of_the_cluster_are_not_believed)
{
    struct pair pair = pair_up();
    struct fake_node *stranger = new_fake_node();
    struct face theirs = {"127.0.0.1", fake_node_port(stranger), 21, THEIRS};
    hl_client *client = open_pair(&pair);
    hl_lock *lock = new_lock(client, cluster_name_in_slot(FIRST_SLOT, "held"));
    char says[128];

    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 2; i++) {
        pair_say(&pair);
        say_map(pair.node[i], theirs, theirs);
        say_epoch(pair.node[i], 9);
        for (int n = 0; n < 3; n++)
            look_again(client, &pair, pair.node[1 - i]);
        say_epoch(pair.node[i], 1);
    }
    snprintf(says, sizeof says, "127.0.0.1:%d: it belongs to another cluster",
             fake_node_port(pair.node[0]));
    check(recorder_says(&lines, says));
    expect_works(client, FIRST_SLOT);
    check_int(fake_server_accepted(stranger->server), 0);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
}

/* All nodes that answer are strangers, for a moment: the cluster is only out of reach. */
FakeLaw(cluster_strangers, alone_are_not_believed_either)
{
    struct pair pair = pair_up();
    struct fake_node *stranger = new_fake_node();
    struct face theirs = {"127.0.0.1", fake_node_port(stranger), 21, THEIRS};
    hl_client *client = open_pair(&pair);

    expect_works(client, SECOND_SLOT);
    for (int i = 0; i < 2; i++)
        say_map(pair.node[i], theirs, theirs);
    for (int n = 0; n < 3; n++)
        look_again(client, &pair, pair.node[n % 2]);
    check_int(fake_server_accepted(stranger->server), 0);
}
