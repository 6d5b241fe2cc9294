/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Passing: a lock that goes from one owner of a client to the next without a word to the server. To
 * whom, for how long, and when it may not; by the numbers of the traps.
 *
 * A pass needs fresh word that nobody else waits, and a machine that is busy with something else
 * may let that grow old; so what must be a pass is tried until it is one, and what must not be one
 * is tried often.
 */

#include "lease/name.h"
#include "redis/script.h"
#include "support/actor.h"
#include "sync/lock.h"
#include "two_links.h"

#include <poll.h>
#include <stdatomic.h>

#define Law(suite, name) Test(suite, name, .init = server_up_tcp, .fini = server_down)

enum { OFTEN = 20, LINE = 3 };

static hl_client *client;
static hl_lock *stock;
static hl_owner *holding, *line[LINE];
static atomic_int told[LINE]; /* how often it was one's turn */
static struct recorder events = RECORDER_INIT, first_events = RECORDER_INIT;

static void count_turn(int code, const hl_error *err, void *arg)
{
    (void)err;
    if (code == HL_OK) /* and not a wait that the end of the test ends */
        atomic_fetch_add((atomic_int *)arg, 1);
}

static void begin_at(const char *url, const hl_client_options *options)
{
    client = open_client_at(url, options);
    stock = new_lock(client, "stock");
    holding = new_owner(client);
    for (int i = 0; i < LINE; i++)
        line[i] = new_owner(client);
    const struct hli_script *keep = hli_script_get(HLI_SCRIPT_LOCK_KEEP);
    redis_do(server, "SCRIPT LOAD %b", keep->text, keep->length);
    expect_ok(hl_lock_acquire(stock, NULL)); /* from now on the server knows the others, too */
    expect_ok(hl_lock_release(stock, NULL));
}

static void begin(const hl_client_options *options)
{
    begin_at(redis_server_url(server), options);
}

static void take(hl_owner *owner_, const hl_acquire_options *options)
{
    hl_acquire_options asked = *options;
    asked.owner = owner_;
    asked.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_lock_acquire_with(stock, &asked, NULL));
}

/* The i-th of the line waits, behind those before it. */
static void line_up(int i, const hl_acquire_options *options)
{
    hl_acquire_options asked = *options;
    asked.owner = line[i];
    asked.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_lock_acquire_async(stock, &asked, count_turn, &told[i]));
}

static void give(hl_owner *owner_)
{
    expect_ok(hl_lock_release_as(stock, owner_, NULL));
}

struct turn {
    int i, n;
};

static bool has_come(void *arg)
{
    const struct turn *turn = arg;
    return atomic_load(&told[turn->i]) >= turn->n;
}

static void expect_turn(int i, int n)
{
    check(wait_until(has_come, &(struct turn){i, n}, 10000));
}

static uint64_t passes(void)
{
    return stats_of(client).passes;
}

/* Takes it and gives it to the first of the line; was that a pass? */
static bool gives_by_pass(const hl_acquire_options *options, const hl_acquire_options *next_options)
{
    static int turns;
    uint64_t before = passes();
    take(holding, options);
    line_up(0, next_options);
    give(holding);
    expect_turn(0, ++turns);
    return passes() == before + 1;
}

static const hl_acquire_options plain = {.size = sizeof plain};

/* One that was given by a pass, and is held now by the first of the line. */
static void begin_passed(const hl_acquire_options *options)
{
    struct deadline deadline = deadline_in(20000);
    while (!gives_by_pass(&plain, options)) {
        check(!deadline_is_over(deadline));
        give(line[0]);
    }
}

Law(pass, goes_to_the_first_in_the_line_and_sends_nothing)
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

static struct hli_tenure *current(void)
{
    return stock->name->current;
}

/* Changes something of the tenure, as time or others would. */
#define tamper(what)                                                                               \
    do {                                                                                           \
        pthread_mutex_lock(&stock->name->mutex);                                                   \
        what;                                                                                      \
        pthread_mutex_unlock(&stock->name->mutex);                                                 \
    } while (0)

/* ---- F6: the field is the tenure's ---- */

Law(f6_a_chain_of_passes, leaves_the_field_and_survives_a_link_and_scripts_that_are_lost)
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

/* ---- F9: nobody starves beside it ---- */

static struct recorder others = RECORDER_INIT;

static void begin_rival(int64_t poll_ms)
{
    hl_client *rival = open_client(CLIENT(.poll_ms = poll_ms));
    expect_ok(hl_lock_acquire_async(new_lock(rival, "stock"),
                                    ACQUIRE(.owner = new_owner(rival), .wait_ms = -1), record_done,
                                    &others));
    expect_in_queue(1);
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
        struct turn turn = {!i, atomic_load(&told[!i]) + 1};
        line_up(!i, &plain);
        deadline_nap();
        give(line[i]);
        check(wait_until(somebody_is_told, &turn, 10000));
    }
    expect_ok(recorder_entry(&others, 0).code);
}

Law(f9_a_waiter_of_another_client, is_served_though_its_messages_are_lost)
{
    struct proxy *proxy = proxy_start_before(server);
    begin_at(proxy_url(proxy), NULL);
    check(redis_wait_subscribers(server, mailbox_of(client), 1, 10000));
    proxy_drop_messages(proxy, mailbox_of(client), 1000000);
    begin_passed(&plain);
    begin_rival(10000);
    pass_until_rival_is_served();
    check(proxy_dropped(proxy) > 0);
    close_client(client);
    proxy_stop(proxy);
}

static bool is_wanted(void *arg)
{
    bool is = false;
    (void)arg;
    tamper(is = current() && current()->is_wanted);
    return is;
}

Law(f9_a_waiter_of_another_client, ends_all_passing_as_soon_as_its_message_is_heard)
{
    begin(NULL);
    begin_passed(&plain);
    tamper(current()->word_at = hli_now() + HLI_MS(60000)); /* whatever was said before */
    begin_rival(10000);
    check(wait_until(is_wanted, NULL, 5000));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    check(recorder_wait(&others, 1));
    check_int(passes(), before);
    check_int(atomic_load(&told[1]), 0);
}

Law(f9_a_want, is_sent_with_every_busy_answer)
{
    begin(NULL);
    take(holding, &plain);
    redisContext *ear = ear_open("hirelock:*-*");
    begin_rival(50);
    for (int i = 0; i < 4; i++)
        check(strstr(ear_next(ear, 5000), " w stock") != NULL);
    redisFree(ear);
}

/* ---- The word ---- */

Law(pass, goes_on_for_as_long_as_the_word_is_renewed)
{
    begin(NULL);
    char field[128] = "";
    int64_t since_ms = 0;
    struct deadline deadline = deadline_in(20000);
    begin_passed(&plain);
    for (int i = 0; since_ms == 0 || now_ms() < since_ms + 100; i = !i) {
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

Law(pass, is_none_without_fresh_word)
{
    begin(NULL);
    begin_passed(&plain);
    tamper(current()->word_at -= HLI_MS(20));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    expect_turn(1, 1);
    check_int(passes(), before);
}

Law(f18_passes, of_one_tenure_are_limited)
{
    begin(NULL);
    begin_passed(&plain);
    tamper(current()->passes = 65535; current()->word_at = hli_now() + HLI_MS(60000));
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

/* ---- What is not passed ---- */

Law(f14_a_leased_hold, is_neither_passed_nor_given_by_a_pass)
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

Law(f14_a_leased_hold, that_was_taken_deeper_without_a_lease_time_is_passed)
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

Law(pass, is_none_before_the_hold_is_as_old_as_it_must_become)
{
    begin(NULL);
    for (int i = 0; i < 3; i++) {
        int64_t before_ms = now_ms();
        check(!gives_by_pass(ACQUIRE(.min_hold_ms = 60), &plain));
        check(now_ms() - before_ms >= 60);
        give(line[0]);
    }
}

Law(pass, is_none_in_the_last_third_of_the_lease)
{
    begin(NULL);
    begin_passed(&plain);
    tamper(current()->word_at = hli_now() + HLI_MS(60000);
           current()->valid_until = hli_now() + HLI_MS(9000));
    uint64_t before = passes();
    line_up(1, &plain);
    give(line[0]);
    expect_turn(1, 1);
    check_int(passes(), before);
}

/* ---- F4: what keeps a tenure never shortens its lease ---- */

Law(f4_a_keep, never_shortens_a_longer_lease)
{
    begin(NULL);
    struct deadline deadline = deadline_in(20000);
    for (bool is_kept = false; !is_kept; give(line[1])) {
        check(!deadline_is_over(deadline));
        begin_passed(&plain);
        take(line[0], ACQUIRE(.lease_ms = 3600000));
        give(line[0]);
        int turn = atomic_load(&told[1]) + 1;
        int64_t calls = redis_evalsha_calls(server);
        tamper(if (current()->word_at) current()->word_at = hli_now() - HLI_MS(11));
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

/* ---- Losing what was passed ---- */

Law(pass, makes_the_loss_the_business_of_whoever_holds_now)
{
    begin(CLIENT(.watchdog_timeout_ms = 90000));
    struct deadline deadline = deadline_in(20000);
    for (bool is_passed = false; !is_passed;) {
        check(!deadline_is_over(deadline));
        begin_passed(ACQUIRE(.on_event = record_event, .event_arg = &first_events));
        redis_do(server, "DEL stock");
        tamper(if (current()) current()->word_at = hli_now() - HLI_MS(11));
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

Law(pass, to_a_thread_that_ends_is_a_hold_that_is_lost)
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

Law(f16_a_pass, that_its_caller_hears_of_too_late_is_no_hold)
{
    begin(CLIENT(.flags = HL_CLIENT_DISPATCH, .watchdog_timeout_ms = slow_ms(300)));
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
    while (now_ms() < since_ms + slow_ms(300))
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

/* ---- F10: the count is a display ---- */

Law(f10_nested_calls, send_no_more_than_the_display_needs)
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
