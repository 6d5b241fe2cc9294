/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A client of a cluster while memory is short: its open, and a request whose slot has moved, with
 * each allocation failing once. */

#include "memory_kit.h"

#include "support/slot_move.h"
#include "support/topologies.h"

enum { SLOT = 1000 };

static int files_before;

struct subject {
    hl_client *client;
    hl_lock *lock;
    hl_error err;
    int code;
};

static void leave_address(hl_address *address, void *arg)
{
    (void)address, (void)arg;
}

static hl_client_options options_of_cluster(void)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);

    options.address_map = leave_address;
    options.password = "secret";
    return options;
}

static void memory_cluster_up(void)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    cluster_up_with(
        &(struct cluster_options){.masters = 3, .without_replicas = true, .password = "secret"});
    files_before = census_files();
}

#define ClusterMemoryLaw(name)                                                                     \
    Test(memory_cluster, name, .init = memory_cluster_up, .fini = server_down)

static void open_prepare(void *arg)
{
    *(struct subject *)arg = (struct subject){.err = HL_ERROR_INIT};
}

static void open_run(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = options_of_cluster();

    subject->code = hl_client_open(cluster_url_of(cluster, 0, 1, NULL), &options, &subject->client,
                                   &subject->err);
}

static void open_verify(void *arg, bool failed)
{
    struct subject *subject = arg;

    if (subject->code == HL_OK) {
        kit_try_out(subject->client, cluster_name_in_slot(SLOT, "opened"));
        expect_ok(hl_client_close(subject->client));
    } else {
        check_msg(failed && (subject->code == HL_ENOMEM || subject->code == HL_ECONN),
                  "open ended with %s (%s)", hl_err_name(subject->code), subject->err.text);
        check_msg(strstr(subject->err.text, "memory") ||
                      strstr(subject->err.text, "temporarily unavailable"),
                  "%s", subject->err.text);
        check(!subject->client);
    }
    kit_expect_no_threads();
    check_int(census_files(), files_before);
}

ClusterMemoryLaw(an_open_succeeds_or_leaves_nothing)
{
    struct subject subject;
    const struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                              .prepare = open_prepare,
                                              .run = open_run,
                                              .verify = open_verify,
                                              .arg = &subject};

    check(failing_malloc_sweep(&scenario) >= 60);
}

/* The client has the slot at one of two nodes, and then it moves to the other. */
static void moved_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = options_of_cluster();
    struct redis_server *from = cluster_node_at(cluster, SLOT);

    *subject = (struct subject){.err = HL_ERROR_INIT};
    subject->client = open_client_at(cluster_url_of(cluster, 0, 2, NULL), &options);
    subject->lock = new_lock(subject->client, cluster_name_in_slot(SLOT, "stock"));
    expect_ok(hl_lock_acquire(subject->lock, ERR));
    kit_release(subject->lock, NULL);
    slot_move(cluster, SLOT, cluster_node(cluster, from == cluster_node(cluster, 0) ? 1 : 0));
}

static void moved_run(void *arg)
{
    struct subject *subject = arg;

    subject->code =
        hl_lock_acquire_with(subject->lock, ACQUIRE(.wait_ms = slow_ms(20000)), &subject->err);
}

static void moved_verify(void *arg, bool failed)
{
    struct subject *subject = arg;

    if (subject->code == HL_OK) {
        check(hl_lock_is_held(subject->lock, NULL));
        kit_release(subject->lock, NULL);
    } else {
        check_msg(failed && (subject->code == HL_ENOMEM || subject->code == HL_ECONN ||
                             subject->code == HL_ESERVER),
                  "%s: %s", hl_err_name(subject->code), subject->err.text);
    }
    kit_try_out(subject->client, cluster_name_in_slot(SLOT, "stock"));
    free_lock(subject->lock);
    close_client(subject->client);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
}

ClusterMemoryLaw(a_request_that_moves_ends_in_words_and_the_next_one_well)
{
    struct subject subject;
    const struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                              .prepare = moved_prepare,
                                              .run = moved_run,
                                              .verify = moved_verify,
                                              .arg = &subject};

    check(failing_malloc_sweep(&scenario) >= 5);
}
