/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The answers of a real server that cannot serve now: waits go on until the outage timeout, and
 * then the caller reads the server's own words; holds are renewed, or lost in time.
 */

#include <sys/stat.h>

#include "server_fault.h"
#include "support/fake_server.h"
#include "support/semaphore_support.h"

/* A client that holds "held" once and "nested" twice, and one beside it. */
struct refusal {
    struct events events;
    hl_client *client, *other;
    hl_lock *held, *nested, *free, *others;
};

static void refusal_begin(struct refusal *refusal)
{
    *refusal = (struct refusal){0};
    refusal->client = open_impatient(&refusal->events);
    refusal->other = open_impatient(NULL);
    refusal->held = new_lock(refusal->client, "held");
    refusal->nested = new_lock(refusal->client, "nested");
    refusal->free = new_lock(refusal->client, "free");
    refusal->others = new_lock(refusal->other, "held");
    expect_ok(hl_lock_acquire(refusal->held, NULL));
    expect_ok(hl_lock_acquire(refusal->nested, NULL));
    expect_ok(hl_lock_acquire(refusal->nested, NULL));
}

/* With a wait time and without, the caller reads what the server said. */
static void refusal_check_acquire(struct refusal *refusal, const char *words)
{
    hl_error err = HL_ERROR_INIT;
    int64_t started = now_ms();
    expect_outcome(hl_lock_acquire_for(refusal->free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check(now_ms() - started >= slow_ms(800));
    check_has(err.text, words);
    expect_outcome(hl_lock_try_acquire(refusal->free, &err), HL_ESERVER);
    check_has(err.text, words);
    expect_outcome(hl_lock_acquire_for(refusal->free, slow_ms(800), &err), HL_ESERVER);
    check_has(err.text, words);
}

static void refusal_check_renewals(struct refusal *refusal)
{
    wait_stat(refusal->client, renewals, stats_of(refusal->client).renewals + 2);
    check(hl_lock_is_held(refusal->held, NULL));
    check_int(events_told(&refusal->events, HL_EVENT_LOST), 0);
}

Law(server_refusals, out_of_memory_refuses_new_holds_only)
{
    static struct refusal r;
    refusal_begin(&r);
    redis_do(server, "CONFIG SET maxmemory 1");
    refusal_check_acquire(&r, "OOM");
    expect_outcome(hl_lock_try_acquire(r.others, NULL), HL_EBUSY);
    refusal_check_renewals(&r);
    expect_ok(hl_lock_acquire(r.held, NULL)); /* nested calls cost no memory there */
    expect_ok(hl_lock_release(r.held, NULL));
    expect_ok(hl_lock_release(r.nested, NULL));
    check(redis_wait_int(server, 1, 5000, "EVAL %s 1 nested",
                         "return redis.call('HVALS',KEYS[1])[1]"));
    expect_ok(hl_lock_release(r.nested, NULL));
    expect_ok(hl_lock_release(r.held, NULL));
    expect_gone(server, "nested");
    expect_gone(server, "held");
    check_int(redis_int(server, "DBSIZE"), 0);
}

Law(server_refusals, out_of_memory_is_told_at_once_to_a_call_without_waiting)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    options.outage_timeout_ms = 60000;
    expect_ok(hl_client_open(redis_server_url(server), &options, &client, NULL));
    hl_lock *lock = new_lock(client, "free");
    redis_do(server, "CONFIG SET maxmemory 1");
    int64_t started = now_ms();
    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ESERVER);
    check_has(err.text, "acquire 'free': OOM");
    check(now_ms() - started < slow_ms(30000));
    redis_do(server, "CONFIG SET maxmemory 0");
    expect_ok(hl_lock_try_acquire(lock, &err));
    expect_ok(hl_lock_release(lock, NULL));
}

Law(server_refusals, out_of_memory_is_waited_out)
{
    static struct refusal r;
    refusal_begin(&r);
    redis_do(server, "CONFIG SET maxmemory 1");
    struct actor *call = actor_start_acquire(r.free, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(r.client, 1);
    redis_do(server, "CONFIG SET maxmemory 0");
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, r.free, NULL));
}

/* An acquire that is refused, and one that is abandoned, leave nothing behind. */
static void refusal_check_writes_come_back(struct refusal *refusal)
{
    expect_ok(hl_lock_acquire_for(refusal->free, slow_ms(5000), NULL));
    expect_ok(hl_lock_release(refusal->free, NULL));
    check(redis_wait_int(server, 0, 5000, "EXISTS free"));
}

/* First of all, as a retained lock has a short lease. The release is not answered, goes on behind,
 * and is done when the server takes writes again. */
static void refusal_check_release_behind(struct refusal *refusal, const char *words)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release(refusal->held, &err);
    expect_released(code, HL_EINDOUBT);
    if (code != HL_OK)
        check_has(err.text, words);
    check(!hl_lock_is_held(refusal->held, NULL));
    check_int(redis_int(server, "EXISTS held"), 1);
}

Law(server_refusals, without_replicas_nothing_is_taken_and_a_release_goes_on_behind)
{
    static struct refusal r;
    refusal_begin(&r);
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    refusal_check_release_behind(&r, "NOREPLICAS");
    refusal_check_acquire(&r, "NOREPLICAS");
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(redis_wait_int(server, 0, 2000, "EXISTS held"));
    refusal_check_writes_come_back(&r);
}

Law(server_refusals, without_replicas_a_hold_is_renewed_late_or_lost_in_time)
{
    static struct events events;
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(3000) + 3000;
    options.request_timeout_ms = slow_ms(500);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check(events_wait(&events, HL_EVENT_JEOPARDY, 1, 5000));
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(events_wait(&events, HL_EVENT_SAFE, 1, 5000));
    check(hl_lock_is_held(lock, NULL));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

static bool has_been_asked_four_times(void *arg)
{
    (void)arg;
    return redis_evalsha_calls(server) >= 4;
}

/* A handle that retains has a lease of 5 s, whatever the watchdog's is: when its renewal was
 * refused four times, there is still time for a fifth. */
Law(server_refusals, a_renewal_is_repeated_as_the_holds_own_lease_demands)
{
    static struct events events;
    hl_client_options options = fault_options(&events);
    hl_lock_options retains = HL_LOCK_OPTIONS_INIT;
    options.watchdog_timeout_ms = slow_ms(30000);
    options.request_timeout_ms = slow_ms(2000);
    retains.retain_ms = 100;
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock_with(client, "retained", &retains);
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CONFIG RESETSTAT");
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check(wait_until(has_been_asked_four_times, NULL, 20000));
    check(hl_lock_is_held(lock, NULL));
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    wait_stat(client, renewals, 1);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, NULL));
}

Law(server_refusals, a_server_that_cannot_save_takes_no_writes)
{
    static struct refusal r;
    char path[128];
    refusal_begin(&r);
    snprintf(path, sizeof path, "%s/dump.rdb", redis_server_dir(server));
    check_int(mkdir(path, 0700), 0); /* a snapshot cannot be put in its place */
    redis_do(server, "CONFIG SET save %s", "3600 1");
    redis_do(server, "BGSAVE");
    check(redis_wait_int(server, 1, 10000, "EVAL %s 0",
                         "return string.find(redis.call('INFO','persistence'),"
                         "'rdb_last_bgsave_status:err') and 1 or 0"));
    refusal_check_release_behind(&r, "MISCONF");
    refusal_check_acquire(&r, "MISCONF");
    redis_do(server, "CONFIG SET stop-writes-on-bgsave-error no");
    check(redis_wait_int(server, 0, 2000, "EXISTS held"));
    refusal_check_writes_come_back(&r);
    check_int(rmdir(path), 0);
}

Law(server_refusals, a_master_that_becomes_a_replica_is_left_and_waited_for)
{
    static struct refusal r;
    hl_error err = HL_ERROR_INIT;
    refusal_begin(&r);
    redis_do(server, "REPLICAOF 127.0.0.1 1"); /* no server is there: it keeps its data */
    int64_t roles = redis_calls(server, "role");
    expect_outcome(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "READONLY");
    check(events_wait(&r.events, HL_EVENT_DISCONNECTED, 1, 5000));
    check_has(r.events.reason[HL_EVENT_DISCONNECTED], "READONLY");
    check(redis_calls(server, "role") > roles);
    expect_outcome(hl_client_ping(r.client, 50, &err), HL_ESERVER);
    check_has(err.text, "not a master");
    struct actor *call = actor_start_acquire(r.free, ACQUIRE(.wait_ms = slow_ms(10000)));
    expect_waiters(r.client, 1);
    redis_do(server, "REPLICAOF NO ONE");
    expect_ok(actor_end(call));
    check(events_wait(&r.events, HL_EVENT_CONNECTED, 1, 5000));
    expect_ok(actor_release(call, r.free, NULL));
}

static bool refusing_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    if (resp_command_begins(command, "EVALSHA"))
        fake_reply_text(reply, "-NOREPLICAS Not enough good replicas to write.\r\n");
    return reply->length > 0;
}

/* A server in trouble, and thousands of calls that wait for its end. */
Test(server_refusals, refused_calls_are_repeated_after_growing_pauses)
{
    struct fake_server *fake = fake_server_start(refusing_answer, NULL);
    hl_client_options options = fault_options(NULL);
    hl_semaphore *semaphore = NULL;
    options.poll_ms = 1000;
    options.outage_timeout_ms = 1600;
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    expect_ok(hl_semaphore_new(client, "s", &semaphore, NULL));
    expect_outcome(hl_semaphore_release(semaphore, 1, NULL), HL_ESERVER);
    int asked = fake_server_count(fake, "EVALSHA");
    check_msg(asked >= 2 && asked <= 7, "%d requests", asked); /* 0, 100, 300, 700, 1500 ms */
    hl_semaphore_free(semaphore);
    close_client(client);
    fake_server_stop(fake);
}

/* For every request: the link checks each answer for that word. */
Law(server_refusals, a_demoted_master_is_left_by_calls_of_one_request_too)
{
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_error err = HL_ERROR_INIT;
    hl_semaphore *semaphore = new_semaphore(client, "s");
    expect_ok(hl_semaphore_try_set_permits(semaphore, 5, 0, NULL));
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    expect_outcome(hl_semaphore_release(semaphore, 1, &err), HL_ESERVER);
    check_has(err.text, "READONLY");
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    check_has(events.reason[HL_EVENT_DISCONNECTED], "READONLY");
    redis_do(server, "REPLICAOF NO ONE");
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 5000));
    expect_ok(hl_semaphore_release(semaphore, 1, NULL));
}

static bool old_replica_answer(const struct resp_command *command, struct fake_reply *reply,
                               void *arg)
{
    atomic_int *times = arg;
    if (!resp_command_begins(command, "EVALSHA") || atomic_fetch_sub(times, 1) <= 0)
        return false;
    fake_reply_text(reply, "-ERR Error running script (call to f_7d4a): @user_script:47: "
                           "@user_script: 47: -READONLY You can't write against a read only "
                           "replica.\r\n");
    return true;
}

/* Redis 6 has the word in the middle of its sentence. */
Test(server_refusals, a_demoted_master_of_redis_6_is_left_too)
{
    if (handle_is_fair())
        skip("the fake server does not know the fair lock's answer");
    atomic_int times = 1;
    struct fake_server *fake = fake_server_start(old_replica_answer, &times);
    static struct events events;
    hl_client_options options = fault_options(&events);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "n");
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), NULL));
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    check_has(events.reason[HL_EVENT_DISCONNECTED], "READONLY");
    expect_ok(hl_lock_release(lock, NULL));
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
}

/* A third of the names would work there. */
Test(server_refusals, a_node_of_a_cluster_is_refused_by_open, .fini = server_down)
{
    server_up_with(&(struct redis_options){.config = "cluster-enabled yes"});
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_client_open(redis_server_url(server), &options, &client, &err), HL_ENOTSUP);
    check_has(err.text, "node of a cluster");
}

static bool moved_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    if (resp_command_begins(command, "INFO"))
        fake_reply_text(reply, "-NOPERM this user has no permissions\r\n");
    else if (resp_command_begins(command, "EVALSHA"))
        fake_reply_text(reply, "-MOVED 15495 127.0.0.1:7143\r\n");
    return reply->length > 0;
}

/* The user may not ask INFO: then the first call knows, and asks once. */
Test(server_refusals, a_call_that_belongs_to_another_node_ends_at_once)
{
    struct fake_server *fake = fake_server_start(moved_answer, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "node of a cluster");
    free_lock(lock);
    close_client(client);
    check(fake_server_count(fake, "EVALSHA") <= 2); /* and what it may have got is given back */
    fake_server_stop(fake);
}

/* A replica's answers to what happens not to write may be old: a renewal never takes one for its
 * own success. */
Law(server_refusals, a_replica_renews_nothing)
{
    static struct events events;
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(900);
    options.request_timeout_ms = slow_ms(100);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    wait_stat(client, renewals, 1);       /* the next one is a third of the lease away */
    redis_do(server, "PEXPIRE n 600000"); /* so that no renewal would have to write */
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    (void)!hl_client_ping(client, 50, NULL); /* what was answered before is counted */
    uint64_t before = stats_of(client).renewals;
    check(events_wait(&events, HL_EVENT_LOST, 1, 8000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check_int((int)(stats_of(client).renewals - before), 0);
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
}

Test(server_refusals, a_replica_is_refused_by_open_with_its_role, .fini = server_down)
{
    server_up_with(&(struct redis_options){.config = "replicaof 127.0.0.1 1"});
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_client_open(redis_server_url(server), &options, &client, &err), HL_ESERVER);
    check_has(err.text, "the server is a replica, not a master; that is 127.0.0.1:1");
}

Law(server_refusals, a_replica_without_its_master_is_waited_for)
{
    static struct refusal r;
    hl_error err = HL_ERROR_INIT;
    refusal_begin(&r);
    redis_do(server, "CONFIG SET replica-serve-stale-data no");
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    expect_outcome(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    /* A look at the server's role may come in between. */
    check(strstr(err.text, "MASTERDOWN") || strstr(err.text, "not a master"));
    redis_kill_clients(server, REDIS_NORMAL); /* and the same words at the door */
    check(events_wait(&r.events, HL_EVENT_DISCONNECTED, 1, 5000));
    expect_outcome(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check(strstr(err.text, "MASTERDOWN") || strstr(err.text, "not a master"));
    redis_do(server, "REPLICAOF NO ONE");
    refusal_check_writes_come_back(&r);
}
