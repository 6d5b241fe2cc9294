/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Grants: the lock as it is handed from one client to the next in the queue. Which grants a client
 * accepts, for how long, and how it gives back the others.
 */

#include "support/recorder.h"
#include "two_links.h"

#include <poll.h>

static struct recorder told = RECORDER_INIT, told_too = RECORDER_INIT;

static bool is_over(void *arg)
{
    return redis_int(server, "PTTL %s", arg) < 0;
}

/* ---- The mailbox ---- */

/* Whatever the client asks for behind that cannot be granted to a mailbox that is not there yet. */
Law(mailbox, is_asked_for_before_the_client_is_open)
{
    for (int i = 0; i < 100; i++) {
        hl_client *client = open_client(NULL);
        check_int(redis_subscribers(server, mailbox_of(client)), 1);
        close_client(client);
    }
}

/* ---- A grant is for one wait, not for the next one ---- */

/* A wait is granted, and cancelled, and the message of the grant is still on its way. */
static void begin_with_a_late_grant(void)
{
    hl_cancel *cancel = new_cancel();
    contention_begin(10000, 10000);
    wait_async(owner, &told, ACQUIRE(.cancel = cancel));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    expect_kept(&waiter, waiter.commands, PROXY_UP);
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP); /* the cancel gives it back */
    expect_free(lock);
    expect_ok(hl_client_ping(waiter.client, -1, NULL)); /* and is answered */
    expect_ok(hl_lock_acquire(held, NULL));
}

static void expect_not_entered(void)
{
    proxy_pass(waiter.proxy);
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    expect_settled();
    check(!hl_lock_is_held(lock, owner));
    check_int(stats_of(waiter.client).grants, 0);
    check(hl_lock_is_held(held, NULL));
    expect_held_by(holder, held, 1);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_ECANCELED, done HL_OK");
    check(hl_lock_is_held(lock, owner));
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
    contention_end();
}

TcpLaw(a_grant_of_one_wait, is_not_entered_by_the_next_wait_of_its_owner)
{
    begin_with_a_late_grant();
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0)); /* told busy before the grant comes */
    expect_in_queue(1);
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    expect_not_entered();
}

TcpLaw(a_grant_of_one_wait, is_not_entered_by_the_next_one_before_it_was_told_anything)
{
    begin_with_a_late_grant();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(1);
    int64_t calls = redis_evalsha_calls(server);
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_calls(calls + 1); /* it is given back, for no call waits for it */
    check(!hl_lock_is_held(lock, owner));
    expect_not_entered();
}

TcpLaw(a_grant_of_one_wait, is_not_entered_after_a_poll_was_faster_and_it_was_released)
{
    contention_begin(1000, 50);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK"); /* by its poll */
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_ok(hl_lock_acquire(held, NULL));
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(1);
    int64_t calls = redis_evalsha_calls(server);
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_calls(calls + 1);
    check(hl_lock_is_held(held, NULL) && !hl_lock_is_held(lock, owner));
    proxy_pass(waiter.proxy);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK, done HL_OK");
    contention_end();
}

/* ---- Until when a grant is good ---- */

TcpLaw(a_grant, from_before_the_last_busy_answer_is_void)
{
    contention_begin(1000, 100);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP); /* no poll finds it */
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    redis_do(server, "DEL stock"); /* as if the claim were over */
    expect_ok(hl_lock_acquire(rivals, NULL));
    int64_t calls = redis_evalsha_calls(server);
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP);
    expect_calls(calls + 1); /* its poll: busy, and later than the grant */
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_calls(calls + 3); /* it asks at once, and polls */
    check(!hl_lock_is_held(lock, owner));
    check(hl_lock_is_held(rivals, NULL));
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_story(&told, "done HL_OK");
    contention_end();
}

/* The grant is counted from the request, however much later it comes. */
TcpLaw(a_grant, before_the_first_answer_counts_from_the_first_request)
{
    contention_begin(2500, 10000); /* a claim of 10,000 ms */
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    int64_t sent_ms = now_ms();
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(1);
    while (now_ms() < sent_ms + 500)
        deadline_nap();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK"); /* without any answer */
    int64_t looked_ms = now_ms(), ends_ms = looked_ms + hl_lock_validity_ms(lock, owner);
    check_msg(ends_ms <= sent_ms + 10000, "%d ms too long", (int)(ends_ms - sent_ms - 10000));
    check_int(stats_of(waiter.client).grants, 1);
    contention_end();
}

TcpLaw(a_grant, is_entered_however_long_the_wait_was)
{
    contention_begin(1000, 800); /* claims of 4,000 ms, or 3,200 */
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t since_ms = now_ms();
    while (now_ms() < since_ms + 5000) /* each poll moves the time it is counted from */
        deadline_nap();
    expect_calls(redis_evalsha_calls(server) + 1); /* the last one */
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP); /* no poll overtakes the grant */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(waiter.client).grants, 1);
    contention_end();
}

static void begin_with_a_clock(void)
{
    if (!redis_server_has_clock_shim())
        skip("no clock shim in this build");
    redis_server_stop(server);
    server = redis_server_start(&(struct redis_options){.tcp = true, .clock_shim = true});
    contention_begin(2500, 10000); /* a claim of 10,000 ms */
}

TcpLaw(a_servers_clock, stepped_forward_makes_no_grant_longer)
{
    begin_with_a_clock();
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP); /* no renewal makes it longer */
    redis_server_step_clock(server, 10000);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(waiter.client).grants, 1);
    check(hl_lock_validity_ms(lock, owner) <= 10000 || stats_of(waiter.client).renewals > 0);
    contention_end();
}

TcpLaw(a_servers_clock, stepped_back_makes_a_grant_void_and_the_answer_good)
{
    begin_with_a_clock();
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    redis_server_step_clock(server, -10000);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK"); /* it asked at once, long before its poll */
    check_int(stats_of(waiter.client).grants, 0);
    expect_held_by(waiter.client, lock, 1);
    check(hl_lock_validity_ms(lock, owner) > 20000);
    contention_end();
}

static const char *after(const char *text, const char *part)
{
    const char *found = text ? strstr(text, part) : NULL;
    check_msg(found != NULL, "no %s in its place", part);
    return found;
}

TcpLaw(f5_e_a_grant, is_dated_before_it_is_written_and_told_after_it)
{
    contention_begin(1000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    redisContext *watch = watch_begin();
    expect_ok(hl_lock_release(held, NULL));
    const char *at = after(watch_end(watch), "\"TIME\"");
    at = after(at, "\"DEL\" \"stock\"");
    at = after(at, "\"HSET\" \"stock\"");
    at = after(at, "\"PEXPIRE\" \"stock\" \"4000\"");
    after(at, "\"PUBLISH\" \"hirelock:");
    contention_end();
}

/* The two clients poll, and so claim, in different rhythms. */
TcpLaw(a_claim, is_as_long_as_the_granting_release_wrote)
{
    contention_begin(50, 10000); /* 200 ms */
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP); /* no renewal makes it longer */
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire(rivals, NULL)); /* when the claim is over */
    check(!hl_lock_is_held(lock, owner));
    contention_end();
}

/* ---- The cost of an acquisition ---- */

TcpLaw(a_contended_acquisition, is_one_request_and_one_release)
{
    enum { TURNS = 100 };
    contention_begin(10000, 10000);
    hl_owner *holders = new_owner(holder);
    expect_ok(hl_lock_release(held, NULL));
    expect_ok(hl_lock_acquire_with(held, ACQUIRE(.owner = holders), NULL));
    wait_async(owner, &told, ACQUIRE(.lease_ms = 20000)); /* however long: it is not renewed */
    expect_settled();
    int64_t calls = redis_evalsha_calls(server);
    for (int i = 0; i < TURNS; i++) {
        expect_ok(hl_lock_release_as(held, holders, NULL));
        check(recorder_wait(&told, i + 1));
        expect_ok(hl_lock_acquire_async(held,
                                        ACQUIRE(.owner = holders, .wait_ms = -1, .lease_ms = 20000),
                                        record_done, &told_too));
        expect_in_queue(1);
        expect_ok(hl_lock_release_as(lock, owner, NULL));
        check(recorder_wait(&told_too, i + 1));
        if (i == TURNS - 1)
            break;
        wait_async(owner, &told, ACQUIRE(.lease_ms = 20000));
        expect_in_queue(1);
    }
    int64_t cost = redis_evalsha_calls(server) - calls;
    check_msg(cost <= 2 * 2 * TURNS * 11 / 10, "%d scripts for %d acquisitions", (int)cost,
              2 * TURNS);
    /* An answer may overtake a grant once: after the subscription, each asks a second time. */
    check(stats_of(holder).grants + stats_of(waiter.client).grants >= 2 * TURNS - 2);
    contention_end();
}

TcpLaw(a_granted_hold, is_renewed_when_it_lasts)
{
    contention_begin(2000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(waiter.client).grants, 1);
    wait_stat(waiter.client, renewals, 1);
    check(pttl_of(lock) > 20000);
    check(hl_lock_validity_ms(lock, owner) > 20000);
    contention_end();
}

/* However long the claim and the lease are, and however early the watchdog looks. */
TcpLaw(a_granted_hold, is_not_renewed_before_it_lasts)
{
    contention_begin(10000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    int64_t before_ms = now_ms(); /* before the grant */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    wait_stat(waiter.client, renewals, 1);
    check_int(stats_of(waiter.client).grants, 1);
    check_msg(now_ms() - before_ms >= 99, "after %lld ms", (long long)(now_ms() - before_ms));
    contention_end();
}

/* ---- Leases and claims ---- */

TcpLaw(a_granted_hold, with_a_lease_time_gets_what_is_left_of_it)
{
    contention_begin(1000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 10000));
    expect_settled();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    int64_t got_ms = now_ms();
    wait_stat(waiter.client, renewals, 1);
    int64_t left_ms = pttl_of(lock);
    check(now_ms() + left_ms > got_ms + 5000); /* a claim that is not prolonged ends at 4000 */
    check(now_ms() + pttl_of(lock) <= got_ms + 10000 + 4000); /* it is not the watchdog's 30 s */
    check(hl_lock_validity_ms(lock, owner) <= 10000);
    contention_end();
}

TcpLaw(a_granted_hold, whose_lease_is_shorter_than_a_claim_ends_with_its_lease)
{
    contention_begin(10000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 100));
    expect_settled();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    int64_t got_ms = now_ms();
    check(hl_lock_validity_ms(lock, owner) <= 100);
    while (hl_lock_is_held(lock, owner))
        deadline_nap();
    check(now_ms() - got_ms < slow_ms(10000)); /* a claim is four polls long */
    expect_outcome(hl_lock_release_as(lock, owner, NULL), HL_ELOST);
    expect_free(lock);
    contention_end();
}

/* ---- The caller checks the validity itself ---- */

TcpLaw(a_grant_by_message, that_its_caller_hears_of_too_late_is_no_hold)
{
    contention_begin(1000, 10000);
    hl_client *sleeper = open_client(CLIENT(.flags = HL_CLIENT_DISPATCH, .poll_ms = 10000));
    hl_lock *sleepers = new_lock(sleeper, "stock");
    hl_owner *sleeping = new_owner(sleeper);
    struct pollfd bell = {.fd = hl_client_fd(sleeper), .events = POLLIN};
    int64_t calls = redis_evalsha_calls(server) + 2; /* it asks, and once more when it listens */
    expect_ok(hl_lock_acquire_async(
        sleepers, ACQUIRE(.wait_ms = -1, .lease_ms = 100, .owner = sleeping), record_done, &told));
    expect_calls(calls);
    expect_ok(hl_client_ping(sleeper, -1, NULL));
    expect_ok(hl_lock_release(held, NULL));
    check_int(poll(&bell, 1, (int)slow_ms(5000)), 1);
    check_int(stats_of(sleeper).grants, 1);
    redis_do(server, "PEXPIRE stock 100"); /* the claim, shortened, runs out */
    check(wait_until(is_over, "stock", 5000));
    expect_ok(hl_lock_acquire(held, NULL));
    check(!hl_lock_is_held(sleepers, sleeping));
    hl_client_dispatch(sleeper);
    expect_story(&told, "");
    expect_ok(hl_lock_release(held, NULL));
    while (recorder_count(&told) == 0) {
        check_int(poll(&bell, 1, (int)slow_ms(5000)), 1);
        hl_client_dispatch(sleeper);
    }
    expect_story(&told, "done HL_OK");
    contention_end();
}

/* ---- A holder is told to look ---- */

static void tell_to_look(hl_client *client)
{
    check_int(redis_int(server, "EVAL %s 0 %s", "return redis.call('PUBLISH', ARGV[1], 'l stock')",
                        mailbox_of(client)),
              1);
}

static void tell_grant(hl_client *client)
{
    check_int(redis_int(server, "EVAL %s 0 %s %s",
                        "return redis.call('PUBLISH', ARGV[1], "
                        "'g ' .. ARGV[2] .. ':99 1 1 4000 0 other')",
                        mailbox_of(client), hl_client_id(client)),
              1);
}

/* The look ran before the key was deleted, and says so only when the client has heard of that. */
TcpLaw(a_holder, looks_again_when_it_is_told_while_a_look_is_under_way)
{
    struct two_links links;
    two_links_open(&links, CLIENT(.poll_ms = 600000, .request_timeout_ms = 60000,
                                  .on_event = record_event, .arg = &told));
    hl_lock *mine = new_lock(links.client, "stock");
    expect_ok(hl_lock_acquire_with(mine, ACQUIRE(.lease_ms = 3600000), ERR));
    tell_to_look(links.client);
    wait_stat(links.client, renewals, 1); /* the server knows the script from now on */
    proxy_hold(links.proxy, links.commands, PROXY_DOWN);
    tell_to_look(links.client);
    expect_kept(&links, links.commands, PROXY_DOWN);
    redis_do(server, "DEL stock");
    int64_t calls = redis_evalsha_calls(server);
    tell_to_look(links.client);
    tell_grant(links.client); /* which nobody waits for: its release shows that both are heard */
    expect_calls(calls + 1);
    proxy_release(links.proxy, links.commands, PROXY_DOWN);
    expect_story(&told, "LOST gone");
    check(!hl_lock_is_held(mine, NULL));
    expect_outcome(hl_lock_release(mine, ERR), HL_ELOST);
    two_links_close(&links);
}
