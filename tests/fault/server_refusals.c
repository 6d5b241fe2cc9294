/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * What a real server answers when it cannot serve now: waits go on until the outage timeout, and
 * then the caller reads the server's own words; holds are renewed, or lost in time.
 */

#include <sys/stat.h>

#include "server_fault.h"

/* A client that holds "held" once and "nested" twice, and one beside it. */
struct refusal {
    struct redis_server *server;
    struct fault_events events;
    hl_client *client, *other;
    hl_lock *held, *nested, *free, *others;
};

static void refusal_begin(struct refusal *refusal, const struct redis_options *options)
{
    *refusal = (struct refusal){.server = redis_server_start(options)};
    refusal->client = fault_client(refusal->server, &refusal->events);
    refusal->other = fault_client(refusal->server, NULL);
    refusal->held = fault_lock(refusal->client, "held");
    refusal->nested = fault_lock(refusal->client, "nested");
    refusal->free = fault_lock(refusal->client, "free");
    refusal->others = fault_lock(refusal->other, "held");
    check_int(hl_lock_acquire(refusal->held, NULL), 0);
    check_int(hl_lock_acquire(refusal->nested, NULL), 0);
    check_int(hl_lock_acquire(refusal->nested, NULL), 0);
}

static void refusal_end(struct refusal *refusal)
{
    hl_lock_free(refusal->held);
    hl_lock_free(refusal->nested);
    hl_lock_free(refusal->free);
    hl_lock_free(refusal->others);
    hl_client_close(refusal->client);
    hl_client_close(refusal->other);
    redis_server_stop(refusal->server);
}

/* With a wait time and without, the caller reads what the server said. */
static void refusal_check_acquire(struct refusal *refusal, const char *words)
{
    hl_error err = HL_ERROR_INIT;
    int64_t started = now_ms();
    check_int(hl_lock_acquire_for(refusal->free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check(now_ms() - started >= slow_ms(800));
    fault_check_has(err.text, words);
    check_int(hl_lock_try_acquire(refusal->free, &err), HL_ESERVER);
    fault_check_has(err.text, words);
    check_int(hl_lock_acquire_for(refusal->free, 50, &err), HL_ESERVER);
    fault_check_has(err.text, words);
}

struct renewed {
    hl_client *client;
    uint64_t count;
};

static bool has_renewed(void *arg)
{
    const struct renewed *renewed = arg;
    return fault_stats(renewed->client).renewals >= renewed->count;
}

static void refusal_check_renewals(struct refusal *refusal)
{
    struct renewed renewed = {refusal->client, fault_stats(refusal->client).renewals + 2};
    check(wait_until(has_renewed, &renewed, 8000));
    check(hl_lock_is_held(refusal->held, NULL));
    check_int(atomic_load(&refusal->events.seen[HL_EVENT_LOST]), 0);
}

Test(server_refusals, out_of_memory_refuses_new_holds_only)
{
    struct refusal r;
    refusal_begin(&r, NULL);
    redis_do(r.server, "CONFIG SET maxmemory 1");
    refusal_check_acquire(&r, "OOM");
    check_int(hl_lock_try_acquire(r.others, NULL), HL_EBUSY);
    refusal_check_renewals(&r);
    check_int(hl_lock_acquire(r.held, NULL), 0); /* nested calls cost no memory there */
    check_int(hl_lock_release(r.held, NULL), 0);
    check_int(hl_lock_release(r.nested, NULL), 0);
    check(redis_wait_int(r.server, 1, 5000, "EVAL %s 1 nested",
                         "return redis.call('HVALS',KEYS[1])[1]"));
    check_int(hl_lock_release(r.nested, NULL), 0);
    check_int(hl_lock_release(r.held, NULL), 0);
    expect_gone(r.server, "nested");
    expect_gone(r.server, "held");
    check_int(redis_int(r.server, "DBSIZE"), 0);
    refusal_end(&r);
}

Test(server_refusals, out_of_memory_is_waited_out)
{
    struct refusal r;
    struct fault_call call;
    refusal_begin(&r, NULL);
    redis_do(r.server, "CONFIG SET maxmemory 1");
    fault_call_begin(&call, r.free, fault_owner(r.client), HL_WAIT_FOREVER);
    check(wait_until(fault_has_waiter, r.client, 5000));
    redis_do(r.server, "CONFIG SET maxmemory 0");
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(r.free, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    refusal_end(&r);
}

/* An acquire that is refused, and one that is abandoned, leave nothing behind. */
static void refusal_check_writes_come_back(struct refusal *refusal)
{
    check_int(hl_lock_acquire_for(refusal->free, slow_ms(5000), NULL), 0);
    check_int(hl_lock_release(refusal->free, NULL), 0);
    check(redis_wait_int(refusal->server, 0, 5000, "EXISTS free"));
}

/* The release is not answered, goes on behind, and is done when the server takes writes again. */
static void refusal_check_release_behind(struct refusal *refusal, const char *words)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release(refusal->held, &err);
    expect_released(code, HL_EUNKNOWN);
    if (code != HL_OK)
        fault_check_has(err.text, words);
    check(!hl_lock_is_held(refusal->held, NULL));
    check_int(redis_int(refusal->server, "EXISTS held"), 1);
}

Test(server_refusals, without_replicas_nothing_is_taken_and_a_release_goes_on_behind)
{
    struct refusal r;
    refusal_begin(&r, NULL);
    redis_do(r.server, "CONFIG SET min-replicas-to-write 1");
    refusal_check_acquire(&r, "NOREPLICAS");
    refusal_check_release_behind(&r, "NOREPLICAS");
    redis_do(r.server, "CONFIG SET min-replicas-to-write 0");
    check(redis_wait_int(r.server, 0, 2000, "EXISTS held"));
    refusal_check_writes_come_back(&r);
    refusal_end(&r);
}

Test(server_refusals, without_replicas_a_hold_is_renewed_late_or_lost_in_time)
{
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(900);
    options.request_timeout_ms = slow_ms(100);
    hl_client *client = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check(fault_wait_event(&events, HL_EVENT_JEOPARDY, 5000));
    redis_do(server, "CONFIG SET min-replicas-to-write 0");
    check(fault_wait_event(&events, HL_EVENT_SAFE, 5000));
    check(hl_lock_is_held(lock, NULL));
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(server_refusals, a_server_that_cannot_save_takes_no_writes)
{
    struct refusal r;
    char path[128];
    refusal_begin(&r, NULL);
    snprintf(path, sizeof path, "%s/dump.rdb", redis_server_dir(r.server));
    check_int(mkdir(path, 0700), 0); /* a snapshot cannot be put in its place */
    redis_do(r.server, "CONFIG SET save %s", "3600 1");
    redis_do(r.server, "BGSAVE");
    check(redis_wait_int(r.server, 1, 10000, "EVAL %s 0",
                         "return string.find(redis.call('INFO','persistence'),"
                         "'rdb_last_bgsave_status:err') and 1 or 0"));
    refusal_check_acquire(&r, "MISCONF");
    refusal_check_release_behind(&r, "MISCONF");
    redis_do(r.server, "CONFIG SET stop-writes-on-bgsave-error no");
    check(redis_wait_int(r.server, 0, 2000, "EXISTS held"));
    refusal_check_writes_come_back(&r);
    check_int(rmdir(path), 0);
    refusal_end(&r);
}

Test(server_refusals, a_master_that_becomes_a_replica_is_left_and_waited_for)
{
    struct refusal r;
    struct fault_call call;
    hl_error err = HL_ERROR_INIT;
    refusal_begin(&r, NULL);
    redis_do(r.server, "REPLICAOF 127.0.0.1 1"); /* nobody is there: it keeps its data */
    int64_t roles = redis_calls(r.server, "role");
    check_int(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    fault_check_has(err.text, "READONLY");
    check(fault_wait_event(&r.events, HL_EVENT_DISCONNECTED, 5000));
    fault_check_has(r.events.reason[HL_EVENT_DISCONNECTED], "READONLY");
    check(redis_calls(r.server, "role") > roles);
    check_int(hl_client_ping(r.client, 50, &err), HL_ESERVER);
    fault_check_has(err.text, "not a master");
    fault_call_begin(&call, r.free, fault_owner(r.client), slow_ms(10000));
    check(wait_until(fault_has_waiter, r.client, 5000));
    redis_do(r.server, "REPLICAOF NO ONE");
    check_int(fault_call_end(&call), 0);
    check(fault_wait_event(&r.events, HL_EVENT_CONNECTED, 5000));
    check_int(hl_lock_release_as(r.free, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    refusal_end(&r);
}

/* A replica's answers to what happens not to write may be old: a renewal never takes one for its
 * own success. */
Test(server_refusals, a_replica_renews_nothing)
{
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(900);
    options.request_timeout_ms = slow_ms(100);
    hl_client *client = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "PEXPIRE n 600000"); /* so that no renewal would have to write */
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    uint64_t before = fault_stats(client).renewals;
    check(fault_wait_event(&events, HL_EVENT_LOST, 8000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check_int((int)(fault_stats(client).renewals - before), 0);
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(server_refusals, a_replica_is_refused_by_open_with_its_role)
{
    struct redis_server *server =
        redis_server_start(&(struct redis_options){.config = "replicaof 127.0.0.1 1"});
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    check_int(hl_client_open(redis_server_url(server), &options, &client, &err), HL_ESERVER);
    fault_check_has(err.text, "not a master");
    redis_server_stop(server);
}

Test(server_refusals, a_replica_without_its_master_is_waited_for)
{
    struct refusal r;
    hl_error err = HL_ERROR_INIT;
    refusal_begin(&r, NULL);
    redis_do(r.server, "CONFIG SET replica-serve-stale-data no");
    redis_do(r.server, "REPLICAOF 127.0.0.1 1");
    check_int(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    fault_check_has(err.text, "MASTERDOWN");
    redis_kill_clients(r.server, REDIS_NORMAL); /* and the same words at the door */
    check(fault_wait_event(&r.events, HL_EVENT_DISCONNECTED, 5000));
    check_int(hl_lock_acquire_for(r.free, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check(strstr(err.text, "MASTERDOWN") || strstr(err.text, "not a master"));
    redis_do(r.server, "REPLICAOF NO ONE");
    refusal_check_writes_come_back(&r);
    refusal_end(&r);
}
