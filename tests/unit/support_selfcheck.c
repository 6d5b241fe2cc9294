/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Children, counts, histories and failing allocations of the tests do what their headers say. */

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "support/census.h"
#include "support/failing_malloc.h"
#include "support/history.h"
#include "support/process.h"
#include "support/test.h"

static void child_counts(struct process *self, void *arg)
{
    int *number = process_shared(self);
    *number = *(int *)arg;
    process_tell(self, 0);
    check(process_await(self, 1, 2, 5000));
    *number += 1;
}

Test(support_process, shares_memory_and_events_with_its_child)
{
    int number = 41;
    struct process *child = process_start(child_counts, &number);
    check(process_await(child, 0, 1, 5000));
    check_int(*(int *)process_shared(child), 41);
    process_tell(child, 1);
    process_tell(child, 1);
    check(!process_await(child, 2, 1, 5000)); /* not told, but the child ends */
    check_int(*(int *)process_shared(child), 42);
    check_int(process_finish(child, 5000), 0);
}

static void child_ticks(struct process *self, void *arg)
{
    (void)arg;
    for (;;) {
        process_tell(self, 0);
        process_await(self, 1, 1, 1);
    }
}

Test(support_process, can_be_stopped_continued_and_killed)
{
    struct process *child = process_start(child_ticks, NULL);
    check(process_await(child, 0, 3, 5000));
    process_stop(child);
    check(!process_await(child, 0, 1000000, 30));
    process_continue(child);
    check(process_await(child, 0, 5, 5000));
    process_kill(child);
    check(!process_await(child, 0, 1000000, 5000));
    check_int(process_finish(child, 0), -9);
}

static void *thread_waits(void *arg)
{
    pthread_setname_np(pthread_self(), "hirelock-test");
    pthread_barrier_wait(arg);
    pthread_barrier_wait(arg);
    return NULL;
}

Test(support_census, counts_threads_by_name_and_open_files)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    check_int(census_threads_named("hirelock-"), 0);
    check_int(pthread_create(&thread, NULL, thread_waits, &barrier), 0);
    pthread_barrier_wait(&barrier);
    check_int(census_threads_named("hirelock-"), 1);
    check(census_threads() >= 2);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    int files = census_files(), sockets = census_sockets(), open = census_files_without_cloexec(3);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    check_int(census_files(), files + 1);
    check_int(census_sockets(), sockets + 1);
    check_int(census_files_without_cloexec(3), open + 1);
    close(fd);
    check_int(census_files(), files);
}

static struct history *history_new(char path[64])
{
    snprintf(path, 64, "/tmp/hl-history-XXXXXX");
    close(mkstemp(path));
    return history_open(path, 1000);
}

static void child_believes(struct process *self, void *path)
{
    struct history *history = history_open(path, 1000);
    history_leave(history_enter(history, 1, 7));
    history_enter(history, 1, 7);
    process_tell(self, 0);
    process_await(self, 1, 1, 60000);
}

Test(support_history, survives_a_kill_and_finds_the_planted_overlap)
{
    char path[64];
    struct history_overlap overlap = {.lock = 0};
    struct history *history = history_new(path);
    struct process *child = process_start(child_believes, path);
    check(process_await(child, 0, 1, 5000));
    history_leave(history_enter(history, 2, 8)); /* another lock */
    struct history_record *planted = history_enter(history, 1, 8);
    process_kill(child);
    process_finish(child, 0);
    check_int(history_count(history), 4);
    check_int(history_check(&history, 1, &overlap), 1);
    check_int(overlap.lock, 1);
    check_int(overlap.first_owner, 7);
    check_int(overlap.second_owner, 8);
    history_leave(planted);
    check_int(history_check(&history, 1, NULL), 1);
    history_close(history);
    unlink(path);
}

Test(support_history, passes_what_is_clean)
{
    char path[64], other_path[64];
    struct history *both[] = {history_new(path), history_new(other_path)};
    for (uint64_t i = 0; i < 200; i++)
        history_leave(history_enter(both[i % 2], (uint32_t)(i % 3), i % 5));
    struct history_record *killed = history_enter(both[0], 0, 1);
    history_until(killed, now_ns() + 1);
    while (now_ns() <= atomic_load(&killed->until_ns))
        continue;
    history_enter(both[1], 0, 2);
    check_int(history_check(both, 2, NULL), 0);
    history_until(killed, 0);
    check_int(history_check(both, 2, NULL), 1);
    history_end(both[0], atomic_load(&killed->enter_ns) + 1);
    check_int(history_check(both, 2, NULL), 0);
    history_close(both[0]);
    history_close(both[1]);
    unlink(path);
    unlink(other_path);
}

Test(support_history, lets_readers_overlap_and_no_writer_beside_them)
{
    char path[64];
    struct history_overlap overlap = {.lock = 0};
    struct history *history = history_new(path);
    struct history_record *reader = history_enter_shared(history, 1, 1);
    history_leave(history_enter_shared(history, 1, 2));
    check_int(history_check(&history, 1, NULL), 0);
    struct history_record *writer = history_enter(history, 1, 3);
    check_int(history_check(&history, 1, &overlap), 1);
    check_int(overlap.first_owner, 1);
    check_int(overlap.second_owner, 3);
    history_leave(reader);
    history_enter_shared(history, 1, 4);
    check_int(history_check(&history, 1, &overlap), 2);
    history_leave(writer);
    check_int(history_check(&history, 1, &overlap), 2);
    check(overlap.longest_ns >= atomic_load(&reader->leave_ns) - atomic_load(&writer->enter_ns));
    check(overlap.longest_ns < atomic_load(&writer->leave_ns) - atomic_load(&reader->enter_ns));
    history_close(history);
    unlink(path);
}

struct sweep {
    void *made[4];
    int runs, failures;
    unsigned failed_at; /* a bit for each allocation that has failed */
};

static void sweep_run(void *arg)
{
    struct sweep *sweep = arg;
    sweep->runs++;
    sweep->made[0] = malloc(10);
    sweep->made[1] = calloc(3, 5);
    sweep->made[2] = realloc(NULL, 7);
    sweep->made[3] = strdup("text");
}

static void sweep_verify(void *arg, bool failed)
{
    struct sweep *sweep = arg;
    int missing = 0;
    for (unsigned i = 0; i < 4; i++) {
        missing += sweep->made[i] == NULL;
        sweep->failed_at |= sweep->made[i] ? 0 : 1U << i;
        free(sweep->made[i]);
    }
    check_int(missing, failed ? 1 : 0);
    sweep->failures += failed;
}

Test(support_failing_malloc, fails_exactly_the_nth_call_and_finds_the_bound)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    struct sweep sweep = {.runs = 0};
    check_int(
        failing_malloc_sweep(&(struct failing_scenario){
            .scope = FAILING_THREAD, .run = sweep_run, .verify = sweep_verify, .arg = &sweep}),
        4);
    check_int(sweep.runs, 5);
    check_int(sweep.failures, 4);
    check_int(sweep.failed_at, 0xf);
    check_int(failing_malloc_calls(), 4);
}

struct allocating {
    pthread_barrier_t armed;
    void *made;
};

static void *thread_allocates(void *arg)
{
    struct allocating *allocating = arg;
    pthread_barrier_wait(&allocating->armed);
    allocating->made = malloc(10);
    return NULL;
}

/* What malloc gives another thread while this one is armed. */
static void *allocate_elsewhere(enum failing_scope scope, bool *ret_failed)
{
    pthread_t thread;
    struct allocating allocating = {.made = NULL};
    pthread_barrier_init(&allocating.armed, NULL, 2);
    check_int(pthread_create(&thread, NULL, thread_allocates, &allocating), 0);
    failing_malloc_arm(scope, 0);
    pthread_barrier_wait(&allocating.armed);
    pthread_join(thread, NULL);
    *ret_failed = failing_malloc_disarm();
    pthread_barrier_destroy(&allocating.armed);
    return allocating.made;
}

Test(support_failing_malloc, fails_other_threads_only_when_told_to)
{
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    bool failed = true;
    void *made = allocate_elsewhere(FAILING_THREAD, &failed);
    check(made && !failed);
    free(made);
    check(!allocate_elsewhere(FAILING_PROCESS, &failed));
    check(failed);
}
