/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Fencing tokens: each is larger than that of every hold before, whoever had that and however the
 * lock came from there to here; it is exact in all its bits, and one that comes too late is
 * nobody's.
 */

#include "fenced_kit.h"
#include "support/actor.h"
#include "support/kinds.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

Law(tokens, grow_from_thread_to_thread_when_the_lock_is_passed_without_a_request)
{
    static struct ledger ledger;
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client), *locks[WORKERS] = {lock, lock, lock, lock};
    uint64_t holds = 0;
    do {
        work_beside(locks, &ledger, 100);
        holds += 100 * WORKERS;
    } while (stats_of(client).passes == 0 && holds < 40000);
    expect_order(&ledger, holds);
    check(stats_of(client).passes > 0);
}

Law(tokens, grow_from_client_to_client_when_the_lock_is_granted)
{
    static struct ledger ledger;
    hl_client *clients[WORKERS];
    hl_lock *locks[WORKERS];
    uint64_t holds = 0, grants = 0;
    for (int i = 0; i < WORKERS; i++) {
        clients[i] = open_client(NULL);
        locks[i] = new_fenced(clients[i]);
    }
    do {
        work_beside(locks, &ledger, 50);
        holds += 50 * WORKERS;
        for (int i = 0; i < WORKERS; i++)
            grants += stats_of(clients[i]).grants;
    } while (grants == 0 && holds < 20000);
    expect_order(&ledger, holds);
    check(grants > 0);
}

/* Threads and clients at once: passes and grants in turn. */
Law(tokens, grow_when_some_wait_here_and_some_elsewhere)
{
    static struct ledger ledger;
    hl_client *one = open_client(NULL), *two = open_client(NULL);
    hl_lock *here = new_fenced(one), *there = new_fenced(two);
    hl_lock *locks[WORKERS] = {here, here, here, there};
    work_beside(locks, &ledger, 200);
    expect_order(&ledger, 200 * WORKERS);
}

static void work_as_process(struct process *self, void *arg)
{
    enum { GO, URL_AT = 4096, HOLDS = 60 };
    struct ledger *ledger = arg;
    check(process_await(self, GO, 1, 60000));
    hl_client *client = open_client_at((char *)process_shared(self) + URL_AT, NULL);
    hl_lock *lock = new_fenced(client);
    hl_lock *locks[WORKERS] = {lock, lock, lock, lock};
    work_beside(locks, ledger, HOLDS);
    free_lock(lock);
    close_client(client);
}

Test(tokens, grow_from_process_to_process, .fini = server_down)
{
    enum { PROCESSES = 3, GO = 0, URL_AT = 4096, HOLDS = 60 };
    struct process *process[PROCESSES];
    struct ledger *ledger =
        mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ledger != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++)
        process[i] = process_start(work_as_process, ledger);
    server_up();
    for (int i = 0; i < PROCESSES; i++) {
        snprintf((char *)process_shared(process[i]) + URL_AT, 128, "%s", redis_server_url(server));
        process_tell(process[i], GO);
    }
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 60000), 0);
    expect_order(ledger, PROCESSES * WORKERS * HOLDS);
}

Law(tokens, grow_when_a_retained_lock_is_resumed)
{
    hl_client *client = open_client(NULL);
    hl_lock_options retains = HL_LOCK_OPTIONS_INIT;
    struct ledger ledger = {0};
    uint64_t holds = 0;
    retains.retain_ms = 200;
    hl_lock *lock = new_fenced_with(client, &retains);
    for (; stats_of(client).retained < 20 && holds < 20000; holds++)
        note(&ledger, hold_once(lock));
    check(stats_of(client).retained >= 20);
    /* The shortest way: no options, and so without any wait. */
    expect_ok(hl_lock_acquire(lock, NULL));
    note(&ledger, hl_lock_token(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    hl_lock *rivals = new_fenced(open_client(NULL));
    note(&ledger, hold_once(rivals));
    note(&ledger, hold_once(lock));
    expect_order(&ledger, holds + 3);
}

TcpLaw(tokens, grow_over_connections_that_are_cut)
{
    static struct ledger ledger;
    struct proxy *proxy = proxy_start_before(server);
    hl_client *client = open_client_at(proxy_url(proxy), CLIENT(.backoff_min_ms = 1));
    hl_lock *mine = new_fenced(client), *theirs = new_fenced(open_client(NULL));
    uint64_t holds = 0;
    for (int i = 0; i < 20; i++) {
        struct actor *actor = actor_start();
        uint64_t token = 0;
        expect_ok(acquire_token(theirs, ACQUIRE(.wait_ms = -1), &token));
        note(&ledger, token);
        actor_begin_acquire(actor, mine, ACQUIRE(.wait_ms = -1));
        expect_waiters(client, 1);
        if (i % 2 == 0)
            proxy_kill_all(proxy);
        expect_ok(hl_lock_release(theirs, NULL));
        if (i % 4 == 1)
            proxy_kill_all(proxy);
        expect_ok(actor_end(actor));
        token = actor_token(actor);
        note(&ledger, token);
        actor_release(actor, mine, NULL); /* its answer may be lost */
        actor_stop(actor);
        holds += 2;
    }
    expect_order(&ledger, holds);
    close_client(client);
    proxy_stop(proxy);
}

Test(tokens, grow_over_a_restart_of_a_server_that_keeps_its_data, .fini = server_down)
{
    server_up_with(&(struct redis_options){.appendonly = true});
    redis_do(server, "CONFIG SET appendfsync always");
    hl_client *client = open_client(CLIENT(.backoff_min_ms = 5));
    hl_lock *lock = new_fenced(client);
    uint64_t before = hold_once(lock);
    expect_gone(server, "stock");
    redis_server_kill(server);
    redis_server_restart(server);
    check(hold_once(lock) > before);
}

/* Redisson takes a token with each acquire, nested ones included. */
static uint64_t redisson_holds(void)
{
    redis_do(server, "HSET stock 0a1b2c3d-0000-4000-8000-1234567890ab:71 1");
    redis_do(server, "PEXPIRE stock 30000");
    redis_do(server, "INCR " COUNTER);
    uint64_t token = (uint64_t)redis_int(server, "INCR " COUNTER);
    redis_do(server, "DEL stock");
    redis_do(server, "PUBLISH redisson_lock__channel:{stock} 0");
    return token;
}

Law(tokens, grow_beside_a_client_of_redissons)
{
    struct ledger ledger = {0};
    hl_lock *lock = new_fenced(open_client(NULL));
    for (int i = 0; i < 10; i++) {
        note(&ledger, hold_once(lock));
        expect_gone(server, "stock"); /* Redisson's client waits while the lock is retained */
        note(&ledger, redisson_holds());
    }
    expect_order(&ledger, 20);
}

Law(tokens, are_exact_in_all_their_bits)
{
    static const char *const befores[] = {"9007199254740992", "4611686018427387904",
                                          "9223372036854000000"};
    static const uint64_t firsts[] = {9007199254740993u, 4611686018427387905u,
                                      9223372036854000001u};
    for (size_t i = 0; i < 3; i++) {
        hl_client *client = open_client(NULL);
        hl_lock *lock = new_fenced(client),
                *next = new_fenced(open_client(CLIENT(.poll_ms = 5000)));
        struct actor *actor = actor_start();
        uint64_t token = 0;
        redis_do(server, "SET " COUNTER " %s", befores[i]);
        expect_ok(hl_lock_acquire(lock, NULL));
        check(hl_lock_token(lock, NULL) == firsts[i]);
        uint64_t counted = counter(); /* some may be taken in advance */
        actor_begin_acquire(actor, next, ACQUIRE(.wait_ms = -1));
        check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{stock}"));
        expect_ok(hl_lock_release(lock, NULL));
        expect_ok(actor_end(actor)); /* by a grant, beside which a request may have taken one */
        token = actor_token(actor);
        check_msg(token > counted && token <= counter(), "%llu after %llu",
                  (unsigned long long)token, (unsigned long long)counted);
        expect_ok(actor_release(actor, next, NULL));
        actor_stop(actor);
        expect_gone(server, "stock");
    }
}

/*
 * A token that was given too late to be a hold, in an answer that lay in the network for longer
 * than its lease; then others had larger ones; then the same request got the lock for an owner that
 * needs no token, and that owner passes it on to one that needs a token.
 */
struct late_token {
    hl_client *client;
    hl_lock *plain, *fenced;
    hl_owner *first, *second, *third;
    uint64_t token;
};

static void note_token(int code, const hl_error *err, void *arg)
{
    struct late_token *late = arg;
    late->token = hl_lock_token(late->fenced, late->third);
    record_done(code, err, &told);
}

static void pass_on(int code, const hl_error *err, void *arg)
{
    struct late_token *late = arg;
    (void)err;
    check_int(code, HL_OK);
    expect_ok(hl_lock_acquire_async(late->fenced, ACQUIRE(.wait_ms = -1, .owner = late->third),
                                    note_token, late));
    expect_ok(hl_lock_release_async(late->plain, late->second, record_done, &told));
}

TcpLaw(tokens, that_came_too_late_are_given_to_no_hold)
{
    static struct late_token late;
    struct proxy *proxy = proxy_start_before(server);
    hl_cancel *cancel = new_cancel();
    hl_lock *rivals = new_fenced(open_client(NULL));
    late.client = open_client_at(proxy_url(proxy),
                                 CLIENT(.watchdog_timeout_ms = slow_ms(1500), .backoff_min_ms = 1,
                                        .poll_ms = 50, .request_timeout_ms = slow_ms(20000),
                                        .outage_timeout_ms = slow_ms(60000)));
    late.fenced = new_fenced(late.client);
    late.plain = new_lock(late.client, "stock");
    late.first = new_owner(late.client);
    late.second = new_owner(late.client);
    late.third = new_owner(late.client);
    uint64_t largest = hold_once(late.fenced);
    expect_gone(server, "stock");
    expect_ok(hl_client_ping(late.client, -1, ERR)); /* behind the answer to the release */
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    int64_t calls = redis_evalsha_calls(server);
    expect_ok(hl_lock_acquire_async(late.fenced,
                                    ACQUIRE(.wait_ms = -1, .owner = late.first, .cancel = cancel),
                                    record_done, &told));
    expect_ok(hl_lock_acquire_async(late.plain, ACQUIRE(.wait_ms = -1, .owner = late.second),
                                    pass_on, &late));
    struct deadline asked = deadline_in(5000); /* the key stands for a moment only */
    while (redis_evalsha_calls(server) == calls && !deadline_is_over(asked))
        deadline_nap();
    check(redis_evalsha_calls(server) > calls);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    largest = hold_once(rivals);
    expect_gone(server, "stock");
    proxy_hold(proxy, PROXY_EVERY, PROXY_UP); /* what is asked next gets lost */
    proxy_release(proxy, PROXY_EVERY, PROXY_DOWN);
    struct deadline deadline = deadline_in(5000);
    while (proxy_kept(proxy, PROXY_EVERY, PROXY_UP) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    proxy_kill_all(proxy);
    proxy_pass(proxy);
    check(recorder_wait(&told, 3));
    check_msg(late.token > largest, "%llu after %llu", (unsigned long long)late.token,
              (unsigned long long)largest);
    close_client(late.client);
    proxy_stop(proxy);
}

static hl_lock *new_retaining(hl_client *client)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.retain_ms = 1000;
    return new_fenced_with(client, &options);
}

enum { SEEN = 900000000 }; /* more than are taken in advance */

Law(raised, are_tokens_that_were_taken_in_advance_too)
{
    hl_lock *lock = new_retaining(open_client(NULL));
    check(hold_once(lock) < SEEN);
    check(counter() > 1); /* others were taken in advance */
    expect_ok(hl_lock_raise_token(lock, SEEN, NULL));
    check(hold_once(lock) > SEEN);
}

Law(raised, is_the_next_hold_and_not_the_present_one)
{
    hl_client *client = open_client(NULL), *rival = open_client(NULL);
    hl_lock *lock = new_fenced(client), *rivals = new_fenced(rival);
    expect_ok(hl_lock_acquire(lock, NULL));
    uint64_t token = hl_lock_token(lock, NULL);
    expect_ok(hl_lock_raise_token(rivals, SEEN, NULL)); /* by any client, also beside a holder */
    check(hl_lock_is_held(lock, NULL) && hl_lock_token(lock, NULL) == token);
    expect_ok(hl_lock_release(lock, NULL));
    check(hold_once(rivals) > SEEN);
    expect_ok(hl_lock_raise_token_async(lock, UINT64_C(1) << 62, record_done, &told));
    expect_story(&told, "done HL_OK");
    check(hold_once(lock) > UINT64_C(1) << 62);
}

Law(raised, is_a_counter_never_to_less)
{
    hl_lock *lock = new_fenced(open_client(NULL));
    redis_do(server, "SET " COUNTER " 900000000 EX 1000");
    expect_ok(hl_lock_raise_token(lock, 899999999, NULL));
    check_int(counter(), 900000000);
    expect_ok(hl_lock_raise_token(lock, 900000000, NULL));
    check_int(counter(), 900000000);
    check_int(redis_int(server, "PTTL " COUNTER), -1);      /* it never begins anew */
    expect_ok(hl_lock_raise_token(lock, 1000000000, NULL)); /* one more digit */
    check_int(counter(), 1000000000);
}

Law(raised, is_nothing_else_than_a_counter)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_fenced(client), *plain = new_lock(client, "stock");
    expect_outcome(hl_lock_raise_token(NULL, 1, NULL), HL_EINVAL);
    expect_outcome(hl_lock_raise_token(plain, 1, NULL), HL_EINVAL);
    expect_outcome(hl_lock_raise_token(lock, 0, NULL), HL_EINVAL);
    expect_outcome(hl_lock_raise_token(lock, HL_TOKEN_RAISE_MAX + 1, NULL), HL_EINVAL);
    expect_outcome(hl_lock_raise_token_async(lock, 1, NULL, NULL), HL_EINVAL);
    expect_gone(server, COUNTER);
    redis_do(server, "SET " COUNTER " many");
    expect_outcome(hl_lock_raise_token(lock, 1, NULL), HL_ESERVER);
    redis_do(server, "DEL " COUNTER);
    redis_do(server, "LPUSH " COUNTER " 1");
    expect_outcome(hl_lock_raise_token(lock, 1, NULL), HL_ESERVER);
}
