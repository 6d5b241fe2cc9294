/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake nodes that say what no cluster says: maps that are none, or have holes, or overlap; epochs
 * that are none. The client believes none that it cannot read, and asks the next. */

#include "cluster_fake.h"

#include "support/cluster_slot.h"
#include "support/recorder.h"

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .fini = server_down)

static struct fake_node *new_honest_node(void)
{
    struct fake_node *node = new_fake_node();
    fake_node_set_alone(node);
    return node;
}

static void expect_refused(const char *url, int code, const char *says)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(url, NULL, &client, &err), code);
    check_msg(strstr(err.text, says) != NULL, "%s, not %s", err.text, says);
}

static void expect_works(hl_client *client)
{
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(5000)), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

FakeLaw(cluster_lies, about_the_map_make_the_client_ask_the_next)
{
    static const struct {
        const char *slots, *says;
        int code;
    } lies[] = {
        {"+OK\r\n", "is no map", HL_EPROTO},
        {":1\r\n", "is no map", HL_EPROTO},
        {"$-1\r\n", "is no map", HL_EPROTO},
        {"*-1\r\n", "is no map", HL_EPROTO},
        {"*0\r\n", "is no map", HL_EPROTO},
        {"*1\r\n:1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*0\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*2\r\n:0\r\n:16383\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*1\r\n$9\r\n127.0.0.1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:0\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:65536\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:-1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:-1\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:9\r\n:8\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$3\r\na b\r\n:1\r\n", "is no map", HL_EPROTO},
        {"*1\r\n*3\r\n$1\r\nx\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "is no map",
         HL_EPROTO},
        {"-ERR This instance has cluster support disabled\r\n", "cluster support disabled",
         HL_ESERVER},
        {"-NOPERM no\r\n", "NOPERM", HL_EDENIED},
        {"-NOAUTH Authentication required.\r\n", "give it, and the user", HL_EDENIED},
        {"?\r\n", "does not speak Redis", HL_EPROTO},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "does not speak Redis", HL_EPROTO},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct fake_node *liar = new_fake_node();
        fake_node_set_slots(liar, lies[i].slots);
        expect_refused(fake_cluster_url(liar, NULL), lies[i].code, lies[i].says);
        hl_client *client = open_client_at(fake_cluster_url(liar, new_honest_node()), NULL);
        expect_works(client);
        close_client(client);
    }
}

FakeLaw(cluster_lies, that_break_off_make_the_client_ask_the_next)
{
    static const enum fake_then ways[] = {FAKE_CLOSE, FAKE_RESET, FAKE_STALL};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct fake_node *liar = new_fake_node();
        fake_node_set_slots(liar, "*1\r\n*3\r\n:0\r\n");
        liar->slots_then = ways[i];
        hl_client *client = open_client_at(fake_cluster_url(liar, new_honest_node()), NULL);
        expect_works(client);
        close_client(client);
    }
}

FakeLaw(cluster_lies, about_the_epoch_do_no_harm)
{
    static const char *const infos[] = {"",
                                        "cluster_current_epoch:",
                                        "cluster_current_epoch:x",
                                        "cluster_current_epoch:-7",
                                        "cluster_current_epoch:99999999999999999999",
                                        "cluster_state:fail\r\ncluster_current_epoch:7\r\n"};
    for (size_t i = 0; i < sizeof infos / sizeof infos[0]; i++) {
        struct fake_node *node = new_honest_node();
        fake_node_set_info(node, infos[i]);
        hl_client *client = open_client_at(fake_cluster_url(node, NULL), NULL);
        expect_works(client);
        close_client(client);
    }
}

/* Where two ranges overlap, the first one counts; where there is none, no node serves the slot. */
FakeLaw(cluster_lies, about_ranges_leave_the_other_slots_as_they_are)
{
    struct fake_node *node = new_fake_node(), *other = new_fake_node();
    const struct fake_range ranges[] = {
        {0, 8000, fake_node_port(node)}, {4000, 9000, fake_node_port(other)}, {9000, 9000, 1}};
    hl_error err = HL_ERROR_INIT;

    fake_nodes_set_map(&node, 1, ranges, 3);
    hl_client *client = open_client_at(fake_cluster_url(node, NULL), NULL);
    expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8000, "a")), ERR));
    check(fake_server_wait_count(node->server, "EVALSHA", 1, 5000));
    expect_ok(hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(9000, "b")),
                                   ACQUIRE(.wait_ms = slow_ms(5000)), ERR));
    check(fake_server_wait_count(other->server, "EVALSHA", 1, 5000));
    expect_outcome(hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(9001, "c")),
                                        ACQUIRE(.wait_ms = slow_ms(1000)), &err),
                   HL_ESERVER);
    check_has(err.text, "no node of the cluster serves the slot");
}

/* The first half of the slots is the node's; the second half has this entry. */
static void set_half_map(struct fake_node *node, const char *entry)
{
    char text[512];

    snprintf(text, sizeof text,
             "*2\r\n*3\r\n:0\r\n:8000\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n%s",
             fake_node_port(node), 1, entry);
    fake_node_set_slots(node, text);
}

#define ENTRY "*3\r\n:8001\r\n:16383\r\n"
#define ID "$40\r\n0123456789012345678901234567890123456789\r\n"

/* "", 0 is a master at whose address another node has come up: it has none until an operator says
 * CLUSTER FORGET. */
FakeLaw(cluster_lies, about_a_node_leave_the_slots_of_the_others_as_they_are)
{
    static const char *const entries[] = {
        ENTRY "*4\r\n$0\r\n\r\n:0\r\n" ID "*0\r\n",
        ENTRY "*3\r\n$-1\r\n:0\r\n" ID,
        ENTRY "*3\r\n$1\r\n?\r\n:7000\r\n" ID,
        ENTRY "*4\r\n$1\r\n?\r\n:7000\r\n" ID "*2\r\n$8\r\nhostname\r\n$1\r\nx\r\n",
        ENTRY "*3\r\n$3\r\na b\r\n:7000\r\n" ID,
        ENTRY "*2\r\n$9\r\n127.0.0.1\r\n:65536\r\n",
        ENTRY "*0\r\n",
        ENTRY ":1\r\n",
        "*3\r\n:8001\r\n:16384\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n" ID,
        "*0\r\n",
        "$-1\r\n",
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct fake_node *node = new_fake_node();
        hl_error err = HL_ERROR_INIT;
        set_half_map(node, entries[i]);
        hl_client *client = open_client_at(fake_cluster_url(node, NULL), NULL);
        expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8000, "a")), ERR));
        int code = hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(8001, "b")),
                                        ACQUIRE(.wait_ms = slow_ms(500)), &err);
        check_msg(code == HL_ECONN || code == HL_EPROTO, "%s", hl_err_name(code));
        check_msg(strstr(err.text, "no address") || strstr(err.text, "without slots"), "%s",
                  err.text);
        close_client(client);
    }
}

static struct recorder lines = RECORDER_INIT;

/* But not of the outage of these slots. */
static int count_lines(const char *part)
{
    int count = 0;

    for (int i = 0; i < recorder_count(&lines); i++) {
        struct record line = recorder_entry(&lines, i);
        count += strstr(line.said, part) && !strstr(line.said, "no connection");
    }
    return count;
}

/* While slots have no node the client looks twice a second. */
FakeLaw(cluster_lies, about_a_node_are_told_once)
{
    struct fake_node *node = new_fake_node();

    set_half_map(node, ENTRY "*4\r\n$0\r\n\r\n:0\r\n" ID "*0\r\n");
    hl_client *client =
        open_client_at(fake_cluster_url(node, NULL),
                       CLIENT(.on_log = record_log, .log_level = HL_LOG_WARN, .arg = &lines));
    expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8000, "a")), ERR));
    check(fake_server_wait_count(node->server, "CLUSTER SLOTS", 4, 20000));
    check_int(count_lines("slots 8001-16383 have no node: \"\", port 0, which is announced of node "
                          "01234567, is no address"),
              1);
}

static void note_where(const hl_node *node, void *ret_where)
{
    snprintf(ret_where, 64, "%s", node->address);
}

/* Redis docs, CLUSTER SLOTS: null or empty is the host that was asked; ? is a node that shall
 * announce its name and has none, and its numeric address stands beside it. */
FakeLaw(cluster_hosts, that_a_node_does_not_tell_are_found_as_redis_says)
{
    static const struct {
        const char *host, *extra, *is;
    } hosts[] = {
        {"$-1\r\n", "*0\r\n", "localhost"},
        {"$0\r\n\r\n", "*2\r\n$2\r\nip\r\n$0\r\n\r\n", "localhost"},
        {"$1\r\n?\r\n", "*2\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n", "127.0.0.1"},
        {"$1\r\n?\r\n", "*2\r\n$2\r\nip\r\n$0\r\n\r\n", "localhost"},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct fake_node *node = new_fake_node();
        char text[256], url[64], where[64] = "", is[64];
        snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n%s:%d\r\n" ID "%s",
                 hosts[i].host, fake_node_port(node), hosts[i].extra);
        fake_node_set_slots(node, text);
        snprintf(url, sizeof url, "redis-cluster://localhost:%d", fake_node_port(node));
        snprintf(is, sizeof is, "%s:%d", hosts[i].is, fake_node_port(node));
        hl_client *client = open_client_at(url, NULL);
        expect_works(client);
        check_int(hl_client_nodes(client, note_where, where), 1);
        check_str(where, is);
        close_client(client);
    }
}

static bool speak_http(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)command, (void)arg;
    fake_reply_text(reply, "HTTP/1.1 400 Bad Request\r\n\r\n");
    reply->then = FAKE_CLOSE;
    return true;
}

/* Its slots wait; those of the others are served. */
FakeLaw(cluster_lies, that_name_a_server_that_is_no_redis_do_no_harm_to_the_others)
{
    struct fake_node *node = new_fake_node();
    struct fake_server *stranger =
        stop_at_end(fake_server_start(speak_http, NULL), (void (*)(void *))fake_server_stop);
    const struct fake_range ranges[] = {{0, 8000, fake_node_port(node)},
                                        {8001, 16383, fake_server_port(stranger)}};
    hl_error err = HL_ERROR_INIT;

    fake_nodes_set_map(&node, 1, ranges, 2);
    hl_client *client = open_client_at(fake_cluster_url(node, NULL), NULL);
    expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(8000, "a")), ERR));
    expect_outcome(hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(8001, "b")),
                                        ACQUIRE(.wait_ms = slow_ms(1000)), &err),
                   HL_EPROTO);
    check_has(err.text, "does not speak Redis");
    expect_ok(hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(7999, "c")), ERR));
}

static void node_set_ranges(struct fake_node *node, int count)
{
    struct fake_range *ranges = calloc((size_t)count, sizeof *ranges);

    check(ranges != NULL);
    for (int i = 0; i < count; i++)
        ranges[i] = (struct fake_range){i % 16384, i % 16384, fake_node_port(node)};
    if (count < 16384)
        ranges[count - 1].last = 16383;
    fake_nodes_set_map(&node, 1, ranges, (size_t)count);
    free(ranges);
}

/* As many as there are slots, each for itself; one more is more than any cluster has. */
FakeLaw(cluster_lies, begin_where_a_map_has_more_ranges_than_there_are_slots)
{
    struct fake_node *node = new_fake_node();

    node_set_ranges(node, 3000);
    expect_works(open_client_at(fake_cluster_url(node, NULL), NULL));
    node_set_ranges(node, 16384);
    expect_works(open_client_at(fake_cluster_url(node, NULL), NULL));
    node_set_ranges(node, 16385);
    expect_refused(fake_cluster_url(node, NULL), HL_EPROTO, "larger than any honest one");
}
