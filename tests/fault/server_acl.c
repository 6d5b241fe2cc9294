/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What the server forbids: passwords that changed, commands denied outside and inside of the
 * scripts, and the least that a user of locks needs. */

#include "acl_kit.h"

/* The least that locks with names app:* need on this version. */
#define LEAST_COMMANDS                                                                             \
    "-@all +evalsha +script|load +hget +hset +hincrby +hgetall +pexpire +pttl +del "               \
    "+time +zadd +zpopmin +zcard +zrem +publish +subscribe +unsubscribe +pubsub|numsub"
#define LEAST_KEYS                                                                                 \
    "resetkeys ~app:* ~hirelock_queue:{app:*} "                                                    \
    "resetchannels &redisson_lock__channel:{app:*} &hirelock:*"

enum { POLL_MS = 200 };

static void start(void)
{
    acl_up("user locker on >pw " LEAST_KEYS " " LEAST_COMMANDS);
}

#define AclTest(name) Test(server_acl, name, .init = start, .fini = acl_down)

static hl_client *acl_client(struct fault_events *events, int64_t watchdog_ms)
{
    hl_client_options options = acl_options(events);
    options.poll_ms = POLL_MS;
    if (watchdog_ms > 0)
        options.watchdog_timeout_ms = slow_ms(watchdog_ms);
    return fault_open(redis_server_url(server), &options);
}

AclTest(the_least_that_is_needed_is_enough)
{
    struct fault_events events = {0};
    hl_client *client = acl_client(&events, 900), *other = acl_client(NULL, 900);
    hl_lock *lock = fault_lock(client, "app:n"), *others = fault_lock(other, "app:n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    struct fault_call call;
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_try_acquire(others, NULL), HL_EBUSY);
    check_int(hl_lock_inspect(others, &info, NULL), 0);
    check(info.locked && !info.mine);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    check_int(hl_lock_release(lock, NULL), 0);
    struct deadline deadline = deadline_in(1500); /* longer than the lease: it is renewed */
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(fault_call_end(&call), 0);
    check_int((int)fault_stats(other).grants, 1);
    acl_check_log(NULL);
    check_int(hl_lock_force_release(others, NULL), 0);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 0);
    expect_released(hl_lock_release_as(others, call.options.owner, NULL), HL_ELOST);
    check_int(redis_int(server, "DBSIZE"), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
}

AclTest(a_name_outside_of_the_granted_ones_is_denied_at_once)
{
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = fault_lock(client, "other:n");
    check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, NULL), HL_EDENIED);
    hl_lock_free(lock);
    hl_client_close(client);
}

AclTest(a_wrong_password_is_refused_by_open_and_not_told)
{
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    options.username = "locker";
    options.password = "an0ther-secret";
    options.outage_timeout_ms = slow_ms(20000);
    check_int(hl_client_open(redis_server_url(server), &options, &client, &err), HL_EDENIED);
    fault_check_has(err.text, "WRONGPASS");
    check(strstr(err.text, "an0ther-secret") == NULL);
}

/* Commands that are denied on a live connection: denied at once, and asked for once. */
AclTest(a_script_call_that_is_denied_ends_the_call_at_once)
{
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = fault_lock(client, "app:n"), *held = fault_lock(client, "app:held");
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    check_int(hl_lock_acquire(held, NULL), 0);
    redis_do(server, "ACL SETUSER locker -evalsha");
    check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
    fault_check_has(err.text, "evalsha");
    check_int(hl_lock_inspect(lock, &info, &err), HL_EDENIED);
    check_int(hl_lock_force_release(lock, &err), HL_EDENIED);
    expect_released(hl_lock_release(held, &err), HL_EDENIED);
    check(!hl_lock_is_held(held, NULL));
    check_int(redis_int(server, "EXISTS app:held"), 1); /* it ends with its lease */
    hl_lock_free(lock);
    hl_lock_free(held);
    hl_client_close(client);
}

AclTest(a_renewal_that_is_denied_is_tried_until_the_hold_is_lost_in_time)
{
    struct fault_events events = {0};
    hl_client *client = acl_client(&events, 900);
    hl_lock *lock = fault_lock(client, "app:n");
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "ACL SETUSER locker -pexpire");
    check(fault_wait_event(&events, HL_EVENT_JEOPARDY, 5000));
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    check_int(hl_lock_release(lock, NULL), HL_ELOST);
    hl_lock_free(lock);
    hl_client_close(client);
}

AclTest(a_change_of_password_is_met_at_the_next_connection)
{
    struct fault_events events = {0};
    hl_client *client = acl_client(&events, 900);
    hl_lock *lock = fault_lock(client, "app:n"), *held = fault_lock(client, "app:held");
    hl_error err = HL_ERROR_INIT;
    struct fault_call call;
    check_int(hl_lock_acquire(held, NULL), 0);
    redis_do(server, "HSET app:n stranger 1");
    fault_call_begin(&call, lock, fault_owner(client), HL_WAIT_FOREVER);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    redis_do(server, "ACL SETUSER locker resetpass >new");
    redis_kill_clients(server, REDIS_NORMAL);
    check_int(fault_call_end(&call), HL_EDENIED);
    fault_check_has(call.err.text, "WRONGPASS");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_int(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
    check_int(hl_client_ping(client, slow_ms(5000), &err), HL_EDENIED);
    redis_do(server, "DEL app:n");
    redis_do(server, "ACL SETUSER locker >pw");
    check(fault_wait_event(&events, HL_EVENT_CONNECTED, 5000));
    check_int(hl_lock_acquire_for(lock, slow_ms(5000), &err), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(lock);
    hl_lock_free(held);
    hl_client_close(client);
}

AclTest(a_server_that_begins_to_want_a_password_denies)
{
    struct fault_events events = {0};
    hl_client *client = fault_client(server, &events);
    hl_lock *lock = fault_lock(client, "app:n");
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "CONFIG SET requirepass secret");
    check_int(hl_lock_release(lock, NULL), 0); /* who is in stays in */
    expect_gone(server, "app:n");
    redis_kill_clients(server, REDIS_NORMAL);
    check(fault_wait_event(&events, HL_EVENT_DISCONNECTED, 5000));
    check_int(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
    fault_check_has(err.text, "NOAUTH");
    hl_lock_free(lock);
    hl_client_close(client);
}

/* Whatever the scripts may not do: no key without an expiry, nobody inside by mistake. */
AclTest(no_denied_command_inside_an_acquire_leaves_a_key_that_stays)
{
    static const char *const commands[] = {"hgetall", "hset", "pexpire"};
    hl_client *client = acl_client(NULL, 0);
    hl_lock *lock = fault_lock(client, "app:n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        hl_error err = HL_ERROR_INIT;
        redis_do(server, "ACL SETUSER locker -%s", commands[i]);
        check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
        check(!hl_lock_is_held(lock, NULL));
        check_msg(redis_int(server, "EXISTS app:n") == 0, "without %s a key is left", commands[i]);
        redis_do(server, "ACL SETUSER locker +%s", commands[i]);
    }
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_release(lock, NULL), 0);
    hl_lock_free(lock);
    hl_client_close(client);
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
    hl_client *client = acl_client(NULL, 900);
    hl_lock *lock = fault_lock(client, "app:n");
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "ACL SETUSER locker -del");
    expect_released(hl_lock_release(lock, NULL), HL_EDENIED);
    check(!hl_lock_is_held(lock, NULL));
    check(redis_int(server, "PTTL app:n") > 0);
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    hl_lock_free(lock);
    hl_client_close(client);
}

/* From one client to another, without a grant. */
static void acl_hand_over(const char *denial, hl_client *client, hl_client *other)
{
    hl_lock *lock = fault_lock(client, "app:n"), *others = fault_lock(other, "app:n");
    struct fault_call call;
    redis_do(server, denial);
    check_int(hl_lock_acquire(lock, NULL), 0);
    fault_call_begin(&call, others, fault_owner(other), HL_WAIT_FOREVER);
    check(wait_until(fault_has_waiter, other, 5000));
    if (strstr(denial, "resetchannels") == NULL)
        check(redis_wait_subscribers(server, "redisson_lock__channel:{app:n}", 1, 5000));
    int64_t released_ns = now_ns();
    check_int(hl_lock_release(lock, NULL), 0);
    check_int(fault_call_end(&call), 0);
    check(call.returned_ns - released_ns < slow_ms(POLL_MS * 13 / 10 + 500) * 1000000);
    check_int((int)fault_stats(other).grants, 0);
    check_int(hl_lock_release_as(others, call.options.owner, NULL), 0);
    expect_gone(server, "app:n");
    hl_owner_free(call.options.owner);
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
}

/* Waiters that nobody may wake poll. */
static void acl_hand_over_by_poll(const char *denial)
{
    acl_hand_over(denial, acl_client(NULL, 0), acl_client(NULL, 0));
}

AclTest(a_denied_publish_is_no_failure_of_the_release)
{
    acl_hand_over_by_poll("ACL SETUSER locker -publish");
}

AclTest(a_denied_channel_is_no_failure_of_release_or_wait)
{
    acl_hand_over_by_poll("ACL SETUSER locker resetchannels");
}

/* Whatever the queue lives of is denied: then there is none, and releases are told to all who wait.
 */
static void acl_hand_over_by_message(const char *denial)
{
    hl_client_options patient = acl_options(NULL);
    patient.poll_ms = 60000;
    acl_hand_over(denial, acl_client(NULL, 0), fault_open(redis_server_url(server), &patient));
}

AclTest(without_the_queues_key_releases_are_plain)
{
    acl_hand_over_by_message("ACL SETUSER locker resetkeys ~app:*");
}

AclTest(without_numsub_releases_are_plain)
{
    acl_hand_over_by_message("ACL SETUSER locker -pubsub|numsub");
}

AclTest(without_a_clock_releases_are_plain)
{
    acl_hand_over_by_message("ACL SETUSER locker -time");
}

AclTest(without_a_command_of_the_queue_releases_are_plain)
{
    static const char *const commands[] = {"zadd", "zcard", "zpopmin"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char denial[64];
        snprintf(denial, sizeof denial, "ACL SETUSER locker -%s", commands[i]);
        acl_hand_over_by_message(denial);
        redis_do(server, "ACL SETUSER locker +%s", commands[i]);
    }
}

/* Its place in the queue stays, and is granted the lock, which it gives back. */
AclTest(a_wait_that_may_not_leave_the_queue_gives_back_what_it_is_granted)
{
    hl_client *client = acl_client(NULL, 0), *other = acl_client(NULL, 0);
    hl_lock *lock = fault_lock(client, "app:n"), *others = fault_lock(other, "app:n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    redis_do(server, "ACL SETUSER locker -zrem");
    check_int(hl_lock_acquire(lock, NULL), 0);
    check_int(hl_lock_acquire_for(others, 50, NULL), HL_ETIMEDOUT);
    check_int(hl_lock_inspect(others, &info, NULL), 0); /* behind the request to leave */
    check_int(redis_int(server, "ZCARD hirelock_queue:{app:n}"), 1);
    check_int(hl_lock_release(lock, NULL), 0);
    check(redis_wait_int(server, 0, 5000, "ZCARD hirelock_queue:{app:n}"));
    check(redis_wait_int(server, 0, 5000, "EXISTS app:n"));
    check_int((int)fault_stats(other).grants, 0);
    hl_lock_free(lock);
    hl_lock_free(others);
    hl_client_close(client);
    hl_client_close(other);
}
