/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Waiting for a read-write lock: the wake-ups, the order in which waiters are let in, and the rest
 * that a cancelled wait leaves behind. */

#include "rw_kit.h"

enum { READERS = 10 };

static void readers_wait(hl_lock *read, struct actor *reader[READERS])
{
    for (int i = 0; i < READERS; i++)
        reader[i] = rw_waits(read);
}

static void readers_leave(hl_lock *read, struct actor *reader[READERS])
{
    for (int i = 0; i < READERS; i++)
        expect_ok(actor_release(reader[i], read, NULL));
}

/* By the one release: no waiter polls within the test, and no reader leaves before all are in. */
RwLaw(rw_lock_wait, all_readers_of_a_process_wake_together_after_a_write_release)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf();
    struct actor *reader[READERS];
    expect_ok(hl_lock_acquire(a.write, NULL));
    readers_wait(b.read, reader);
    expect_waiters(b.client, READERS);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    check_int(redis_subscribers(server, RW_CHANNEL), 1); /* they share one */
    expect_ok(hl_lock_release(a.write, NULL));
    for (int i = 0; i < READERS; i++)
        expect_ok(actor_end(reader[i]));
    check_str(rw_state(), "read 10");
    readers_leave(b.read, reader);
}

RwLaw(rw_lock_wait, the_last_reader_out_lets_a_writer_in)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf(), c = rw_new_deaf();
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_acquire(b.read, NULL));
    struct actor *writer = rw_waits(c.write);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_waiters(c.client, 1);
    check(!actor_is_done(writer));
    expect_ok(hl_lock_release(b.read, NULL));
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, c.write, NULL));
}

RwLaw(rw_lock_wait, a_writer_that_goes_on_as_a_reader_wakes_readers_here_and_elsewhere)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf(), c = rw_new_deaf();
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    struct actor *here = rw_waits(a.read), *elsewhere = rw_waits(b.read),
                 *writer = rw_waits(c.write);
    check(redis_wait_subscribers(server, RW_CHANNEL, 3, 5000));
    expect_ok(hl_lock_release(a.write, NULL));
    expect_ok(actor_end(here));
    expect_ok(actor_end(elsewhere));
    expect_state("read 3");
    check(!actor_is_done(writer));
    expect_ok(actor_release(here, a.read, NULL));
    expect_ok(actor_release(elsewhere, b.read, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, c.write, NULL));
}

RwLaw(rw_lock_wait, writers_of_a_process_are_served_as_they_came)
{
    struct rw rw = rw_new_deaf();
    struct actor *writer[4];
    expect_ok(hl_lock_acquire(rw.read, NULL));
    for (int i = 0; i < 4; i++) {
        writer[i] = rw_waits(rw.write);
        expect_waiters(rw.client, i + 1);
    }
    expect_ok(hl_lock_release(rw.read, NULL));
    for (int i = 0; i < 4; i++) {
        expect_ok(actor_end(writer[i]));
        for (int k = i + 1; k < 4; k++)
            check(!actor_is_done(writer[k]));
        expect_ok(actor_release(writer[i], rw.write, NULL));
    }
}

RwLaw(rw_lock_wait, waiters_that_time_out_leave_nothing)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_outcome(hl_lock_acquire_for(b.read, 20, NULL), HL_ETIMEDOUT);
    expect_outcome(hl_lock_acquire_for(b.write, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_outcome(hl_lock_acquire_for(b.write, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(a.read, NULL));
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
    check_int(stats_of(b.client).waiters_now, 0);
}

RwLaw(rw_lock_wait, cancelled_waiters_leave_nothing)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf();
    hl_cancel *cancel = new_cancel();
    struct actor *reader = actor_start(), *writer = actor_start();
    struct recorder recorder = RECORDER_INIT;
    expect_ok(hl_lock_acquire(a.write, NULL));
    actor_begin_acquire(reader, b.read, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    actor_begin_acquire(writer, b.write, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    expect_ok(hl_lock_acquire_async(
        b.read, ACQUIRE(.wait_ms = -1, .cancel = cancel, .owner = new_owner(b.client)), record_done,
        &recorder));
    expect_waiters(b.client, 3);
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(reader), HL_ECANCELED);
    expect_outcome(actor_end(writer), HL_ECANCELED);
    expect_story(&recorder, "done HL_ECANCELED");
    expect_ok(hl_lock_release(a.write, NULL));
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

RwLaw(rw_lock_wait, a_close_ends_the_waits)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf();
    struct recorder recorder = RECORDER_INIT;
    hl_owner *reader = new_owner(b.client), *writer = new_owner(b.client);
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire_async(b.read, ACQUIRE(.wait_ms = -1, .owner = reader), record_done,
                                    &recorder));
    expect_ok(hl_lock_acquire_async(b.write, ACQUIRE(.wait_ms = -1, .owner = writer), record_done,
                                    &recorder));
    expect_waiters(b.client, 2);
    close_client(b.client);
    expect_story(&recorder, "done HL_ECANCELED, done HL_ECANCELED");
    expect_outcome(hl_lock_try_acquire(b.read, NULL), HL_ECLOSED);
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_ECLOSED);
    expect_ok(hl_lock_release(a.write, NULL));
}

static const hl_lock_options prefers = {.size = sizeof(prefers), .flags = HL_LOCK_PREFER_WRITERS};

RwLaw(rw_lock_wait, new_readers_stay_away_from_a_writer_that_is_preferred)
{
    struct rw a = rw_new_deaf(), c = rw_new_deaf();
    struct rw b = rw_new_with(rw_new_deaf().client, &prefers);
    expect_ok(hl_lock_acquire(a.read, NULL));
    struct actor *writer = rw_waits(b.write);
    check(redis_wait_int(server, 1, 5000, "EXISTS " RW_WRITER));
    expect_outcome(hl_lock_try_acquire(c.read, NULL), HL_EBUSY);
    expect_ok(hl_lock_try_acquire(a.read, NULL)); /* deeper */
    expect_ok(hl_lock_release(a.read, NULL));
    struct actor *reader = rw_waits(c.read);
    check(redis_wait_subscribers(server, RW_CHANNEL, 2, 5000));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(actor_end(writer));
    check(!actor_is_done(reader));
    expect_ok(actor_release(writer, b.write, NULL));
    expect_ok(actor_end(reader));
    expect_ok(actor_release(reader, c.read, NULL));
}

RwLaw(rw_lock_wait, readers_come_in_when_a_preferred_writer_gives_up)
{
    struct rw a = rw_new_deaf(), c = rw_new_deaf();
    struct rw b = rw_new_with(rw_new_deaf().client, &prefers);
    hl_cancel *cancel = new_cancel();
    struct actor *writer = actor_start();
    expect_ok(hl_lock_acquire(a.read, NULL));
    actor_begin_acquire(writer, b.write, ACQUIRE(.wait_ms = -1, .cancel = cancel));
    check(redis_wait_int(server, 1, 5000, "EXISTS " RW_WRITER));
    struct actor *reader = rw_waits(c.read);
    check(redis_wait_subscribers(server, RW_CHANNEL, 2, 5000));
    hl_cancel_fire(cancel);
    expect_outcome(actor_end(writer), HL_ECANCELED);
    expect_ok(actor_end(reader));
    check_int(redis_int(server, "EXISTS " RW_WRITER), 0);
    expect_ok(actor_release(reader, c.read, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
}

RwLaw(rw_lock_wait, a_writer_that_does_not_wait_is_not_preferred)
{
    struct rw a = rw_new(open_client(NULL)), c = rw_new(open_client(NULL));
    struct rw b = rw_new_with(open_client(NULL), &prefers);
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_EBUSY);
    check_int(redis_int(server, "EXISTS " RW_WRITER), 0);
    expect_ok(hl_lock_try_acquire(c.read, NULL));
    expect_ok(hl_lock_release(c.read, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
}

/* It asks again every poll_ms, and each time makes its wish last for three. */
RwLaw(rw_lock_wait, a_preferred_writer_goes_on_being_preferred_as_long_as_it_waits)
{
    struct rw a = rw_new(open_client(NULL)), c = rw_new(open_client(NULL));
    struct rw b = rw_new_with(open_client(CLIENT(.poll_ms = slow_ms(1000))), &prefers);
    expect_ok(hl_lock_acquire(a.read, NULL));
    struct actor *writer = rw_waits(b.write);
    check(redis_wait_int(server, 1, 5000, "EXISTS " RW_WRITER));
    int64_t calls = redis_calls(server, "set");
    struct deadline deadline = deadline_in(20000);
    while (redis_calls(server, "set") < calls + 5 && !deadline_is_over(deadline))
        expect_outcome(hl_lock_try_acquire(c.read, NULL), HL_EBUSY);
    check(redis_calls(server, "set") >= calls + 5);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, b.write, NULL));
}

RwLaw(rw_lock_wait, a_lost_message_costs_a_poll)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire(a.write, NULL));
    struct actor *reader = rw_waits(b.read), *writer = rw_waits(b.write);
    expect_waiters(b.client, 2);
    redis_do(server, "DEL stock"); /* without a word */
    struct actor *first = NULL;
    struct deadline deadline = deadline_in(10000);
    while (!first && !deadline_is_over(deadline)) {
        first = actor_is_done(reader) ? reader : actor_is_done(writer) ? writer : NULL;
        deadline_nap();
    }
    check(first != NULL);
    struct actor *second = first == reader ? writer : reader;
    expect_ok(actor_end(first));
    expect_ok(actor_release(first, first == reader ? b.read : b.write, NULL));
    expect_ok(actor_end(second));
    expect_ok(actor_release(second, second == reader ? b.read : b.write, NULL));
    expect_outcome(hl_lock_release(a.write, NULL), HL_ELOST);
}

RwLaw(rw_lock_wait, a_message_that_is_lost_with_its_connection_is_made_up_for)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf();
    struct actor *reader[READERS];
    expect_ok(hl_lock_acquire(a.write, NULL));
    readers_wait(b.read, reader);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    redis_do(server, "CLIENT PAUSE 50 WRITE"); /* what is released meanwhile, waits */
    check(redis_kill_clients(server, REDIS_PUBSUB) >= 1);
    expect_ok(hl_lock_release(a.write, NULL));
    for (int i = 0; i < READERS; i++)
        expect_ok(actor_end(reader[i]));
    readers_leave(b.read, reader);
}

RwLaw(rw_lock_wait, holds_and_waits_go_on_across_a_reconnect)
{
    struct rw a = rw_new_deaf(), b = rw_new_deaf();
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(actor_acquire(other, a.read, ACQUIRE(.wait_ms = 0)));
    struct actor *writer = rw_waits(b.write);
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    check(redis_kill_clients(server, REDIS_NORMAL) >= 2);
    wait_stat(a.client, reconnects, 1);
    wait_stat(b.client, reconnects, 1);
    wait_stat(a.client, renewals, 2); /* at once */
    check(hl_lock_is_held(a.read, NULL));
    check(redis_wait_subscribers(server, RW_CHANNEL, 1, 5000));
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(actor_release(other, a.read, NULL));
    expect_ok(actor_end(writer));
    expect_ok(actor_release(writer, b.write, NULL));
}

/* The server restarts without its keys: holders are told that they have lost, and waiters are
 * served. */
RwSingleLaw(rw_lock_wait, a_restart_of_the_server_ends_the_holds_that_it_forgot)
{
    struct recorder told = RECORDER_INIT;
    struct rw a = rw_new(open_client(CLIENT(.poll_ms = 100)));
    struct rw b = rw_new(open_client(CLIENT(.poll_ms = 100)));
    expect_ok(hl_lock_acquire_with(
        a.read, ACQUIRE(.wait_ms = 0, .on_event = record_event, .event_arg = &told), NULL));
    struct actor *writer = rw_waits(b.write);
    expect_waiters(b.client, 1);
    redis_server_restart(server);
    expect_story(&told, "LOST gone");
    expect_ok(actor_end(writer));
    expect_state("write 1");
    expect_outcome(hl_lock_release(a.read, NULL), HL_ELOST);
    expect_ok(actor_release(writer, b.write, NULL));
}
