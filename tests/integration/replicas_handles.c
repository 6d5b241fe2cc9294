/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* min_replicas of several handles, nested acquires and new leases; and servers that are away or
 * tell no number. */

#include "replicas_kit.h"

static hl_lock *new_kept(hl_client *client, const char *name, int min_replicas)
{
    return new_lock_with(client, name,
                         &(hl_lock_options){.size = sizeof(hl_lock_options),
                                            .flags = HL_LOCK_KEEP_UNCONFIRMED,
                                            .min_replicas = min_replicas});
}

ReplicaLaw(replicas_handles, of_a_majority_do_not_pass_for_a_greater_number)
{
    hl_client *client = open_client(IMPATIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *most = new_asking(client, "most", HL_REPLICAS_MAJORITY);
    hl_lock *two = new_kept(client, "two", 2);

    expect_ok(hl_lock_acquire(most, ERR));
    expect_ok(hl_lock_acquire(two, ERR));
    uint64_t unconfirmed = stats_of(client).unconfirmed;
    wait_stat(client, renewals, stats_of(client).renewals + 8);
    check(stats_of(client).unconfirmed >= unconfirmed + 3);
    expect_ok(hl_lock_release(most, ERR));
    expect_ok(hl_lock_release(two, ERR));
}

ReplicaLaw(replicas_handles, that_one_hold_lacks_end_no_other_hold)
{
    static struct events events;
    hl_client *client = open_client(
        IMPATIENT(.watchdog_timeout_ms = SHORT_MS, .on_event = count_event, .arg = &events));
    hl_lock *one = new_asking(client, "one", 1);
    hl_lock *five = new_kept(client, "five", 5);

    expect_ok(hl_lock_acquire(one, ERR));
    expect_ok(hl_lock_acquire(five, ERR));
    wait_stat(client, renewals, stats_of(client).renewals + 12);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check(hl_lock_is_held(one, NULL));
    expect_ok(hl_lock_release(one, ERR));
    expect_ok(hl_lock_release(five, ERR));
}

ReplicaLaw(replicas_handles, are_asked_for_by_a_nested_acquire_in_a_hold_that_was_kept_without)
{
    hl_client *client = open_client(IMPATIENT());
    hl_lock *kept = new_kept(client, "stock", 1), *strict = new_asking(client, "stock", 1);

    replica_cut(0);
    expect_ok(hl_lock_acquire(kept, ERR));
    expect_outcome(hl_lock_acquire(strict, ERR), HL_EREPLICAS);
    check_int(hl_lock_hold_count(kept, NULL), 1);
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    expect_ok(hl_lock_acquire(strict, ERR));
    expect_ok(hl_lock_release(strict, ERR));
    expect_ok(hl_lock_release(kept, ERR));
}

ReplicaLaw(replicas_handles, are_told_of_when_a_nested_acquire_is_kept_without)
{
    static struct events events;
    hl_client *client = open_client(IMPATIENT(.on_event = count_event, .arg = &events));
    hl_lock *without = new_asking(client, "stock", HL_REPLICAS_NONE);
    hl_lock *kept = new_kept(client, "stock", 1);

    replica_cut(0);
    expect_ok(hl_lock_acquire(without, ERR));
    expect_ok(hl_lock_acquire(kept, ERR));
    check(events_wait(&events, HL_EVENT_UNCONFIRMED, 1, 20000));
    replica_join(0);
    expect_ok(hl_lock_release(kept, ERR));
    expect_ok(hl_lock_release(without, ERR));
}

ReplicaLaw(replicas_handles, have_a_nested_lease_and_the_outer_one_stays_as_long)
{
    hl_client *client = open_client(REPLICATED());
    hl_lock *without = new_asking(client, "stock", HL_REPLICAS_NONE);
    hl_lock *with = new_asking(client, "stock", 1);

    expect_ok(hl_lock_acquire_with(without, ACQUIRE(.wait_ms = -1, .lease_ms = 60000), ERR));
    expect_ok(hl_lock_acquire_with(with, ACQUIRE(.wait_ms = -1, .lease_ms = 1000), ERR));
    struct deadline deadline = deadline_in(1500); /* longer than the nested lease */
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(without, NULL));
        deadline_nap();
    }
    expect_ok(hl_lock_release(with, ERR));
    expect_ok(hl_lock_release(without, ERR));
}

ReplicaLaw(replicas_handles, have_the_new_lease_of_a_permit)
{
    hl_client *client = open_client(IMPATIENT());
    hl_permits *permits = NULL;
    hl_permit permit;

    expect_ok(hl_permits_new(client, "gate", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_try_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_acquire(permits, &permit, ERR));
    replica_cut(0);
    expect_outcome(hl_permits_update_lease(permits, &permit, 20000, ERR), HL_EREPLICAS);
    int64_t validity = hl_permits_validity_ms(permits, &permit);
    check(validity > 0 && validity <= 20000);
    replica_join(0);
    check(redis_wait_replicas(server, 1, 20000));
    expect_ok(hl_permits_update_lease(permits, &permit, 60000, ERR));
    expect_ok(hl_permits_release(permits, &permit, ERR));
}

static int64_t try_in_vain(int min_replicas)
{
    hl_client *client = open_client_at("unix:///nowhere/redis.sock",
                                       CLIENT(.min_replicas = min_replicas, .flags = HL_CLIENT_LAZY,
                                              .outage_timeout_ms = slow_ms(5000)));
    hl_lock *lock = new_lock(client, "stock");
    hl_error err = HL_ERROR_INIT;
    int64_t before = now_ms();

    expect_outcome(hl_lock_try_acquire(lock, &err), HL_ECONN);
    check_has(err.text, "connect");
    close_client(client);
    return now_ms() - before;
}

ReplicaLaw(replicas_handles, are_not_waited_for_longer_when_the_server_is_away)
{
    check(try_in_vain(HL_REPLICAS_NONE) < slow_ms(4000));
    check(try_in_vain(1) < slow_ms(4000));
}

ReplicaLaw(replicas_handles, of_which_the_master_tells_no_more_are_no_majority)
{
    static struct events events;
    hl_client *client = open_client(IMPATIENT(.on_event = count_event, .arg = &events));
    hl_lock *most = new_asking(client, "most", HL_REPLICAS_MAJORITY);
    hl_error err = HL_ERROR_INIT;

    expect_ok(hl_lock_acquire(most, ERR));
    expect_ok(hl_lock_release(most, ERR));
    redis_deny(server, "default", "role");
    redis_kill_clients(server, REDIS_NORMAL);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    expect_outcome(hl_lock_acquire(most, &err), HL_EREPLICAS);
    check_has(err.text, "ROLE");
    redis_do(server, "ACL SETUSER default +role");
}
