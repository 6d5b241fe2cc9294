/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Closing a client, and the codes of its handles afterwards. */

#include <pthread.h>

#include "lease/calls/client.h"
#include "lease/hold/renewal.h"
#include "support/actor.h"
#include "support/census.h"
#include "support/kit.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/recorder.h"

static struct recorder told = RECORDER_INIT;

Law(close, ends_every_wait)
{
    hl_lock *held = new_lock(open_client(NULL), "stock");
    hl_client *client = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *lock = new_lock(client, "stock");
    struct actor *actor[3];
    expect_ok(hl_lock_acquire(held, NULL));
    for (int i = 0; i < 3; i++)
        actor_begin_acquire(actor[i] = actor_start(), lock,
                            ACQUIRE(.wait_ms = i == 0 ? 60000 : -1));
    expect_ok(hl_lock_acquire_async(lock, ACQUIRE(.wait_ms = -1, .owner = new_owner(client)),
                                    record_done, &told));
    expect_waiters(client, 4);
    close_client(client);
    expect_story(&told, "done HL_ECANCELED");
    for (int i = 0; i < 3; i++) {
        expect_outcome(actor_end(actor[i]), HL_ECANCELED);
        check_str(actor_error(actor[i]), "acquire 'stock': the client is closed");
    }
    expect_ok(hl_lock_release(held, NULL));
    expect_free(held);
}

Law(close, reports_holds_as_lost_and_lets_them_expire)
{
    hl_client *client = open_client(
        CLIENT(.watchdog_timeout_ms = slow_ms(6000), .on_event = record_event, .arg = &told));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    close_client(client);
    expect_story(&told, "LOST closed");
    check(!hl_lock_is_held(lock, NULL));
    check_int(redis_int(server, "EXISTS stock"), 1);
    expect_free(lock); /* not renewed */
}

/* The answers to renewals, kept until some moment of the close. */
struct answers {
    struct proxy *proxy;
    int commands;
    useconds_t moment;
};

static bool answers_are_of_as_many_as_may_be(void *arg)
{
    const struct answers *answers = arg;
    return proxy_kept(answers->proxy, answers->commands, PROXY_DOWN) >=
           HLI_RENEWAL_IN_FLIGHT / HLI_RENEWAL_HOLDS * strlen("*0\r\n");
}

static void *answers_let_go(void *arg)
{
    const struct answers *answers = arg;
    usleep(answers->moment);
    proxy_release(answers->proxy, answers->commands, PROXY_DOWN);
    return NULL;
}

/* More holds are due than may be in flight; batches come back while the watchdog is emptied. On a
 * busy machine the holds may be lost before so many are due: then more rounds follow, with a longer
 * lease. */
TcpLaw(close, may_come_while_renewals_are_answered)
{
    enum { ROUNDS = 8, HOLDS = HLI_RENEWAL_IN_FLIGHT + HLI_RENEWAL_HOLDS };
    struct answers answers = {.proxy = proxy_start_before(server)};
    int met = 0;
    for (int i = 0; i < ROUNDS || (met == 0 && i < 4 * ROUNDS); i++) {
        int64_t lease_ms = 300 * (1 + i / ROUNDS);
        hl_client *client = open_client_at(proxy_url(answers.proxy),
                                           CLIENT(.watchdog_timeout_ms = slow_ms(lease_ms)));
        hl_lock *locks[HOLDS];
        pthread_t thread;
        for (int k = 0; k < HOLDS; k++) {
            char name[32];
            snprintf(name, sizeof name, "%d:%d", i, k);
            expect_ok(hl_lock_new(client, name, &locks[k], NULL));
            expect_ok(hl_lock_acquire(locks[k], NULL));
        }
        answers.commands = proxy_find(answers.proxy, "EVALSHA");
        answers.moment = (useconds_t)(i % ROUNDS) * 150;
        proxy_hold(answers.proxy, answers.commands, PROXY_DOWN);
        met += wait_until(answers_are_of_as_many_as_may_be, &answers, lease_ms);
        deadline_nap(); /* others are due */
        check_int(pthread_create(&thread, NULL, answers_let_go, &answers), 0);
        close_client(client);
        pthread_join(thread, NULL);
        for (int k = 0; k < HOLDS; k++)
            hl_lock_free(locks[k]);
    }
    proxy_stop(answers.proxy);
    check(met > 0);
}

Law(close, releases_holds_when_it_was_asked_to)
{
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE, .request_timeout_ms = 60000,
                           .on_event = record_event, .arg = &told));
    hl_client *next = open_client(CLIENT(.poll_ms = 10000));
    struct actor *waiter = actor_start();
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(hl_lock_acquire(lock, NULL));
    expect_ok(
        hl_lock_acquire_with(new_lock(client, "owned"), ACQUIRE(.owner = new_owner(client)), NULL));
    actor_begin_acquire(waiter, new_lock(next, "stock"), ACQUIRE(.wait_ms = -1));
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 5000));
    close_client(client);
    check_int(redis_int(server, "EXISTS owned"), 0);
    expect_ok(actor_end(waiter));
    expect_story(&told, "");
}

Law(close, leaves_no_thread_and_no_descriptor)
{
    int files = census_files(), sockets = census_sockets();
    for (int i = 0; i < 5; i++) {
        hl_client *client = open_client(CLIENT(.on_event = record_event, .arg = &told));
        hl_lock *lock = new_lock(client, "stock");
        check(census_threads_named("hirelock") >= 3);
        expect_ok(
            hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(10)), NULL));
        close_client(client);
        check(census_waits_for_no_thread());
        check_int(census_sockets(), sockets);
        check_int(census_files(), files); /* although a handle is left */
        free_lock(lock);
    }
}

SingleLaw(close, of_a_client_whose_server_does_not_answer_takes_one_request_timeout)
{
    hl_client *client = open_client(
        CLIENT(.flags = HL_CLIENT_RELEASE_ON_CLOSE, .request_timeout_ms = slow_ms(200)));
    expect_ok(hl_lock_acquire(new_lock(client, "stock"), NULL));
    redis_server_freeze(server);
    int64_t before_ms = now_ms();
    close_client(client);
    check(now_ms() - before_ms < slow_ms(8000));
    redis_server_thaw(server);
}

static hl_lock *asked;
static int answer;

static void job_inspect(void *arg)
{
    (void)arg;
    answer = hl_lock_inspect(asked, &(hl_lock_info)HL_LOCK_INFO_INIT, NULL);
}

static void job_force(void *arg)
{
    (void)arg;
    answer = hl_lock_force_release(asked, NULL);
}

static void job_ping(void *client)
{
    answer = hl_client_ping(client, -1, NULL);
}

SingleLaw(close, ends_single_calls_that_are_under_way)
{
    static void (*const jobs[])(void *) = {job_inspect, job_force, job_ping};
    for (int i = 0; i < 3; i++) {
        hl_client *client = open_client(CLIENT(.request_timeout_ms = 60000));
        asked = new_lock(client, "stock");
        struct actor *actor = actor_start();
        expect_ok(hl_client_ping(client, -1, NULL)); /* what it sends by itself is sent by now */
        uint64_t commands = stats_of(client).commands;
        redis_server_freeze(server);
        actor_begin(actor, jobs[i], client);
        wait_stat(client, commands, commands + 1);
        close_client(client);
        actor_await(actor);
        redis_server_thaw(server);
        /* What was sent and may change something is not known to be undone. */
        expect_outcome(answer, jobs[i] == job_force ? HL_EINDOUBT : HL_ECANCELED);
    }
}

static bool has_pending_call(void *arg)
{
    hl_client *client = arg;
    pthread_mutex_lock(&client->calls_mutex);
    bool has = !TAILQ_EMPTY(&client->calls);
    pthread_mutex_unlock(&client->calls_mutex);
    return has;
}

Law(close, ends_single_calls_that_wait_for_a_server)
{
    static void (*const jobs[])(void *) = {job_inspect, job_force, job_ping};
    for (int i = 0; i < 3; i++) {
        hl_client *client =
            open_client_at("unix:///nowhere/redis.sock", CLIENT(.flags = HL_CLIENT_LAZY));
        asked = new_lock(client, "stock");
        struct actor *actor = actor_start();
        actor_begin(actor, jobs[i], client);
        check(wait_until(has_pending_call, client, 5000));
        close_client(client);
        actor_await(actor);
        expect_outcome(answer, HL_ECANCELED);
    }
}

SingleLaw(close, tells_of_async_calls_that_are_under_way)
{
    hl_client *client = open_client(CLIENT(.request_timeout_ms = slow_ms(300)));
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    redis_server_freeze(server);
    expect_ok(hl_lock_inspect_async(lock, record_info, &told));
    expect_ok(hl_lock_release_async(lock, owner, record_done, &told));
    close_client(client);
    check_int(recorder_count(&told), 2);
    check(recorder_says(&told, "info HL_ECANCELED"));
    check(recorder_says(&told, "done HL_EINDOUBT"));
    redis_server_thaw(server);
}

Law(close, may_come_while_threads_go_on_calling)
{
    for (int i = 0; i < 20; i++) {
        hl_client *client = open_client(NULL);
        hl_lock *lock = new_lock(client, "stock");
        struct actor *actor[4];
        for (int k = 0; k < 4; k++)
            actor_begin_acquire(actor[k] = actor_start(), lock, ACQUIRE(.wait_ms = -1));
        close_client(client);
        for (int k = 0; k < 4; k++) {
            int code = actor_end(actor[k]);
            check(code == HL_OK || code == HL_ECANCELED || code == HL_ECLOSED);
            check(!actor_holds(actor[k], lock, NULL));
            actor_stop(actor[k]);
        }
        redis_do(server, "DEL stock");
    }
}

static void expect_all(hl_client *client, hl_lock *lock, hl_owner *owner, int code)
{
    hl_lock *new = NULL;
    hl_owner *new_one = NULL;
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(hl_lock_new(client, "stock", &new, NULL), code);
    expect_outcome(hl_owner_new(client, &new_one), code);
    expect_outcome(hl_lock_acquire(lock, &err), code);
    check_int(err.code, code);
    check_str(err.text, hl_err_text(code));
    expect_outcome(hl_lock_try_acquire(lock, NULL), code);
    expect_outcome(hl_lock_acquire_for(lock, 10, NULL), code);
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL), code);
    expect_outcome(hl_lock_release(lock, NULL), code);
    expect_outcome(hl_lock_release_as(lock, owner, NULL), code);
    expect_outcome(hl_lock_force_release(lock, NULL), code);
    expect_outcome(hl_lock_inspect(lock, &info, NULL), code);
    expect_outcome(hl_lock_acquire_async(lock, ACQUIRE(.owner = owner), record_done, &told), code);
    expect_outcome(hl_lock_release_async(lock, owner, record_done, &told), code);
    expect_outcome(hl_lock_force_release_async(lock, record_done, &told), code);
    expect_outcome(hl_lock_inspect_async(lock, record_info, &told), code);
    expect_outcome(hl_client_ping(client, 10, NULL), code);
    expect_outcome(hl_client_fd(client), code);
    expect_outcome(hl_client_dispatch(client), code);
    check(!hl_lock_is_held(lock, NULL) && !hl_lock_is_held(lock, owner));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    check_int(hl_lock_hold_count(lock, owner), 0);
    check_str(hl_lock_name(lock, NULL), "stock");
    check_int(recorder_count(&told), 0);
}

/* The client's memory lives on as long as one of its handles. */
Law(closed, is_what_every_call_on_a_handle_answers)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    hl_owner *owner = new_owner(client);
    expect_ok(hl_lock_acquire(lock, NULL));
    close_client(client);
    expect_all(client, lock, owner, HL_ECLOSED);
    stats_of(client);
}

Law(handles, may_be_freed_in_any_order)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *late = new_lock(client, "stock");
    hl_owner *owner = new_owner(client), *late_owner = new_owner(client);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.owner = owner), NULL));
    free_lock(lock);
    free_owner(owner);
    expect_held_by(client, late, 1);
    close_client(client);
    free_owner(late_owner);
    free_lock(late);
}

Law(handles, may_be_freed_while_the_lock_is_held_and_made_anew)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, NULL));
    free_lock(lock);
    lock = new_lock(client, "stock");
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_free(lock);
}

static struct {
    hl_client *client;
    hl_lock *lock;
    hl_owner *owner;
} parents;

static void call_everything(struct process *self, void *arg)
{
    (void)self, (void)arg;
    expect_all(parents.client, parents.lock, parents.owner, HL_EFORKED);
    expect_outcome(hl_client_close(parents.client), HL_EFORKED);
    expect_outcome(hl_client_stats(parents.client, &(hl_stats){.size = sizeof(hl_stats)}),
                   HL_EFORKED);
    hl_lock_free(parents.lock);
    hl_owner_free(parents.owner);
}

Law(forked, is_what_every_call_on_a_parents_handle_answers)
{
    parents.client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(6000)));
    parents.lock = new_lock(parents.client, "stock");
    parents.owner = new_owner(parents.client);
    expect_ok(hl_lock_acquire(parents.lock, NULL));
    check_int(process_finish(process_start(call_everything, NULL), 20000), 0);
    wait_stat(parents.client, renewals, stats_of(parents.client).renewals + 1);
    check(hl_lock_is_held(parents.lock, NULL));
    expect_ok(hl_lock_release(parents.lock, NULL));
}
