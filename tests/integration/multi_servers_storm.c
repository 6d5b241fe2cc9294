/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes that take any few of nine locks at three servers as one, and name them in any order;
 * equal names at several servers, too. Each lock has one holder at a time, each process is served,
 * and nothing is left at the end; also when a server is killed and comes back meanwhile.
 */

#include "support/actor.h"
#include "support/kit.h"
#include "support/process.h"

#include <hirelock/multi_lock.h>
#include <sched.h>
#include <sys/mman.h>

enum { SERVERS = 3, NAMES = 3, PLACES = SERVERS * NAMES, PROCESSES = 3, THREADS = 2 };
enum { ROUNDS = 60, CROSSINGS = 15, BLIND_CROSSINGS = 3 };
enum { READY, GO };

struct ground { /* shared by all processes */
    atomic_long entered[PLACES];
    volatile long work[PLACES]; /* guarded by the place's lock alone */
    atomic_long served[PROCESSES];
    atomic_bool is_failing; /* holds may be lost */
    atomic_bool is_over;
};

static struct ground *ground;
static struct redis_server *host[SERVERS];

struct camp { /* a process */
    int number;
    hl_client *client[SERVERS];
    hl_lock *lock[PLACES];
    void (*job)(void *rioter);
    bool is_blind;   /* its clients are not told which server is which */
    bool is_endless; /* until `is_over`; else for some rounds */
};

struct rioter { /* a thread of it */
    struct camp *camp;
    unsigned seed;
    int place[PLACES]; /* those that it takes in this round */
    size_t count;
    long mine[PLACES];
};

static unsigned rioter_random(struct rioter *rioter, unsigned below)
{
    rioter->seed = rioter->seed * 1103515245 + 12345;
    return rioter->seed / 65536 % below;
}

/* Two to four places, in any order. */
static hl_lock *rioter_choose(struct rioter *rioter)
{
    hl_lock *members[PLACES], *lock = NULL;
    int order[PLACES];
    for (int i = 0; i < PLACES; i++)
        order[i] = i;
    rioter->count = 2 + rioter_random(rioter, 3);
    for (size_t i = 0; i < rioter->count; i++) {
        size_t at = i + rioter_random(rioter, (unsigned)(PLACES - i));
        int chosen = order[at];
        order[at] = order[i];
        order[i] = rioter->place[i] = chosen;
        members[i] = rioter->camp->lock[chosen];
    }
    expect_ok(hl_multi_lock_new(members, rioter->count, NULL, &lock, NULL));
    return lock;
}

/* Whoever holds all members to the end was alone all the time. */
static void rioter_work(struct rioter *rioter, const hl_lock *lock)
{
    bool was_alone = true;
    for (size_t i = 0; i < rioter->count; i++) {
        int place = rioter->place[i];
        rioter->mine[i] = atomic_fetch_add(&ground->entered[place], 1) + 1;
        ground->work[place]++;
    }
    if (rioter_random(rioter, 3) == 0)
        sched_yield();
    for (size_t i = 0; i < rioter->count; i++)
        was_alone = was_alone && atomic_load(&ground->entered[rioter->place[i]]) == rioter->mine[i];
    bool is_held = hl_lock_is_held(lock, NULL);
    check_msg(was_alone || !is_held, "two are inside");
    check_msg(is_held || atomic_load(&ground->is_failing), "a hold was lost");
}

static void rioter_serve(struct rioter *rioter)
{
    static const int64_t waits[] = {0, 1, 20, 60000, HL_WAIT_FOREVER};
    hl_lock *lock = rioter_choose(rioter);
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_acquire_for(lock, waits[rioter_random(rioter, 5)], &err);
    check_msg(code == HL_OK || code == HL_EBUSY || code == HL_ETIMEDOUT ||
                  ((code == HL_ECONN || code == HL_ESERVER) && atomic_load(&ground->is_failing)),
              "acquire: %s (%s)", hl_err_name(code), err.text);
    if (code == HL_OK) {
        rioter_work(rioter, lock);
        code = hl_lock_release(lock, &err);
        check_msg(code == HL_OK || atomic_load(&ground->is_failing), "release: %s (%s)",
                  hl_err_name(code), err.text);
        atomic_fetch_add(&ground->served[rioter->camp->number], 1);
    }
    hl_lock_free(lock);
}

/* The first name at all servers: one process begins with the first server, another with the last.
 */
static void cross(void *arg)
{
    struct rioter *rioter = arg;
    struct camp *camp = rioter->camp;
    hl_lock *members[SERVERS], *lock = NULL;
    rioter->count = SERVERS;
    for (int i = 0; i < SERVERS; i++) {
        rioter->place[i] = camp->number % 2 == 0 ? i : SERVERS - 1 - i;
        members[i] = camp->lock[rioter->place[i]];
    }
    expect_ok(hl_multi_lock_new(members, SERVERS, NULL, &lock, NULL));
    for (int i = 0; i < (camp->is_blind ? BLIND_CROSSINGS : CROSSINGS); i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        rioter_work(rioter, lock);
        expect_ok(hl_lock_release(lock, ERR));
        atomic_fetch_add(&ground->served[camp->number], 1);
    }
    hl_lock_free(lock);
}

static void cross_blindly(void *arg)
{
    cross(arg);
}

static void riot(void *arg)
{
    struct rioter *rioter = arg;
    struct camp *camp = rioter->camp;
    for (int i = 0; camp->is_endless ? !atomic_load(&ground->is_over) : i < ROUNDS; i++)
        rioter_serve(rioter);
}

static void camp_open(struct camp *camp)
{
    for (int i = 0; i < SERVERS; i++)
        expect_ok(hl_client_open(redis_server_url(host[i]),
                                 CLIENT(.poll_ms = 100, .watchdog_timeout_ms = slow_ms(3000),
                                        .backoff_min_ms = 5, .backoff_max_ms = 50,
                                        .username = camp->is_blind ? "blind" : NULL,
                                        .password = camp->is_blind ? "pw" : NULL),
                                 &camp->client[i], NULL));
    for (int i = 0; i < PLACES; i++)
        expect_ok(hl_lock_new(camp->client[i % SERVERS], (char[]){(char)('a' + i / SERVERS), '\0'},
                              &camp->lock[i], NULL));
}

static void camp_close(struct camp *camp)
{
    for (int i = 0; i < PLACES; i++)
        hl_lock_free(camp->lock[i]);
    for (int i = 0; i < SERVERS; i++)
        expect_ok(hl_client_close(camp->client[i]));
}

static void camp_live(struct process *self, void *arg)
{
    struct camp *camp = arg;
    struct rioter rioters[THREADS];
    struct actor *actor[THREADS];
    camp_open(camp);
    process_tell(self, READY);
    check(process_await(self, GO, 1, 30000));
    int threads = camp->is_blind ? 1 : THREADS;
    for (int i = 0; i < threads; i++) {
        rioters[i] =
            (struct rioter){.camp = camp, .seed = (unsigned)(camp->number * 97 + i * 7919)};
        actor_begin(actor[i] = actor_start(), camp->job, &rioters[i]);
    }
    for (int i = 0; i < threads; i++)
        actor_stop(actor[i]);
    camp_close(camp);
}

static struct camp camps[PROCESSES];
static struct process *process[PROCESSES];

static void stop_server(void *item)
{
    redis_server_stop(item);
}

/* A server that is killed has all that it has said when it comes back. */
static void begin(void (*job)(void *rioter), bool is_endless)
{
    ground = mmap(NULL, sizeof *ground, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ground != MAP_FAILED);
    for (int i = 0; i < SERVERS; i++)
        host[i] = stop_at_end(redis_server_start(&(struct redis_options){
                                  .appendonly = is_endless,
                                  .config = "appendfsync always\n"
                                            "user blind on >pw ~* &* +@all -info"}),
                              stop_server);
    for (int i = 0; i < PROCESSES; i++) {
        camps[i] = (struct camp){
            .number = i, .job = job, .is_blind = job == cross_blindly, .is_endless = is_endless};
        process[i] = process_start(camp_live, &camps[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        check(process_await(process[i], READY, 1, 30000));
    for (int i = 0; i < PROCESSES; i++)
        process_tell(process[i], GO);
}

static void end(void)
{
    for (int i = 0; i < PROCESSES; i++) {
        check_int(process_finish(process[i], 120000), 0);
        check(atomic_load(&ground->served[i]) > 0);
    }
    for (int i = 0; i < SERVERS; i++)
        check_msg(redis_wait_int(host[i], 0, 30000, "DBSIZE"), "left: %s",
                  redis_str(host[i], "KEYS *"));
}

SingleLaw(multi_servers_storm, of_processes_that_name_members_in_any_order_ends)
{
    begin(riot, false);
    end();
    for (int i = 0; i < PLACES; i++)
        check_int(ground->work[i], atomic_load(&ground->entered[i]));
}

SingleLaw(multi_servers_storm, of_processes_that_name_servers_in_opposite_orders_ends)
{
    begin(cross, false);
    end();
    for (int i = 0; i < PROCESSES; i++)
        check_int(atomic_load(&ground->served[i]), CROSSINGS * THREADS);
}

SingleLaw(multi_servers_storm, of_processes_that_do_not_know_one_order_of_servers_ends)
{
    begin(cross_blindly, false);
    end();
    for (int i = 0; i < PROCESSES; i++)
        check_int(atomic_load(&ground->served[i]), BLIND_CROSSINGS);
}

static bool all_are_served_again(void *arg)
{
    const long *before = arg;
    for (int i = 0; i < PROCESSES; i++)
        if (atomic_load(&ground->served[i]) < before[i] + 5)
            return false;
    return true;
}

static void await_service(void)
{
    long before[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        before[i] = atomic_load(&ground->served[i]);
    check_msg(wait_until(all_are_served_again, before, 60000), "nobody is served any more");
}

SingleLaw(multi_servers_storm, goes_on_after_each_server_was_killed_and_came_back)
{
    begin(riot, true);
    await_service();
    atomic_store(&ground->is_failing, true);
    for (int i = 0; i < SERVERS; i++) {
        redis_server_kill(host[i]);
        redis_server_restart(host[i]);
        await_service();
    }
    atomic_store(&ground->is_over, true);
    end();
}
