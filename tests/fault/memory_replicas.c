/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Locks that replicas confirm while memory is short: whichever thread's allocation fails, a lock
 * that is held is one that the replica has, and nothing is left of a lock that is not.
 */
#include "memory_kit.h"

#include "support/census.h"

static struct redis_server *replica;
static int files_before;

static void replica_up(void)
{
    char config[128];

    memory_up_tcp();
    snprintf(config, sizeof config, "replicaof 127.0.0.1 %d", redis_server_port(server));
    replica = redis_server_start(&(struct redis_options){.config = config});
    check(redis_wait_replicas(server, 1, 60000));
    redis_do(server, "SET replicated yes");
    redis_do(server, "DEL replicated");
    check_int(redis_int(server, "WAIT 1 60000"), 1);
    redis_do(replica, "PING");
    files_before = census_files();
}

static void replica_down(void)
{
    redis_server_stop(replica);
    memory_down();
}

#define ReplicaMemory(...)                                                                         \
    Test(memory_replicas, __VA_ARGS__, .init = replica_up, .fini = replica_down)

struct subject {
    int64_t replicas_ms;
    hl_client *client;
    hl_lock *lock;
    hl_error err;
    int code;
};

static int open_subject(struct subject *subject)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);

    options.min_replicas = 1;
    options.replicas_timeout_ms = subject->replicas_ms;
    options.request_timeout_ms += 2 * subject->replicas_ms;
    return hl_client_open(redis_server_url(server), &options, &subject->client, &subject->err);
}

static void prepare(void *arg)
{
    struct subject *subject = arg;

    subject->err = (hl_error)HL_ERROR_INIT;
    expect_ok(open_subject(subject));
    subject->lock = new_lock(subject->client, "subject");
}

static void prepare_held(void *arg)
{
    struct subject *subject = arg;

    prepare(arg);
    expect_ok(hl_lock_acquire(subject->lock, ERR));
}

static void prepare_cut(void *arg)
{
    prepare(arg);
    redis_server_freeze(replica);
}

static void acquire(void *arg)
{
    struct subject *subject = arg;

    subject->code = hl_lock_acquire(subject->lock, &subject->err);
}

static void open_and_acquire(void *arg)
{
    struct subject *subject = arg;

    subject->client = NULL;
    subject->lock = NULL;
    subject->code = open_subject(subject);
    if (subject->code == HL_OK)
        subject->code = hl_lock_new(subject->client, "subject", &subject->lock, &subject->err);
    if (subject->code == HL_OK)
        subject->code = hl_lock_acquire(subject->lock, &subject->err);
}

static void update_lease(void *arg)
{
    struct subject *subject = arg;

    subject->code = hl_lock_update_lease(subject->lock, NULL, 600000, &subject->err);
}

static void end(struct subject *subject)
{
    hl_lock_free(subject->lock);
    hl_client_close(subject->client);
    kit_expect_no_threads();
    check_int(census_files(), files_before);
    check(redis_wait_int(server, 0, 20000, "EXISTS subject"));
}

static void expect_code(const struct subject *subject, bool failed, int other)
{
    int code = subject->code;

    check_msg(code == other || (failed && (code == HL_ENOMEM || code == HL_ECONN)),
              "the call ended with %s (%s)", hl_err_name(code), subject->err.text);
}

/* What memory was too short for may end as HL_ECONN: the words of pthread_create. */
static void verify_held(void *arg, bool failed)
{
    struct subject *subject = arg;

    expect_code(subject, failed, HL_OK);
    if (subject->code == HL_OK) {
        check_int(redis_int(replica, "EXISTS subject"), 1);
        check_int((int)stats_of(subject->client).unconfirmed, 0);
        kit_release(subject->lock, NULL);
    }
    end(subject);
}

static void verify_none(void *arg, bool failed)
{
    struct subject *subject = arg;

    expect_code(subject, failed, HL_EREPLICAS);
    check(!hl_lock_is_held(subject->lock, NULL));
    check_int((int)stats_of(subject->client).holds_now, 0);
    redis_server_thaw(replica);
    check(redis_wait_int(server, 0, 20000, "EXISTS subject"));
    end(subject);
}

/* A lease that was refused does not count; the hold is there in any case. */
static void verify_lease(void *arg, bool failed)
{
    struct subject *subject = arg;
    bool is_doubt = failed && subject->code == HL_EINDOUBT;

    if (!is_doubt)
        expect_code(subject, failed, HL_OK);
    check(hl_lock_is_held(subject->lock, NULL));
    bool is_longer = hl_lock_validity_ms(subject->lock, NULL) > 300000;
    check(is_longer == (subject->code == HL_OK));
    kit_release(subject->lock, NULL);
    end(subject);
}

static long sweep(void (*before)(void *), void (*run)(void *), void (*verify)(void *, bool),
                  int64_t replicas_ms)
{
    struct subject subject = {.replicas_ms = replicas_ms};

    return sweep_without_leaks(&(struct failing_scenario){.scope = FAILING_PROCESS,
                                                          .prepare = before,
                                                          .run = run,
                                                          .verify = verify,
                                                          .arg = &subject});
}

ReplicaMemory(have_what_is_held)
{
    check(sweep(prepare, acquire, verify_held, slow_ms(5000)) >= 2);
}

ReplicaMemory(have_what_the_first_call_of_a_client_holds)
{
    check(sweep(NULL, open_and_acquire, verify_held, slow_ms(5000)) >= 20);
}

ReplicaMemory(that_have_not_heard_leave_nothing_held)
{
    check(sweep(prepare_cut, acquire, verify_none, slow_ms(20)) >= 2);
}

ReplicaMemory(have_a_new_lease_or_it_is_not_one)
{
    check(sweep(prepare_held, update_lease, verify_lease, slow_ms(5000)) >= 2);
}
