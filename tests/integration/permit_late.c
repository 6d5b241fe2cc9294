/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Permits whose caller is late: told late of what it got, or of a lease that was set anew. */

#include "permits.h"

#include <semaphore.h>

/* A callback that takes its time, with others behind it. */
struct slow_callback {
    sem_t entered, may_go;
};

static void slow_callback_run(int code, int64_t count, const hl_error *err, void *arg)
{
    struct slow_callback *slow = arg;
    (void)code, (void)count, (void)err;
    sem_post(&slow->entered);
    while (sem_wait(&slow->may_go) != 0)
        ;
}

static void slow_callback_begin(struct slow_callback *slow, hl_permit_semaphore *gate)
{
    sem_init(&slow->entered, 0, 0);
    sem_init(&slow->may_go, 0, 0);
    expect_ok(hl_permit_semaphore_available_async(gate, slow_callback_run, slow));
    while (sem_wait(&slow->entered) != 0)
        ;
}

/* Two permits by an async call. */
struct pair {
    hl_permit_semaphore *gate;
    atomic_int calls;
    int code;
    bool are_held; /* both, inside the completion */
    hl_permit permit[2];
    hl_error err;
};

static void pair_done(int code, const hl_permit *permits, const hl_error *err, void *arg)
{
    struct pair *pair = arg;
    check((permits != NULL) == (code == 0) && (err != NULL) == (code < 0));
    for (int i = 0; permits && i < 2; i++)
        pair->permit[i] = permits[i];
    if (err)
        pair->err = *err;
    pair->code = code;
    pair->are_held = is_held(pair->gate, pair->permit[0]) && is_held(pair->gate, pair->permit[1]);
    atomic_fetch_add(&pair->calls, 1);
}

static bool pair_is_done(void *pair)
{
    return atomic_load(&((struct pair *)pair)->calls) == 1;
}

static void pair_begin(struct pair *pair, hl_permit_semaphore *gate,
                       const hl_acquire_options *options)
{
    *pair = (struct pair){.gate = gate};
    expect_ok(hl_permit_semaphore_acquire_async(gate, 2, options, pair_done, pair));
    check(redis_wait_int(server, 2, 5000, "ZCARD " IDS));
}

/* Their lease ends before the completion runs, and another client takes one of them: the call goes
 * on, and ends when it has two again. */
Law(permit_late, several_that_another_client_has_by_now_are_not_told_as_got)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS, .poll_ms = 100));
    hl_permit_semaphore *direct = set_gate(open_client(NULL), 2), *gate = new_gate(client);
    struct slow_callback slow;
    struct pair pair;
    hl_permit theirs = {""};
    slow_callback_begin(&slow, gate);
    pair_begin(&pair, gate, ACQUIRE(.owner = new_owner(client), .wait_ms = HL_WAIT_FOREVER));
    expect_ok(hl_permit_semaphore_acquire_for(direct, slow_ms(5000), &theirs, NULL));
    sem_post(&slow.may_go);
    check(!wait_until(pair_is_done, &pair, 100));
    expect_ok(give_back(direct, theirs));
    check(wait_until(pair_is_done, &pair, 5000));
    expect_outcome(pair.code, HL_OK);
    check(pair.are_held);
    expect_counts(direct, 0, 2);
}

static bool is_reached(void *at_ms)
{
    return now_ms() >= *(int64_t *)at_ms;
}

/* When the first renewal would have been, had they been told at once. */
Law(permit_late, several_that_are_told_late_are_renewed_from_then_on)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_permit_semaphore *gate = set_gate(client, 2);
    struct slow_callback slow;
    struct pair pair;
    slow_callback_begin(&slow, gate);
    pair_begin(&pair, gate, ACQUIRE(.owner = new_owner(client)));
    int64_t late_ms = now_ms() + slow_ms(750);
    check(wait_until(is_reached, &late_ms, 5000));
    check_int(stats_of(client).renewals, 0);
    sem_post(&slow.may_go);
    check(wait_until(pair_is_done, &pair, 5000));
    expect_outcome(pair.code, HL_OK);
    wait_stat(client, renewals, 6); /* longer than a lease */
    check(is_held(gate, pair.permit[0]) && is_held(gate, pair.permit[1]));
    check_int(stats_of(client).losses, 0);
}
