/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A crowd: forked, and led by semaphores in shared memory. */
#include "crowd.h"

#include "cpu.h"
#include "instant.h"
#include "must.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CROWD_PATIENCE_MS = 20000, CROWD_LOOK_MS = 100 };

/* In shared memory. */
struct arena {
    sem_t back; /* posted by each that has begun, and that is back from a round */
    atomic_bool is_over, is_closed;
    struct seat {
        sem_t go;
        struct feats feats;
    } seat[CROWD_MOST];
};

struct crowd {
    struct arena *arena;
    int processes;
    pid_t pid[CROWD_MOST];
};

void *crowd_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(memory != MAP_FAILED, "out of memory");
    return memory;
}

void crowd_memory_free(void *memory, size_t size)
{
    munmap(memory, size);
}

static void process_wait(sem_t *go)
{
    while (sem_wait(go) != 0)
        must(errno == EINTR, "sem_wait: %s", strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
}

static void process_run(const struct crowd *crowd, const struct crowd_job *job, void *arg,
                        int process)
{
    struct arena *arena = crowd->arena;
    struct seat *seat = &arena->seat[process];
    void *state = job->begin(arg, process);

    sem_post(&arena->back);
    for (process_wait(&seat->go); !atomic_load(&arena->is_closed); process_wait(&seat->go)) {
        double cpu_us = cpu_own_us();
        job->round(state, &arena->is_over, &seat->feats);
        seat->feats.cpu_us += cpu_own_us() - cpu_us;
        sem_post(&arena->back);
    }
    job->end(state);
    _exit(0);
}

static void crowd_kill(struct crowd *crowd)
{
    for (int i = 0; i < crowd->processes; i++) {
        if (crowd->pid[i] <= 0)
            continue;
        kill(crowd->pid[i], SIGKILL);
        waitpid(crowd->pid[i], NULL, 0);
    }
}

static _Noreturn void crowd_fail(struct crowd *crowd, const char *text)
{
    crowd_kill(crowd);
    must_fail("processes: %s", text);
}

/* One that ended has ended too early. */
static void crowd_check(struct crowd *crowd)
{
    for (int i = 0; i < crowd->processes; i++) {
        if (waitpid(crowd->pid[i], NULL, WNOHANG) == 0)
            continue;
        crowd->pid[i] = 0;
        crowd_fail(crowd, "one of them failed");
    }
}

static bool crowd_one_is_back(struct arena *arena)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until); /* sem_timedwait knows no other */
    until.tv_nsec += CROWD_LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return sem_timedwait(&arena->back, &until) == 0;
}

static void crowd_gather(struct crowd *crowd)
{
    int64_t deadline = instant_after_ms(CROWD_PATIENCE_MS);

    for (int missing = crowd->processes; missing > 0;) {
        if (crowd_one_is_back(crowd->arena)) {
            missing--;
            continue;
        }
        crowd_check(crowd);
        if (instant_now() > deadline)
            crowd_fail(crowd, "one of them does not come back");
    }
}

static void crowd_fork(struct crowd *crowd, const struct crowd_job *job, void *arg, int process)
{
    pid_t parent = getpid();

    crowd->pid[process] = fork();
    if (crowd->pid[process] < 0)
        crowd_fail(crowd, "no more of them");
    if (crowd->pid[process] > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        process_run(crowd, job, arg, process);
    _exit(1);
}

struct crowd *crowd_start(const struct crowd_job *job, void *arg, int processes)
{
    struct crowd *crowd = must_alloc(1, sizeof(*crowd));

    must(processes <= CROWD_MOST, "too large a crowd");
    crowd->processes = processes;
    crowd->arena = crowd_memory(sizeof(*crowd->arena));
    sem_init(&crowd->arena->back, 1, 0);
    for (int i = 0; i < processes; i++)
        sem_init(&crowd->arena->seat[i].go, 1, 0);
    fflush(NULL); /* or each of them prints what waits to be printed */
    for (int i = 0; i < processes; i++)
        crowd_fork(crowd, job, arg, i);
    crowd_gather(crowd);
    return crowd;
}

static void crowd_call(struct crowd *crowd)
{
    for (int i = 0; i < crowd->processes; i++)
        sem_post(&crowd->arena->seat[i].go);
}

void crowd_round(struct crowd *crowd, int64_t ms)
{
    atomic_store(&crowd->arena->is_over, false);
    crowd_call(crowd);
    instant_sleep_ms(ms);
    atomic_store(&crowd->arena->is_over, true);
    crowd_gather(crowd);
}

void crowd_stop(struct crowd *crowd)
{
    int64_t deadline = instant_after_ms(CROWD_PATIENCE_MS);

    atomic_store(&crowd->arena->is_closed, true);
    crowd_call(crowd);
    for (int i = 0; i < crowd->processes; i++) {
        int status = 0;
        while (waitpid(crowd->pid[i], &status, WNOHANG) == 0) {
            if (instant_now() > deadline)
                crowd_fail(crowd, "one of them does not end");
            instant_sleep_ms(1);
        }
        crowd->pid[i] = 0;
        if (status != 0)
            crowd_fail(crowd, "one of them failed at its end");
    }
    crowd_memory_free(crowd->arena, sizeof(*crowd->arena));
    free(crowd);
}

int crowd_size(const struct crowd *crowd)
{
    return crowd->processes;
}

struct feats crowd_feats(const struct crowd *crowd, int process)
{
    return crowd->arena->seat[process].feats;
}
