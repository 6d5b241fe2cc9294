/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes full of threads on a few names of one server, one of them in Redisson's manner, while
 * processes are killed and stopped, connections cut, scripts flushed and messages lost; and then
 * the verdict of another program on their records. HL_STRESS_ACQUIRES says how many acquires
 * at least (300,000), HL_STRESS_SECONDS for how long at least (60).
 */

#include <signal.h>

#include "ledger.h"
#include "stranger.h"
#include "support/fatal.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/redis_probe.h"
#include "support/redis_server.h"
#include "support/spawn.h"
#include "support/test.h"
#include "worker.h"

enum {
    PROCESSES = STRESS_PROCESSES + 1, /* the last one in Redisson's manner */
    MOST_SECONDS = 600,
    PAUSE_MS = 250, /* at most, between two disturbances */
};

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
    char path[256]; /* of the ledger */
    struct stress_slot slot[PROCESSES];
    uint64_t dice;
    int kills, stops, long_stops, cuts, flushes;
};

static uint64_t stress_roll(struct stress *stress, uint64_t sides)
{
    stress->dice = stress->dice * 6364136223846793005u + 1442695040888963407u;
    return (stress->dice >> 33) % sides;
}

static void stress_work(struct process *self, void *arg)
{
    (void)self;
    worker_run(arg);
}

static void stress_be_strange(struct process *self, void *arg)
{
    (void)self;
    stranger_run(arg);
}

static struct process *stress_start_stranger(struct stress *stress, struct ledger_book *book)
{
    struct stranger_job job = {
        .ledger = stress->ledger, .book = book, .port = redis_server_port(stress->server)};
    book->is_redisson = true;
    return process_start(stress_be_strange, &job);
}

/* Every second process goes through the proxy, which loses messages. */
static struct process *stress_start_worker(struct stress *stress, struct ledger_book *book,
                                           int index)
{
    struct worker_job job = {.ledger = stress->ledger,
                             .book = book,
                             .url = index % 2 ? proxy_url(stress->proxy)
                                              : redis_server_url(stress->server),
                             .home = STRESS_SHARED + (uint32_t)index};
    return process_start(stress_work, &job);
}

static void stress_start_process(struct stress *stress, int index)
{
    struct stress_slot *slot = &stress->slot[index];
    must(stress->ledger->books < LEDGER_BOOKS);
    *slot = (struct stress_slot){.book = stress->ledger->books++};
    struct ledger_book *book = &stress->ledger->book[slot->book];
    slot->process = index < STRESS_PROCESSES ? stress_start_worker(stress, book, index)
                                             : stress_start_stranger(stress, book);
}

static void stress_note(struct stress *stress, uint32_t book, int64_t from_ns, int64_t to_ns)
{
    struct ledger *ledger = stress->ledger;
    must(ledger_note_disturbance(
        ledger, &(struct ledger_disturbance){.book = book, .from_ns = from_ns, .to_ns = to_ns}));
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
    if (kind < 6)
        stress_kill(stress, index);
    else if (kind < 20)
        stress_stop(stress, index);
    else if (kind < 32)
        stress_cut(stress, stress_roll(stress, 2) ? REDIS_NORMAL : REDIS_PUBSUB);
    else if (kind < 50)
        redis_do(stress->server, "SCRIPT FLUSH"), stress->flushes++;
    else if (kind < 75)
        proxy_drop_messages(stress->proxy, stress_roll(stress, 2) ? "hirelock" : "lock__channel",
                            (int)stress_roll(stress, 40));
    else if (kind < 90) /* replies that come late, for some time */
        proxy_delay(stress->proxy, PROXY_EVERY, PROXY_DOWN,
                    kind < 80 ? (int64_t)stress_roll(stress, 60) : 0);
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
    snprintf(stress->path, sizeof stress->path, "%s/ledger", redis_server_dir(stress->server));
    stress->ledger = ledger_open(stress->path);
    must(stress->ledger);
    stress->dice = (uint64_t)ledger_now_ns();
    return stress;
}

static void stress_free(struct stress *stress)
{
    ledger_close(stress->ledger);
    proxy_stop(stress->proxy);
    redis_server_stop(stress->server);
    free(stress);
}

static int64_t stress_setting(const char *name, int64_t without)
{
    const char *value = getenv(name);
    return value && atoi(value) > 0 ? atoi(value) : without;
}

static int64_t stress_held(const struct ledger *ledger)
{
    int64_t held = 0;
    for (uint32_t i = 0; i < ledger->books; i++)
        held += atomic_load(&ledger->book[i].held);
    return held;
}

/* The judge's output goes to the test's output. */
static void stress_judge(const struct stress *stress)
{
    char judge[] = HL_STRESS_JUDGE, ledger[256], dir[256], line[512];
    int status = -1;
    snprintf(ledger, sizeof ledger, "%s", stress->path);
    snprintf(dir, sizeof dir, "%s", redis_server_dir(stress->server));
    snprintf(line, sizeof line, "%s/verdict", dir);
    char *argv[] = {judge, ledger, dir, NULL};
    pid_t pid = spawn_start(&(struct spawn){.argv = argv, .output = line});
    check(spawn_reap(pid, 300000, &status));
    FILE *verdict = fopen(line, "re");
    while (verdict && fgets(line, sizeof line, verdict))
        fputs(line, stdout);
    if (verdict)
        fclose(verdict);
    fflush(stdout);
    check_int(status, 0);
}

static bool stress_has_enough(const struct stress *stress, int64_t began_ns)
{
    int64_t now_ns = ledger_now_ns();
    return now_ns > began_ns + slow_ms(MOST_SECONDS * 1000) * INT64_C(1000000) ||
           (now_ns > began_ns + stress_setting("HL_STRESS_SECONDS", 60) * INT64_C(1000000000) &&
            stress_held(stress->ledger) >= stress_setting("HL_STRESS_ACQUIRES", 300000));
}

static void stress_disturb_all(struct stress *stress, int64_t began_ns)
{
    int64_t next_ns = 0;
    while (!stress_has_enough(stress, began_ns)) {
        stress_continue_due(stress, ledger_now_ns());
        if (ledger_now_ns() > next_ns) {
            stress_disturb(stress);
            next_ns = ledger_now_ns() + (int64_t)stress_roll(stress, PAUSE_MS) * 1000000;
        }
        deadline_nap();
    }
}

Test(stress, of_one_server_shows_no_violation, .timeout = 1200)
{
#ifdef HL_TEST_RUNNER
    skip("ThreadSanitizer loses count of threads in children that are started beside threads");
#endif
    struct stress *stress = stress_new();
    int64_t began_ns = ledger_now_ns();
    for (int i = 0; i < PROCESSES; i++)
        stress_start_process(stress, i);
    stress_disturb_all(stress, began_ns);
    stress_finish(stress);
    printf("%d s; %d kills, %d+%d stops, %d cuts, %d flushes, %d messages lost\n",
           (int)((ledger_now_ns() - began_ns) / 1000000000), stress->kills, stress->stops,
           stress->long_stops, stress->cuts, stress->flushes, proxy_dropped(stress->proxy));
    stress_judge(stress);
    check(stress_held(stress->ledger) >= stress_setting("HL_STRESS_ACQUIRES", 300000));
    stress_free(stress);
}
