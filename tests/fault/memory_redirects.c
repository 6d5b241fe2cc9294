/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Requests that a node of a cluster sends elsewhere (ASK, MOVED) while memory is short, with each
 * allocation failing once: to a node that the client is connected to, and to one that it has never
 * heard of. */

#include "cluster_fake.h"
#include "memory_kit.h"

#include "support/cluster_reshape.h"
#include "support/process.h"
#include "support/slot_move.h"
#include "support/topologies.h"

enum { SLOT = 1000, MASTERS = 3 };

struct subject {
    hl_client *client;
    hl_lock *lock;
    hl_error err;
    int acquired, released;
};

static int files_before;
static const char *url;
static uint64_t nodes; /* that the client is to know at first */
static int runs, redirected;

static const char *name_in_slot(void)
{
    return cluster_name_in_slot(SLOT, "stock");
}

static bool has_all_nodes(void *client)
{
    return stats_of(client).nodes_now == nodes;
}

static void sent_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(30000), NULL);

    *subject = (struct subject){.err = HL_ERROR_INIT};
    subject->client = open_client_at(url, &options);
    check(wait_until(has_all_nodes, subject->client, 20000));
    subject->lock = new_lock(subject->client, name_in_slot());
}

static void sent_run(void *arg)
{
    struct subject *subject = arg;

    subject->acquired =
        hl_lock_acquire_with(subject->lock, ACQUIRE(.wait_ms = slow_ms(20000)), &subject->err);
    if (subject->acquired == HL_OK)
        subject->released = hl_lock_release(subject->lock, NULL);
}

/* A release that found no memory has changed nothing, and is called again. A client that has read
 * the map before it asked, since a node was slow, is not sent elsewhere. */
static void sent_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    int acquired = subject->acquired, released = subject->released;

    check_msg(acquired == HL_OK || (failed && (acquired == HL_ENOMEM || acquired == HL_ECONN ||
                                               acquired == HL_ESERVER)),
              "%s: %s", hl_err_name(acquired), subject->err.text);
    check_msg(released == HL_OK || (failed && (released == HL_ENOMEM || released == HL_EINDOUBT)),
              "%s", hl_err_name(released));
    if (released == HL_ENOMEM)
        kit_release(subject->lock, NULL);
    check(!hl_lock_is_held(subject->lock, NULL));
    kit_try_out(subject->client, name_in_slot());
    runs++;
    redirected += stats_of(subject->client).redirects > 0;
    free_lock(subject->lock);
    close_client(subject->client);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
}

/* Each allocation; and then each of them, or each `step`th, again and again until it is sure that
 * none leaves anything behind. */
static void expect_in_words(void (*prepare)(void *), long step)
{
    struct subject subject;
    struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                        .prepare = prepare,
                                        .run = sent_run,
                                        .verify = sent_verify,
                                        .arg = &subject};

    files_before = census_files();
    check(failing_malloc_sweep(&scenario) >= 10);
    scenario.step = step;
    sweep_without_leaks(&scenario);
    check_msg(2 * redirected > runs, "%d of %d were sent elsewhere", redirected, runs);
}

#define RedirectLaw(name, up) Test(memory_redirects, name, .init = up, .fini = server_down)

/* --- ASK, of a real cluster: the slot is on its way, and its keys are away already --- */

static void real_up(void)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    cluster_up_with(&(struct cluster_options){.masters = MASTERS, .without_replicas = true});
    url = cluster_url_of(cluster, 0, MASTERS, NULL);
    nodes = MASTERS;
}

static void expect_asks_in_words(struct redis_server *away, long step)
{
    struct slot_move move = slot_move_begin(cluster, SLOT, away);

    expect_in_words(sent_prepare, step);
    slot_move_end(&move);
    check(redis_wait_int(away, 0, 30000, "EXISTS %s", name_in_slot()));
}

RedirectLaw(by_ask_to_a_known_node_end_in_words_and_the_next_call_well, real_up)
{
    struct redis_server *home = cluster_node_at(cluster, SLOT);

    expect_asks_in_words(cluster_node(cluster, cluster_node(cluster, 0) == home), 1);
}

RedirectLaw(by_ask_to_a_new_node_end_in_words_and_the_next_call_well, real_up)
{
    expect_asks_in_words(cluster_add_node(cluster, NULL), 4); /* each waits for a connection */
}

/* --- MOVED, of two fake nodes in a process whose memory is not short: a real slot would have to
 * move for each allocation --- */

enum { TELL, DONE };

struct page {
    int ports[2];
    bool is_known; /* the second node: it has slots of its own */
    bool is_away;  /* it has the slot, and the first one says so */
};

static struct process *child;
static struct page *page;
static uint32_t told;

static void place_slot(struct fake_node *const *both)
{
    const int first = fake_node_port(both[0]), second = fake_node_port(both[1]);
    const struct fake_range ranges[] = {{0, 8000, page->is_away ? second : first},
                                        {8001, 16383, page->is_known ? second : first}};

    fake_nodes_set_map(both, 2, ranges, 2);
    fake_node_set_script(both[0], "");
    if (page->is_away)
        fake_node_redirect(both[0], "MOVED", SLOT, "127.0.0.1", second);
}

static void fake_cluster(struct process *self, void *arg)
{
    struct fake_node *both[] = {new_fake_node(), new_fake_node()};

    (void)arg;
    page = process_shared(self);
    for (int i = 0; i < 2; i++)
        page->ports[i] = fake_node_port(both[i]);
    process_tell(self, DONE);
    for (uint32_t i = 1; process_await(self, TELL, i, 600000); i++) {
        place_slot(both);
        process_tell(self, DONE);
    }
}

static void tell_fake(bool is_away)
{
    page->is_away = is_away;
    process_tell(child, TELL);
    check(process_await(child, DONE, ++told, 20000));
}

static void fake_up(void)
{
    static char of_first[64];

    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    child = process_start(fake_cluster, NULL);
    page = process_shared(child);
    told = 1;
    check(process_await(child, DONE, told, 20000));
    snprintf(of_first, sizeof of_first, "redis-cluster://127.0.0.1:%d", page->ports[0]);
    url = of_first;
}

static void moved_prepare(void *arg)
{
    tell_fake(false);
    sent_prepare(arg);
    tell_fake(true);
}

static void expect_moves_in_words(bool is_known)
{
    page->is_known = is_known;
    nodes = is_known ? 2 : 1;
    expect_in_words(moved_prepare, 1);
    process_kill(child);
}

RedirectLaw(by_moved_to_a_known_node_end_in_words_and_the_next_call_well, fake_up)
{
    expect_moves_in_words(true);
}

RedirectLaw(by_moved_to_a_new_node_end_in_words_and_the_next_call_well, fake_up)
{
    expect_moves_in_words(false);
}
