/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The master dies before its replica has heard of the lock, and the replica becomes the master. */
#include "naive.h"

#include "support/replicas.h"

enum { LEASE_MS = 60000 };

static void fail_over(void)
{
    redis_server_kill(server);
    redis_do(replica(0), "REPLICAOF NO ONE");
}

ReplicaLaw(naive, failover_to_a_replica_that_has_not_heard_gives_the_lock_twice)
{
    struct naive *a = naive_at(server, "A");

    replica_cut(0);
    check(naive_take(a, "job", LEASE_MS));
    fail_over();
    struct naive *b = naive_at(replica(0), "B");
    check(naive_take(b, "job", LEASE_MS));
    tell_figure("naive: A and B both hold 'job', for the new master had not heard of A");
}

ReplicaLaw(ours, lock_is_given_when_a_replica_has_heard)
{
    hl_client *client = open_client(CLIENT(.min_replicas = 1, .replicas_timeout_ms = slow_ms(500)));
    hl_lock *a = new_lock(client, "job");
    hl_error err = HL_ERROR_INIT;

    replica_cut(0);
    expect_outcome(hl_lock_acquire(a, &err), HL_EREPLICAS);
    tell_figure("ours: no replica has heard, and A does not get 'job': %s", err.text);

    replica_join(0);
    expect_ok(hl_lock_acquire(a, ERR));
    fail_over();
    hl_lock *b = new_lock(open_client_at(redis_server_url(replica(0)), NULL), "job");
    expect_outcome(hl_lock_try_acquire(b, ERR), HL_EBUSY);
    tell_figure("ours: the new master has heard of A, and B is refused");
}
