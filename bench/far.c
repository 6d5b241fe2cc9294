/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Far away: the relay's process, and its port. */
#include "far.h"

#include "must.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The relay is built beside this program. */
static void far_run(int port, int64_t lag_us, int output)
{
    char own[512], path[640], to[16], lag[32];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own));

    while (length > 0 && own[length - 1] != '/')
        length--;
    if (length > 0) {
        snprintf(path, sizeof(path), "%.*slag", (int)length, own);
        snprintf(to, sizeof(to), "%d", port);
        snprintf(lag, sizeof(lag), "%" PRId64, lag_us);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(output, STDOUT_FILENO);
        execl(path, path, to, lag, (char *)NULL);
    }
    _exit(127);
}

static int far_read_port(int input)
{
    FILE *file = fdopen(input, "r");
    char line[16] = "";
    int port = file && fgets(line, sizeof(line), file) ? (int)strtol(line, NULL, 10) : 0;

    if (file)
        fclose(file);
    return port;
}

struct server far_begin(const struct server *server, int64_t lag_us)
{
    struct server far = *server;
    int ends[2];

    must(pipe(ends) == 0, "pipe failed");
    far.pid = fork();
    must(far.pid >= 0, "fork failed");
    if (far.pid == 0)
        far_run(server->port, lag_us, ends[1]);
    close(ends[1]);
    far.port = far_read_port(ends[0]);
    must(far.port > 0, "bench/lag did not start: build the target bench_lag");
    snprintf(far.url, sizeof(far.url), "redis://127.0.0.1:%d", far.port);
    return far;
}

void far_end(struct server *far)
{
    kill(far->pid, SIGKILL);
    waitpid(far->pid, NULL, 0);
}
