/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Promises that hold for every process: the beginning of its lease, the fields of its owners, and
 * the threads that take its signals. */
#include "process_kit.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "support/census.h"
#include "support/proxy.h"
#include "support/redis_probe.h"

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

Test(process_rules, a_lease_is_counted_from_before_its_request_was_sent, .init = start,
     .fini = stop)
{
    const int64_t lease_ms = 5000, late_ms = 120;
    struct proxy *proxy = proxy_start_before(server);
    hl_client_options options = kit_options(lease_ms, NULL);
    options.request_timeout_ms = slow_ms(2000);
    hl_client *client = open_client_at(proxy_url(proxy), &options);
    hl_lock *lock = new_lock(client, "counted");
    kit_try_out(client, "counted"); /* the server knows the scripts */
    expect_gone(server, "counted");
    proxy_delay(proxy, PROXY_EVERY, PROXY_DOWN, late_ms);
    int64_t before = now_ms();
    expect_ok(hl_lock_acquire(lock, ERR));
    int64_t looked = now_ms(), validity = hl_lock_validity_ms(lock, NULL), took = now_ms() - before;
    check(took >= late_ms);
    check_msg(validity <= lease_ms - late_ms - lease_ms / 100 - 2, "valid for %d ms",
              (int)validity);
    int64_t left = redis_int(server, "PTTL counted");
    check(looked + validity <= left + now_ms());
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
    proxy_stop(proxy);
}

struct field {
    hl_lock *lock;
    char text[80];
};

static void *note_field(void *arg)
{
    struct field *field = arg;
    expect_ok(hl_lock_acquire(field->lock, ERR));
    snprintf(field->text, sizeof field->text, "%s", redis_str(server, "HKEYS owners"));
    expect_ok(hl_lock_release(field->lock, ERR));
    expect_gone(server, "owners"); /* while it is retained, the next hold is of the same tenure */
    return NULL;
}

/* pthread_self() is the same for three threads that follow each other. */
Test(process_rules, no_two_holds_share_a_field_even_of_threads_that_share_an_id, .init = start,
     .fini = stop)
{
    enum { THREADS = 6 };
    struct field field[THREADS];
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "owners");
    for (int i = 0; i < THREADS; i++) {
        field[i].lock = lock;
        if (i < THREADS - 2)
            pthread_join(kit_thread(note_field, &field[i]), NULL);
        else
            note_field(&field[i]); /* and twice of one thread */
        check(strncmp(field[i].text, hl_client_id(client), strlen(hl_client_id(client))) == 0);
        for (int j = 0; j < i; j++)
            check(strcmp(field[i].text, field[j].text) != 0);
    }
    free_lock(lock);
    close_client(client);
}

static bool thread_is_ours_and_takes_signals(const char *number)
{
    const unsigned long long not_to_be_blocked = /* the last two are glibc's own */
        1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1) | 3ULL << (32 - 1);
    char path[300], line[128];
    bool ours = false, takes = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", number);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        ours = ours || strncmp(line, "Name:\thirelock", 14) == 0;
        if (strncmp(line, "SigBlk:", 7) == 0)
            takes = (~strtoull(line + 7, NULL, 16) & ~not_to_be_blocked) != 0;
    }
    if (status)
        fclose(status);
    return ours && takes;
}

static void ignore_event(const hl_event *event, void *arg)
{
    (void)event, (void)arg;
}

Test(process_rules, the_threads_of_a_client_take_no_signal, .init = start, .fini = stop)
{
    hl_client_options options = kit_options(30000, NULL);
    options.on_event = ignore_event;
    hl_client *client = open_client(&options);
    int taking = 0;
    DIR *tasks = opendir("/proc/self/task");
    check(tasks);
    check_int(census_threads_named("hirelock"), 3);
    for (struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks))
        taking += entry->d_name[0] != '.' && thread_is_ours_and_takes_signals(entry->d_name);
    closedir(tasks);
    check_int(taking, 0);
    close_client(client);
}

/* A process dies of SIGPIPE unless no call raises it. */
Test(process_rules, a_write_to_a_dead_server_raises_no_signal, .init = start, .fini = stop)
{
    check(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    hl_client_options options = kit_options(30000, NULL);
    options.request_timeout_ms = slow_ms(200);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "gone");
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        redis_server_kill(server);
        int code = hl_lock_release(lock, NULL); /* some of them before the loop knows */
        expect_released(code, code == HL_ELOST ? HL_ELOST : HL_EINDOUBT);
        redis_server_restart(server);
        expect_ok(hl_client_ping(client, slow_ms(5000), ERR));
    }
    free_lock(lock);
    close_client(client);
}
