/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Holds that are not passed, and the loss of a hold that was passed. */

#include "passing_line.h"
#include "support/actor.h"

#include <poll.h>

enum { OFTEN = 20 };

static struct recorder events = RECORDER_INIT, first_events = RECORDER_INIT;

TcpLaw(a_leased_hold, is_neither_passed_nor_given_by_a_pass)
{
    begin(NULL);
    for (int i = 0; i < OFTEN; i++) {
        check(!gives_by_pass(ACQUIRE(.lease_ms = 5000), &plain));
        check(pttl_of(stock) > 20000);
        give(line[0]);
        check(!gives_by_pass(&plain, ACQUIRE(.lease_ms = 5000)));
        check(pttl_of(stock) <= 5000);
        give(line[0]);
    }
}

TcpLaw(a_leased_hold, that_was_taken_deeper_without_a_lease_time_is_passed)
{
    begin(NULL);
    uint64_t before = passes();
    struct deadline deadline = deadline_in(20000);
    for (int turn = 1; passes() == before; turn++) {
        check(!deadline_is_over(deadline));
        take(holding, ACQUIRE(.lease_ms = 5000));
        take(holding, &plain);
        line_up(0, &plain);
        give(holding);
        give(holding);
        expect_turn(0, turn);
        check(pttl_of(stock) > 20000);
        give(line[0]);
    }
}

TcpLaw(pass, is_not_made_before_the_hold_is_as_old_as_it_must_become)
{
    begin(NULL);
    for (int i = 0; i < 3; i++) {
        int64_t before_ms = now_ms();
        check(!gives_by_pass(ACQUIRE(.min_hold_ms = 60), &plain));
        check(now_ms() - before_ms >= 60);
        give(line[0]);
    }
}

TcpLaw(pass, is_not_made_in_the_last_third_of_the_lease)
{
    begin(NULL);
    begin_passed(&plain);
    expect_ok(hl_client_ping(client, -1, NULL)); /* no answer to a keep makes it longer now */
    tamper(current()->no_waiters_at = hli_now() + HLI_MS(60000);
           current()->valid_until = hli_now() + HLI_MS(9000));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    expect_turn(1, 1);
    check_int(passes(), before);
}

/* ---- A KEEP never shortens the lease ---- */

TcpLaw(a_keep, never_shortens_a_longer_lease)
{
    begin(NULL);
    struct deadline deadline = deadline_in(20000);
    for (bool is_kept = false; !is_kept; give(line[1])) {
        check(!deadline_is_over(deadline));
        begin_passed(&plain);
        take(line[0], ACQUIRE(.lease_ms = 3600000));
        give(line[0]);
        expect_held_by(client, stock, 1);
        expect_ok(hl_client_ping(client, -1, NULL)); /* the count is no request under way */
        int turn = atomic_load(&told[1]) + 1;
        int64_t calls = redis_evalsha_calls(server);
        tamper(if (current()->no_waiters_at) current()->no_waiters_at = hli_now() - HLI_MS(11));
        uint64_t before = passes();
        line_up(1, &plain);
        give(line[0]);
        expect_turn(1, turn);
        is_kept = passes() == before + 1;
        if (is_kept) {
            expect_calls(calls + 1); /* the keep */
            expect_ok(hl_client_ping(client, -1, NULL));
        }
        check(!is_kept || pttl_of(stock) > 3500000);
    }
}

/* ---- The loss of a passed hold ---- */

TcpLaw(pass, makes_a_loss_known_to_the_new_holder)
{
    begin(CLIENT(.watchdog_timeout_ms = 90000));
    struct deadline deadline = deadline_in(20000);
    for (bool is_passed = false; !is_passed;) {
        check(!deadline_is_over(deadline));
        begin_passed(ACQUIRE(.on_event = record_event, .event_arg = &first_events));
        expect_ok(hl_client_ping(client, -1, NULL)); /* no keep of its own finds it gone */
        redis_do(server, "DEL stock");
        tamper(if (current()) current()->no_waiters_at = hli_now() - HLI_MS(11));
        int turn = atomic_load(&told[1]) + 1;
        line_up(1, ACQUIRE(.on_event = record_event, .event_arg = &events));
        bool is_released = hl_lock_release_as(stock, line[0], NULL) == HL_OK;
        expect_turn(1, turn);
        /* If the server's word was faster than the waiter, that one has asked anew. */
        is_passed = is_released && redis_int(server, "EXISTS stock") == 0;
        if (!is_passed)
            give(line[1]);
    }
    expect_story(&events, "LOST gone"); /* the pass has asked for a new word */
    check(!hl_lock_is_held(stock, line[1]));
    expect_outcome(hl_lock_release_as(stock, line[1], NULL), HL_ELOST);
    expect_story(&first_events, "");
}

TcpLaw(pass, to_a_thread_that_ends_is_a_hold_that_is_lost)
{
    begin(CLIENT(.on_event = record_event, .arg = &events));
    struct actor *first = NULL, *second = NULL;
    struct deadline deadline = deadline_in(20000);
    for (uint64_t before = passes(); passes() == before;) {
        check(!deadline_is_over(deadline));
        if (second) {
            expect_ok(actor_release(second, stock, NULL));
            actor_stop(first);
            actor_stop(second);
        }
        first = actor_start();
        second = actor_start();
        expect_ok(actor_acquire(first, stock, ACQUIRE(.wait_ms = -1)));
        actor_begin_acquire(second, stock, ACQUIRE(.wait_ms = -1));
        expect_waiters(client, 1);
        expect_ok(actor_release(first, stock, NULL));
        expect_ok(actor_end(second));
    }
    actor_stop(first); /* it has given it away */
    check(actor_holds(second, stock, NULL));
    check(!recorder_says(&events, "LOST"));
    actor_stop(second);
    expect_story(&events, "LOST thread exit");
    check_int(redis_int(server, "EXISTS stock"), 1);
}

static bool is_over(void *arg)
{
    (void)arg;
    return redis_int(server, "PTTL stock") < 0;
}

TcpLaw(a_pass, that_its_caller_hears_of_too_late_is_no_hold)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH, .watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    struct pollfd bell = {.fd = hl_client_fd(client), .events = POLLIN};
    struct deadline deadline = deadline_in(20000);
    for (uint64_t before = passes(); passes() == before;) {
        check(!deadline_is_over(deadline));
        if (atomic_load(&told[0]) > 0)
            give(line[0]);
        atomic_store(&told[0], 0);
        take(holding, &plain);
        line_up(0, &plain);
        give(holding);
        if (passes() != before)
            break;
        check_int(poll(&bell, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(client);
    }
    redis_server_freeze(server); /* no renewal */
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + slow_ms(1500))
        deadline_nap();
    redis_server_thaw(server);
    check(wait_until(is_over, NULL, 5000));
    expect_ok(hl_lock_acquire_with(rivals, ACQUIRE(.wait_ms = -1), NULL));
    check(!hl_lock_is_held(stock, line[0]));
    hl_client_dispatch(client);
    check_int(atomic_load(&told[0]), 0);
    expect_ok(hl_lock_release(rivals, NULL));
    while (atomic_load(&told[0]) == 0) {
        check_int(poll(&bell, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(client);
    }
}
