/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The crowd as its test sees it: processes, faults, and the checks at the end. */

#include "crowd.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "crowd_member.h"
#include "fatal.h"
#include "process.h"
#include "redis_probe.h"
#include "test.h"

/* A place in the queue is forgotten when no waiter asks for ten polls. */
enum { START_MS = 30000, END_MS = 30000, LEFT_MS = 10 * CROWD_POLL_MS + 1000 };

struct crowd {
    struct crowd_page *page;
    struct redis_server *server;
    struct process *process[CROWD_PROCESSES];
    bool is_stopped[CROWD_PROCESSES], is_out[CROWD_PROCESSES];
};

struct crowd *crowd_start(int threads, int code)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    must(crowd && threads <= CROWD_THREADS);
    crowd->page =
        mmap(NULL, sizeof *crowd->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(crowd->page != MAP_FAILED);
    crowd->page->threads = threads;
    crowd->page->also_code = code;
    for (int i = 0; i < CROWD_PROCESSES; i++) {
        crowd->page->desk[i].number = i;
        crowd->page->desk[i].page = crowd->page;
        crowd->process[i] = process_start(crowd_member_run, &crowd->page->desk[i]);
    }
    return crowd;
}

void crowd_send_to(struct crowd *crowd, int process, const char *url)
{
    snprintf(crowd->page->desk[process].url, sizeof crowd->page->desk[process].url, "%s", url);
}

static bool crowd_runs(const struct crowd *crowd, int process)
{
    return !crowd->is_out[process] && !crowd->is_stopped[process];
}

/* What has happened in all processes so far. */
static uint64_t crowd_sum(struct crowd *crowd, size_t offset)
{
    uint64_t sum = 0;
    for (int i = 0; i < CROWD_PROCESSES; i++)
        sum += atomic_load(
            (_Atomic uint64_t *)((char *)&crowd->page->desk[i] + offset)); /* a counter of it */
    return sum;
}

#define CROWD_SUM(crowd, counter) crowd_sum((crowd), offsetof(struct crowd_desk, counter))

static bool crowd_is_busy(void *arg)
{
    struct crowd *crowd = arg;
    return CROWD_SUM(crowd, passes) > 0 && CROWD_SUM(crowd, grants) > 0 &&
           CROWD_SUM(crowd, retained) > 0;
}

void crowd_begin(struct crowd *crowd, struct redis_server *server)
{
    crowd->server = server;
    for (int i = 0; i < CROWD_PROCESSES; i++) {
        snprintf(crowd->page->desk[i].book, sizeof crowd->page->desk[i].book, "%s/crowd.%d",
                 redis_server_dir(server), i);
        if (crowd->page->desk[i].url[0] == '\0')
            crowd_send_to(crowd, i, redis_server_url(server));
        process_tell(crowd->process[i], CROWD_GO);
    }
    for (int i = 0; i < CROWD_PROCESSES; i++)
        check(process_await(crowd->process[i], CROWD_READY, 1, START_MS));
    crowd_expect_served(crowd, START_MS);
    check_msg(wait_until(crowd_is_busy, crowd, START_MS), "%d passes, %d grants, %d retained",
              (int)CROWD_SUM(crowd, passes), (int)CROWD_SUM(crowd, grants),
              (int)CROWD_SUM(crowd, retained));
}

struct crowd_wish {
    struct crowd *crowd;
    uint64_t served[CROWD_PROCESSES][CROWD_THREADS]; /* wanted; 0: it does not matter */
    int process, thread;                             /* the thread that is awaited */
};

static bool crowd_is_served(void *arg)
{
    struct crowd_wish *wish = arg;
    for (int i = 0; i < CROWD_PROCESSES; i++)
        for (int j = 0; j < wish->crowd->page->threads; j++)
            if (atomic_load(&wish->crowd->page->desk[i].seat[j].served) < wish->served[i][j]) {
                wish->process = i;
                wish->thread = j;
                return false;
            }
    return true;
}

/* Shows the state of the crowd after a wait in vain. */
static const char *crowd_describe(struct crowd *crowd)
{
    static char text[1024];
    snprintf(text, sizeof text, "held by %s for %lld ms, queue: %s",
             redis_str(crowd->server, "HGETALL crowd"),
             (long long)redis_int(crowd->server, "PTTL crowd"),
             redis_str(crowd->server, "ZRANGE hirelock_queue:{crowd} 0 -1"));
    return text;
}

static void crowd_wish(struct crowd_wish *wish, int process)
{
    const struct crowd_desk *desk = &wish->crowd->page->desk[process];
    for (int i = 0; i < wish->crowd->page->threads && crowd_runs(wish->crowd, process); i++)
        if (!atomic_load(&desk->seat[i].has_left))
            wish->served[process][i] = atomic_load(&desk->seat[i].served) + 2;
}

static void crowd_expect_wish(struct crowd_wish *wish, int64_t ms)
{
    check_msg(wait_until(crowd_is_served, wish, ms),
              "thread %d of process %d (%s) was not served within %d ms: %s", wish->thread,
              wish->process, wish->crowd->page->desk[wish->process].id, (int)ms,
              crowd_describe(wish->crowd));
}

void crowd_expect_served(struct crowd *crowd, int64_t ms)
{
    struct crowd_wish wish = {.crowd = crowd};
    for (int i = 0; i < CROWD_PROCESSES; i++)
        crowd_wish(&wish, i);
    crowd_expect_wish(&wish, ms);
}

void crowd_expect_process_served(struct crowd *crowd, int process, int64_t ms)
{
    struct crowd_wish wish = {.crowd = crowd};
    crowd_wish(&wish, process);
    crowd_expect_wish(&wish, ms);
}

void crowd_go_on(int64_t ms)
{
    struct deadline deadline = deadline_in(ms);
    while (!deadline_is_over(deadline))
        deadline_nap();
}

void crowd_excuse(struct crowd *crowd)
{
    atomic_fetch_add(&crowd->page->age, 1);
}

void crowd_excuse_no_more(struct crowd *crowd)
{
    atomic_fetch_add(&crowd->page->age, 1);
}

static bool crowd_is_named(const struct crowd *crowd, int process, const char *field)
{
    return strncmp(field, crowd->page->desk[process].id, 36) == 0;
}

static bool crowd_holds(struct crowd *crowd, int process)
{
    return crowd_is_named(crowd, process, redis_str(crowd->server, "HKEYS crowd"));
}

static bool crowd_is_queued(struct crowd *crowd, int process)
{
    const char *queue = redis_str(crowd->server, "ZRANGE hirelock_queue:{crowd} 0 -1");
    return !crowd_holds(crowd, process) && strstr(queue, crowd->page->desk[process].id) != NULL;
}

/* Looked at again when it stands still. */
static bool crowd_stop_if(struct crowd *crowd, int process,
                          bool (*is_so)(struct crowd *crowd, int process))
{
    if (!crowd_runs(crowd, process) || !is_so(crowd, process))
        return false;
    process_stop(crowd->process[process]);
    crowd->is_stopped[process] = true;
    if (is_so(crowd, process))
        return true;
    crowd_continue(crowd, process);
    return false;
}

static int crowd_stop_one(struct crowd *crowd, bool (*is_so)(struct crowd *crowd, int process))
{
    struct deadline deadline = deadline_in(START_MS);
    for (int i = 0; !deadline_is_over(deadline); i++)
        if (crowd_stop_if(crowd, i % CROWD_PROCESSES, is_so))
            return i % CROWD_PROCESSES;
    check_msg(false, "nobody could be stopped: %s", crowd_describe(crowd));
    return -1;
}

int crowd_stop_holder(struct crowd *crowd)
{
    return crowd_stop_one(crowd, crowd_holds);
}

int crowd_stop_queued(struct crowd *crowd)
{
    return crowd_stop_one(crowd, crowd_is_queued);
}

void crowd_wait_granted(struct crowd *crowd, int process)
{
    struct deadline deadline = deadline_in(START_MS);
    while (!crowd_holds(crowd, process) && !deadline_is_over(deadline))
        deadline_nap();
    check(crowd_holds(crowd, process));
}

void crowd_continue(struct crowd *crowd, int process)
{
    process_continue(crowd->process[process]);
    crowd->is_stopped[process] = false;
}

void crowd_kill(struct crowd *crowd, int process)
{
    process_kill(crowd->process[process]);
    check_int(process_finish(crowd->process[process], 0), -SIGKILL);
    crowd->is_out[process] = true;
}

void crowd_order(struct crowd *crowd, int process, enum crowd_order order)
{
    struct process *told = crowd->process[process];
    atomic_store(&crowd->page->desk[process].order, (int)order);
    check(process_await(told, CROWD_DONE, 1, START_MS));
    if (order != CROWD_CLOSES)
        return;
    crowd->is_out[process] = true;
    check_int(process_finish(told, END_MS), 0);
}

int crowd_losses(struct crowd *crowd)
{
    return (int)CROWD_SUM(crowd, losses);
}

/* Beliefs that were not over when their process was killed ended with it. */
static void crowd_check_history(struct crowd *crowd)
{
    struct history *history[CROWD_PROCESSES];
    struct history_overlap overlap = {.lock = 0};
    for (int i = 0; i < CROWD_PROCESSES; i++)
        history[i] = history_open(crowd->page->desk[i].book, CROWD_RECORDS);
    uint64_t overlaps = history_check(history, CROWD_PROCESSES, &overlap);
    check_msg(overlaps == 0, "%d overlaps; the first: %d entered %d us before %d had left",
              (int)overlaps, (int)overlap.second_owner,
              (int)((overlap.first_end_ns - overlap.second_enter_ns) / 1000),
              (int)overlap.first_owner);
    for (int i = 0; i < CROWD_PROCESSES; i++)
        history_close(history[i]);
}

static void crowd_check_nothing_is_left(struct crowd *crowd)
{
    static const char *const keys[] = {"crowd", "hirelock_queue:{crowd}"};
    for (int i = 0; i < 2; i++)
        check_msg(redis_wait_int(crowd->server, 0, LEFT_MS, "EXISTS %s", keys[i]), "%s: %s",
                  keys[i], crowd_describe(crowd));
}

void crowd_end(struct crowd *crowd, bool may_lose_updates)
{
    struct crowd_page *page = crowd->page;
    atomic_store(&page->is_over, true);
    for (int i = 0; i < CROWD_PROCESSES; i++)
        if (!crowd->is_out[i])
            check_int(process_finish(crowd->process[i], END_MS), 0);
    crowd_check_history(crowd);
    check_msg(may_lose_updates || atomic_load(&page->counter) >= CROWD_SUM(crowd, updates),
              "%d of %d updates were lost", (int)(CROWD_SUM(crowd, updates) - page->counter),
              (int)CROWD_SUM(crowd, updates));
    crowd_check_nothing_is_left(crowd);
    munmap(page, sizeof *page);
    free(crowd);
}
