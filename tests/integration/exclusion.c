/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Exclusion: between threads, between clients, and between processes, seen from outside. */

#include "support/actor.h"
#include "support/history.h"
#include "support/kit.h"
#include "support/process.h"

#include <stdio.h>

enum { THREADS = 8, PROCESSES = 3, ROUNDS = 40 };

Law(exclusion, holds_between_threads_of_one_client)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    check(!actor_holds(other, lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_acquire(other, lock, ACQUIRE(.wait_ms = 0)));
    expect_outcome(hl_lock_try_acquire(lock, NULL), HL_EBUSY);
    check(!hl_lock_is_held(lock, NULL));
}

Law(exclusion, holds_between_two_clients)
{
    hl_client *a = open_client(NULL), *b = open_client(NULL);
    hl_lock *lock_a = new_lock(a, "stock"), *lock_b = new_lock(b, "stock");
    expect_ok(hl_lock_acquire(lock_a, NULL));
    expect_outcome(hl_lock_try_acquire(lock_b, NULL), HL_EBUSY);
    check(!hl_lock_is_held(lock_b, NULL));
    check_int(hl_lock_hold_count(lock_b, NULL), 0);
    check_int(hl_lock_validity_ms(lock_b, NULL), 0);
    expect_held_by(a, lock_a, 1);
    expect_ok(hl_lock_release(lock_a, NULL));
    expect_free(lock_a); /* it may be retained for a moment */
    expect_ok(hl_lock_try_acquire(lock_b, NULL));
    expect_held_by(b, lock_b, 1);
}

Law(exclusion, does_not_concern_other_names)
{
    hl_client *client = open_client(NULL);
    expect_ok(hl_lock_acquire(new_lock(client, "one"), NULL));
    struct actor *other = actor_start();
    expect_ok(actor_acquire(other, new_lock(client, "two"), ACQUIRE(.wait_ms = 0)));
}

static long counted; /* guarded by the lock under test alone */

static void count_up(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        expect_ok(hl_lock_acquire(arg, NULL));
        *(volatile long *)&counted = *(volatile long *)&counted + 1;
        expect_ok(hl_lock_release(arg, NULL));
    }
}

Law(exclusion, orders_what_threads_do_inside_it)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *actor[THREADS];
    for (int i = 0; i < THREADS; i++)
        actor_begin(actor[i] = actor_start(), count_up, lock);
    for (int i = 0; i < THREADS; i++)
        actor_await(actor[i]);
    check_int(counted, THREADS * ROUNDS);
    expect_free(lock);
    check_int(stats_of(client).waiters_now, 0);
    check_int(stats_of(client).holds_now, 0);
}

struct rival {
    const char *url;
    char path[256];
    int number;
};

static void rival_run(struct process *self, void *arg)
{
    const struct rival *rival = arg;
    struct history *history = history_open(rival->path, ROUNDS);
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    expect_ok(hl_client_open(rival->url, NULL, &client, NULL));
    expect_ok(hl_lock_new(client, "stock", &lock, NULL));
    volatile long *shared = process_shared(self);
    process_tell(self, 0);
    check(process_await(self, 1, 1, 30000));
    for (int i = 0; i < ROUNDS; i++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        struct history_record *record = history_enter(history, 1, (uint64_t)rival->number);
        *shared += 1;
        history_leave(record);
        expect_ok(hl_lock_release(lock, NULL));
    }
    hl_lock_free(lock);
    hl_client_close(client);
    history_close(history);
}

Law(exclusion, holds_between_processes)
{
    struct rival rival[PROCESSES];
    struct process *process[PROCESSES];
    struct history *history[PROCESSES];
    struct history_overlap overlap = {0};
    for (int i = 0; i < PROCESSES; i++) {
        rival[i] = (struct rival){.url = redis_server_url(server), .number = i};
        snprintf(rival[i].path, sizeof rival[i].path, "%s/history.%d", redis_server_dir(server), i);
        process[i] = process_start(rival_run, &rival[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        check(process_await(process[i], 0, 1, 20000));
    for (int i = 0; i < PROCESSES; i++)
        process_tell(process[i], 1);
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 30000), 0);
    for (int i = 0; i < PROCESSES; i++) {
        history[i] = history_open(rival[i].path, ROUNDS);
        check_int(history_count(history[i]), ROUNDS);
    }
    check_msg(history_check(history, PROCESSES, &overlap) == 0, "%d and %d overlap",
              (int)overlap.first_owner, (int)overlap.second_owner);
    for (int i = 0; i < PROCESSES; i++)
        history_close(history[i]);
    check_int(redis_int(server, "EXISTS stock"), 0);
}

Law(release, of_another_threads_hold_is_refused_and_changes_nothing)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    struct actor *other = actor_start();
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_release(lock, &err), HL_ENOTOWNER);
    check_str(err.text, "release 'stock': this owner does not hold the lock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(actor_release(other, lock, NULL), HL_ENOTOWNER);
    check_has(actor_error(other), "another thread or owner of this client does");
    check(hl_lock_is_held(lock, NULL));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, NULL));
    expect_outcome(hl_lock_release(lock, NULL), HL_ENOTOWNER);
}

Law(release, of_another_clients_hold_is_refused_and_changes_nothing)
{
    hl_client *a = open_client(NULL), *b = open_client(NULL);
    hl_lock *lock = new_lock(a, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_outcome(hl_lock_release(new_lock(b, "stock"), NULL), HL_ENOTOWNER);
    expect_held_by(a, lock, 1);
}

Law(release, by_a_waiter_is_refused)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *waiting = new_owner(client);
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(lock, NULL));
    actor_begin_acquire(other, lock, ACQUIRE(.wait_ms = -1, .owner = waiting));
    expect_waiters(client, 1);
    expect_outcome(hl_lock_release_as(lock, waiting, NULL), HL_ENOTOWNER);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 0, .owner = waiting), NULL),
                   HL_EINVAL); /* one owner, one flow */
    expect_ok(hl_lock_release(lock, NULL));
    expect_ok(actor_end(other));
}
