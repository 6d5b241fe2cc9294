/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A service behind Sentinel: which sentinels are asked, what they may say, and a failover under
 * holders and waiters. */

#include "support/actor.h"
#include "support/events.h"
#include "support/recorder.h"
#include "support/topologies.h"

#include <string.h>

/* An outage is over when the sentinels have agreed: they get a minute on an idle machine. */
static const hl_client_options *options(struct events *events)
{
    static hl_client_options used;

    used = *CLIENT(.outage_timeout_ms = slow_ms(60000), .on_event = events ? count_event : NULL,
                   .arg = events);
    return &used;
}

static void open_in_vain(const char *url, const hl_client_options *used, int code, const char *says)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(url, used, &client, &err), code);
    check_msg(strstr(err.text, says) != NULL, "%s", err.text);
}

/* A hold and its release at what the client takes for the master. */
static void expect_works(hl_client *client, const char *name)
{
    hl_lock *lock = new_lock(client, name);

    expect_ok(hl_lock_acquire(lock, ERR));
    server = trio_master(trio);
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

TrioLaw(sentinel, names_the_master_to_a_client_that_opens)
{
    expect_works(open_client_at(trio_url(trio), options(NULL)), "stock");
}

TrioLaw(sentinel, may_be_down_at_an_open_but_for_one)
{
    redis_server_kill(trio_sentinel(trio, 0));
    expect_works(open_client_at(trio_url(trio), options(NULL)), "one down");
    redis_server_kill(trio_sentinel(trio, 1));
    expect_works(open_client_at(trio_url(trio), options(NULL)), "two down");
    redis_server_kill(trio_sentinel(trio, 2));
    open_in_vain(trio_url(trio), options(NULL), HL_ECONN, "connection refused");
}

TrioLaw(sentinel, may_be_silent_at_an_open_but_for_one)
{
    redis_server_freeze(trio_sentinel(trio, 0));
    redis_server_freeze(trio_sentinel(trio, 1));
    expect_works(open_client_at(trio_url(trio), options(NULL)), "two silent");
    redis_server_freeze(trio_sentinel(trio, 2));
    open_in_vain(trio_url(trio), options(NULL), HL_ECONN, "no answer");
}

TrioLaw(sentinel, that_knows_no_such_master_is_quoted)
{
    char url[200];

    snprintf(url, sizeof url, "%s2", trio_url(trio));
    open_in_vain(url, options(NULL), HL_ESERVER, "it knows no master 'mymaster2'");
}

static void passwords_up(void)
{
    trio_up_with(&(struct trio_options){.password = "data", .sentinel_password = "watch"});
}

Test(sentinel, has_a_login_of_its_own, .init = passwords_up, .fini = server_down)
{
    const char *url = trio_url_of(trio, 0, 3, "data");

    open_in_vain(url, options(NULL), HL_EDENIED, "give sentinel_password");
    open_in_vain(url, CLIENT(.sentinel_password = "wrong"), HL_EDENIED,
                 "it refused sentinel_username or sentinel_password (WRONGPASS)");
    open_in_vain(trio_url(trio), CLIENT(.sentinel_password = "watch"), HL_EDENIED, "NOAUTH");
    open_in_vain("redis://127.0.0.1", CLIENT(.sentinel_password = "watch"), HL_EINVAL,
                 "sentinel_password needs a URL with redis-sentinel://");
    open_in_vain(url, CLIENT(.sentinel_username = "watch"), HL_EINVAL,
                 "sentinel_username without a sentinel_password");
    expect_works(open_client_at(url, CLIENT(.sentinel_password = "watch")), "by password");
    expect_works(
        open_client_at(url, CLIENT(.sentinel_username = "default", .sentinel_password = "watch")),
        "by user");
}

/* docs/sentinel.md lists them. */
static const char *const watcher_rights[] = {"+sentinel|get-master-addr-by-name",
                                             "+sentinel|master",
                                             "+sentinel|sentinels",
                                             "+sentinel|myid",
                                             "+subscribe",
                                             "+unsubscribe",
                                             "+client|setname",
                                             "&+switch-master",
                                             "&+promoted-slave"};
enum { WATCHER_RIGHTS = sizeof watcher_rights / sizeof watcher_rights[0] };

/* The user `watcher` of a sentinel has all of these rights but one; -1: all. */
static void give_rights(struct redis_server *sentinel, int but)
{
    redis_do(sentinel, "ACL SETUSER watcher reset resetchannels on >word");
    for (int i = 0; i < WATCHER_RIGHTS; i++)
        if (i != but)
            redis_do(sentinel, "ACL SETUSER watcher %s", watcher_rights[i]);
    redis_do(sentinel, "ACL LOG RESET");
}

static const hl_client_options *as_watcher(struct events *events)
{
    static hl_client_options used;

    used = *options(events);
    used.sentinel_username = "watcher";
    used.sentinel_password = "word";
    return &used;
}

static bool is_watched_by_user(void *sentinel)
{
    return strstr(redis_str(sentinel, "CLIENT LIST TYPE pubsub"), "user=watcher") != NULL;
}

TrioLaw(sentinel_rights, of_the_page_are_enough_for_a_failover)
{
    static struct events events;
    struct redis_server *old = trio_master(trio);

    for (int i = 0; i < TRIO_SENTINELS; i++)
        give_rights(trio_sentinel(trio, i), -1);
    hl_client *client = open_client_at(trio_url(trio), as_watcher(&events));
    check(wait_until(is_watched_by_user, trio_sentinel(trio, 0), 10000));
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 60000));
    expect_works(client, "stock");
    for (int i = 0; i < TRIO_SENTINELS; i++)
        check_str(redis_str(trio_sentinel(trio, i), "ACL LOG"), "");
}

static bool has_refused(void *sentinel)
{
    return strstr(redis_str(sentinel, "ACL LOG"), "watcher") != NULL;
}

/* Without any one of them something is refused; the client can do without all but the first. */
TrioLaw(sentinel_rights, of_the_page_are_all_used)
{
    struct redis_server *sentinel = trio_sentinel(trio, 0);

    for (int i = 0; i < WATCHER_RIGHTS; i++) {
        give_rights(sentinel, i);
        if (strcmp(watcher_rights[i], "+unsubscribe") == 0)
            continue; /* after 10 seconds, or with a message */
        if (i == 0) {
            open_in_vain(trio_url_of(trio, 0, 1, NULL), as_watcher(NULL), HL_EDENIED, "NOPERM");
            continue;
        }
        hl_client *client = open_client_at(trio_url_of(trio, 0, 1, NULL), as_watcher(NULL));
        check_msg(wait_until(has_refused, sentinel, 5000), "without %s", watcher_rights[i]);
        expect_works(client, "stock");
        close_client(client);
    }
}

static bool has_no_client_of_ours(void *node)
{
    return !strstr(redis_str(node, "CLIENT LIST"), "name=hirelock");
}

/* Two clients: one holds, one waits. The master fails over by `fail`; then the waiter gets it. */
static void expect_failover(struct redis_server *(*fail)(struct redis_server *master))
{
    static struct events events, others;
    hl_client *holder = open_client_at(trio_url(trio), options(&events));
    hl_client *waiter = open_client_at(trio_url(trio), options(&others));
    hl_lock *held = new_lock(holder, "stock"), *wanted = new_lock(waiter, "stock");

    expect_ok(hl_lock_acquire(held, ERR));
    struct actor *actor = actor_start_acquire(wanted, ACQUIRE(.wait_ms = -1));
    expect_waiters(waiter, 1);
    check(redis_wait_replicas(trio_master(trio), 1, 30000));
    server = fail(trio_master(trio));
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    check(events_wait(&others, HL_EVENT_CONNECTED, 1, 60000));
    check_int(events_told(&events, HL_EVENT_MASTER_CHANGED), 1);
    check_has(events.reason[HL_EVENT_MASTER_CHANGED], "names it");
    check(wait_until(is_renewed_or_lost, holder, 60000));
    expect_held_or_lost(holder, held, &events);
    expect_ok(actor_end(actor));
    expect_held_by(waiter, wanted, 1);
    expect_ok(actor_release(actor, wanted, NULL));
    expect_free(wanted);
}

static struct redis_server *fail_by_kill(struct redis_server *master)
{
    redis_server_kill(master);
    return trio_await_switch(trio, master);
}

TrioLaw(sentinel_failover, of_a_killed_master_lets_holders_and_waiters_go_on)
{
    expect_failover(fail_by_kill);
}

static struct redis_server *fail_by_command(struct redis_server *master)
{
    trio_start_failover(trio);
    return trio_await_switch(trio, master);
}

TrioLaw(sentinel_failover, on_command_leaves_the_old_master_at_once)
{
    struct redis_server *old = trio_master(trio);

    expect_failover(fail_by_command);
    check(wait_until(has_no_client_of_ours, old, 10000));
    trio_await_whole(trio);
    check(has_no_client_of_ours(old));
}

static struct redis_server *fail_by_silence(struct redis_server *master)
{
    redis_server_freeze(master);
    return trio_await_switch(trio, master);
}

TrioLaw(sentinel_failover, of_a_silent_master_needs_no_answer_of_it)
{
    struct redis_server *old = trio_master(trio);

    expect_failover(fail_by_silence);
    redis_server_thaw(old);
    trio_await_whole(trio);
    check(wait_until(has_no_client_of_ours, old, 10000));
}

TrioLaw(sentinel_failover, of_a_master_whose_replica_never_had_the_lock_is_a_loss)
{
    static struct events events;
    hl_client_options patient = *options(&events);
    patient.watchdog_timeout_ms = slow_ms(30000); /* it outlives the failover */
    hl_client *client = open_client_at(trio_url(trio), &patient);
    hl_lock *lock = new_lock(client, "stock");
    struct redis_server *old = trio_master(trio), *replica = trio_replica(trio);

    redis_server_freeze(replica);
    redis_do(old, "CLIENT KILL TYPE replica"); /* or it would find the lock in its socket later */
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_kill(old);
    redis_server_thaw(replica);
    server = trio_await_switch(trio, old);
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    expect_works(client, "stock");
}

/* The lines of the log, and the events, each in order. */
TrioLaw(sentinel_failover, is_told_in_order)
{
    static struct recorder lines = RECORDER_INIT, story = RECORDER_INIT;
    hl_client *client = open_client_at(
        trio_url(trio), CLIENT(.outage_timeout_ms = slow_ms(60000), .on_log = record_log,
                               .log_level = HL_LOG_WARN, .arg = &lines));
    open_client_at(trio_url(trio), CLIENT(.on_event = record_event, .arg = &story));
    struct redis_server *old = trio_master(trio);
    char told[128];

    redis_server_kill(old);
    server = trio_await_switch(trio, old);
    snprintf(told, sizeof told,
             "DISCONNECTED, MASTER_CHANGED from 127.0.0.1:%d to 127.0.0.1:%d, CONNECTED",
             redis_server_port(old), redis_server_port(server));
    expect_story(&story, told);
    expect_ok(hl_client_ping(client, -1, ERR));
    check(recorder_wait_says(&lines, "connected again to"));
    static const char *const order[] = {"connection lost", "another master of 'mymaster'",
                                        "the master is", "connected again to"};
    const char *at = lines.text;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const char *next = strstr(at, order[i]);
        check_msg(next != NULL, "no '%s' behind it: %s", order[i], at);
        at = next;
    }
    snprintf(told, sizeof told, "the master is 127.0.0.1:%d, no longer 127.0.0.1:%d",
             redis_server_port(server), redis_server_port(old));
    check(recorder_says(&lines, told));
}

TrioLaw(sentinel_stale, is_not_believed_at_an_open)
{
    struct redis_server *old = trio_master(trio);

    trio_begin_stale(trio, 0);
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    trio_await_whole(trio);
    redis_server_thaw(trio_sentinel(trio, 0));
    check(trio_named_by(trio, 0) == old);
    expect_works(open_client_at(trio_url(trio), options(NULL)), "stock");
    trio_end_stale(trio, 0);
}

TrioLaw(sentinel_stale, does_not_move_a_client_that_knows_better)
{
    static struct recorder story = RECORDER_INIT;
    struct redis_server *old = trio_master(trio);

    trio_begin_stale(trio, 0);
    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    trio_await_whole(trio);
    hl_client *client = open_client_at(trio_url_of(trio, 1, 3, NULL),
                                       CLIENT(.on_event = record_event, .on_log = record_log,
                                              .log_level = HL_LOG_INFO, .arg = &story));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_thaw(trio_sentinel(trio, 0));
    redis_server_kill(trio_sentinel(trio, 1));
    redis_server_kill(trio_sentinel(trio, 2)); /* only the stale one is left to be watched */
    check(recorder_wait_says(&story, "it has not heard of the last failover yet"));
    expect_ok(hl_client_ping(client, -1, ERR));
    check(hl_lock_is_held(lock, NULL));
    check(!recorder_says(&story, "DISCONNECTED"));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    trio_restart_sentinel(trio, 1);
    trio_restart_sentinel(trio, 2);
    trio_end_stale(trio, 0);
}

TrioLaw(sentinel_list, is_learned_so_that_all_of_the_url_may_be_replaced)
{
    static struct events events;
    hl_client *client = open_client_at(trio_url(trio), options(&events));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < TRIO_SENTINELS; i++) {
        struct redis_server *old = trio_master(trio);
        int changes = events_told(&events, HL_EVENT_MASTER_CHANGED);
        trio_replace_sentinel(trio, i);
        trio_start_failover(trio);
        server = trio_await_switch(trio, old);
        check(events_wait(&events, HL_EVENT_MASTER_CHANGED, changes + 1, 60000));
        trio_await_whole(trio);
    }
    expect_ok(hl_client_ping(client, -1, ERR));
    expect_held_or_lost(client, lock, &events);
    expect_works(client, "after");
}

TrioLaw(sentinel_end, of_a_client_that_never_found_the_master_does_not_wait)
{
    hl_client *client = NULL;

    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_server_freeze(trio_sentinel(trio, i));
    expect_ok(hl_client_open(trio_url(trio),
                             CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = 600000), &client,
                             ERR));
    expect_outcome(hl_client_ping(client, 100, ERR), HL_ECONN); /* not connected yet */
    expect_ok(hl_client_close(client));                         /* not after ten minutes */
}
