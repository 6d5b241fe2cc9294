/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Counts entries of /proc/self; the descriptor that reads the folder is not counted. */
#include "census.h"

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fatal.h"

typedef bool census_test(int number, const void *arg);

static int census_count(const char *folder, census_test *test, const void *arg)
{
    int count = 0;
    DIR *dir = opendir(folder);
    must(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        int number = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && !(number == dirfd(dir) && strstr(folder, "/fd")) &&
            test(number, arg))
            count++;
    }
    closedir(dir);
    return count;
}

static bool census_any(int number, const void *arg)
{
    (void)number;
    (void)arg;
    return true;
}

static bool census_is_socket(int fd, const void *arg)
{
    (void)arg;
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISSOCK(stat.st_mode);
}

static bool census_is_inherited(int fd, const void *from_fd)
{
    int flags = fcntl(fd, F_GETFD);
    return fd >= *(const int *)from_fd && flags >= 0 && !(flags & FD_CLOEXEC);
}

static bool census_is_named(int thread, const void *prefix)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return false; /* it ended meanwhile */
    bool named = fgets(name, sizeof name, file) && strncmp(name, prefix, strlen(prefix)) == 0;
    fclose(file);
    return named;
}

int census_files(void)
{
    return census_count("/proc/self/fd", census_any, NULL);
}

int census_sockets(void)
{
    return census_count("/proc/self/fd", census_is_socket, NULL);
}

int census_files_without_cloexec(int from_fd)
{
    return census_count("/proc/self/fd", census_is_inherited, &from_fd);
}

int census_threads(void)
{
    return census_count("/proc/self/task", census_any, NULL);
}

int census_threads_named(const char *prefix)
{
    return census_count("/proc/self/task", census_is_named, prefix);
}

static bool census_is_alone(void *arg)
{
    (void)arg;
    return census_threads_named("hirelock") == 0;
}

bool census_waits_for_no_thread(void)
{
    return wait_until(census_is_alone, NULL, 2000);
}
