/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A caller that reads its answer itself, asleep or polling: everything that can happen to it
 * meanwhile. Its answer is held back by a proxy until the test has had its say.
 */

#include <signal.h>
#include <sys/wait.h>

#include "connection_fixture.h"

enum { COMMANDS = 0, FOREVER_MS = 60000, SOON_MS = 5000 };

struct lead {
    struct connection c;
    hl_client *client;
    hl_lock *lock, *other;
    struct connection_call call;
};

static hl_client_options lead_options(int64_t busy_poll_us)
{
    hl_client_options options = connection_options();
    options.request_timeout_ms = slow_ms(FOREVER_MS);
    options.outage_timeout_ms = slow_ms(FOREVER_MS);
    options.busy_poll_us = busy_poll_us;
    options.connections = 1; /* threads take turns to lead it */
    return options;
}

static void lead_pair(hl_lock *lock)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

/* No release is under way any more, nor its answer. */
static void lead_settle(struct lead *lead)
{
    expect_gone(lead->c.server, "led");
    expect_gone(lead->c.server, "other");
    expect_ok(hl_client_ping(lead->client, -1, ERR));
}

static void lead_start(struct lead *lead, const hl_client_options *options)
{
    *lead = (struct lead){.c = connection_start(NULL)};
    lead->client = open_client_at(proxy_url(lead->c.proxy), options);
    lead->lock = new_lock(lead->client, "led");
    lead->other = new_lock(lead->client, "other");
    lead_pair(lead->lock); /* the scripts are loaded, and the first answer is the loop's */
    lead_pair(lead->lock);
    lead_settle(lead);
}

static void lead_stop(struct lead *lead)
{
    free_lock(lead->lock);
    free_lock(lead->other);
    close_client(lead->client);
    connection_stop(&lead->c);
}

static bool lead_is_answered(void *arg)
{
    struct lead *lead = arg;
    return proxy_kept(lead->c.proxy, COMMANDS, PROXY_DOWN) > 0;
}

/* A thread leads from now on: it has asked, and the answer is on its way. */
static void lead_begin(struct lead *lead, int64_t wait_ms)
{
    proxy_hold(lead->c.proxy, COMMANDS, PROXY_DOWN);
    connection_call_start(&lead->call, lead->lock, wait_ms);
    check(wait_until(lead_is_answered, lead, SOON_MS));
}

static void lead_go_on(struct lead *lead)
{
    proxy_release(lead->c.proxy, COMMANDS, PROXY_DOWN);
}

/* The call has ended well, and the next call is answered too. */
static void lead_end(struct lead *lead)
{
    connection_join(&lead->call);
    check_msg(lead->call.code == HL_OK, "%s", lead->call.err.text);
    check_int(lead->call.release_code, HL_OK);
    lead_pair(lead->other);
}

/* A law, for a caller that sleeps and for a caller that polls. */
#define LeadingLaw(name)                                                                           \
    static void law_##name(int64_t busy_poll_us);                                                  \
    Test(leading, name)                                                                            \
    {                                                                                              \
        law_##name(0);                                                                             \
    }                                                                                              \
    Test(leading, name##_although_it_polls)                                                        \
    {                                                                                              \
        law_##name(300);                                                                           \
    }                                                                                              \
    static void law_##name(int64_t busy_poll_us)

static long loop_switches(void)
{
    char line[256] = "";
    long switches = -1;
    /* NOLINTNEXTLINE(cert-env33-c): a constant */
    FILE *found = popen("grep -l hirelock-loop /proc/$PPID/task/*/comm", "re");
    check(found && fgets(line, sizeof line, found));
    pclose(found);
    char *name = strrchr(line, '/');
    check(name != NULL);
    snprintf(name, sizeof line - (size_t)(name - line), "/status");
    FILE *status = fopen(line, "re");
    check(status != NULL);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            switches = strtol(line + 24, NULL, 10);
    fclose(status);
    check(switches >= 0);
    return switches;
}

/* A handle without options: for the answer of a posted release no call waits, so it is the loop's.
 */
LeadingLaw(wakes_no_other_thread)
{
    enum { PAIRS = 1000 };
    server = redis_server_start(NULL);
    hl_client_options options = lead_options(busy_poll_us);
    hl_client *client = open_client_at(redis_server_url(server), &options);
    hl_lock *lock = NULL;
    expect_ok(hl_lock_new(client, "alone", &lock, NULL));
    lead_pair(lock);
    long before = loop_switches();
    int64_t begin_ms = now_ms();
    for (int i = 0; i < PAIRS; i++)
        lead_pair(lock);
    long switches = loop_switches() - before;
    long lasted_ms = (long)(now_ms() - begin_ms); /* it has a timer of 10 ms then */
    check_msg(switches < PAIRS / 2 + lasted_ms / 5, "the loop slept %ld times in %d pairs, %ld ms",
              switches, PAIRS, lasted_ms);
    free_lock(lock);
    close_client(client);
    redis_server_stop(server);
}

LeadingLaw(waits_for_an_answer_as_long_as_it_takes)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    lead_go_on(&lead);
    lead_end(&lead);
    lead_stop(&lead);
}

LeadingLaw(reads_for_a_second_caller_too_or_leaves_it_to_the_loop)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    struct connection_call second;
    lead_start(&lead, &options);
    for (int i = 0; i < 20; i++) {
        uint64_t kept;
        lead_begin(&lead, -1);
        kept = proxy_kept(lead.c.proxy, COMMANDS, PROXY_DOWN);
        connection_call_start(&second, lead.other, -1);
        struct deadline deadline = deadline_in(SOON_MS);
        while (i % 2 == 0 && proxy_kept(lead.c.proxy, COMMANDS, PROXY_DOWN) == kept &&
               !deadline_is_over(deadline))
            deadline_nap();
        lead_go_on(&lead);
        connection_join(&second);
        check_int(second.code, HL_OK);
        check_int(second.release_code, HL_OK);
        lead_end(&lead);
        lead_settle(&lead);
    }
    check_int(stats_of(lead.client).reconnects, 0);
    lead_stop(&lead);
}

LeadingLaw(is_over_when_the_wait_time_is_and_the_loop_takes_the_late_answer)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    lead_begin(&lead, slow_ms(100));
    connection_join(&lead.call);
    check_msg(lead.call.code == HL_ETIMEDOUT && lead.call.lasted_ms < slow_ms(FOREVER_MS / 2),
              "%lld ms: %s", (long long)lead.call.lasted_ms, lead.call.err.text);
    lead_go_on(&lead);
    check(redis_wait_int(lead.c.server, 0, SOON_MS, "EXISTS led")); /* its hold was let go */
    lead_pair(lead.other);
    check_int(stats_of(lead.client).reconnects, 0);
    lead_stop(&lead);
}

struct cancelled {
    hl_lock *lock;
    hl_cancel *cancel;
    int code;
};

static void *cancelled_run(void *arg)
{
    struct cancelled *cancelled = arg;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = -1;
    options.cancel = cancelled->cancel;
    cancelled->code = hl_lock_acquire_with(cancelled->lock, &options, NULL);
    return NULL;
}

LeadingLaw(is_over_when_its_cancel_is_fired)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    pthread_t thread;
    lead_start(&lead, &options);
    struct cancelled cancelled = {.lock = lead.lock};
    expect_ok(hl_cancel_new(&cancelled.cancel));
    proxy_hold(lead.c.proxy, COMMANDS, PROXY_DOWN);
    check_int(pthread_create(&thread, NULL, cancelled_run, &cancelled), 0);
    check(wait_until(lead_is_answered, &lead, SOON_MS));
    hl_cancel_fire(cancelled.cancel);
    pthread_join(thread, NULL); /* the answer is still held back */
    check_int(cancelled.code, HL_ECANCELED);
    lead_go_on(&lead);
    check(redis_wait_int(lead.c.server, 0, SOON_MS, "EXISTS led"));
    lead_pair(lead.other);
    hl_cancel_free(cancelled.cancel);
    lead_stop(&lead);
}

LeadingLaw(is_over_when_the_client_is_closed)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    options.request_timeout_ms = slow_ms(2000); /* so long a close waits for releases */
    lead_start(&lead, &options);
    proxy_hold(lead.c.proxy, PROXY_EVERY, PROXY_DOWN); /* no other connection answers it, either */
    lead_begin(&lead, -1);
    wait_stat(lead.client, waiters_now, 1);
    int64_t begin_ms = now_ms();
    close_client(lead.client);
    check(now_ms() - begin_ms < slow_ms(FOREVER_MS / 2));
    connection_join(&lead.call);
    check_int(lead.call.code, HL_ECANCELED);
    free_lock(lead.lock);
    free_lock(lead.other);
    connection_stop(&lead.c);
}

LeadingLaw(keeps_no_timer_from_dropping_a_silent_link)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    options.request_timeout_ms = slow_ms(2000);
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    lead_end(&lead); /* by another connection */
    check(lead.call.lasted_ms >= options.request_timeout_ms - 20);
    check_int(stats_of(lead.client).reconnects, 1);
    lead_stop(&lead);
}

static void *others_lock_timed_out(void *arg)
{
    struct connection_call *call = arg;
    call->code = hl_lock_acquire_for(call->lock, call->wait_ms, &call->err);
    return NULL;
}

struct told {
    atomic_int code, times;
};

static void tell(int code, const hl_error *err, void *arg)
{
    struct told *told = arg;
    (void)err;
    atomic_store(&told->code, code);
    atomic_fetch_add(&told->times, 1);
}

static bool is_told(void *arg)
{
    struct told *told = arg;
    return atomic_load(&told->times) > 0;
}

/* An async call's wait time is the loop's timer. */
LeadingLaw(leaves_the_loop_its_timers)
{
    hl_client_options options = lead_options(busy_poll_us);
    hl_acquire_options async = HL_ACQUIRE_OPTIONS_INIT;
    struct lead lead;
    struct told told = {0};
    struct connection_call beside = {.wait_ms = slow_ms(50)};
    lead_start(&lead, &options);
    beside.lock = new_lock(lead.client, "beside");
    lead_begin(&lead, -1);
    expect_ok(hl_owner_new(lead.client, &async.owner));
    async.wait_ms = slow_ms(50);
    expect_ok(hl_lock_acquire_async(lead.other, &async, tell, &told));
    others_lock_timed_out(&beside);
    check(wait_until(is_told, &told, SOON_MS));
    check_int(atomic_load(&told.code), HL_ETIMEDOUT);
    check_int(beside.code, HL_ETIMEDOUT);
    lead_go_on(&lead);
    lead_end(&lead);
    free_owner(async.owner);
    free_lock(beside.lock);
    lead_stop(&lead);
}

static bool lead_has_reconnected(struct lead *lead, uint64_t times)
{
    return connection_wait_for(lead->client, connection_reconnects, times, 2000);
}

/* PINGs would find it after 5 seconds. */
LeadingLaw(leaves_an_idle_connection_whose_end_is_noticed_at_once)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    for (uint64_t i = 1; i <= 6; i += 2) {
        lead_pair(lead.lock);
        /* One is subscribed, and so not of that kind any more. */
        check(redis_wait_clients(lead.c.server, REDIS_PUBSUB, 1, SOON_MS));
        check(redis_wait_clients(lead.c.server, REDIS_NORMAL, 1, SOON_MS));
        check_int(redis_kill_clients(lead.c.server, REDIS_NORMAL), 1);
        check(lead_has_reconnected(&lead, i));
        lead_pair(lead.lock);
        proxy_kill_all(lead.c.proxy);
        check(lead_has_reconnected(&lead, i + 1));
    }
    lead_stop(&lead);
}

LeadingLaw(survives_the_end_of_its_connection)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    proxy_kill_all(lead.c.proxy);
    lead_end(&lead);
    check_int(stats_of(lead.client).reconnects, 1);
    lead_stop(&lead);
}

/* The other connection is lost: the loop closes this one under the leader. */
LeadingLaw(survives_the_end_of_the_other_connection)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    proxy_kill(lead.c.proxy, COMMANDS + 1);
    lead_end(&lead);
    check_int(stats_of(lead.client).reconnects, 1);
    lead_stop(&lead);
}

LeadingLaw(is_left_alone_by_a_fork)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    int status = -1;
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    pid_t child = fork();
    if (child == 0)
        _exit(hl_lock_acquire(lead.other, NULL) == HL_EFORKED ? 0 : 1);
    check_int(waitpid(child, &status, 0), child);
    check_int(status, 0);
    lead_go_on(&lead);
    lead_end(&lead);
    check_int(stats_of(lead.client).reconnects, 0);
    lead_stop(&lead);
}

static void do_nothing(int signal)
{
    (void)signal;
}

LeadingLaw(goes_on_after_signals)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    struct sigaction action = {.sa_handler = do_nothing};
    check_int(sigaction(SIGUSR1, &action, NULL), 0);
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    for (int i = 0; i < 20; i++) {
        check_int(pthread_kill(lead.call.thread, SIGUSR1), 0);
        deadline_nap();
    }
    lead_go_on(&lead);
    lead_end(&lead);
    lead_stop(&lead);
}

/* Its call ends first; the thread goes at the next point of its own. */
LeadingLaw(is_no_point_of_cancellation)
{
    hl_client_options options = lead_options(busy_poll_us);
    struct lead lead;
    lead_start(&lead, &options);
    lead_begin(&lead, -1);
    check_int(pthread_cancel(lead.call.thread), 0);
    lead_go_on(&lead);
    pthread_join(lead.call.thread, NULL);
    lead_pair(lead.other);
    check_int(stats_of(lead.client).reconnects, 0);
    lead_stop(&lead);
}

struct mixed {
    hl_client *client;
    pthread_t thread;
    int number;
    atomic_bool *stops;
    uint64_t done;
};

static void *mixed_run(void *arg)
{
    struct mixed *mixed = arg;
    char name[32];
    snprintf(name, sizeof name, "mixed%d", mixed->number);
    hl_lock *lock = new_lock(mixed->client, name);
    do { /* once at least, however late it begins */
        int code = hl_lock_acquire_for(lock, slow_ms(FOREVER_MS), NULL);
        check_msg(code == HL_OK, "acquire: %s", hl_err_name(code));
        code = hl_lock_release(lock, NULL);
        check_msg(code == HL_OK || code == HL_EINDOUBT || code == HL_ELOST, "release: %s",
                  hl_err_name(code));
        mixed->done++;
        for (int i = 0; i < mixed->number; i++)
            sched_yield();
    } while (!atomic_load(mixed->stops));
    free_lock(lock);
    return NULL;
}

/* Few threads, now alone and now not, while connections end: no thread waits in vain. */
LeadingLaw(changes_hands_among_few_threads_under_fire)
{
    enum { THREADS = 3, ROUNDS = 30 };
    hl_client_options options = lead_options(busy_poll_us);
    struct mixed mixed[THREADS];
    struct lead lead;
    atomic_bool stops;
    atomic_init(&stops, false);
    lead_start(&lead, &options);
    for (int i = 0; i < THREADS; i++) {
        mixed[i] = (struct mixed){.client = lead.client, .number = i, .stops = &stops};
        check_int(pthread_create(&mixed[i].thread, NULL, mixed_run, &mixed[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t reconnects = stats_of(lead.client).reconnects;
        deadline_nap();
        if (i % 3 == 0)
            proxy_kill_all(lead.c.proxy);
        else if (i % 3 == 1)
            redis_kill_clients(lead.c.server, REDIS_NORMAL);
        else
            proxy_kill(lead.c.proxy, proxy_accepted(lead.c.proxy) - 1);
        check(lead_has_reconnected(&lead, reconnects + 1));
    }
    atomic_store(&stops, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(mixed[i].thread, NULL);
        check(mixed[i].done > 0);
    }
    lead_stop(&lead);
}
