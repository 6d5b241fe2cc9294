/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The struct itself lies in the shared pages, so that both sides have the same one. */
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"
#include "spawn.h"

struct process {
    _Atomic uint32_t events[PROCESS_EVENTS]; /* also the futex words */
    pid_t parent;
    pid_t pid;  /* parent only */
    bool ended; /* parent only; its status is reaped */
    int status;
    _Alignas(64) unsigned char shared[PROCESS_SHARED];
};

static _Noreturn void process_run(struct process *process, process_body *body, void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != process->parent)
        _exit(126);
    body(process, arg);
    _exit(0);
}

struct process *process_start(process_body *body, void *arg)
{
    struct process *process =
        mmap(NULL, sizeof *process, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(process != MAP_FAILED);
    process->parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        fatal_errno("fork");
    if (pid == 0)
        process_run(process, body, arg);
    process->pid = pid;
    return process;
}

static bool process_is_mine(const struct process *process)
{
    return process->parent == getpid();
}

static bool process_reap(struct process *process, int64_t ms)
{
    if (!process->ended)
        process->ended = spawn_reap(process->pid, ms, &process->status);
    return process->ended;
}

int process_finish(struct process *process, int64_t ms)
{
    if (!process_reap(process, ms))
        process_kill(process);
    int status = process->status;
    munmap(process, sizeof *process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void *process_shared(struct process *process)
{
    return process->shared;
}

void process_tell(struct process *process, int event)
{
    atomic_fetch_add(&process->events[event], 1);
    syscall(SYS_futex, &process->events[event], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The child dies with its parent, so only the parent can find the other side dead. */
static bool process_other_side_died(struct process *process)
{
    return process_is_mine(process) && process_reap(process, 0);
}

bool process_await(struct process *process, int event, uint32_t count, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    for (;;) {
        bool died =
            process_other_side_died(process); /* before the look: it may have told, then died */
        uint32_t told = atomic_load(&process->events[event]);
        if (told >= count)
            return true;
        if (died || deadline_is_over(deadline))
            return false;
        struct timespec nap = {.tv_nsec = 20000000}; /* a death wakes no futex */
        syscall(SYS_futex, &process->events[event], FUTEX_WAIT, told, &nap, NULL, 0);
    }
}

void process_kill(struct process *process)
{
    if (process->ended)
        return;
    kill(process->pid, SIGKILL);
    if (!process_reap(process, 10000))
        fatal("process %d survives SIGKILL", (int)process->pid);
}

void process_stop(struct process *process)
{
    kill(process->pid, SIGSTOP);
    while (waitpid(process->pid, &process->status, WUNTRACED) < 0)
        must(errno == EINTR);
    if (!WIFSTOPPED(process->status)) {
        process->ended = true;
        fatal("process %d ended before it could be stopped", (int)process->pid);
    }
}

void process_continue(struct process *process)
{
    kill(process->pid, SIGCONT);
}

pid_t process_pid(const struct process *process)
{
    return process->pid;
}
