/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Servers that announce addresses which do not exist where the client is: it finds them by its
 * address_map alone. The real ones announce 127.8.0.1, which the library cannot connect to: its
 * connect() is the one below. To each other, and to the tests, they are there.
 */

#include "cluster_fake.h"
#include "cluster_kit.h"
#include "sentinel_kit.h"

#include "support/proxy.h"
#include "support/recorder.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .fini = server_down)

#define INSIDE "127.8.0.1"

/* The linker puts it in the place of connect() (CMakeLists.txt). */
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    const struct sockaddr_in *inside = (const struct sockaddr_in *)address;

    if (address->sa_family != AF_INET || ntohl(inside->sin_addr.s_addr) >> 16 != 0x7f08)
        return __real_connect(fd, address, length);
    errno = ENETUNREACH;
    return -1;
}

/* From the inside to the outside: the same port at 127.0.0.1. arg: counts the calls. */
static void map_out(hl_address *address, void *arg)
{
    atomic_int *calls = arg;

    check_int(address->size, sizeof *address);
    check(address->port > 0 && address->port < 65536);
    if (strcmp(address->host, INSIDE) == 0)
        snprintf(address->host, sizeof address->host, "127.0.0.1");
    atomic_fetch_add(calls, 1);
}

static const hl_client_options *with_map(struct events *events, atomic_int *calls)
{
    static hl_client_options used;

    used = *cluster_client(events);
    used.address_map = map_out;
    used.address_map_arg = calls;
    return &used;
}

static void expect_outside(const hl_node *node, void *arg)
{
    check_msg(strncmp(node->address, "127.0.0.1:", strlen("127.0.0.1:")) == 0, "%s", node->address);
    *(unsigned *)arg |= 1U << node->role;
}

/* All that the client shows is the outside. */
static void expect_roles(hl_client *client, unsigned roles)
{
    unsigned seen = 0;

    check(hl_client_nodes(client, expect_outside, &seen) > 0);
    check_int(seen, roles);
}

static void expect_works(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(30000)), ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

/* --- a cluster --- */

static void inside_cluster_up(void)
{
    cluster_up_with(&(struct cluster_options){.host = INSIDE});
}

#define InsideLaw(suite, ...)                                                                      \
    Test(suite, __VA_ARGS__, .init = inside_cluster_up, .fini = server_down)

InsideLaw(address_map, leads_to_each_node_and_along_with_a_slot_that_moves)
{
    static atomic_int calls;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    check_has(redis_str(server, "CLUSTER SLOTS"), INSIDE);
    expect_outcome(hl_client_open(cluster_url(cluster), NULL, &client, &err), HL_ECONN);
    check_has(err.text, "connect " INSIDE);
    client = open_client_at(cluster_url(cluster), with_map(NULL, &calls));
    hl_client *other = open_client_at(cluster_url(cluster), with_map(NULL, &calls));
    check(atomic_load(&calls) > 0);
    for (int i = 0; i < cluster_masters(cluster); i++)
        expect_handed_over(client, other, name_at(i, "stock"));
    expect_roles(client, 1U << HL_NODE_MASTER);
    const char *name = name_at(0, "moving");
    slot_move(cluster, slot_of(name), cluster_node(cluster, 1));
    expect_handed_over(client, other, name);
}

InsideLaw(address_map, leads_to_the_new_master_of_a_cluster)
{
    static atomic_int calls;
    static struct recorder story = RECORDER_INIT;
    hl_client *client =
        open_client_at(cluster_url(cluster),
                       CLIENT(.outage_timeout_ms = slow_ms(60000), .address_map = map_out,
                              .address_map_arg = &calls, .on_event = record_event, .arg = &story));
    const char *name = name_at(0, "stock");
    struct redis_server *old = cluster_node(cluster, 0);
    char told[128];

    expect_works(client, name);
    redis_server_kill(old);
    server = cluster_await_master(cluster, slot_of(name), old);
    expect_works(client, name);
    snprintf(told, sizeof told, "MASTER_CHANGED from 127.0.0.1:%d to 127.0.0.1:%d",
             redis_server_port(old), redis_server_port(server));
    check(recorder_wait_says(&story, told));
    expect_roles(client, 1U << HL_NODE_MASTER);
}

/* Each master is behind a proxy, which is slow. */
static struct proxy *slow[3];

static void map_to_proxy(hl_address *address, void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        if (address->port == redis_server_port(cluster_node(cluster, i)))
            address->port = proxy_port(slow[i]);
}

/* Each address has its time, though a round asks all of them within one connect timeout. */
ClusterLaw(address_map, leads_to_nodes_that_answer_slowly_but_in_time)
{
    hl_client *client = NULL;
    char url[128];

    for (int i = 0; i < 3; i++) {
        server = cluster_node(cluster, i);
        slow[i] = new_proxy();
        proxy_delay(slow[i], PROXY_EVERY, PROXY_DOWN, slow_ms(2200));
    }
    snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             proxy_port(slow[0]), proxy_port(slow[1]), proxy_port(slow[2]));
    client = open_client_at(
        url, CLIENT(.connect_timeout_ms = slow_ms(6000), .request_timeout_ms = slow_ms(20000),
                    .watchdog_timeout_ms = slow_ms(30000), .address_map = map_to_proxy));
    server = cluster_node(cluster, 0);
    expect_works(client, name_at(0, "stock"));
}

/* --- sentinels --- */

static void inside_trio_up(void)
{
    trio_up_with(&(struct trio_options){.host = INSIDE});
}

Test(address_map, leads_to_masters_and_to_sentinels_that_others_told_of, .init = inside_trio_up,
     .fini = server_down)
{
    static atomic_int calls;
    static struct events events;
    const char *url = trio_url_of(trio, 0, 1, NULL);

    expect_refused(url, NULL, HL_ECONN, "connect " INSIDE);
    hl_client *client = open_client_at(url, with_map(&events, &calls));
    struct redis_server *old = trio_master(trio);
    expect_works(client, "stock");
    expect_roles(client, 1U << HL_NODE_MASTER | 1U << HL_NODE_SENTINEL);
    redis_server_kill(trio_sentinel(trio, 0)); /* the only one that the URL names */
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_works(client, "stock");
    expect_roles(client, 1U << HL_NODE_MASTER | 1U << HL_NODE_SENTINEL);
}

/* --- ports, and what is no address --- */

enum { FIRST = 7001, SECOND = 7002 };

/* What fake servers announce: "inside" and these ports. The rest is wrong on purpose. */
struct desk {
    struct fake_node *node[2];
    atomic_int wrong; /* which of the wrong answers; 0: the right one */
};

static void desk_answer(hl_address *address, void *arg)
{
    struct desk *desk = arg;
    struct fake_node *node = desk->node[address->port == SECOND];

    switch (address->port == SECOND ? atomic_load(&desk->wrong) : 0) {
    case 0:
        address->port = fake_node_port(node);
        snprintf(address->host, sizeof address->host, "127.0.0.1");
        break;
    case 1:
        address->port = 0;
        break;
    case 2:
        address->port = 65536;
        break;
    case 3:
        address->host[0] = '\0';
        break;
    case 4:
        snprintf(address->host, sizeof address->host, "no such host");
        break;
    default:
        memset(address->host, 'x', sizeof address->host);
    }
}

enum { WRONG = 5, SLOT = 1000 };

static void desk_set_map(struct desk *desk)
{
    static const char map[] =
        "*2\r\n*3\r\n:0\r\n:8000\r\n*3\r\n$6\r\ninside\r\n:7001\r\n$1\r\n1\r\n"
        "*3\r\n:8001\r\n:16383\r\n*3\r\n$6\r\ninside\r\n:7002\r\n$1\r\n2\r\n";

    for (int i = 0; i < 2; i++)
        fake_node_set_slots(desk->node[i], map);
}

static int acquire_at(hl_client *client, int slot, hl_error *err)
{
    return hl_lock_try_acquire(new_lock(client, cluster_name_in_slot(slot, "stock")), err);
}

FakeLaw(address_map, that_gives_no_address_is_named_and_harms_no_other_node)
{
    static struct desk desk;
    static struct recorder lines = RECORDER_INIT;
    hl_error err = HL_ERROR_INIT;

    desk = (struct desk){{new_fake_node(), new_fake_node()}, 0};
    desk_set_map(&desk);
    for (int i = 1; i <= WRONG; i++) {
        atomic_store(&desk.wrong, i);
        hl_client *client = open_client_at(
            fake_cluster_url(desk.node[0], NULL),
            CLIENT(.address_map = desk_answer, .address_map_arg = &desk, .on_log = record_log,
                   .arg = &lines, .outage_timeout_ms = slow_ms(30000)));
        expect_ok(acquire_at(client, 0, ERR));
        expect_outcome(acquire_at(client, 16000, &err), HL_ECONN);
        check_has(err.text, "address_map gave no address for inside:7002");
        check(recorder_wait_says(&lines, "address_map gave no address for inside:7002"));
        atomic_store(&desk.wrong, 0);
        expect_ok(hl_lock_acquire_with(new_lock(client, cluster_name_in_slot(16000, "later")),
                                       ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
        close_client(client);
    }
}

/* A node without a host of its own is the one that answers, and its port is translated. */
FakeLaw(address_map, translates_redirections_to_other_ports)
{
    static const char *const host[] = {"inside", "", "[::1]", "::1"};
    static struct desk desk;

    desk = (struct desk){{new_fake_node(), new_fake_node()}, 0};
    desk_set_map(&desk);
    hl_client *client =
        open_client_at(fake_cluster_url(desk.node[0], NULL),
                       CLIENT(.address_map = desk_answer, .address_map_arg = &desk));
    for (size_t i = 0; i < 2 * sizeof host / sizeof host[0]; i++) {
        const char *word = i % 2 ? "MOVED" : "ASK", *name = cluster_name_in_slot(SLOT, "stock");
        hl_lock *lock = new_lock(client, name);
        fake_node_watch(desk.node[1], name);
        fake_node_redirect(desk.node[0], word, SLOT, host[i / 2], SECOND);
        expect_ok(hl_lock_try_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
        check(wait_until(fake_node_has_released, desk.node[1], 10000));
        fake_node_set_script(desk.node[0], "");
        free_lock(lock);
    }
}

FakeLaw(address_map, that_gives_no_address_for_a_redirection_is_named)
{
    static const char *const word[] = {"MOVED", "ASK"};
    static struct desk desk;
    hl_error err = HL_ERROR_INIT;

    desk = (struct desk){{new_fake_node(), new_fake_node()}, 0};
    fake_node_set_slots(desk.node[0],
                        "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$6\r\ninside\r\n:7001\r\n$1\r\n1\r\n");
    atomic_store(&desk.wrong, 1);
    hl_client *client =
        open_client_at(fake_cluster_url(desk.node[0], NULL),
                       CLIENT(.address_map = desk_answer, .address_map_arg = &desk));
    for (int i = 0; i < 2; i++) {
        fake_node_redirect(desk.node[0], word[i], SLOT, "inside", SECOND);
        expect_outcome(acquire_at(client, SLOT, &err), HL_ESERVER);
        check_has(err.text, "address_map gave no address for inside:7002");
    }
    fake_node_set_script(desk.node[0], "");
    expect_ok(acquire_at(client, SLOT, ERR));
}

/* --- sentinels that announce what the map cannot translate --- */

/* Leaves the servers' addresses alone, and has none for one port. */
struct hole {
    int port;
    atomic_int code;
    _Atomic(hl_client *) client; /* to close, from inside */
};

static void map_with_hole(hl_address *address, void *arg)
{
    struct hole *hole = arg;

    if (address->port == hole->port)
        address->port = -1;
    hl_client *client = atomic_exchange(&hole->client, NULL);
    if (client)
        atomic_store(&hole->code, hl_client_close(client));
}

TcpLaw(address_map, that_gives_no_address_for_a_master_leads_to_the_next_sentinel)
{
    static struct manner lost;
    static struct hole hole;
    struct fake_server *first = new_sentinel(&lost), *second = new_honest_sentinel();

    lost.address = address_of(7009);
    lost.epoch = epoch_1;
    lost.peers = no_peers;
    hole.port = 7009;
    const hl_client_options *options =
        CLIENT(.address_map = map_with_hole, .address_map_arg = &hole);
    expect_refused(url_of(first, NULL), options, HL_ECONN,
                   "address_map gave no address for 127.0.0.1:7009: \"127.0.0.1\", port -1");
    open_client_at(url_of(first, second), options);
}

TcpLaw(address_map, that_gives_no_address_for_a_sentinel_is_named_once)
{
    static struct manner friendly;
    static struct hole hole;
    static struct recorder lines = RECORDER_INIT;
    struct fake_server *sentinel = new_sentinel(&friendly);

    friendly.address = address_of(redis_server_port(server));
    friendly.epoch = epoch_1;
    friendly.peers = peer_of(7009);
    hole.port = 7009;
    open_client_at(url_of(sentinel, NULL),
                   CLIENT(.address_map = map_with_hole, .on_log = record_log, .arg = &lines,
                          .address_map_arg = &hole));
    check(recorder_wait_says(&lines, "names another sentinel: address_map gave no address"));
    expect_watched(sentinel, 1);
    fake_server_close_all(sentinel, FAKE_CLOSE);
    expect_watched(sentinel, 2);
    check_int(recorder_count(&lines), 1);
}

static bool has_tried_to_close(void *arg)
{
    struct hole *hole = arg;

    return atomic_load(&hole->code) != 0;
}

TcpLaw(address_map, cannot_close_the_client)
{
    static struct hole hole;
    struct fake_server *sentinel = new_honest_sentinel();
    hl_client *client = open_client_at(
        url_of(sentinel, NULL), CLIENT(.address_map = map_with_hole, .address_map_arg = &hole));

    expect_watched(sentinel, 1);
    atomic_store(&hole.client, client);
    fake_server_close_all(sentinel, FAKE_CLOSE);
    check(wait_until(has_tried_to_close, &hole, 20000));
    check_int(atomic_load(&hole.code), HL_EDEADLK);
}
