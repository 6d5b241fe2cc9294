/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Three processes with four threads each, which read, write, and go from writing to reading, while
 * their connections are cut again and again. A page of shared memory shows who holds the lock.
 */

#include <sys/mman.h>

#include "rw_kit.h"
#include "support/process.h"

enum { PROCESSES = 3, THREADS = 4, ROUNDS = 60, CUTS = 15 };
enum { GO };

/* The holders; a thread that goes from writing to reading is both for a moment. */
struct inside {
    atomic_int readers, writers;
    atomic_int together; /* the most readers at a time */
    atomic_int reads, writes, wrong;
    atomic_int ended; /* threads */
};

static struct inside *inside;
static struct process *member[PROCESSES];

static void must_be(bool holds)
{
    if (!holds)
        atomic_fetch_add(&inside->wrong, 1);
}

static void note_together(int readers)
{
    int most = atomic_load(&inside->together);
    while (readers > most && !atomic_compare_exchange_weak(&inside->together, &most, readers))
        ;
}

static void stay(void)
{
    for (int i = 0; i < 3; i++)
        deadline_nap();
}

static void read_now(struct rw *rw)
{
    expect_ok(hl_lock_acquire(rw->read, NULL));
    note_together(atomic_fetch_add(&inside->readers, 1) + 1);
    must_be(atomic_load(&inside->writers) == 0);
    stay();
    must_be(atomic_load(&inside->writers) == 0 && hl_lock_is_held(rw->read, NULL));
    atomic_fetch_sub(&inside->readers, 1);
    atomic_fetch_add(&inside->reads, 1);
    int rc = hl_lock_release(rw->read, NULL);
    check(rc == HL_OK || rc == HL_EINDOUBT);
}

static void write_now(struct rw *rw, bool then_reads)
{
    expect_ok(hl_lock_acquire(rw->write, NULL));
    must_be(atomic_fetch_add(&inside->writers, 1) == 0);
    must_be(atomic_load(&inside->readers) == 0);
    stay();
    if (then_reads)
        expect_ok(hl_lock_acquire(rw->read, NULL));
    must_be(atomic_load(&inside->readers) == 0 && hl_lock_is_held(rw->write, NULL));
    if (then_reads)
        note_together(atomic_fetch_add(&inside->readers, 1) + 1);
    must_be(atomic_fetch_sub(&inside->writers, 1) == 1);
    atomic_fetch_add(&inside->writes, 1);
    int rc = hl_lock_release(rw->write, NULL);
    check(rc == HL_OK || rc == HL_EINDOUBT);
    if (!then_reads)
        return;
    stay();
    must_be(atomic_load(&inside->writers) == 0);
    atomic_fetch_sub(&inside->readers, 1);
    rc = hl_lock_release(rw->read, NULL);
    check(rc == HL_OK || rc == HL_EINDOUBT);
}

static void *thread_main(void *arg)
{
    struct rw *rw = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int what = rand() % 10; /* NOLINT(concurrency-mt-unsafe): any number will do */
        if (what < 7)
            read_now(rw);
        else
            write_now(rw, what == 9);
    }
    atomic_fetch_add(&inside->ended, 1);
    return NULL;
}

static void process_main(struct process *self, void *arg)
{
    const hl_lock_options prefers = {.size = sizeof(prefers), .flags = HL_LOCK_PREFER_WRITERS};
    pthread_t thread[THREADS];
    check(process_await(self, GO, 1, 60000));
    srand((unsigned)getpid());
    hl_client *client =
        open_client_at(process_shared(self), CLIENT(.poll_ms = 200, .outage_timeout_ms = -1));
    struct rw rw = rw_new_with(client, arg ? &prefers : NULL);
    for (int i = 0; i < THREADS; i++)
        check_int(pthread_create(&thread[i], NULL, thread_main, &rw), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    close_client(client);
}

static void crowd_up(void)
{
    inside = mmap(NULL, sizeof(*inside), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(inside != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++)
        member[i] = process_start(process_main, i == 0 ? inside : NULL);
    server_up();
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(process_shared(member[i]), PROCESS_SHARED, "%s", redis_server_url(server));
        process_tell(member[i], GO);
    }
}

static bool has_done(void *arg)
{
    const int *share = arg; /* of CUTS */
    return atomic_load(&inside->reads) + atomic_load(&inside->writes) >=
           *share * PROCESSES * THREADS * ROUNDS / (CUTS + 1);
}

Test(rw_lock_crowd, never_has_a_writer_beside_anybody, .init = crowd_up, .fini = rw_down)
{
    for (int cut = 1; cut <= CUTS; cut++) {
        check(wait_until(has_done, &cut, 60000));
        redis_kill_clients(server, cut % 2 ? REDIS_NORMAL : REDIS_PUBSUB);
    }
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(member[i], 60000), 0);
    check_int(atomic_load(&inside->wrong), 0);
    check_int(atomic_load(&inside->ended), PROCESSES * THREADS);
    check_int(atomic_load(&inside->reads) + atomic_load(&inside->writes),
              PROCESSES * THREADS * ROUNDS);
    check(atomic_load(&inside->together) > 1);
}
