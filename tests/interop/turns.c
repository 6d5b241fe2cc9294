/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes of C that hand a lock to each other, keep it, or let go of it unheard, as fast as they
 * can; and a thread of Java's that wants it too: it has its turns, and nothing is lost.
 */
#include "redisson.h"
#include "stock.h"

#include "support/actor.h"
#include "support/fatal.h"
#include "support/kinds.h"
#include "support/process.h"

enum { RUN_MS = 4000, PROCESSES = 3, THREADS = 2, READY = 0, GO = 1, OVER = 2 };

/* Fewer turns than one in so many ms is starving. */
enum { TURN_MS = 200 };

struct page { /* shared with one process */
    struct stock_tally tally;
    uint64_t grants, passes, retained;
};

struct run {
    int processes, threads;
    hl_lock_options options;
};

static void note_statistics(struct page *page, hl_client *client)
{
    hl_stats stats = stats_of(client);
    page->grants = stats.grants;
    page->passes = stats.passes;
    page->retained = stats.retained;
}

static void member(struct process *self, void *arg)
{
    const struct run *run = arg;
    struct page *page = process_shared(self);
    struct stock_shift shifts[THREADS];
    struct actor *actors[THREADS];
    hl_client *client = open_client(NULL);
    for (int i = 0; i < run->threads; i++) {
        shifts[i] = (struct stock_shift){0};
        expect_ok(lock_new_with(client, "stock", &run->options, &shifts[i].lock, NULL));
        actors[i] = actor_start();
    }
    process_tell(self, READY);
    must(process_await(self, GO, 1, 60000));
    for (int i = 0; i < run->threads; i++) {
        shifts[i].until_ms = now_ms() + RUN_MS;
        actor_begin(actors[i], stock_serve, &shifts[i]);
    }
    for (int i = 0; i < run->threads; i++) {
        actor_await(actors[i]);
        stock_add(&page->tally, &shifts[i].tally);
        hl_lock_free(shifts[i].lock);
    }
    note_statistics(page, client);
    actors_stop();
    close_client(client); /* or its retained lock would stay for seconds */
    process_tell(self, OVER);
}

/* Java serves for as long as they do. */
static struct page run_beside_java(struct run run, struct stock_tally *java)
{
    struct process *process[PROCESSES];
    struct page all = {0};
    stock_fill();
    for (int i = 0; i < run.processes; i++)
        process[i] = process_start(member, &run);
    for (int i = 0; i < run.processes; i++)
        check(process_await(process[i], READY, 1, 20000));
    for (int i = 0; i < run.processes; i++)
        process_tell(process[i], GO);
    stock_end_java(stock_begin_java("t1", "lock", "stock", RUN_MS), java);
    for (int i = 0; i < run.processes; i++) {
        struct page *page = process_shared(process[i]);
        check(process_await(process[i], OVER, 1, 40000));
        stock_add(&all.tally, &page->tally);
        all.grants += page->grants;
        all.passes += page->passes;
        all.retained += page->retained;
        check_int(process_finish(process[i], 20000), 0);
    }
    return all;
}

static struct page expect_served(struct run run)
{
    struct stock_tally java = {0};
    struct page all = run_beside_java(run, &java);
    tell_figure("C: %jd turns, longest wait %jd ms; Java: %jd turns, longest wait %jd ms",
                all.tally.turns, all.tally.longest_wait_ms, java.turns, java.longest_wait_ms);
    check_int(stock_number(), all.tally.turns + java.turns);
    check(java.turns > RUN_MS / slow_ms(TURN_MS));
    check(all.tally.handovers > 0 && java.handovers > 0);
    check(java.longest_wait_ms < LONG_BEFORE_MS);
    return all;
}

#define RUN(...) ((struct run){.options.size = sizeof(hl_lock_options), __VA_ARGS__})

EverywhereLaw(java_that_waits, has_its_turns_beside_processes_that_grant)
{
    check(expect_served(RUN(.processes = 3, .threads = 1)).grants > 0);
}

EverywhereLaw(java_that_waits, has_its_turns_beside_threads_that_pass)
{
    check(expect_served(RUN(.processes = 1, .threads = 2)).passes > 0);
}

EverywhereLaw(java_that_waits, has_its_turns_beside_a_retained_lock)
{
    struct run run = RUN(.processes = 2, .threads = 1, .options.retain_ms = 50);
    check(expect_served(run).retained > 0);
}

EverywhereLaw(java_that_waits, has_its_turns_beside_posted_releases)
{
    expect_served(RUN(.processes = 3, .threads = 1, .options.flags = HL_LOCK_ASYNC_RELEASE));
}

EverywhereLaw(java_that_waits, has_its_turns_beside_all_of_them_together)
{
    expect_served(RUN(.processes = 2, .threads = 2, .options.retain_ms = 20,
                      .options.flags = HL_LOCK_ASYNC_RELEASE));
}

/* ---- One release of each kind ---- */

static void expect_woken_by(const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    expect_ok(lock_new_with(open_client(NULL), "stock", options, &lock, NULL));
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire(lock, NULL));
        int waits = redisson_begin("t1", "lock.lock stock");
        expect_listening("redisson_lock__channel:{stock}", 1);
        int64_t before_ms = monotonic_ms();
        expect_ok(hl_lock_release(lock, NULL));
        redisson_end(waits);
        check(redisson_ended_ms(waits) - before_ms < slow_ms(LONG_BEFORE_MS));
        redisson_do("t1", "lock.unlock stock");
    }
    hl_lock_free(lock);
}

EverywhereLaw(posted_release, wakes_java)
{
    expect_woken_by(
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_ASYNC_RELEASE});
}

EverywhereLaw(a_retained_lock, is_released_for_java)
{
    expect_woken_by(&(hl_lock_options){.size = sizeof(hl_lock_options), .retain_ms = 1000});
}
