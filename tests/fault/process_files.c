/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Descriptors: none for a program that is exec'd, none left behind, and none to be had. */
#include "process_kit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/census.h"
#include "support/redis_probe.h"

static struct events events;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

/* posix_spawn, which popen is made of, runs no fork handler of ours: only close-on-exec helps. */
static int files_of_an_execed_program(void)
{
    char count[16] = "";
    FILE *list = popen("ls /proc/self/fd | wc -l", "re"); /* NOLINT(cert-env33-c): a constant */
    check(list && fgets(count, sizeof count, list));
    pclose(list);
    return (int)strtol(count, NULL, 10);
}

static void *wait_for_files(void *lock)
{
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    return NULL;
}

Test(process_files, an_execed_program_gets_none_of_ours, .init = start, .fini = stop)
{
    redis_do(server, "PING"); /* the test has its connection, without close-on-exec */
    int inherited = census_files_without_cloexec(0), execed = files_of_an_execed_program();
    hl_client_options options = kit_options(30000, &events);
    options.flags = HL_CLIENT_DISPATCH;
    hl_client *client = open_client(&options);
    hl_client *by_name = NULL;
    char url[64];
    snprintf(url, sizeof url, "redis://localhost:%d", redis_server_port(server));
    expect_ok(hl_client_open(url, NULL, &by_name, ERR)); /* on a thread of its own */
    hl_lock *lock = new_lock(client, "files"), *awaited = new_lock(by_name, "files");
    expect_ok(hl_lock_acquire(lock, ERR));
    pthread_t waiter = kit_thread(wait_for_files, awaited);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{files}", 1, 5000));

    check_int(census_files_without_cloexec(0), inherited);
    check_int(files_of_an_execed_program(), execed);
    expect_ok(hl_lock_release(lock, ERR));
    pthread_join(waiter, NULL);
    free_lock(lock);
    free_lock(awaited);
    close_client(client);
    close_client(by_name);
}

static rlim_t files_limit(rlim_t limit)
{
    struct rlimit now, before;
    check_int(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = limit;
    check_int(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before.rlim_cur;
}

enum { MOST_FILES = 32 };

/* Lets `count` more descriptors be opened; returns the limit that was. */
static rlim_t files_allow(int count)
{
    int lowest[MOST_FILES + 1];
    for (int i = 0; i <= MOST_FILES; i++) {
        lowest[i] = fcntl(0, F_DUPFD_CLOEXEC, 0);
        check(lowest[i] >= 0);
    }
    for (int i = 0; i <= MOST_FILES; i++)
        close(lowest[i]);
    return files_limit((rlim_t)lowest[count]);
}

/* Opens with ever more descriptors to be had; returns how often it was refused. */
static int open_with_ever_more(const char *url, hl_client **ret_client, const char *reason)
{
    int files = census_files();
    hl_client_options options = kit_options(30000, NULL);
    options.flags = HL_CLIENT_DISPATCH;
    for (int count = 0; count < MOST_FILES; count++) {
        hl_error err = HL_ERROR_INIT;
        rlim_t before = files_allow(count);
        int code = hl_client_open(url, &options, ret_client, &err);
        files_limit(before);
        if (code == HL_OK)
            return count;
        check_msg(code == HL_ENOMEM || code == HL_ECONN, "%d more: %s", count, hl_err_name(code));
        check_msg(strstr(err.text, reason), "%d more: %s", count, err.text);
        check_int(census_files(), files);
        kit_expect_no_threads();
    }
    return -1;
}

Test(process_files, open_without_descriptors_says_so_and_leaves_none, .init = start, .fini = stop)
{
    int files = census_files();
    hl_client *client = NULL;
    check(open_with_ever_more(redis_server_url(server), &client, "oo many open files") >= 3);
    kit_try_out(client, "opened at last");
    close_client(client);
    check_int(census_files(), files);
}

/* The resolver of names has other words for it. */
Test(process_files, open_by_name_without_descriptors_leaves_none, .init = start, .fini = stop)
{
    int files = census_files();
    hl_client *client = NULL;
    char url[64];
    snprintf(url, sizeof url, "redis://localhost:%d", redis_server_port(server));
    check(open_with_ever_more(url, &client, "") >= 3);
    kit_try_out(client, "opened at last");
    close_client(client);
    check_int(census_files(), files);
}

static void cut_off_for_want_of_files(rlim_t *ret_before)
{
    check(redis_wait_clients(server, REDIS_PUBSUB, 1, 5000)); /* the test has its connection, too */
    *ret_before = files_limit(0);
    check_int(redis_kill_clients(server, REDIS_NORMAL), 1); /* the other one is closed with it */
}

static bool want_is_known(void *client)
{
    hl_error err = HL_ERROR_INIT;
    return hl_client_ping(client, 1, &err) == HL_ECONN && strstr(err.text, "oo many open files");
}

Test(process_files, a_reconnect_without_descriptors_keeps_holds_while_they_are_valid, .init = start,
     .fini = stop)
{
    hl_client_options options = kit_options(slow_ms(600) + 2400, &events);
    options.outage_timeout_ms = slow_ms(200);
    hl_client *client = open_client(&options);
    rlim_t before;
    hl_lock *lock = new_lock(client, "held"), *other = new_lock(client, "other");
    expect_ok(hl_lock_acquire(lock, ERR));
    cut_off_for_want_of_files(&before);
    int64_t valid_until = now_ns() + hl_lock_validity_ms(lock, NULL) * 1000000;

    check(wait_until(want_is_known, client, 5000));
    hl_error why = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(other, &why), HL_ECONN);
    check_msg(strstr(why.text, "oo many open files"), "%s", why.text);
    check(hl_lock_is_held(lock, NULL) || now_ns() >= valid_until);
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(atomic_load(&events.at_ns[HL_EVENT_LOST]) >= valid_until - 1000000);
    check(!hl_lock_is_held(lock, NULL));
    check_int(events_told(&events, HL_EVENT_CONNECTED), 0);

    files_limit(before);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 5000));
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    kit_try_out(client, "other");
    kit_try_out(client, "held");
    free_lock(lock);
    free_lock(other);
    close_client(client);
}

Test(process_files, a_reconnect_soon_enough_keeps_holds, .init = start, .fini = stop)
{
    hl_client_options options = kit_options(slow_ms(1500) + 4500, &events);
    hl_client *client = open_client(&options);
    rlim_t before;
    hl_lock *lock = new_lock(client, "held");
    expect_ok(hl_lock_acquire(lock, ERR));
    cut_off_for_want_of_files(&before);
    check(events_wait(&events, HL_EVENT_DISCONNECTED, 1, 5000));
    check(hl_lock_is_held(lock, NULL));
    files_limit(before);
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 5000));
    uint64_t renewed = stats_of(client).renewals;
    struct deadline deadline = deadline_of_wait(5000);
    while (stats_of(client).renewals < renewed + 2 && !deadline_is_over(deadline))
        deadline_nap();
    check(!deadline_is_over(deadline));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
}

static void open_hold_close(int64_t number)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = kit_lock_number(client, "opened", (int)number);
    expect_ok(hl_lock_try_acquire(lock, ERR));
    if (number % 2 == 0)
        expect_ok(hl_lock_release(lock, ERR));
    if (number % 3 == 0) { /* before close or after: both are allowed */
        free_lock(lock);
        lock = NULL;
    }
    close_client(client);
    free_lock(lock);
}

enum { OPENERS = 8, OPENS = 13 };

static void *open_many(void *arg)
{
    for (int i = 0; i < OPENS; i++)
        open_hold_close(1000 * (1 + (intptr_t)arg) + i);
    return NULL;
}

Test(process_files, a_hundred_clients_leave_no_thread_and_no_descriptor, .init = start,
     .fini = stop)
{
    pthread_t opener[OPENERS];
    int files = census_files();
    for (int i = 0; i < 100; i++)
        open_hold_close(i);
    check_int(census_files(), files);
    kit_expect_no_threads();

    for (intptr_t i = 0; i < OPENERS; i++)
        opener[i] = kit_thread(open_many, (void *)i); /* NOLINT(performance-no-int-to-ptr) */
    for (int i = 0; i < OPENERS; i++)
        pthread_join(opener[i], NULL);
    check_int(census_files(), files);
    kit_expect_no_threads();
    check(redis_wait_clients(server, REDIS_NORMAL, 0, 5000));
}
