/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Passing: a lock goes from one owner of a client to the next without a request. To which owner,
 * for how long, and when it may not.
 *
 * A pass needs fresh word that no other client waits, and a busy machine may let that word grow
 * old. So a test repeats its release until it is a pass, or, if it must not be a pass, many times.
 */

#include "passing_line.h"

#include "redis/script.h"
#include "support/ear.h"

static struct recorder events = RECORDER_INIT;

TcpLaw(pass, goes_to_the_first_in_the_line_and_sends_nothing)
{
    begin(NULL);
    int64_t commands = -1;
    struct deadline deadline = deadline_in(20000);
    for (int turn = 1; commands != 0; turn++) {
        check(!deadline_is_over(deadline));
        take(holding, &plain);
        for (int i = 0; i < LINE; i++)
            line_up(i, &plain);
        int64_t calls = redis_evalsha_calls(server);
        uint64_t before = passes();
        give(holding);
        for (int i = 0; i < LINE; i++) {
            expect_turn(i, turn);
            for (int k = i + 1; k < LINE; k++)
                check_int(atomic_load(&told[k]), turn - 1);
            if (i == LINE - 1 && passes() == before + LINE)
                commands = redis_evalsha_calls(server) - calls;
            give(line[i]);
        }
        expect_free(stock);
    }
}

static bool keep_is_asked(void *arg)
{
    (void)arg;
    bool is_asked;
    tamper(is_asked = current() && current()->asking == HLI_ASKING_KEEP);
    return is_asked;
}

/* Passes the lock to the second of the line, behind a KEEP that bounces and whose answer the proxy
 * keeps. False: it was no pass. */
static bool pass_behind_a_bounce(struct proxy *proxy, struct recorder *released)
{
    const struct hli_script *acquire = hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE);
    uint64_t before = passes();
    line_up(1, &plain);
    redis_do(server, "SCRIPT FLUSH");
    redis_do(server, "SCRIPT LOAD %b", acquire->text, acquire->length);
    proxy_hold(proxy, proxy_find(proxy, "EVALSHA"), PROXY_DOWN);
    tamper(current()->no_waiters_at = hli_now() - HLI_MS(10)); /* old enough to be asked for */
    expect_ok(hl_lock_release_async(stock, line[0], record_done, released));
    if (passes() == before + 1 && wait_until(keep_is_asked, NULL, 1000))
        return true;
    proxy_pass(proxy);
    return false;
}

/* A third of the lease is 40 s: a forgotten call would wait for so long. */
TcpLaw(pass, behind_a_bounced_handoff_lets_a_nested_call_have_its_lease)
{
    static struct recorder released = RECORDER_INIT, nested = RECORDER_INIT;
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), CLIENT(.watchdog_timeout_ms = 120000, .request_timeout_ms = 60000));
    int turn = 1;
    begin_passed(&plain);
    for (; !pass_behind_a_bounce(proxy, &released); turn++) {
        expect_turn(1, turn);
        give(line[1]);
        begin_passed(&plain);
    }
    expect_turn(1, turn);
    expect_ok(hl_lock_acquire_async(stock,
                                    ACQUIRE(.owner = line[1], .wait_ms = -1, .lease_ms = 3600000),
                                    record_done, &nested));
    proxy_pass(proxy);
    check(recorder_wait_says(&nested, "done HL_OK"));
    give(line[1]);
    give(line[1]);
    expect_free(stock);
    close_client(client);
    proxy_stop(proxy);
}

/* ---- The field is the tenure's ---- */

TcpLaw(a_chain_of_passes, leaves_the_field_and_survives_a_link_and_scripts_that_are_lost)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy),
             CLIENT(.backoff_min_ms = 1, .on_event = record_event, .arg = &events));
    char field[128];
    for (bool is_done = false; !is_done; give(line[LINE - 1])) {
        take(holding, &plain);
        snprintf(field, sizeof field, "%s", field_of(stock));
        for (int i = 0; i < LINE; i++)
            line_up(i, &plain);
        uint64_t before = passes();
        uint64_t renewals = stats_of(client).renewals;
        int turn = atomic_load(&told[0]) + 1;
        give(holding);
        expect_turn(0, turn);
        redis_do(server, "SCRIPT FLUSH");
        proxy_kill_all(proxy);
        give(line[0]);
        expect_turn(1, turn);
        give(line[1]);
        expect_turn(2, turn);
        is_done = passes() == before + LINE;
        if (!is_done)
            continue;
        wait_stat(client, renewals, renewals + 1); /* on the new link, at once */
        check(hl_lock_is_held(stock, line[LINE - 1]));
        check_str(field_of(stock), field);
    }
    expect_free(stock);
    check(!recorder_says(&events, "LOST"));
    close_client(client);
    proxy_stop(proxy);
}

/* ---- No waiter starves beside it ---- */

static struct recorder others = RECORDER_INIT;

static void begin_rival(int64_t poll_ms)
{
    hl_client *rival = open_client(CLIENT(.poll_ms = poll_ms));
    expect_ok(hl_lock_acquire_async(new_lock(rival, "stock"),
                                    ACQUIRE(.owner = new_owner(rival), .wait_ms = -1), record_done,
                                    &others));
    expect_in_queue(1);
}

static bool has_dropped(void *proxy)
{
    return proxy_dropped(proxy) > 0;
}

static bool somebody_is_told(void *arg)
{
    return recorder_count(&others) > 0 || has_come(arg);
}

/* Back and forth within the client, a pass a millisecond, until the rival has got it. */
static void pass_until_rival_is_served(void)
{
    struct deadline deadline = deadline_in(5000);
    for (int i = 0; recorder_count(&others) == 0; i = !i) {
        check_msg(!deadline_is_over(deadline), "the rival starves; %d passes", (int)passes());
        struct line_turn turn = {!i, atomic_load(&told[!i]) + 1};
        line_up(!i, &plain);
        deadline_nap();
        give(line[i]);
        check(wait_until(somebody_is_told, &turn, 10000));
    }
    expect_ok(recorder_entry(&others, 0).code);
}

TcpLaw(a_waiter_of_another_client, is_served_though_its_messages_are_lost)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), NULL);
    check(redis_wait_subscribers(server, mailbox_of(client), 1, 10000));
    proxy_drop_messages(proxy, mailbox_of(client), 1000000);
    begin_passed(&plain);
    begin_rival(10000);
    pass_until_rival_is_served();
    check(wait_until(has_dropped, proxy, 5000));
    close_client(client);
    proxy_stop(proxy);
}

static bool is_wanted(void *arg)
{
    bool is = false;
    (void)arg;
    tamper(is = current() && current()->has_waiters);
    return is;
}

TcpLaw(a_waiter_of_another_client, ends_all_passing_as_soon_as_its_message_is_heard)
{
    begin(NULL);
    begin_passed(&plain);
    tamper(current()->no_waiters_at = hli_now() + HLI_MS(60000)); /* whatever was said before */
    begin_rival(10000);
    check(wait_until(is_wanted, NULL, 5000));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    check(recorder_wait(&others, 1));
    check_int(passes(), before);
    check_int(atomic_load(&told[1]), 0);
}

TcpLaw(a_want, is_sent_with_every_busy_answer)
{
    begin(NULL);
    take(holding, &plain);
    redisContext *ear = ear_open_unseen("hirelock:*-*");
    begin_rival(50);
    for (int i = 0; i < 4; i++)
        check(strstr(ear_next(ear), " w stock") != NULL);
    redisFree(ear);
}

/* ---- The word ---- */

TcpLaw(pass, goes_on_for_as_long_as_the_word_is_renewed)
{
    begin(NULL);
    char field[128] = "";
    int64_t since_ms = 0;
    struct deadline deadline = deadline_in(60000);
    begin_passed(&plain);
    for (int i = 0; since_ms == 0 || now_ms() < since_ms + 60; i = !i) {
        check_msg(!deadline_is_over(deadline), "no tenure lasts for longer than its first word");
        if (strcmp(field, field_of(stock)) != 0)
            since_ms = now_ms();
        snprintf(field, sizeof field, "%s", field_of(stock));
        int turn = atomic_load(&told[!i]) + 1;
        line_up(!i, &plain);
        deadline_nap();
        give(line[i]);
        expect_turn(!i, turn);
    }
}

TcpLaw(pass, is_not_made_without_fresh_word)
{
    begin(NULL);
    begin_passed(&plain);
    expect_ok(hl_client_ping(client, -1, NULL)); /* no answer brings fresh word */
    tamper(current()->no_waiters_at -= HLI_MS(20));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    expect_turn(1, 1);
    check_int(passes(), before);
}

TcpLaw(passes, of_one_tenure_are_limited)
{
    begin(NULL);
    begin_passed(&plain);
    expect_ok(hl_client_ping(client, -1, NULL)); /* no answer brings older word */
    tamper(current()->passes = 65535; current()->no_waiters_at = hli_now() + HLI_MS(60000));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    expect_turn(1, 1);
    check_int(passes(), before + 1); /* the last one */
    line_up(2, &plain);
    give(line[1]);
    expect_turn(2, 1);
    check_int(passes(), before + 1);
    tamper(check(current()->passes == 0));
}

/* ---- The count is a display ---- */

TcpLaw(nested_calls, send_no_more_than_the_display_needs)
{
    enum { PAIRS = 20000 };
    begin(NULL);
    expect_ok(hl_lock_acquire(stock, NULL));
    uint64_t commands = stats_of(client).commands;
    int64_t before_ms = now_ms();
    for (int i = 0; i < PAIRS; i++) {
        expect_ok(hl_lock_acquire(stock, NULL));
        expect_ok(hl_lock_release(stock, NULL));
    }
    uint64_t sent = stats_of(client).commands - commands;
    int64_t took_ms = now_ms() - before_ms;
    check_msg((int64_t)sent <= took_ms + 10, "%d commands in %d ms", (int)sent, (int)took_ms);
    expect_held_by(client, stock, 1);
    expect_ok(hl_lock_release(stock, NULL));
}
