/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes that want the same few Redlocks, while their masters are killed, stopped and restarted
 * empty, and they themselves are stopped: no two of them ever believe at the same time that they
 * hold one lock.
 */
#include "storm_kit.h"

#include <signal.h>

#include "support/masters.h"
#include "support/process.h"

enum { PROCESSES = 3, THREADS = 2, LOCKS = 2, DOWN = 2, ROUNDS = 6, RECORDS = 100000 };
enum { LEASE_MS = 1000 }; /* on a machine that is not slow */
enum { READY, END };

struct taker {
    hl_client **clients;
    struct history *history;
    uint64_t owner;
    atomic_bool *is_over;
};

static int64_t lease_ms(void)
{
    return slow_ms(LEASE_MS);
}

static void *taker_run(void *arg)
{
    struct taker *taker = arg;
    hl_lock *lock[LOCKS];
    char name[64];
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = slow_ms(200);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "stormy:%d", i);
        lock[i] =
            new_redlock_of(taker->clients, masters.count, name,
                           REDLOCK(.max_lease_ms = lease_ms(), .vote_timeout_ms = slow_ms(100)));
    }
    for (unsigned turn = 0; !atomic_load(taker->is_over); turn++) {
        uint32_t number = (turn + (unsigned)taker->owner) % LOCKS;
        options.lease_ms = turn % 3 == 0 ? lease_ms() / 2 : 0;
        int code = hl_lock_acquire_with(lock[number], &options, NULL);
        check_msg(code == HL_OK || code == HL_ETIMEDOUT || code == HL_ECONN || code == HL_ESERVER,
                  "%s", hl_err_name(code));
        if (code == HL_OK)
            storm_hold(taker->history, taker->owner, lock[number], number, turn * 7 % 40);
    }
    for (int i = 0; i < LOCKS; i++)
        free_lock(lock[i]);
    return NULL;
}

static void take(struct process *self, void *arg)
{
    int number = *(const int *)arg;
    char path[128];
    struct taker taker[THREADS];
    pthread_t thread[THREADS];
    atomic_bool is_over = false;
    hl_client_options options = kit_options(lease_ms(), NULL);
    options.connect_timeout_ms = options.request_timeout_ms = slow_ms(500);
    hl_client **clients = open_masters(&options);
    history_path(path, number);
    struct history *history = history_open(path, RECORDS);
    for (int i = 0; i < THREADS; i++) {
        taker[i] = (struct taker){clients, history, (uint64_t)(number * THREADS + i + 1), &is_over};
        thread[i] = kit_thread(taker_run, &taker[i]);
    }
    process_tell(self, READY);
    process_await(self, END, 1, 60000);
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    history_close(history);
    for (size_t i = 0; i < masters.count; i++)
        close_client(clients[i]);
}

/* So long, and longer on a slow machine. */
static void wait_ms(int64_t ms)
{
    struct deadline still = deadline_in(ms);
    while (!deadline_is_over(still))
        deadline_nap();
}

/* A minority of the masters is killed or stopped for a while, and restarts without its data. */
static void harm_masters(unsigned *seed)
{
    size_t first = (size_t)rand_r(seed) % masters.count; /* NOLINT(cert-msc30-c,cert-msc50-cpp) */
    bool is_killed = rand_r(seed) % 3 > 0;
    for (size_t i = 0; i < DOWN; i++) {
        struct redis_server *victim = masters.server[(first + i) % masters.count];
        if (is_killed)
            redis_server_kill(victim);
        else
            redis_server_freeze(victim);
    }
    wait_ms(rand_r(seed) % 300);
    for (size_t i = 0; i < DOWN; i++) {
        struct redis_server *victim = masters.server[(first + i) % masters.count];
        if (is_killed)
            redis_server_restart(victim);
        else
            redis_server_thaw(victim);
    }
}

static void storm(struct process *process[PROCESSES])
{
    unsigned seed = (unsigned)getpid();
    fprintf(stderr, "seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        int victim = rand_r(&seed) % PROCESSES; /* NOLINT(cert-msc30-c,cert-msc50-cpp) */
        if (rand_r(&seed) % 2 == 0)
            process_stop(process[victim]);
        harm_masters(&seed);
        process_continue(process[victim]);
        wait_ms(LEASE_MS + rand_r(&seed) % 300);
    }
    for (int i = 0; i < PROCESSES; i++)
        process_tell(process[i], END);
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 30000), 0);
}

Test(redlock_storm, two_processes_never_believe_that_they_hold_one_lock, .init = masters_up,
     .fini = server_down)
{
    int number[PROCESSES];
    char path[128];
    uint64_t count = 0;
    struct process *process[PROCESSES];
    struct history *history[PROCESSES];
    struct history_overlap overlap = {.lock = 0};
    for (int i = 0; i < PROCESSES; i++) {
        number[i] = i;
        process[i] = process_start(take, &number[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        check(process_await(process[i], READY, 1, 20000));
    storm(process);
    for (int i = 0; i < PROCESSES; i++) {
        history_path(path, i);
        history[i] = history_open(path, RECORDS);
        history_end(history[i], now_ns());
        count += history_count(history[i]);
    }
    tell_figure("%d holds", (int)count);
    check(count > 30);
    uint64_t overlaps = history_check(history, PROCESSES, &overlap);
    check_msg(overlaps == 0, "owner %d entered lock %d %d us before owner %d had left",
              (int)overlap.second_owner, (int)overlap.lock,
              (int)((overlap.first_end_ns - overlap.second_enter_ns) / 1000),
              (int)overlap.first_owner);
    for (int i = 0; i < PROCESSES; i++)
        history_close(history[i]);
    expect_masters_with("stormy:0", 0);
    expect_masters_with("stormy:1", 0);
}
