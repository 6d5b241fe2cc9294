/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/tree.h"

#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TREE_LINE = 512, TREE_AGAIN_MS = 50 };

struct tree_process {
    pid_t pid, parent;
    unsigned long long began; /* with pid, it is no other process */
};

struct tree {
    struct tree_process *all; /* by pid */
    size_t count, room;
};

/* Its parent, and when it began: the fields 4 and 22 of proc_pid_stat(5). False when there is no
 * such process. */
static bool tree_look(pid_t pid, struct tree_process *ret_process)
{
    char path[64], line[TREE_LINE] = "";

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    ret_process->pid = pid;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    line[length] = '\0';
    fclose(file);
    char *at = strrchr(line, ')'); /* the name may have any letters */
    if (!at || strlen(at) < strlen(") S 1"))
        return false;
    at += strlen(") S");
    ret_process->parent = (pid_t)strtol(at, &at, 10);
    for (int field = 5; field <= 22; field++)
        ret_process->began = strtoull(at, &at, 10);
    return ret_process->parent > 0;
}

static int tree_order(const void *a, const void *b)
{
    const struct tree_process *one = a, *other = b;

    return (one->pid > other->pid) - (one->pid < other->pid);
}

static void tree_add(struct tree *tree, const char *name)
{
    if (tree->count == tree->room) {
        size_t room = tree->room ? tree->room * 2 : 256;
        struct tree_process *all = reallocarray(tree->all, room, sizeof(*all));
        if (!all)
            return;
        tree->all = all;
        tree->room = room;
    }
    if (tree_look((pid_t)strtol(name, NULL, 10), &tree->all[tree->count]))
        tree->count++;
}

static void tree_read(struct tree *tree)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (isdigit((unsigned char)entry->d_name[0]))
            tree_add(tree, entry->d_name);
    if (folder)
        closedir(folder);
    if (tree->all)
        qsort(tree->all, tree->count, sizeof(*tree->all), tree_order);
}

/* The processes were not read at one instant, so their parents may form a circle: it takes no more
 * steps than there are processes. */
static bool tree_is_below(const struct tree *tree, const struct tree_process *process, pid_t root)
{
    for (size_t steps = 0; process && steps < tree->count; steps++) {
        if (process->parent == root)
            return true;
        const struct tree_process parent = {.pid = process->parent};
        process = bsearch(&parent, tree->all, tree->count, sizeof(*tree->all), tree_order);
    }
    return false;
}

static void tree_send(int pidfd, int signal)
{
    syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

/* Its process id may be another's by now, so the process that a descriptor stands for is looked at
 * once more. */
static void tree_signal(const struct tree_process *process, int signal)
{
    struct tree_process now;
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (pidfd < 0)
        return;
    if (tree_look(process->pid, &now) && now.began == process->began) {
        tree_send(pidfd, signal);
        tree_send(pidfd, SIGCONT);
    }
    close(pidfd);
}

void run_tree_signal(pid_t root, int signal)
{
    struct tree tree = {0};

    tree_read(&tree);
    for (size_t i = 0; i < tree.count; i++)
        if (tree_is_below(&tree, &tree.all[i], root))
            tree_signal(&tree.all[i], signal);
    free(tree.all);
}

static void ending_signal(const struct run_ending *ending, int signal)
{
    run_tree_signal(ending->root, signal);
    if (ending->root_fd >= 0) {
        tree_send(ending->root_fd, signal);
        tree_send(ending->root_fd, SIGCONT);
    }
}

void run_ending_begin(struct run_ending *ending, pid_t root, int root_fd, int64_t kill_after_ms)
{
    if (ending->is_begun)
        return;
    *ending = (struct run_ending){.root = root,
                                  .root_fd = root_fd,
                                  .is_begun = true,
                                  .kill_at = cli_now_ms() + kill_after_ms};
    if (kill_after_ms > 0)
        ending_signal(ending, SIGTERM);
    run_ending_step(ending);
}

/* Again and again, since a process that was being forked was not seen. */
void run_ending_step(struct run_ending *ending)
{
    if (!ending->is_begun || cli_now_ms() < ending->kill_at)
        return;
    ending->is_killing = true;
    ending_signal(ending, SIGKILL);
}

int run_ending_timeout(const struct run_ending *ending)
{
    if (!ending->is_begun)
        return -1;
    int64_t left = ending->kill_at - cli_now_ms();
    return ending->is_killing || left <= 0 ? TREE_AGAIN_MS : (int)(left < 60000 ? left : 60000);
}
