/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Logs are short: one is read from its beginning each time. */
#include "redis_log.h"

#include <stdio.h>
#include <string.h>

int redis_log_count(const char *path, const char *text)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, text) != NULL;
    if (file)
        fclose(file);
    return count;
}

bool redis_log_contains(const char *path, const char *text)
{
    return redis_log_count(path, text) > 0;
}

bool redis_log_reports_crash(const char *path)
{
    static const char *const signs[] = {"REDIS BUG REPORT", "ASSERTION FAILED", "Guru Meditation",
                                        "Sanitizer", "runtime error:"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (redis_log_contains(path, signs[i]))
            return true;
    return false;
}

void redis_log_show(const char *path)
{
    enum { SHOWN = 40 };
    char lines[SHOWN][256];
    size_t count = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(lines[count % SHOWN], sizeof lines[0], file))
        count++;
    fclose(file);
    fprintf(stderr, "--- end of %s\n", path);
    for (size_t i = count > SHOWN ? count - SHOWN : 0; i < count; i++)
        fputs(lines[i % SHOWN], stderr);
    fputs("---\n", stderr);
}
