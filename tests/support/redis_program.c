/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What the program can do is asked of itself: other programs than Redis have other versions. */
#include "redis_program.h"

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

/* Nobody knows this line: the program ends at it, if not before, and repeats the line. Redis 7
 * ends at the first line that it does not know, Redis 8 repeats them all, for one may be a
 * module's. */
static const char redis_program_end[] = "hirelock-asks yes";

static bool redis_program_repeats(const char *text, const char *line)
{
    char repeated[256];
    must(snprintf(repeated, sizeof repeated, ">>> '%s'", line) < (int)sizeof repeated);
    return strstr(text, repeated) != NULL;
}

static bool redis_program_minds_only_the_end(const char *line, const char *config,
                                             const char *output)
{
    char *argv[] = {(char *)redis_program(), (char *)config, NULL};
    char text[4096] = "";
    int status = 0;
    must(spawn_reap(spawn_start(&(struct spawn){.argv = argv, .output = output}), 10000, &status));
    FILE *file = fopen(output, "re");
    must(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    if (!strstr(text, ">>> '"))
        fatal("%s with a line that it cannot know says \"%s\"", argv[0], text);
    return redis_program_repeats(text, redis_program_end) && !redis_program_repeats(text, line);
}

bool redis_program_knows(const char *line)
{
    char config[] = "/tmp/hl-config-XXXXXX", output[] = "/tmp/hl-output-XXXXXX";
    int fd = mkstemp(config), output_fd = mkstemp(output);
    must(fd >= 0 && output_fd >= 0);
    must(dprintf(fd, "%s\n%s\n", line, redis_program_end) > 0);
    close(fd);
    close(output_fd);
    bool knows = redis_program_minds_only_the_end(line, config, output);
    unlink(config);
    unlink(output);
    return knows;
}

bool redis_program_is_7(void)
{
    return redis_program_knows("enable-debug-command yes");
}
