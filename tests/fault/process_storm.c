/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Processes that are stopped, let go on and killed at random, while all of them want the same few
 * locks: no two of them ever believe at the same time that they hold one lock. */
#include "storm_kit.h"

#include <signal.h>

#include "support/process.h"
#include "support/redis_probe.h"

enum { PROCESSES = 5, KILLED = 2, THREADS = 2, LOCKS = 2, RECORDS = 100000 };
enum { READY, END };

static void start(void)
{
    server = redis_server_start(NULL);
}

static void stop(void)
{
    redis_server_stop(server);
}

struct actor {
    hl_client *client;
    struct history *history;
    uint64_t owner;
    atomic_bool *is_over;
};

static void *actor_run(void *arg)
{
    struct actor *actor = arg;
    hl_lock *lock[LOCKS];
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = slow_ms(200);
    for (int i = 0; i < LOCKS; i++)
        lock[i] = kit_lock_number(actor->client, "stormy", i);
    for (unsigned turn = 0; !atomic_load(actor->is_over); turn++) {
        uint32_t number = (turn + (unsigned)actor->owner) % LOCKS;
        options.lease_ms = turn % 3 == 0 ? slow_ms(60) : 0;
        int code = hl_lock_acquire_with(lock[number], &options, NULL);
        check_msg(code == HL_OK || code == HL_ETIMEDOUT || code == HL_ECONN, "%s",
                  hl_err_name(code));
        if (code == HL_OK)
            storm_hold(actor->history, actor->owner, lock[number], number, turn * 7 % 40);
    }
    for (int i = 0; i < LOCKS; i++)
        free_lock(lock[i]);
    return NULL;
}

static void act(struct process *self, void *arg)
{
    int number = *(const int *)arg;
    char path[128];
    struct actor actor[THREADS];
    pthread_t thread[THREADS];
    atomic_bool is_over = false;
    hl_client_options options = kit_options(slow_ms(150), NULL);
    hl_client *client = open_client(&options);
    history_path(path, number);
    struct history *history = history_open(path, RECORDS);
    for (int i = 0; i < THREADS; i++) {
        actor[i] = (struct actor){client, history, (uint64_t)(number * THREADS + i + 1), &is_over};
        thread[i] = kit_thread(actor_run, &actor[i]);
    }
    process_tell(self, READY);
    process_await(self, END, 1, 60000);
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    history_close(history);
    close_client(client);
}

/* A killed process does not believe from then on: its time goes to ended_ns. */
static void storm(struct process *process[PROCESSES], int64_t ended_ns[PROCESSES])
{
    unsigned seed = (unsigned)getpid();
    int alive = PROCESSES;
    struct deadline deadline = deadline_in(2000);
    fprintf(stderr, "seed %u\n", seed);
    while (!deadline_is_over(deadline)) {
        int victim = rand_r(&seed) % alive; /* NOLINT(cert-msc30-c,cert-msc50-cpp) */
        struct deadline still = deadline_in(rand_r(&seed) % 250);
        process_stop(process[victim]);
        while (!deadline_is_over(still))
            deadline_nap();
        process_continue(process[victim]);
        if (alive > PROCESSES - KILLED && rand_r(&seed) % 4 == 0) {
            process_kill(process[--alive]);
            ended_ns[alive] = now_ns();
        }
    }
    for (int i = 0; i < alive; i++)
        process_tell(process[i], END);
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 10000), i < alive ? 0 : -SIGKILL);
    for (int i = 0; i < alive; i++)
        ended_ns[i] = now_ns();
}

Test(process_storm, two_processes_never_believe_that_they_hold_one_lock, .init = start,
     .fini = stop)
{
    int number[PROCESSES];
    int64_t ended_ns[PROCESSES];
    char path[128];
    uint64_t count = 0;
    struct process *process[PROCESSES];
    struct history *history[PROCESSES];
    struct history_overlap overlap = {.lock = 0};
    for (int i = 0; i < PROCESSES; i++) {
        number[i] = i;
        process[i] = process_start(act, &number[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        check(process_await(process[i], READY, 1, 20000));
    storm(process, ended_ns);
    for (int i = 0; i < PROCESSES; i++) {
        history_path(path, i);
        history[i] = history_open(path, RECORDS);
        history_end(history[i], ended_ns[i]);
        count += history_count(history[i]);
    }
    check(count > 30);
    uint64_t overlaps = history_check(history, PROCESSES, &overlap);
    check_msg(overlaps == 0, "owner %d entered lock %d %d us before owner %d had left",
              (int)overlap.second_owner, (int)overlap.lock,
              (int)((overlap.first_end_ns - overlap.second_enter_ns) / 1000),
              (int)overlap.first_owner);
    for (int i = 0; i < PROCESSES; i++)
        history_close(history[i]);
    check(redis_wait_int(server, 0, 2000, "EXISTS stormy:0 stormy:1"));
}
