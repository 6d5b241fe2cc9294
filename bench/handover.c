/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Processes that want one lock all the time: how fast it goes from one to another, and who gets how
 * much of it. */
#include "instant.h"
#include "must.h"
#include "samples.h"
#include "scenario.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANDOVER_PROCESSES = 4, HANDOVER_TURNS = 1 << 20 };

/* Shared by the processes. The lock itself guards the turns, and their count. */
struct diary {
    atomic_int ready;
    atomic_bool begins, ends;
    size_t count;
    struct turn {
        int process;
        int64_t got_at, gave_at;
    } turn[HANDOVER_TURNS];
};

static void diary_take_turn(struct diary *diary, hl_lock *lock, int process)
{
    scenario_acquire(lock);
    int64_t got_at = instant_now();
    if (diary->count < HANDOVER_TURNS)
        diary->turn[diary->count++] =
            (struct turn){.process = process, .got_at = got_at, .gave_at = instant_now()};
    scenario_release(lock);
}

static void process_run(struct bench *bench, struct diary *diary, int process)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    hl_client *client = scenario_client(bench, NULL);
    hl_lock *lock = scenario_lock(client, "bench:shared:%d", 0);

    atomic_fetch_add(&diary->ready, 1);
    while (!atomic_load(&diary->begins))
        instant_sleep_ms(1);
    while (!atomic_load(&diary->ends))
        diary_take_turn(diary, lock, process);
    hl_lock_free(lock);
    hl_client_close(client);
    _exit(0);
}

static void processes_work(struct bench *bench, struct diary *diary, int processes)
{
    pid_t pid[HANDOVER_PROCESSES];

    for (int i = 0; i < processes; i++) {
        pid[i] = fork();
        must(pid[i] >= 0, "no process");
        if (pid[i] == 0)
            process_run(bench, diary, i);
    }
    while (atomic_load(&diary->ready) < processes)
        instant_sleep_ms(1);
    atomic_store(&diary->begins, true);
    instant_sleep_ms(bench->is_quick ? 3000 : 10000);
    atomic_store(&diary->ends, true);
    for (int i = 0; i < processes; i++) {
        int status = 0;
        must(waitpid(pid[i], &status, 0) == pid[i] && status == 0, "process %d failed", i);
    }
}

static void handover_tell_shares(struct bench *bench, const struct diary *diary, int processes)
{
    size_t share[HANDOVER_PROCESSES] = {0}, least = diary->count, most = 0;
    char name[96];

    for (size_t i = 0; i < diary->count; i++)
        share[diary->turn[i].process]++;
    for (int i = 0; i < processes; i++) {
        least = share[i] < least ? share[i] : least;
        most = share[i] > most ? share[i] : most;
    }
    double whole = diary->count > 0 ? (double)diary->count : 1;
    snprintf(name, sizeof(name), "%d processes, one name: smallest share", processes);
    report_figure(&bench->report, name, 100 * (double)least / whole, "%");
    snprintf(name, sizeof(name), "%d processes, one name: largest share", processes);
    report_figure(&bench->report, name, 100 * (double)most / whole, "%");
}

static void handover_measure(struct bench *bench, int processes)
{
    struct diary *diary =
        mmap(NULL, sizeof(*diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct samples hands = {0};
    char name[96];

    must(diary != MAP_FAILED, "out of memory");
    int64_t calls = server_calls(&bench->server, "evalsha"), began = instant_now();
    processes_work(bench, diary, processes);
    double seconds = (double)(instant_now() - began) / 1e9;
    calls = server_calls(&bench->server, "evalsha") - calls;
    for (size_t i = 1; i < diary->count; i++)
        if (diary->turn[i].process != diary->turn[i - 1].process)
            samples_add(&hands, (double)(diary->turn[i].got_at - diary->turn[i - 1].gave_at) / 1e3);

    snprintf(name, sizeof(name), "%d processes, one name: holds", processes);
    report_figure(&bench->report, name, (double)diary->count / seconds, "/s");
    snprintf(name, sizeof(name), "%d processes, one name: EVALSHA per hold", processes);
    report_figure(&bench->report, name, (double)calls / (double)diary->count, "");
    snprintf(name, sizeof(name), "%d processes, one name: hand-overs, of all holds", processes);
    report_figure(&bench->report, name, 100 * (double)hands.count / (double)diary->count, "%");
    snprintf(name, sizeof(name), "%d processes, one name: hand-over p50", processes);
    report_figure(&bench->report, name, samples_quantile(&hands, 0.5), "us");
    snprintf(name, sizeof(name), "%d processes, one name: hand-over p99", processes);
    report_figure(&bench->report, name, samples_quantile(&hands, 0.99), "us");
    handover_tell_shares(bench, diary, processes);
    samples_free(&hands);
    munmap(diary, sizeof(*diary));
}

void scenario_handover(struct bench *bench)
{
    report_heading("hand-over between processes");
    handover_measure(bench, 2);
    handover_measure(bench, HANDOVER_PROCESSES);
}
