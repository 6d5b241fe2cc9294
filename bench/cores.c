/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Cores, by sched_setaffinity. */
#include "cores.h"

#include "must.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static cpu_set_t cores_at_start;
static bool cores_are_known;

static const cpu_set_t *cores_all(void)
{
    if (!cores_are_known) {
        must(sched_getaffinity(0, sizeof(cores_at_start), &cores_at_start) == 0,
             "sched_getaffinity failed");
        cores_are_known = true;
    }
    return &cores_at_start;
}

bool cores_pick(int *ret_server, int *ret_client)
{
    const cpu_set_t *all = cores_all();
    int found[2] = {0}, count = 0;

    for (int core = 0; core < CPU_SETSIZE && count < 2; core++)
        if (CPU_ISSET((size_t)core, all))
            found[count++] = core;
    *ret_server = found[0];
    *ret_client = found[count > 0 ? count - 1 : 0];
    return count == 2;
}

static void cores_set(pid_t thread, const cpu_set_t *set)
{
    must(sched_setaffinity(thread, sizeof(*set), set) == 0, "sched_setaffinity failed for %d",
         (int)thread);
}

static void cores_set_process(pid_t pid, const cpu_set_t *set)
{
    char path[64];
    const struct dirent *entry;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    must(tasks != NULL, "%s is not to be read: the server must run on this machine", path);
    while (tasks &&
           (entry = readdir(tasks))) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        if (entry->d_name[0] != '.')
            cores_set((pid_t)strtol(entry->d_name, NULL, 10), set);
    closedir(tasks);
}

static cpu_set_t cores_only(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return set;
}

void cores_pin_process(pid_t pid, int core)
{
    cores_all();
    cpu_set_t set = cores_only(core);
    cores_set_process(pid, &set);
}

void cores_pin_thread(int core)
{
    cores_all();
    cpu_set_t set = cores_only(core);
    cores_set(0, &set);
}

void cores_free_process(pid_t pid)
{
    cores_set_process(pid, cores_all());
}

void cores_free_thread(void)
{
    cores_set(0, cores_all());
}

bool cores_part(pid_t server)
{
    int server_core, client_core;

    if (!cores_pick(&server_core, &client_core))
        return false;
    cores_pin_process(server, server_core);
    cores_pin_thread(client_core);
    return true;
}

void cores_free(pid_t server)
{
    cores_free_thread();
    cores_free_process(server);
}
