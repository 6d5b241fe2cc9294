/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Tests switch rewriting off, so there is one file: the first increment, or before 7 the only one.
 */
#include "aof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatal.h"

static char *aof_load(const char *path, size_t *ret_length)
{
    size_t length = 0, got = 0, size = 1 << 16;
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *bytes = malloc(size);
    must(bytes);
    while ((got = fread(bytes + length, 1, size - length, file)) > 0) {
        length += got;
        if (length == size) {
            size *= 2;
            bytes = realloc(bytes, size);
            must(bytes);
        }
    }
    fclose(file);
    *ret_length = length;
    return bytes;
}

static char *aof_open(const char *dir, size_t *ret_length)
{
    char path[256];
    snprintf(path, sizeof path, "%s/appendonlydir/appendonly.aof.1.incr.aof", dir);
    char *bytes = aof_load(path, ret_length);
    if (bytes)
        return bytes;
    snprintf(path, sizeof path, "%s/appendonly.aof", dir);
    bytes = aof_load(path, ret_length);
    if (!bytes)
        fatal("no append-only file in %s", dir);
    return bytes;
}

/* "#TS:1700000000\r\n" stands before the commands of that second. */
static size_t aof_skip_stamp(const char *bytes, size_t length, int64_t *at_s)
{
    const char *end = memchr(bytes, '\n', length);
    if (!end)
        return 0;
    if (length > 4 && memcmp(bytes, "#TS:", 4) == 0)
        *at_s = strtoll(bytes + 4, NULL, 10);
    return (size_t)(end - bytes) + 1;
}

size_t aof_read_dir(const char *dir, aof_visitor *visitor, void *arg)
{
    struct resp_command command;
    size_t length = 0, at = 0, count = 0;
    int64_t at_s = 0;
    char *bytes = aof_open(dir, &length);
    while (at < length) {
        if (bytes[at] == '#') {
            size_t skipped = aof_skip_stamp(bytes + at, length - at, &at_s);
            at = skipped ? at + skipped : length;
            continue;
        }
        ssize_t used = resp_command_parse(&command, bytes + at, length - at);
        if (used <= 0)
            break;
        visitor(&command, at_s, arg);
        at += (size_t)used;
        count++;
    }
    free(bytes);
    return count;
}
