/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A client of a cluster or of sentinels that is closed, and one whose process forks, in each stage
 * of its way to a server: a fake server holds it there. A close waits for no server, and leaves
 * nothing; a child has none of its sockets; and the parent goes on when the stage ends.
 */

#include "cluster_fake.h"
#include "login_kit.h"
#include "sentinel_kit.h"

#include "support/actor.h"
#include "support/census.h"
#include "support/cluster_slot.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOT = 1000, NEVER_MS = 600000 };

static struct fake_node *first, *second; /* of a cluster: half of the slots each */
static struct fake_server *sentinel, *master;
static struct manner *manner; /* one for each stage: an old sentinel may still read the last */
static struct desk desk;
static hl_client *client;
static struct actor *caller; /* a call under way, or NULL */
static hl_lock *lock;

/* No deadline of the client's own ends a stage. */
static const hl_client_options *patient(void)
{
    static hl_client_options used;

    used = *CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = NEVER_MS,
                   .request_timeout_ms = NEVER_MS, .outage_timeout_ms = -1, .backoff_min_ms = 5,
                   .backoff_max_ms = 50);
    return &used;
}

static const hl_client_options *with_desk(void)
{
    hl_client_options used = *patient();
    static hl_client_options kept;

    desk = (struct desk)DESK_INIT;
    desk_gives(&desk, NULL, NULL, 0);
    desk_set_shut(&desk, true);
    used.credentials_cb = desk_answer;
    used.credentials_arg = &desk;
    kept = used;
    return &kept;
}

/* --- the stages: each begins one, and ends it --- */

static void nodes_up(void)
{
    first = new_fake_node();
    second = new_fake_node();
    const struct fake_range ranges[] = {{0, 8000, fake_node_port(first)},
                                        {8001, 16383, fake_node_port(second)}};
    fake_nodes_set_map((struct fake_node *[]){first, second}, 2, ranges, 2);
}

static void set_slots_then(struct fake_node *node, enum fake_then then)
{
    pthread_mutex_lock(&node->mutex);
    node->slots_then = then;
    pthread_mutex_unlock(&node->mutex);
}

static void open_cluster(const hl_client_options *options)
{
    expect_ok(hl_client_open(fake_cluster_url(first, NULL), options, &client, ERR));
}

static void begin_login(void)
{
    nodes_up();
    open_cluster(with_desk());
    check(desk_was_asked(&desk, 1, 20000));
}

static void end_login(void)
{
    desk_set_shut(&desk, false);
}

static void begin_locating(void)
{
    nodes_up();
    set_slots_then(first, FAKE_STALL);
    fake_node_set_slots(first, "");
    open_cluster(patient());
    check(fake_server_wait_count(first->server, "CLUSTER SLOTS", 1, 20000));
}

static void end_locating(void)
{
    fake_node_set_alone(first);
    set_slots_then(first, FAKE_GO_ON);
    fake_server_close_all(first->server, FAKE_RESET);
}

/* The links to both are greeting: the first does not answer HELLO or CLIENT, the scout it did. */
static void begin_greeting(void)
{
    static const struct fake_step silent[] = {{"ROLE", "", 0, FAKE_STALL, 0}};

    nodes_up();
    fake_server_play(first->server, silent, 1);
    open_cluster(patient());
    check(fake_server_wait_play(first->server, 20000));
}

static void end_greeting(void)
{
    fake_server_close_all(first->server, FAKE_RESET);
}

static void begin_call(void)
{
    lock = new_lock(client, cluster_name_in_slot(SLOT, "stock"));
    caller = actor_start_acquire(lock, ACQUIRE(.wait_ms = -1));
}

/* The request has to go to the second node, whose connection hangs. */
static void begin_moved(void)
{
    static const struct fake_step silent[] = {{"", NULL, 0, FAKE_STALL, 0}};

    nodes_up();
    fake_node_redirect(first, "MOVED", SLOT, "127.0.0.1", fake_node_port(second));
    fake_server_play(second->server, silent, 1);
    open_cluster(patient());
    check(fake_server_wait_play(second->server, 20000));
    expect_ok(hl_client_ping(client, -1, ERR));
    begin_call();
    wait_stat(client, redirects, 1);
}

static void end_moved(void)
{
    fake_node_set_script(first, "");
    fake_server_close_all(second->server, FAKE_RESET);
}

/* It was sent to the second node behind ASKING, which does not answer. It may have run there, and
 * so a close waits for the answer to its release, for the request timeout. */
static void begin_ask(void)
{
    hl_client_options options = *patient();

    options.request_timeout_ms = slow_ms(2000);
    nodes_up();
    fake_node_redirect(first, "ASK", SLOT, "127.0.0.1", fake_node_port(second));
    fake_node_set_script(second, "(silence)");
    open_cluster(&options);
    expect_ok(hl_client_ping(client, -1, ERR));
    wait_stat(client, nodes_now, 2);
    begin_call();
    check(fake_server_wait_count(second->server, "ASKING", 1, 20000));
}

static void end_ask(void)
{
    fake_node_set_script(first, "");
    fake_node_set_script(second, "");
    fake_server_close_all(second->server, FAKE_RESET);
}

static void sentinel_up(void)
{
    static struct manner manners[64];
    static size_t count;

    check(count < sizeof manners / sizeof manners[0]);
    manner = &manners[count++];
    manner->epoch = epoch_1;
    manner->peers = no_peers;
    master = new_fake(NULL, NULL);
    manner->address = address_of(fake_server_port(master));
    sentinel = new_sentinel(manner);
}

static void open_sentinel(const hl_client_options *options)
{
    expect_ok(hl_client_open(url_of(sentinel, NULL), options, &client, ERR));
}

static void begin_sentinel_login(void)
{
    sentinel_up();
    open_sentinel(with_desk());
    check(desk_was_asked(&desk, 1, 20000));
}

static void begin_sentinel_asking(void)
{
    sentinel_up();
    manner->address = "";
    open_sentinel(patient());
    check(fake_server_wait_count(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", 1, 20000));
}

static void end_sentinel_asking(void)
{
    manner->address = address_of(fake_server_port(master));
    fake_server_close_all(sentinel, FAKE_RESET);
}

/* The sentinel is watched, the master that it named does not answer the greeting. */
static void begin_sentinel_greeting(void)
{
    static const struct fake_step silent[] = {{"ROLE", "", 0, FAKE_STALL, 0}};

    sentinel_up();
    fake_server_play(master, silent, 1);
    open_sentinel(patient());
    check(fake_server_wait_play(master, 20000));
}

static void end_sentinel_greeting(void)
{
    fake_server_close_all(master, FAKE_RESET);
}

/* All is well, and the sentinel is just asked again. */
static void begin_sentinel_asking_again(void)
{
    sentinel_up();
    open_sentinel(patient());
    expect_ok(hl_client_ping(client, -1, ERR));
    expect_watched(sentinel, 1);
    manner->address = "";
    fake_server_publish(sentinel, "+switch-master", "mymaster x");
    check(fake_server_wait_count(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", 2, 20000));
}

static const struct stage {
    const char *name;
    void (*begin)(void);
    void (*end)(void);
    bool waits_for_callback;
} stages[] = {
    {"cluster: login", begin_login, end_login, true},
    {"cluster: locating", begin_locating, end_locating, false},
    {"cluster: greeting", begin_greeting, end_greeting, false},
    {"cluster: MOVED", begin_moved, end_moved, false},
    {"cluster: ASK", begin_ask, end_ask, false},
    {"sentinel: login", begin_sentinel_login, end_login, true},
    {"sentinel: asking", begin_sentinel_asking, end_sentinel_asking, false},
    {"sentinel: greeting", begin_sentinel_greeting, end_sentinel_greeting, false},
    {"sentinel: asking again", begin_sentinel_asking_again, end_sentinel_asking, false},
};

enum { STAGES = sizeof stages / sizeof stages[0] };

/* --- the laws --- */

static bool is_ours(int port)
{
    struct fake_server *const servers[] = {first ? first->server : NULL,
                                           second ? second->server : NULL, sentinel, master};

    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
        if (servers[i] && fake_server_port(servers[i]) == port)
            return true;
    return false;
}

/* Sockets of this process that lead to a fake server. */
static int sockets_of_client(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET)
            count += is_ours(ntohs(peer.sin_port));
    }
    return count;
}

static void stage_begin(const struct stage *stage)
{
    first = second = NULL;
    sentinel = master = NULL;
    caller = NULL;
    stage->begin();
}

static void end_soon(void *arg)
{
    const struct stage *stage = arg;

    if (stage->waits_for_callback)
        stage->end();
}

Test(stages, may_end_by_a_close, .fini = server_down)
{
    for (int i = 0; i < STAGES; i++) {
        struct actor *actor = actor_start();
        stage_begin(&stages[i]);
        actor_begin(actor, end_soon, (void *)&stages[i]);
        expect_ok(hl_client_close(client));
        actor_await(actor);
        if (caller)
            expect_outcome(actor_end(caller), HL_ECANCELED);
        check_msg(sockets_of_client() == 0, "%s", stages[i].name);
        check(census_waits_for_no_thread());
    }
}

/* The child must end by itself: a mutex that no thread will unlock shows as SIGALRM. */
static void child_run(void)
{
    alarm((unsigned)(slow_ms(20000) / 1000));
    bool is_well = sockets_of_client() == 0 && hl_client_ping(client, 100, NULL) == HL_EFORKED &&
                   hl_client_close(client) == HL_EFORKED;
    _exit(is_well ? 0 : 1);
}

static void fork_in(const struct stage *stage)
{
    int status = 0;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0)
        child_run();
    while (waitpid(pid, &status, 0) < 0)
        check_int(errno, EINTR);
    check_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ended with status %x",
              stage->name, (unsigned)status);
}

Test(stages, are_the_parents_after_a_fork, .fini = server_down)
{
    for (int i = 0; i < STAGES; i++) {
        stage_begin(&stages[i]);
        check(stages[i].waits_for_callback || sockets_of_client() > 0);
        fork_in(&stages[i]);
        stages[i].end();
        if (caller) {
            expect_ok(actor_end(caller));
            expect_ok(actor_release(caller, lock, NULL));
        }
        expect_ok(hl_client_ping(client, -1, ERR));
        check(sockets_of_client() > 0);
        if (caller)
            free_lock(lock);
        expect_ok(hl_client_close(client));
        check_int(sockets_of_client(), 0);
    }
}
