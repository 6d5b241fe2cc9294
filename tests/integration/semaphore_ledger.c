/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Many threads of several clients of several processes take permits and give them back, for whoever
 * comes first; a ledger in memory that all of them share says how many are out. Nobody ever finds
 * more out than there are; and at the end all are back.
 */

#include "support/process.h"
#include "support/semaphore_support.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { PERMITS = 7, PROCESSES = 3, CLIENTS = 2, THREADS = 4, ROUNDS = 300, MOST = 3 };
enum { GO, READY };

struct ledger {
    atomic_int out; /* permits; counted up when they are taken, down before they are given back */
    atomic_int most;
    atomic_int taken, refused; /* calls */
    atomic_int opened;         /* clients */
    atomic_bool goes_on;       /* also after ROUNDS */
    char url[256];
};

static struct ledger *ledger;

static void ledger_take(int permits)
{
    int out = atomic_fetch_add(&ledger->out, permits) + permits;
    check_msg(out <= PERMITS, "%d permits are out", out);
    int most = atomic_load(&ledger->most);
    while (out > most && !atomic_compare_exchange_weak(&ledger->most, &most, out))
        ;
    atomic_fetch_add(&ledger->taken, 1);
}

struct taker {
    hl_semaphore *semaphore;
    pthread_t thread;
    unsigned seed;
};

/* Waits without end, for a moment, or not at all. */
static int64_t taker_patience(struct taker *taker)
{
    static const int64_t waits[] = {HL_WAIT_FOREVER, HL_WAIT_FOREVER, 3, HL_NO_WAIT};
    return waits[rand_r(&taker->seed) % 4];
}

static void *taker_run(void *arg)
{
    struct taker *taker = arg;
    for (int round = 0; round < ROUNDS || atomic_load(&ledger->goes_on); round++) {
        int permits = 1 + (int)(rand_r(&taker->seed) % MOST);
        hl_error err = HL_ERROR_INIT;
        int64_t patience = taker_patience(taker);
        int code = hl_semaphore_acquire_for(taker->semaphore, permits, patience, &err);
        if (code != HL_OK) {
            check_msg(patience == HL_NO_WAIT
                          ? code == HL_EBUSY || code == HL_ECONN /* killed */
                          : patience > 0 && (code == HL_ETIMEDOUT || code == HL_ECONN /* killed */),
                      "%s", err.text);
            atomic_fetch_add(&ledger->refused, 1);
            continue;
        }
        ledger_take(permits);
        sched_yield();
        atomic_fetch_sub(&ledger->out, permits);
        code = hl_semaphore_release(taker->semaphore, permits, &err);
        check_msg(code == HL_OK, "%s", err.text);
    }
    return NULL;
}

static void takers_work(struct process *self, void *arg)
{
    struct taker taker[CLIENTS * THREADS];
    hl_client *client[CLIENTS];
    hl_semaphore *semaphore[CLIENTS];
    (void)arg;
    process_tell(self, READY);
    check(process_await(self, GO, 1, 30000));
    for (int i = 0; i < CLIENTS; i++) {
        expect_ok(hl_client_open(ledger->url, NULL, &client[i], NULL));
        expect_ok(hl_semaphore_new(client[i], "pool", &semaphore[i], NULL));
        atomic_fetch_add(&ledger->opened, 1);
    }
    for (int i = 0; i < CLIENTS * THREADS; i++) {
        taker[i] = (struct taker){.semaphore = semaphore[i % CLIENTS],
                                  .seed = (unsigned)(getpid() * 31 + i)};
        check_int(pthread_create(&taker[i].thread, NULL, taker_run, &taker[i]), 0);
    }
    for (int i = 0; i < CLIENTS * THREADS; i++)
        check_int(pthread_join(taker[i].thread, NULL), 0);
    for (int i = 0; i < CLIENTS; i++) {
        hl_semaphore_free(semaphore[i]);
        expect_ok(hl_client_close(client[i]));
    }
}

/* Started before this process has other threads. */
static void takers_start(struct process *process[PROCESSES], bool goes_on)
{
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ledger != MAP_FAILED);
    atomic_store(&ledger->goes_on, goes_on);
    for (int i = 0; i < PROCESSES; i++) {
        process[i] = process_start(takers_work, NULL);
        check(process_await(process[i], READY, 1, 30000));
    }
    server_up();
    snprintf(ledger->url, sizeof ledger->url, "%s", redis_server_url(server));
    redis_do(server, "SET pool %d", PERMITS);
    for (int i = 0; i < PROCESSES; i++)
        process_tell(process[i], GO);
}

static void takers_end(struct process *process[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 60000), 0);
    check_int(atomic_load(&ledger->out), 0);
    check_int(redis_int(server, "GET pool"), PERMITS);
    int calls = atomic_load(&ledger->taken) + atomic_load(&ledger->refused);
    check_msg(atomic_load(&ledger->taken) > calls / 4, "%d of %d", atomic_load(&ledger->taken),
              calls);
    check(atomic_load(&ledger->most) > MOST); /* several were inside at once */
    munmap(ledger, sizeof *ledger);
}

Test(semaphore, is_never_oversubscribed_by_threads_clients_and_processes, .fini = server_down)
{
    struct process *process[PROCESSES];
    takers_start(process, false);
    takers_end(process);
}

static bool all_are_open(void *arg)
{
    (void)arg;
    return atomic_load(&ledger->opened) == PROCESSES * CLIENTS;
}

/* Each request that was on its way comes again, and nothing is done twice. */
Test(semaphore, is_never_oversubscribed_while_connections_are_killed, .fini = server_down)
{
    struct process *process[PROCESSES];
    takers_start(process, true);
    check(wait_until(all_are_open, NULL, 30000)); /* a client that is killed meanwhile is none */
    int killed = 0;
    for (int i = 1; i <= 12; i++) {
        int taken = atomic_load(&ledger->taken);
        killed += redis_kill_clients(server, i % 3 ? REDIS_NORMAL : REDIS_PUBSUB);
        struct deadline deadline = deadline_in(10000);
        while (atomic_load(&ledger->taken) < taken + 100 && !deadline_is_over(deadline))
            deadline_nap();
    }
    atomic_store(&ledger->goes_on, false);
    check_msg(killed > 2 * PROCESSES * CLIENTS, "only %d connections were killed", killed);
    takers_end(process);
}
