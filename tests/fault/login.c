/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Logins that a callback gives: when it is asked, what it may say, and what follows when it fails
 * or blocks. */

#include "login_kit.h"

#include "support/actor.h"
#include "support/census.h"

#include "integration/settled.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

LoginLaw(login, of_a_callback_is_asked_for_at_each_greeting)
{
    static struct desk desk = DESK_INIT;
    static struct events events;

    desk_gives(&desk, "app", ONE, 0);
    hl_client *client = open_client(LOGIN(&desk, .on_event = count_event, .arg = &events));
    check_int(atomic_load(&desk.asked), 1);
    check_int(login_count("app"), 2);
    check_has(redis_server_url(server), desk.address);
    redis_do(server, "ACL SETUSER app resetpass >rotated");
    desk_gives(&desk, "app", "rotated", 0);
    redis_kill_links(server, "hirelock");
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 20000));
    check_int(atomic_load(&desk.asked), 2);
    check_int(login_count("app"), 2);
    login_try_out(client);
}

LoginLaw(login, without_a_user_is_that_of_the_default_user)
{
    static struct desk desk = DESK_INIT;

    redis_do(server, "CONFIG SET requirepass pw");
    redis_do(server, "AUTH pw");
    desk_gives(&desk, NULL, "pw", 0);
    login_try_out(open_client(LOGIN(&desk)));
    check_int(login_count("default"), 2);
    desk_gives(&desk, NULL, NULL, 0);
    expect_no_open(redis_server_url(server), LOGIN(&desk), HL_EDENIED, "NOAUTH");
}

LoginLaw(login, that_the_server_refuses_is_asked_for_again)
{
    static struct desk desk = DESK_INIT;

    desk_gives(&desk, "app", "wrong", 0);
    expect_no_open(redis_server_url(server), LOGIN(&desk), HL_EDENIED,
                   "the server refused the user or password (WRONGPASS)");
    hl_client *client = NULL;
    expect_ok(hl_client_open(redis_server_url(server), LOGIN(&desk, .flags = HL_CLIENT_LAZY),
                             &client, ERR));
    check(desk_was_asked(&desk, 3, 20000));
    desk_gives(&desk, "app", ONE, 0);
    check(login_wait("app", 2, 20000));
    expect_ok(hl_client_close(client));
}

LoginLaw(login, that_the_callback_does_not_give_is_an_error_with_its_reason)
{
    static struct desk desk = DESK_INIT;
    static struct events events;

    desk_fails(&desk, "the token service\nsays 503");
    expect_no_open(redis_server_url(server), LOGIN(&desk), HL_ECONN,
                   "the credentials callback failed: the token service\\x0asays 503");
    desk_gives(&desk, "app", ONE, 0);
    hl_client *client = open_client(LOGIN(&desk, .on_event = count_event, .arg = &events));
    desk_fails(&desk, "503");
    int asked = atomic_load(&desk.asked);
    redis_kill_links(server, "hirelock");
    check(desk_was_asked(&desk, asked + 3, 20000));
    desk_gives(&desk, "app", ONE, 0);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 20000));
    login_try_out(client);
}

/* What a callback may get wrong. */
enum wrong { NOTHING, NO_PASSWORD, EMPTY, LONG_PASSWORD, LONG_USER, PAST, BEYOND, SET_THEN_FAIL };

static void answer_wrongly(const hl_credentials_request *request, hl_credentials *credentials,
                           void *arg)
{
    static char longer[16386];
    enum wrong wrong = *(enum wrong *)arg;
    int rc = HL_EINVAL;

    (void)request;
    memset(longer, 'x', sizeof longer - 1);
    check_int(hl_credentials_set(NULL, "app", ONE, 0), HL_EINVAL);
    check_int(hl_credentials_fail(credentials, NULL), HL_EINVAL);
    if (wrong == NO_PASSWORD)
        rc = hl_credentials_set(credentials, "app", NULL, 0);
    else if (wrong == EMPTY)
        rc = hl_credentials_set(credentials, "app", "", 0);
    else if (wrong == LONG_PASSWORD)
        rc = hl_credentials_set(credentials, "app", longer, 0);
    else if (wrong == LONG_USER)
        rc = hl_credentials_set(credentials, longer, ONE, 0);
    else if (wrong == PAST)
        rc = hl_credentials_set(credentials, "app", ONE, -1);
    else if (wrong == BEYOND)
        rc = hl_credentials_set(credentials, "app", ONE, INT64_C(100000000001));
    else if (wrong == SET_THEN_FAIL)
        check_int(hl_credentials_set(credentials, "app", ONE, 0), 0);
    check_int(rc, HL_EINVAL);
    if (wrong == SET_THEN_FAIL)
        check_int(hl_credentials_fail(credentials, "the last word"), 0);
}

LoginLaw(login, that_makes_no_sense_is_refused_with_a_reason)
{
    static const struct {
        enum wrong wrong;
        const char *says;
    } cases[] = {{NOTHING, "the credentials callback gave no login"},
                 {NO_PASSWORD, "gave a user without a password"},
                 {EMPTY, "gave an empty password"},
                 {LONG_PASSWORD, "gave a password longer than 16,384 bytes"},
                 {LONG_USER, "gave a user longer than 16,384 bytes"},
                 {PAST, "gave a valid_ms that is not from 0 to 10^11 ms"},
                 {BEYOND, "gave a valid_ms"},
                 {SET_THEN_FAIL, "failed: the last word"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_no_open(
            redis_server_url(server),
            CLIENT(.credentials_cb = answer_wrongly, .credentials_arg = (void *)&cases[i].wrong),
            HL_ECONN, cases[i].says);
}

static void answer_at_the_limit(const hl_credentials_request *request, hl_credentials *credentials,
                                void *arg)
{
    (void)request;
    check_int(hl_credentials_fail(credentials, "not the last word"), 0);
    check_int(hl_credentials_set(credentials, "app", arg, 0), 0);
}

LoginLaw(login, may_be_as_long_as_the_server_takes_one)
{
    static char limit[16385];

    memset(limit, 'x', sizeof limit - 1);
    redis_do(server, "ACL SETUSER app resetpass >%s", limit);
    login_try_out(
        open_client(CLIENT(.credentials_cb = answer_at_the_limit, .credentials_arg = limit)));
}

/* The thread takes no signal, and the client cannot be closed on it. */
static hl_client *asker;

static void answer_and_look_around(const hl_credentials_request *request,
                                   hl_credentials *credentials, void *arg)
{
    sigset_t blocked;

    check_int(request->purpose, HL_CREDENTIALS_SERVER);
    check(request->size == sizeof *request);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; i++)
        check(i == SIGKILL || i == SIGSTOP || sigismember(&blocked, i));
    check_int(census_threads_named("hirelock-login"), 1);
    if (asker)
        check_int(hl_client_close(asker), HL_EDEADLK);
    hl_credentials_set(credentials, "app", ONE, 0);
    atomic_fetch_add((atomic_int *)arg, 1);
}

LoginLaw(login, comes_on_a_thread_of_its_own)
{
    static atomic_int calls;

    hl_client *plain = open_client(NULL);
    check_int(census_threads_named("hirelock-login"), 0);
    close_client(plain);
    hl_client *client =
        open_client(CLIENT(.credentials_cb = answer_and_look_around, .credentials_arg = &calls));
    check_int(atomic_load(&calls), 1);
    asker = client;
    redis_kill_links(server, "hirelock");
    check(login_wait("app", 0, 20000) || atomic_load(&calls) > 1);
    check(login_wait("app", 2, 20000));
    check_int(atomic_load(&calls), 2);
    close_client(client);
    check(census_waits_for_no_thread());
}

LoginLaw(login, that_comes_too_late_is_the_next_attempts)
{
    static struct desk desk = DESK_INIT;
    static struct recorder story = RECORDER_INIT;
    hl_client *client = NULL;

    desk_gives(&desk, "app", ONE, 0);
    desk_set_shut(&desk, true);
    expect_ok(hl_client_open(redis_server_url(server),
                             LOGIN_WITHIN(slow_ms(300), &desk, .flags = HL_CLIENT_LAZY,
                                          .on_log = record_log, .arg = &story),
                             &client, ERR));
    check(recorder_wait_says(&story, "no answer of the credentials callback within"));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_client_ping(client, 10, &err), HL_ECONN);
    check_has(err.text, "no answer of the credentials callback");
    check_int(atomic_load(&desk.asked), 1); /* not another call beside it */
    desk_set_shut(&desk, false);
    check(login_wait("app", 2, 20000));
    check_int(atomic_load(&desk.asked), 1);
    expect_ok(hl_client_close(client));
}

static hl_client *closed;
static atomic_bool is_closed;

static void close_it(void *arg)
{
    (void)arg;
    expect_ok(hl_client_close(closed));
    atomic_store(&is_closed, true);
}

/* In the child the callback's thread does not exist; its client is the parent's. */
static void fork_and_try(hl_client *client)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(hl_client_ping(client, 0, NULL) == HL_EFORKED && hl_client_close(client) == HL_EFORKED
                  ? 0
                  : 1);
    check(waitpid(pid, &status, 0) == pid && status == 0);
}

LoginLaw(login, under_way_is_waited_for_by_a_close_and_not_by_a_fork)
{
    static struct desk desk = DESK_INIT;
    struct actor *actor = actor_start();

    desk_gives(&desk, "app", ONE, 0);
    hl_client *client = NULL;
    desk_set_shut(&desk, true);
    expect_ok(hl_client_open(redis_server_url(server), LOGIN(&desk, .flags = HL_CLIENT_LAZY),
                             &client, ERR));
    check(desk_was_asked(&desk, 1, 20000));
    fork_and_try(client);
    closed = client;
    actor_begin(actor, close_it, NULL);
    struct deadline deadline = deadline_of_wait(100);
    while (!deadline_is_over(deadline))
        deadline_nap();
    check(!atomic_load(&is_closed));
    desk_set_shut(&desk, false);
    actor_await(actor);
    check_int(login_count("app"), 0);
    check(census_waits_for_no_thread());
}

/* The user's part of a renewal: a holder and a waiter that only a message wakes. */
struct pair {
    hl_client *client, *other;
    hl_lock *held, *wanted, *others;
    struct actor *actor;
};

static struct pair pair_start(const hl_client_options *options)
{
    struct pair pair = {.client = open_client(options)};

    pair.other = open_client(CLIENT(.client_name = "other"));
    pair.held = new_lock(pair.client, "held");
    pair.wanted = new_lock(pair.client, "wanted");
    pair.others = new_lock(pair.other, "wanted");
    expect_ok(hl_lock_acquire(pair.held, ERR));
    expect_ok(hl_lock_acquire(pair.others, ERR));
    pair.actor = actor_start_acquire(pair.wanted, ACQUIRE(.wait_ms = -1));
    expect_waiters(pair.client, 1);
    return pair;
}

static void pair_end(struct pair *pair)
{
    expect_ok(hl_lock_release(pair->others, ERR));
    expect_ok(actor_end(pair->actor));
    expect_ok(actor_release(pair->actor, pair->wanted, NULL));
    expect_held_by(pair->client, pair->held, 1);
    expect_ok(hl_lock_release(pair->held, ERR));
}

LoginLaw(login, that_ends_is_renewed_on_both_connections_before_it_does)
{
    static struct desk desk = DESK_INIT;
    static struct events events;

    desk_gives(&desk, "app", ONE, slow_ms(6000));
    struct pair pair = pair_start(LOGIN(&desk, .on_event = count_event, .arg = &events));
    check_int(login_count("app"), 2);
    redis_do(server, "CONFIG RESETSTAT");
    desk_gives(&desk, "next", TWO, 0);
    check(login_wait("next", 2, 20000));
    check_int(redis_calls(server, "auth"), 2);
    check(redis_wait_subscribers(server, "hirelock:{wanted}", 1, 20000));
    check_int(atomic_load(&desk.asked), 2);
    redis_do(server, "ACL DELUSER app"); /* it would cut what is still logged in as app */
    expect_ok(hl_client_ping(pair.client, -1, ERR));
    pair_end(&pair);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
}

LoginLaw(login, of_a_client_with_many_channels_is_renewed_again_and_again)
{
    enum { WAITERS = 60 };
    static struct desk desk = DESK_INIT;
    static struct events events;
    struct actor *actor[WAITERS];
    hl_lock *lock[WAITERS], *others[WAITERS];
    char name[WAITERS][80];

    desk_gives(&desk, "app", ONE, 1); /* once a second */
    hl_client *client = open_client(LOGIN(&desk, .on_event = count_event, .arg = &events));
    hl_client *other = open_client(CLIENT(.client_name = "other"));
    hl_owner *owner = new_owner(other);
    for (int i = 0; i < WAITERS; i++) {
        snprintf(name[i], sizeof name[i], "stock:%d:%0*d", i, 1 + i % 60, 0);
        others[i] = new_lock(other, name[i]);
        lock[i] = new_lock(client, name[i]);
        expect_ok(hl_lock_acquire_with(others[i], ACQUIRE(.owner = owner, .wait_ms = -1), ERR));
        actor[i] = actor_start_acquire(lock[i], ACQUIRE(.wait_ms = -1));
    }
    expect_waiters(client, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        if (i % 20 == 0) { /* and in between at any moment of a renewal */
            int asked = atomic_load(&desk.asked);
            desk_gives(&desk, i % 40 ? "app" : "next", i % 40 ? ONE : TWO, 1);
            check(desk_was_asked(&desk, asked + 1, 20000));
        }
        expect_ok(hl_lock_release_as(others[i], owner, ERR));
        expect_ok(actor_end(actor[i]));
        expect_ok(actor_release(actor[i], lock[i], NULL));
    }
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

LoginLaw(login, that_is_renewed_makes_up_for_a_message_that_was_lost)
{
    static struct desk desk = DESK_INIT;
    struct proxy *proxy = new_proxy();
    hl_client *other = open_client(CLIENT(.client_name = "other"));
    hl_lock *others = new_lock(other, "wanted");

    desk_gives(&desk, "app", ONE, slow_ms(2000));
    hl_client *client = open_client_at(proxy_url(proxy), LOGIN(&desk));
    hl_lock *wanted = new_lock(client, "wanted");
    expect_ok(hl_lock_acquire(others, ERR));
    struct actor *actor = actor_start_acquire(wanted, ACQUIRE(.wait_ms = -1));
    expect_settled_wait(wanted);
    proxy_drop_messages(proxy, "", 1000000);
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(actor_end(actor)); /* else when the lease would be over */
    check(actor_took_ms(actor) < slow_ms(20000));
    check(atomic_load(&desk.asked) >= 2);
    check(proxy_dropped(proxy) > 0);
    expect_ok(actor_release(actor, wanted, NULL));
}

static bool is_renewed_on_commands(void *arg)
{
    (void)arg;
    return login_count("next") >= 1;
}

/* The SUBSCRIBE is on its way when the channels are left. */
LoginLaw(login, that_is_renewed_loses_no_subscription_that_begins)
{
    static struct desk desk = DESK_INIT;
    struct proxy *proxy = new_proxy();
    hl_client *other = open_client(CLIENT(.client_name = "other"));
    hl_lock *others = new_lock(other, "wanted");

    desk_gives(&desk, "app", ONE, slow_ms(1500));
    hl_client *client = open_client_at(proxy_url(proxy), LOGIN(&desk));
    hl_lock *wanted = new_lock(client, "wanted");
    desk_gives(&desk, "next", TWO, 0);
    expect_ok(hl_lock_acquire(others, ERR));
    int pubsub = proxy_find(proxy, "SUBSCRIBE");
    check(pubsub >= 0);
    proxy_hold(proxy, pubsub, PROXY_UP);
    struct actor *actor = actor_start_acquire(wanted, ACQUIRE(.wait_ms = -1));
    expect_waiters(client, 1);
    check(wait_until(is_renewed_on_commands, NULL, 20000));
    expect_ok(hl_client_ping(client, -1, ERR)); /* and so the answer has come, and AUTH is said */
    proxy_release(proxy, pubsub, PROXY_UP);
    check(login_wait("next", 2, 20000));
    check(redis_wait_subscribers(server, "hirelock:{wanted}", 1, 20000));
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(actor_end(actor));
    expect_ok(actor_release(actor, wanted, NULL));
}

LoginLaw(login, whose_successor_is_refused_stays_and_is_told)
{
    static struct desk desk = DESK_INIT;
    static struct recorder story = RECORDER_INIT;

    desk_gives(&desk, "app", ONE, slow_ms(6000));
    struct pair pair = pair_start(LOGIN(&desk, .on_log = record_log, .arg = &story));
    desk_gives(&desk, "next", "wrong-secret", 0);
    check(recorder_wait_says(&story, "is not renewed: the server refused the user or password "
                                     "(WRONGPASS)"));
    desk_fails(&desk, "no token today");
    check(recorder_wait_says(&story, "is not renewed: the credentials callback failed: no token "
                                     "today"));
    check_int(login_count("app"), 2);
    desk_gives(&desk, "next", TWO, 0);
    check(login_wait("next", 2, 20000));
    check(!recorder_says(&story, "wrong-secret"));
    check_int((int)stats_of(pair.client).reconnects, 0);
    pair_end(&pair);
}

LoginLaw(login, that_was_not_renewed_ends_with_the_servers_cut_and_a_new_one)
{
    static struct desk desk = DESK_INIT;
    static struct events events;

    desk_gives(&desk, "app", ONE, slow_ms(6000));
    struct pair pair = pair_start(LOGIN(&desk, .on_event = count_event, .arg = &events));
    desk_set_shut(&desk, true);
    check(desk_was_asked(&desk, 2, 20000)); /* for the renewal */
    redis_do(server, "ACL DELUSER app");
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 20000));
    desk_gives(&desk, "next", TWO, 0);
    desk_set_shut(&desk, false);
    check(login_wait("next", 2, 20000));
    pair_end(&pair);
    check_int(atomic_load(&desk.asked), 2); /* the reconnect took the renewal's answer */
}
