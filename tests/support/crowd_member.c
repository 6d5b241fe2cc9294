/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The work of a crowd's process, and the orders that it carries out meanwhile. */

#include "crowd_member.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "census.h"
#include "kinds.h"
#include "test.h"

enum { KINDS = 4, BURST_MS = 25, LONG_MS = 30000, SHORT_MS = 2 };

struct member {
    struct crowd_desk *desk;
    hl_client *client;
    struct history *history;
    atomic_bool is_closing, leaves;
    struct member_thread {
        struct member *member;
        int number;
        uint64_t dice;
        hl_lock *lock[KINDS];
        pthread_t thread;
    } thread[CROWD_THREADS];
};

static unsigned member_roll(struct member_thread *thread, unsigned sides)
{
    thread->dice = thread->dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(thread->dice >> 33) % sides;
}

static void member_nap(int64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Every second burst is this process's, by a rule of its own. */
static bool member_is_at_work(const struct member_thread *thread)
{
    uint64_t burst = (uint64_t)(now_ms() / slow_ms(BURST_MS)) * CROWD_PROCESSES +
                     (uint64_t)thread->member->desk->number;
    return (burst * 0x9e3779b97f4a7c15u >> 63) != 0;
}

static bool member_is_over(const struct member *member)
{
    return atomic_load(&member->desk->page->is_over) || atomic_load(&member->is_closing);
}

/* A release may go by another handle than its acquire: the releasing handle decides whether the
 * release is posted and the lock retained. */
static void member_make_locks(struct member_thread *thread)
{
    for (unsigned i = 0; i < KINDS; i++) {
        hl_lock_options options = HL_LOCK_OPTIONS_INIT;
        options.flags = i & 1 ? HL_LOCK_ASYNC_RELEASE : 0;
        options.retain_ms = i & 2 ? 10 : 0;
        check_int(lock_new_with(thread->member->client, "crowd", &options, &thread->lock[i], NULL),
                  HL_OK);
    }
}

static bool member_may_end(const struct member *member, int code)
{
    if (atomic_load(&member->is_closing) && (code == HL_ECANCELED || code == HL_ECLOSED))
        return true;
    return code == HL_EBUSY || code == HL_ETIMEDOUT || code == HL_ECONN || code == HL_ELOST ||
           code == member->desk->page->also_code;
}

static void member_release(struct member_thread *thread)
{
    struct member *member = thread->member;
    hl_error err = HL_ERROR_INIT;
    int code;
    do {
        code = hl_lock_release(thread->lock[member_roll(thread, KINDS)], &err);
    } while (code == HL_ENOMEM);
    check_msg(code == HL_OK || code == HL_EINDOUBT || member_may_end(member, code), "release: %s",
              err.text);
    if (code == HL_ELOST)
        atomic_fetch_add(&member->desk->losses, 1);
}

/* Nested, or a while of work; the belief is stamped while the hold is surely valid. */
static void member_work(struct member_thread *thread, struct history_record *record)
{
    hl_lock *lock = thread->lock[0];
    unsigned what = member_roll(thread, 8);
    for (unsigned i = 0; i <= what; i++) {
        int64_t asked_at = now_ns();
        if (!hl_lock_is_held(lock, NULL))
            return;
        history_until(record, asked_at);
        if (what == 7)
            member_nap(100);
        else
            sched_yield();
    }
    if (what == 3 && hl_lock_acquire_for(lock, LONG_MS, NULL) == HL_OK)
        member_release(thread);
}

static void member_hold(struct member_thread *thread, uint32_t age)
{
    struct crowd_desk *desk = thread->member->desk;
    struct history_record *record =
        history_enter(thread->member->history, age,
                      (uint64_t)(desk->number * CROWD_THREADS + thread->number + 1));
    history_until(record, 1); /* nothing is believed yet */
    uint64_t counted = atomic_load(&desk->page->counter);
    member_work(thread, record);
    int64_t asked_at = now_ns();
    if (hl_lock_is_held(thread->lock[0], NULL)) {
        history_until(record, asked_at);
        atomic_store(&desk->page->counter, counted + 1);
        atomic_fetch_add(&desk->updates, 1);
    }
    history_leave(record);
}

static void member_turn(struct member_thread *thread)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;
    unsigned how = member_roll(thread, 16);
    options.wait_ms = how == 0 ? HL_NO_WAIT : how == 1 ? SHORT_MS : slow_ms(LONG_MS);
    options.lease_ms = how == 2 ? slow_ms(CROWD_LEASE_MS / 2) : 0;
    int code = hl_lock_acquire_with(thread->lock[member_roll(thread, KINDS)], &options, &err);
    check_msg(code == HL_OK || member_may_end(thread->member, code), "acquire: %s: %s",
              hl_err_name(code), err.text);
    if (code != HL_OK)
        return;
    uint32_t age = atomic_load(&thread->member->desk->page->age);
    if (age % 2 == 0)
        member_hold(thread, age);
    atomic_fetch_add(&thread->member->desk->seat[thread->number].served, 1);
    if (atomic_exchange(&thread->member->leaves, false))
        atomic_store(&thread->member->desk->seat[thread->number].has_left, true);
    else
        member_release(thread);
}

static void *member_thread_run(void *arg)
{
    struct member_thread *thread = arg;
    while (!member_is_over(thread->member) &&
           !atomic_load(&thread->member->desk->seat[thread->number].has_left)) {
        if (!member_is_at_work(thread))
            member_nap(1000);
        else
            member_turn(thread);
        if (member_roll(thread, 6) == 0)
            member_nap(member_roll(thread, 2000));
    }
    return NULL;
}

static void member_publish(struct member *member)
{
    hl_stats stats = {.size = sizeof stats};
    check_int(hl_client_stats(member->client, &stats), HL_OK);
    atomic_store(&member->desk->passes, stats.passes);
    atomic_store(&member->desk->grants, stats.grants);
    atomic_store(&member->desk->retained, stats.retained);
}

/* Lives until the end, with whatever it inherited. */
static _Noreturn void member_child(const struct member *member)
{
    struct deadline deadline = deadline_in(30000);
    check_int(hl_lock_acquire_for(member->thread[0].lock[3], 0, NULL), HL_EFORKED);
    check_int(hl_lock_release(member->thread[0].lock[3], NULL), HL_EFORKED);
    check(!hl_lock_is_held(member->thread[0].lock[3], NULL));
    check_int(hl_client_close(member->client), HL_EFORKED);
    while (!atomic_load(&member->desk->page->is_over) && !deadline_is_over(deadline))
        member_nap(10000);
    _exit(0);
}

static void member_fork(const struct member *member)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        member_child(member);
}

static void member_await_leaver(struct member *member)
{
    struct deadline deadline = deadline_in(10000);
    atomic_store(&member->leaves, true);
    while (atomic_load(&member->leaves) && !deadline_is_over(deadline))
        deadline_nap();
    check(!atomic_load(&member->leaves));
}

static void member_obey(struct process *self, struct member *member)
{
    int order = atomic_exchange(&member->desk->order, 0);
    if (order == 0)
        return;
    if (order == CROWD_LEAVES)
        member_await_leaver(member);
    else if (order == CROWD_FORKS)
        member_fork(member);
    else
        atomic_store(&member->is_closing, true);
    process_tell(self, CROWD_DONE);
}

static void member_open(struct member *member)
{
    const struct crowd_page *page = member->desk->page;
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;
    options.watchdog_timeout_ms = slow_ms(CROWD_LEASE_MS);
    options.poll_ms = slow_ms(CROWD_CLAIM_MS / 4);
    options.request_timeout_ms = slow_ms(400);
    options.connect_timeout_ms = slow_ms(1000);
    options.outage_timeout_ms = -1;
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 50;
    check_msg(hl_client_open(member->desk->url, &options, &member->client, &err) == HL_OK, "%s",
              err.text);
    snprintf(member->desk->id, sizeof member->desk->id, "%s", hl_client_id(member->client));
    member->history = history_open(member->desk->book, CROWD_RECORDS);
    for (int i = 0; i < page->threads; i++) {
        struct member_thread *thread = &member->thread[i];
        thread->member = member;
        thread->number = i;
        thread->dice = (uint64_t)getpid() * 64 + (uint64_t)i;
        member_make_locks(thread);
    }
}

static void member_start_threads(struct member *member)
{
    for (int i = 0; i < member->desk->page->threads; i++)
        check_int(
            pthread_create(&member->thread[i].thread, NULL, member_thread_run, &member->thread[i]),
            0);
}

/* A process closes its client while its threads are inside of calls. */
static void member_close(struct member *member)
{
    if (atomic_load(&member->is_closing))
        check_int(hl_client_close(member->client), HL_OK);
    for (int i = 0; i < member->desk->page->threads; i++)
        check_int(pthread_join(member->thread[i].thread, NULL), 0);
    for (int i = 0; i < member->desk->page->threads; i++)
        for (int j = 0; j < KINDS; j++)
            hl_lock_free(member->thread[i].lock[j]);
    if (!atomic_load(&member->is_closing))
        check_int(hl_client_close(member->client), HL_OK);
    history_close(member->history);
}

void crowd_member_run(struct process *self, void *arg)
{
    static struct member member;
    member.desk = arg;
    check(process_await(self, CROWD_GO, 1, 60000));
    int files = census_files();
    member_open(&member);
    member_start_threads(&member);
    process_tell(self, CROWD_READY);
    while (!member_is_over(&member)) {
        member_obey(self, &member);
        member_publish(&member);
        deadline_nap();
    }
    member_close(&member);
    check(census_waits_for_no_thread());
    check_int(census_files(), files);
}
