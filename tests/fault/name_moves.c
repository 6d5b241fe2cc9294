/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A host name whose answer changes, as the endpoint of a managed primary: it leads to one server,
 * and to another one after a failover. The lookup of the library is answered here, and each server
 * has an address of its own and the same port.
 */

#include "support/actor.h"
#include "support/events.h"
#include "support/kit.h"
#include "support/listener.h"
#include "support/recorder.h"
#include "support/redis_server.h"
#include "support/sentinel_view.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FIRST "127.0.0.1"
#define SECOND "127.0.0.2"

static _Atomic(const char *) answer; /* to "primary.test" */
static atomic_int lookups;

/* The linker puts it in the place of getaddrinfo() (CMakeLists.txt). */
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses)
{
    bool is_ours = strcmp(host, "primary.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST);

    atomic_fetch_add(&lookups, is_ours);
    return __real_getaddrinfo(is_ours ? atomic_load(&answer) : host, service, hints, ret_addresses);
}

static struct redis_server *first, *second;
static int port;

static struct redis_server *server_at(const char *host)
{
    char config[128];

    snprintf(config, sizeof config, "bind %s\nport %d\nrepl-diskless-sync-delay 0", host, port);
    return redis_server_start(&(struct redis_options){.plain = true, .config = config});
}

static bool is_linked(void *replica)
{
    return redis_replicates(replica, port);
}

static void replicate(struct redis_server *replica, const char *host)
{
    redis_do(replica, "REPLICAOF %s %d", host, port);
    check(wait_until(is_linked, replica, 60000));
}

static void primary_up(void)
{
    port = listener_free_port();
    server = first = server_at(FIRST);
    second = server_at(SECOND);
    replicate(second, FIRST);
    atomic_store(&answer, FIRST);
}

static void primary_down(void)
{
    struct redis_server *other = server == first ? second : first;

    server_down(); /* stops `server` */
    redis_server_stop(other);
}

#define PrimaryLaw(...) Test(name_moves, __VA_ARGS__, .init = primary_up, .fini = primary_down)

static hl_client *open_primary(struct events *events, struct recorder *lines)
{
    char url[64];

    snprintf(url, sizeof url, "redis://primary.test:%d", port);
    return open_client_at(
        url, CLIENT(.poll_ms = slow_ms(60000), .outage_timeout_ms = slow_ms(60000),
                    .on_event = lines ? NULL : count_event, .on_log = lines ? record_log : NULL,
                    .log_level = HL_LOG_DEBUG, .arg = lines ? (void *)lines : (void *)events));
}

/* A hold, and a waiter of another client, are taken along to the second server by `move`. */
static void expect_taken_along(void (*move)(hl_client *client))
{
    static struct events events, others;
    hl_client *client = open_primary(&events, NULL), *other = open_primary(&others, NULL);
    hl_lock *lock = new_lock(client, "stock"), *wanted = new_lock(other, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    struct actor *actor = actor_start_acquire(wanted, ACQUIRE(.wait_ms = -1));
    expect_waiters(other, 1);
    check(redis_wait_replicas(first, 1, 30000));
    move(client);
    server = second;
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 60000));
    check(events_wait(&others, HL_EVENT_CONNECTED, 1, 60000));
    expect_held_by(client, lock, 1);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(actor_end(actor));
    expect_held_by(other, wanted, 1);
    expect_ok(actor_release(actor, wanted, NULL));
    expect_free(wanted);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

static void move_by_death(hl_client *client)
{
    (void)client;
    redis_server_kill(first);
    redis_do(second, "REPLICAOF NO ONE");
    atomic_store(&answer, SECOND);
}

PrimaryLaw(is_followed_when_the_first_server_has_died)
{
    expect_taken_along(move_by_death);
}

static bool is_looked_up_again(void *before)
{
    return atomic_load(&lookups) >= *(int *)before + 4; /* by two clients */
}

/* The name is the last to change. Until then it leads to a server that is a replica by now. */
static void move_by_demotion(hl_client *client)
{
    redis_do(second, "REPLICAOF NO ONE");
    redis_do(first, "REPLICAOF " SECOND " %d", port);
    check(hl_lock_try_acquire(new_lock(client, "other"), NULL) < 0); /* READONLY */
    int before = atomic_load(&lookups);
    check(wait_until(is_looked_up_again, &before, 60000));
    atomic_store(&answer, SECOND);
}

PrimaryLaw(is_followed_when_the_first_server_has_become_a_replica)
{
    expect_taken_along(move_by_demotion);
}

/* What the replica did not have is lost, and is not held for a moment longer than that is known. */
PrimaryLaw(is_a_loss_when_the_second_server_knows_nothing)
{
    static struct events events;
    hl_client *client = open_primary(&events, NULL);
    hl_lock *lock = new_lock(client, "stock");

    redis_do(second, "REPLICAOF NO ONE");
    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_kill(first);
    atomic_store(&answer, SECOND);
    server = second;
    check(events_wait(&events, HL_EVENT_LOST, 1, 60000));
    check_str(events.reason[HL_EVENT_LOST], "gone");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
}

/* A replica behind the name is no server for locks: the words say so, and who says it. */
PrimaryLaw(to_a_replica_is_refused_until_it_is_promoted)
{
    static struct recorder lines = RECORDER_INIT;
    hl_client *client = open_primary(NULL, &lines);

    redis_server_kill(first);
    atomic_store(&answer, SECOND);
    check(recorder_wait_says(&lines, "READONLY"));
    redis_do(second, "REPLICAOF NO ONE");
    server = second;
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1), ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
    check(recorder_wait_says(&lines, "connected again to primary.test"));
}
