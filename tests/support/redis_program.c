/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The version is asked once per process, and left to stand. */
#include "redis_program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fatal.h"
#include "spawn.h"

const char *redis_program(void)
{
    const char *program = getenv("HL_REDIS_SERVER");
    return program && *program ? program : "redis-server";
}

static int redis_program_number;

/* "7.0.15" */
static int redis_program_parse(const char *version)
{
    int number = 0;
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        number = number * 100 + (int)strtol(version, &end, 10);
        version = *end == '.' ? end + 1 : end;
    }
    return number;
}

static void redis_program_ask(void)
{
    char path[] = "/tmp/hl-version-XXXXXX";
    char *argv[] = {(char *)redis_program(), "--version", NULL};
    char line[256] = "";
    int status = 0;
    int fd = mkstemp(path);
    must(fd >= 0);
    must(spawn_reap(spawn_start(&(struct spawn){.argv = argv, .output = path}), 10000, &status));
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    unlink(path);
    const char *version = length > 0 ? strstr(line, "v=") : NULL;
    if (!version)
        fatal("%s --version says \"%s\"", argv[0], line);
    redis_program_number = redis_program_parse(version + 2);
}

int redis_program_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, redis_program_ask);
    return redis_program_number;
}
