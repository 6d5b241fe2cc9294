/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Servers that deny: changed passwords, commands denied outside and inside of scripts, and the
 * least rights that a user of locks needs. */

#include "acl_kit.h"
#include "redis/script.h"
#include "support/grace.h"
#include "support/replicas.h"

/* The least that locks with names app:* need on this version. */
#define LEAST_COMMANDS                                                                             \
    "-@all +evalsha +script|load +hget +hset +hincrby +hrandfield +pexpire +pttl +del "            \
    "+time +zadd +zpopmin +zcard +zrem +publish +subscribe +unsubscribe +pubsub|numsub"
#define LEAST_KEYS                                                                                 \
    "resetkeys ~app:* ~hirelock_queue:{app:*} "                                                    \
    "resetchannels &redisson_lock__channel:{app:*} &hirelock:*"

enum { POLL_MS = 200 };

static void start(void)
{
    acl_up("user locker on >pw " LEAST_KEYS " " LEAST_COMMANDS);
}

#define AclTest(name) Test(server_acl, name, .init = start, .fini = server_down)

static hl_client *acl_client(struct events *events, int64_t watchdog_ms)
{
    hl_client_options options = acl_options(events);
    options.poll_ms = slow_ms(POLL_MS);
    if (watchdog_ms > 0)
        options.watchdog_timeout_ms = slow_ms(watchdog_ms);
    return open_client(&options);
}

AclTest(the_least_that_is_needed_is_enough)
{
    static struct events events;
    hl_client *client = acl_client(&events, 3000), *other = acl_client(NULL, 3000);
    hl_lock *lock = new_lock(client, "app:n"), *others = new_lock(other, "app:n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_try_acquire(others, NULL), HL_EBUSY);
    expect_ok(hl_lock_inspect(others, &info, NULL));
    check(info.locked && !info.mine);
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    expect_ok(hl_lock_release(lock, NULL));
    struct deadline deadline = deadline_in(3500); /* longer than the lease: it is renewed */
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(call));
    check_int((int)stats_of(other).grants, 1);
    acl_check_log(NULL);
    expect_ok(hl_lock_force_release(others, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_outcome(actor_release(call, others, NULL), HL_ELOST); /* known, posted or not */
    check_int(redis_int(server, "DBSIZE"), 0);
    free_lock(lock);
    free_lock(others);
    close_client(client);
    close_client(other);
}

static void acl_check_many_fields(hl_lock *lock)
{
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "no lock but a hash of more than 64 fields");
    check_int(redis_int(server, "HLEN app:many"), 65);
}

/* A Redis before 6.2 has no HRANDFIELD. */
AclTest(a_hash_of_many_fields_is_no_lock_and_hgetall_and_hlen_are_enough_to_see_it)
{
    hl_client *client = acl_client(NULL, 0), *other = acl_client(NULL, 0);
    hl_lock *many = new_lock(client, "app:many");
    hl_lock *lock = new_lock(client, "app:n"), *others = new_lock(other, "app:n");
    for (int i = 0; i < 65; i++)
        redis_do(server, "HSET app:many client:%d 1", i);
    acl_check_many_fields(many);
    acl_check_log(NULL);
    redis_do(server, "ACL SETUSER locker -hrandfield +hgetall +hlen");
    acl_check_many_fields(many);
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_try_acquire(others, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(lock, NULL));
    free_lock(many);
    free_lock(lock);
    free_lock(others);
    close_client(client);
    close_client(other);
}

/* What failover_grace_ms needs beside, for a lock. */
#define GRACE_COMMANDS "~hirelock_term* +info +eval +get +set +persist +hdel +hkeys"

static hl_client_options acl_graceful(void)
{
    hl_client_options options = acl_options(NULL);
    options.poll_ms = slow_ms(POLL_MS);
    options.watchdog_timeout_ms = options.failover_grace_ms = slow_ms(5000);
    options.outage_timeout_ms = slow_ms(30000);
    return options;
}

/* The data set knows another holder, whom the reclaim removes. */
static void acl_fail_over(void)
{
    redis_do(server, "FLUSHALL");
    redis_do(server, "HSET app:n stranger:1 1");
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    redis_do(server, "REPLICAOF NO ONE");
    redis_kill_clients(server, REDIS_NORMAL);
}

AclTest(the_least_that_a_grace_needs_is_enough)
{
    const hl_client_options options = acl_graceful();
    redis_do(server, "ACL SETUSER locker " GRACE_COMMANDS);
    grace_serve(server, false);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "app:n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "ACL LOG RESET");
    acl_fail_over();
    wait_stat(client, reclaims, 1);
    check(hl_lock_is_held(lock, NULL));
    check_int(redis_int(server, "HLEN app:n"), 1);
    expect_ok(hl_lock_release(lock, NULL));
    acl_check_log(NULL);
    free_lock(lock);
    close_client(client);
}

/* Nobody acquires without knowing the term, and the error says for what it is asked. */
AclTest(a_term_that_may_not_be_asked_for_lets_no_client_open)
{
    static const char *const denials[] = {"resetkeys ~app:*", "-info", "-eval", "-get", "-set",
                                          "-persist"};
    const hl_client_options options = acl_graceful();
    for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++) {
        hl_error err = HL_ERROR_INIT;
        hl_client *client = NULL;
        redis_do(server, "ACL SETUSER locker " GRACE_COMMANDS);
        char denial[64];
        snprintf(denial, sizeof denial, "ACL SETUSER locker %s", denials[i]);
        redis_do(server, denial);
        redis_do(server, "FLUSHALL");
        int code = hl_client_open(redis_server_url(server), &options, &client, &err);
        check_msg(code == HL_EDENIED, "without %s: %s", denials[i], err.text);
        check_has(err.text, "failover_grace_ms: the server's term: ");
    }
}

AclTest(a_name_outside_of_the_granted_ones_is_denied_at_once)
{
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = new_lock(client, "other:n");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, NULL), HL_EDENIED);
    free_lock(lock);
    close_client(client);
}

AclTest(a_wrong_password_is_refused_by_open_and_not_told)
{
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    options.username = "locker";
    options.password = "an0ther-secret";
    options.outage_timeout_ms = slow_ms(20000);
    expect_outcome(hl_client_open(redis_server_url(server), &options, &client, &err), HL_EDENIED);
    check_has(err.text, "WRONGPASS");
    check(strstr(err.text, "an0ther-secret") == NULL);
}

/* Commands that are denied on a live connection: denied at once, and asked for once. */
AclTest(a_script_call_that_is_denied_ends_the_call_at_once)
{
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = new_lock(client, "app:n"), *held = new_lock(client, "app:held");
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(held, NULL));
    redis_do(server, "ACL SETUSER locker -evalsha");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
    check_has(err.text, "evalsha");
    expect_outcome(hl_lock_inspect(lock, &info, &err), HL_EDENIED);
    expect_outcome(hl_lock_force_release(lock, &err), HL_EDENIED);
    expect_released(hl_lock_release(held, &err), HL_EDENIED);
    check(!hl_lock_is_held(held, NULL));
    check_int(redis_int(server, "EXISTS app:held"), 1); /* it ends with its lease */
    free_lock(lock);
    free_lock(held);
    close_client(client);
}

AclTest(a_renewal_that_is_denied_is_tried_until_the_hold_is_lost_in_time)
{
    static struct events events;
    hl_client *client = acl_client(&events, 3600);
    hl_lock *lock = new_lock(client, "app:n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "ACL SETUSER locker -pexpire");
    check(events_wait(&events, HL_EVENT_JEOPARDY, 1, 5000));
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    expect_outcome(hl_lock_release(lock, NULL), HL_ELOST);
    free_lock(lock);
    close_client(client);
}

static bool acl_has_renewed_twice(void *client)
{
    return stats_of(client).renewals >= 2;
}

/* Both are renewed by one request, which the server refuses as a whole. */
AclTest(a_name_that_is_not_granted_any_more_takes_no_other_hold_with_it)
{
    static struct events events;
    hl_client *client = acl_client(&events, 3000);
    hl_lock *kept = new_lock(client, "app:kept"), *refused = new_lock(client, "app:refused");
    expect_ok(hl_lock_acquire(kept, NULL));
    expect_ok(hl_lock_acquire(refused, NULL));
    redis_do(server, "ACL SETUSER locker resetkeys ~app:kept ~hirelock_queue:{app:*}");
    check(events_wait(&events, HL_EVENT_LOST, 1, 10000));
    check(wait_until(acl_has_renewed_twice, client, 10000));
    check(hl_lock_is_held(kept, NULL));
    check(!hl_lock_is_held(refused, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 1);
    expect_ok(hl_lock_release(kept, NULL));
    expect_outcome(hl_lock_release(refused, NULL), HL_ELOST);
    free_lock(kept);
    free_lock(refused);
    close_client(client);
}

static void acl_ping_done(int code, const hl_error *err, void *arg)
{
    check(!err);
    atomic_store((_Atomic int *)arg, code + 1);
}

static bool acl_ping_is_over(void *arg)
{
    return atomic_load((_Atomic int *)arg) != 0;
}

AclTest(a_ping_that_is_refused_is_a_sign_of_life)
{
    hl_client *client = acl_client(NULL, 0);
    hl_error err = HL_ERROR_INIT;
    _Atomic int done = 0;
    check_msg(hl_client_ping(client, -1, &err) == 0, "%s", err.text);
    expect_outcome(hl_client_ping_async(client, -1, NULL, NULL), HL_EINVAL);
    expect_outcome(hl_client_ping_async(client, -2, acl_ping_done, &done), HL_EINVAL);
    expect_ok(hl_client_ping_async(client, -1, acl_ping_done, &done));
    check(wait_until(acl_ping_is_over, &done, 10000));
    check_int(atomic_load(&done), 1);
    close_client(client);
}

AclTest(a_change_of_password_is_met_at_the_next_connection)
{
    static struct events events;
    hl_client *client = acl_client(&events, 900);
    hl_lock *lock = new_lock(client, "app:n"), *held = new_lock(client, "app:held");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(held, NULL));
    redis_do(server, "HSET app:n stranger:1 1");
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    redis_do(server, "ACL SETUSER locker resetpass >new");
    redis_kill_clients(server, REDIS_NORMAL);
    expect_outcome(actor_end(call), HL_EDENIED);
    check_has(actor_error(call), "WRONGPASS");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
    expect_outcome(hl_client_ping(client, slow_ms(5000), &err), HL_EDENIED);
    redis_do(server, "DEL app:n");
    redis_do(server, "ACL SETUSER locker >pw");
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 5000));
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), &err));
    free_lock(lock);
    free_lock(held);
    close_client(client);
}

AclTest(a_server_that_begins_to_want_a_password_denies)
{
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_lock *lock = new_lock(client, "app:n");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "CONFIG SET requirepass secret");
    expect_ok(hl_lock_release(lock, NULL)); /* who is in stays in */
    expect_gone(server, "app:n");
    redis_kill_clients(server, REDIS_NORMAL);
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
    check_has(err.text, "NOAUTH");
    free_lock(lock);
    close_client(client);
}

/* Whatever the scripts may not do: no key without an expiry, no holder by mistake. */
AclTest(no_denied_command_inside_an_acquire_leaves_a_key_that_stays)
{
    static const char *const commands[] = {"pttl", "hset", "pexpire"};
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = new_lock(client, "app:n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        hl_error err = HL_ERROR_INIT;
        redis_do(server, "ACL SETUSER locker -%s", commands[i]);
        expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
        check(!hl_lock_is_held(lock, NULL));
        check_msg(redis_int(server, "EXISTS app:n") == 0, "without %s a key is left", commands[i]);
        redis_do(server, "ACL SETUSER locker +%s", commands[i]);
    }
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    free_lock(lock);
    close_client(client);
}

/* Raw, for a client would clean up behind the script, and one that was killed would not. */
AclTest(an_acquire_without_pexpire_takes_its_own_key_back)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    redis_do(server, "ACL SETUSER hltest -pexpire");
    const char *said =
        redis_str(server, "EVALSHA %s 1 app:n u:1 5000 1 q 1000 hirelock:", script->sha1);
    check(strstr(said, "can't run this command") || strstr(said, "no permissions"));
    check_int(redis_int(server, "EXISTS app:n"), 0);
}

AclTest(a_denied_delete_is_a_denied_release_and_the_key_ends_with_its_lease)
{
    hl_client *client = acl_client(NULL, 3000);
    hl_lock *lock = new_lock(client, "app:n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "ACL SETUSER locker -del");
    expect_released(hl_lock_release(lock, NULL), HL_EDENIED);
    check(!hl_lock_is_held(lock, NULL));
    check(redis_int(server, "PTTL app:n") > 0);
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    free_lock(lock);
    close_client(client);
}

/* "-time": a command; or other rules of ACL SETUSER. */
static void acl_deny(const char *denial)
{
    char rules[64];
    snprintf(rules, sizeof rules, "ACL SETUSER locker %s", denial);
    if (denial[0] == '-')
        redis_deny(server, "locker", denial + 1);
    else
        redis_do(server, rules);
}

/* From one client to another, without a grant. */
static void acl_hand_over(const char *denial, hl_client *client, hl_client *other)
{
    hl_lock *lock = new_lock(client, "app:n"), *others = new_lock(other, "app:n");
    acl_deny(denial);
    expect_ok(hl_lock_acquire(lock, NULL));
    struct actor *call = actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(other, 1);
    if (strstr(denial, "resetchannels") == NULL)
        check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    int64_t released_ns = now_ns();
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(call));
    check(actor_ended_ns(call) - released_ns < slow_ms(5000) * 1000000); /* no lease is over */
    check_int((int)stats_of(other).grants, 0);
    expect_ok(actor_release(call, others, NULL));
    expect_gone(server, "app:n");
    free_lock(lock);
    free_lock(others);
    close_client(client);
    close_client(other);
}

/* Waiters that no client may wake poll. */
static void acl_hand_over_by_poll(const char *denial)
{
    acl_hand_over(denial, acl_client(NULL, 0), acl_client(NULL, 0));
}

AclTest(a_denied_publish_is_no_failure_of_the_release)
{
    acl_hand_over_by_poll("-publish");
}

AclTest(a_denied_channel_is_no_failure_of_release_or_wait)
{
    acl_hand_over_by_poll("resetchannels");
}

/* Whatever the queue lives of is denied: then there is none, and releases are told to all who wait.
 */
static void acl_hand_over_by_message(const char *denial)
{
    hl_client_options patient = acl_options(NULL);
    patient.poll_ms = 60000;
    acl_hand_over(denial, acl_client(NULL, 0), open_client(&patient));
}

AclTest(without_the_queues_key_releases_are_plain)
{
    acl_hand_over_by_message("resetkeys ~app:*");
}

AclTest(without_numsub_releases_are_plain)
{
    acl_hand_over_by_message("-pubsub|numsub");
}

AclTest(without_a_clock_releases_are_plain)
{
    acl_hand_over_by_message("-time");
}

AclTest(without_a_command_of_the_queue_releases_are_plain)
{
    static const char *const commands[] = {"-zadd", "-zcard", "-zpopmin"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        acl_hand_over_by_message(commands[i]);
        redis_do(server, "ACL SETUSER locker +%s", commands[i] + 1);
    }
}

/* Its place in the queue stays, and is granted the lock, which it gives back. */
AclTest(a_wait_that_may_not_leave_the_queue_gives_back_what_it_is_granted)
{
    hl_client *client = acl_client(NULL, 0), *other = acl_client(NULL, 0);
    hl_lock *lock = new_lock(client, "app:n"), *others = new_lock(other, "app:n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "ACL SETUSER locker -zrem");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_acquire_for(others, 50, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_inspect(others, &info, NULL)); /* behind the request to leave */
    check_int(redis_int(server, "ZCARD hirelock_queue:{app:n}"), 1);
    expect_ok(hl_lock_release(lock, NULL));
    check(redis_wait_int(server, 0, 5000, "ZCARD hirelock_queue:{app:n}"));
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    check_int((int)stats_of(other).grants, 0);
    free_lock(lock);
    free_lock(others);
    close_client(client);
    close_client(other);
}

static void start_with_replica(void)
{
    server_up_with(&(struct redis_options){
        .tcp = true, .plain = true, .config = "user locker on >pw " LEAST_KEYS " " LEAST_COMMANDS});
    replicas_add();
}

static hl_client *acl_client_with_replicas(void)
{
    hl_client_options options = acl_options(NULL);
    options.min_replicas = 1;
    options.replicas_timeout_ms = slow_ms(1000);
    options.request_timeout_ms = slow_ms(4000);
    return open_client(&options);
}

/* docs/replicas.md names it. */
Test(server_acl, wait_is_all_that_replicas_need, .init = start_with_replica, .fini = server_down)
{
    hl_client *client = acl_client_with_replicas();
    hl_lock *lock = new_lock(client, "app:n");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(lock, &err), HL_EDENIED);
    check_has(err.text, "WAIT: NOPERM");
    check(redis_wait_int(server, 0, 20000, "EXISTS app:n"));
    redis_do(server, "ACL SETUSER locker +wait");
    redis_do(server, "ACL LOG RESET");
    hl_client *other = acl_client_with_replicas();
    hl_lock *others = new_lock(other, "app:n");
    expect_ok(hl_lock_acquire(lock, ERR));
    check(replica_has(0, "app:n"));
    expect_outcome(hl_lock_try_acquire(others, ERR), HL_EBUSY);
    expect_ok(hl_lock_release(lock, ERR));
    acl_check_log(NULL);
}
