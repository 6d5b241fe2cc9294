/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes full of threads on a few names of one server, while processes are killed and stopped,
 * connections cut, scripts flushed and messages lost; and then the verdict. HL_STRESS_SECONDS says
 * how long (40).
 */

#include <signal.h>

#include "replay.h"
#include "support/fatal.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/redis_probe.h"
#include "support/test.h"
#include "verdict.h"
#include "worker.h"

enum { PROCESSES = 4, PAUSE_MS = 250 }; /* at most, between two disturbances */

struct stress_slot {
    struct process *process;
    uint32_t book;
    int64_t stopped_ns; /* 0: it runs */
    int64_t continue_ns;
};

struct stress {
    struct redis_server *server;
    struct proxy *proxy;
    struct ledger *ledger;
    struct stress_slot slot[PROCESSES];
    uint64_t dice;
    int kills, stops, long_stops, cuts, flushes;
};

static uint64_t stress_roll(struct stress *stress, uint64_t sides)
{
    stress->dice = stress->dice * 6364136223846793005u + 1442695040888963407u;
    return (stress->dice >> 33) % sides;
}

static void stress_body(struct process *self, void *arg)
{
    (void)self;
    worker_run(arg);
}

/* Every second process goes through the proxy, which loses messages. */
static void stress_start_process(struct stress *stress, int index)
{
    struct stress_slot *slot = &stress->slot[index];
    must(stress->ledger->books < LEDGER_BOOKS);
    *slot = (struct stress_slot){.book = stress->ledger->books++};
    struct worker_job job = {.ledger = stress->ledger,
                             .book = &stress->ledger->book[slot->book],
                             .url = index % 2 ? proxy_url(stress->proxy)
                                              : redis_server_url(stress->server)};
    slot->process = process_start(stress_body, &job);
}

static void stress_note(struct stress *stress, uint32_t book, int64_t from_ns, int64_t to_ns)
{
    struct ledger *ledger = stress->ledger;
    must(ledger->disturbances < LEDGER_DISTURBANCES);
    ledger->disturbance[ledger->disturbances++] =
        (struct ledger_disturbance){.book = book, .from_ns = from_ns, .to_ns = to_ns};
}

static void stress_kill(struct stress *stress, int index)
{
    struct stress_slot *slot = &stress->slot[index];
    int64_t from_ns = slot->stopped_ns ? slot->stopped_ns : ledger_now_ns();
    process_kill(slot->process);
    process_finish(slot->process, 0);
    stress_note(stress, slot->book, from_ns, INT64_MAX);
    stress_start_process(stress, index);
    stress->kills++;
}

static void stress_stop(struct stress *stress, int index)
{
    struct stress_slot *slot = &stress->slot[index];
    bool is_long = stress_roll(stress, 3) == 0;
    int64_t ms =
        is_long ? STRESS_LEASE_MS * 13 / 10 : (int64_t)stress_roll(stress, STRESS_LEASE_MS / 2);
    if (slot->stopped_ns)
        return;
    slot->stopped_ns = ledger_now_ns();
    process_stop(slot->process);
    slot->continue_ns = slot->stopped_ns + ms * 1000000;
    if (is_long)
        stress->long_stops++;
    else
        stress->stops++;
}

static void stress_continue_due(struct stress *stress, int64_t now_ns)
{
    for (int i = 0; i < PROCESSES; i++) {
        struct stress_slot *slot = &stress->slot[i];
        if (!slot->stopped_ns || now_ns < slot->continue_ns)
            continue;
        process_continue(slot->process);
        stress_note(stress, slot->book, slot->stopped_ns, ledger_now_ns());
        slot->stopped_ns = 0;
    }
}

/* All have to connect again, which excuses nothing: holds are renewed then, and waiters ask. */
static void stress_cut(struct stress *stress, enum redis_kind kind)
{
    redis_kill_clients(stress->server, kind);
    stress->cuts++;
}

static void stress_disturb(struct stress *stress)
{
    int index = (int)stress_roll(stress, PROCESSES);
    uint64_t kind = stress_roll(stress, 100);
    if (kind < 8)
        stress_kill(stress, index);
    else if (kind < 25)
        stress_stop(stress, index);
    else if (kind < 32)
        stress_cut(stress, stress_roll(stress, 2) ? REDIS_NORMAL : REDIS_PUBSUB);
    else if (kind < 50)
        redis_do(stress->server, "SCRIPT FLUSH"), stress->flushes++;
    else if (kind < 75)
        proxy_drop_messages(stress->proxy, "redisson_lock__channel", 20);
    else if (kind < 90) /* replies that come late, for some time */
        proxy_delay(stress->proxy, PROXY_EVERY, PROXY_DOWN,
                    kind < 80 ? (int64_t)stress_roll(stress, 100) : 0);
}

static void stress_finish(struct stress *stress)
{
    stress_continue_due(stress, INT64_MAX);
    atomic_store(&stress->ledger->stops, true);
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(stress->slot[i].process, 30000), 0);
    check_msg(redis_wait_int(stress->server, 0, 3 * STRESS_LEASE_MS, "DBSIZE"),
              "a lock is left behind");
}

static struct stress *stress_new(void)
{
    struct stress *stress = calloc(1, sizeof *stress);
    must(stress);
    stress->server = redis_server_start(
        &(struct redis_options){.tcp = true, .appendonly = true, .config = "appendfsync everysec"});
    stress->proxy = proxy_start_before(stress->server);
    stress->ledger = mmap(NULL, sizeof *stress->ledger, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(stress->ledger != MAP_FAILED);
    stress->dice = (uint64_t)ledger_now_ns();
    return stress;
}

static void stress_free(struct stress *stress)
{
    munmap(stress->ledger, sizeof *stress->ledger);
    proxy_stop(stress->proxy);
    redis_server_stop(stress->server);
    free(stress);
}

static int64_t stress_seconds(void)
{
    const char *seconds = getenv("HL_STRESS_SECONDS");
    return seconds && atoi(seconds) > 0 ? atoi(seconds) : 40;
}

static void stress_check_books(const struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->books; i++)
        check_msg(atomic_load(&ledger->book[i].strange) == 0, "%u strange answers; the first: %s",
                  atomic_load(&ledger->book[i].strange), ledger->book[i].strange_text);
}

static void stress_judge(struct stress *stress)
{
    struct replay replay;
    struct verdict verdict;
    replay_read(&replay, stress->server, stress->ledger);
    verdict_give(&verdict, &replay);
    printf("%llu calls, %llu holds, %zu tenures, %llu renewal cadences; %d kills, %d+%d stops, "
           "%d cuts, %d flushes, %d messages lost; longest idle with a waiter %lld ms, longest "
           "renewal gap %lld ms\n",
           (unsigned long long)verdict.calls, (unsigned long long)verdict.holds, replay.count,
           (unsigned long long)verdict.judged, stress->kills, stress->stops, stress->long_stops,
           stress->cuts, stress->flushes, proxy_dropped(stress->proxy),
           (long long)verdict.longest_idle_ms, (long long)verdict.longest_gap_ms);
    printf("overlaps %llu, unfounded %llu, outlived %llu, late %llu, unrenewed %llu, server steps "
           "out of order %u\n",
           (unsigned long long)verdict.overlaps, (unsigned long long)verdict.unfounded,
           (unsigned long long)verdict.outlived, (unsigned long long)verdict.late,
           (unsigned long long)verdict.unrenewed, replay.wrong);
    fflush(stdout);
    check_msg(replay.wrong == 0, "%s", replay.wrong_text);
    check_msg(verdict_violations(&verdict) == 0, "%s", verdict.text);
    check(verdict.holds > 1000);
    replay_free(&replay);
}

Test(stress, of_one_server_shows_no_violation, .timeout = 900)
{
    struct stress *stress = stress_new();
    int64_t end_ns = ledger_now_ns() + stress_seconds() * INT64_C(1000000000);
    int64_t next_ns = 0;
    for (int i = 0; i < PROCESSES; i++)
        stress_start_process(stress, i);
    while (ledger_now_ns() < end_ns) {
        stress_continue_due(stress, ledger_now_ns());
        if (ledger_now_ns() > next_ns) {
            stress_disturb(stress);
            next_ns = ledger_now_ns() + (int64_t)stress_roll(stress, PAUSE_MS) * 1000000;
        }
        deadline_nap();
    }
    stress_finish(stress);
    stress_check_books(stress->ledger);
    stress_judge(stress);
    stress_free(stress);
}
