/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Its counts are those of its commands of four letters (ZooKeeper docs, "Administrator's Guide"),
 * which it counts as requests, too. */
#include "zookeeper_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/deadline.h"
#include "support/fatal.h"
#include "support/listener.h"
#include "support/spawn.h"
#include "support/test.h"

#define JAR "/usr/share/java/zookeeper.jar"

/* It looks for sessions that are over once in a tick. */
enum {
    TICK_MS = 200,
    LONGEST_SESSION_MS = 600000,
    ANSWER = 1 << 16,
    AGAIN_MS = 500,
    START_MS = 40000
};

struct zookeeper_server {
    char dir[64];
    int port;
    pid_t pid;
    int asked; /* commands of ours that it has answered */
};

const char *zookeeper_server_lacks(void)
{
    return access(JAR, R_OK) == 0 ? NULL : "there is no " JAR ": script/bootstrap interop";
}

static void zookeeper_server_configure(const struct zookeeper_server *server, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        fatal_errno("make %s", path);
    fprintf(file,
            "clientPortAddress=127.0.0.1\nclientPort=%d\ndataDir=%s/data\ntickTime=%d\n"
            "maxSessionTimeout=%d\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
            server->port, server->dir, TICK_MS, LONGEST_SESSION_MS);
    must(fclose(file) == 0);
}

/* A command of four letters and all of its answer; false when there is none within the time. */
static bool zookeeper_server_ask(struct zookeeper_server *server, const char *word, int64_t ms,
                                 char ret_answer[ANSWER])
{
    size_t length = 0;
    int fd = listener_connect_tcp(server->port);
    if (fd < 0)
        return false;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got = write(fd, word, 4);
    while (got > 0 && length < ANSWER - 1 && poll(&ready, 1, (int)slow_ms(ms)) > 0) {
        got = read(fd, ret_answer + length, ANSWER - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    ret_answer[length] = '\0';
    server->asked += length > 0;
    return length > 0;
}

/* As it begins, it may accept a command and never answer; so it is asked again. */
static bool zookeeper_server_answers(struct zookeeper_server *server)
{
    char answer[ANSWER];
    int status = 0;
    struct deadline deadline = deadline_in(START_MS);
    while (!deadline_is_over(deadline)) {
        if (zookeeper_server_ask(server, "ruok", AGAIN_MS, answer) && strcmp(answer, "imok") == 0)
            return true;
        if (spawn_reap(server->pid, 0, &status)) {
            server->pid = 0; /* another program was faster at its port */
            return false;
        }
        deadline_nap();
    }
    return false;
}

static bool zookeeper_server_run(struct zookeeper_server *server)
{
    char config[96], log[96];
    server->port = listener_free_port();
    server->asked = 0;
    snprintf(config, sizeof config, "%s/zoo.cfg", server->dir);
    snprintf(log, sizeof log, "%s/log", server->dir);
    zookeeper_server_configure(server, config);
    char *argv[] = {"java",
                    "-XX:+UseSerialGC",
                    "-Xmx64m",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    JAR,
                    "org.apache.zookeeper.server.ZooKeeperServerMain",
                    config,
                    NULL};
    server->pid = spawn_start(&(struct spawn){.argv = argv, .output = log});
    return zookeeper_server_answers(server);
}

struct zookeeper_server *zookeeper_server_start(void)
{
    struct zookeeper_server *server = calloc(1, sizeof *server);
    must(server);
    snprintf(server->dir, sizeof server->dir, "/tmp/hl-zookeeper-XXXXXX");
    if (!mkdtemp(server->dir))
        fatal_errno("make %s", server->dir);
    for (int i = 0; i < 3; i++)
        if (zookeeper_server_run(server))
            return server;
    fatal("ZooKeeper does not start; its log is in %s", server->dir);
}

void zookeeper_server_stop(struct zookeeper_server *server)
{
    int status = 0;
    char command[96];
    if (!server)
        return;
    if (server->pid) {
        kill(server->pid, SIGKILL);
        must(spawn_reap(server->pid, 10000, &status));
    }
    snprintf(command, sizeof command, "rm -rf %s", server->dir);
    must(system(command) == 0);
    free(server);
}

int zookeeper_server_port(const struct zookeeper_server *server)
{
    return server->port;
}

static int64_t count_in(struct zookeeper_server *server, const char *command, const char *name)
{
    char answer[ANSWER];
    const char *at = NULL;
    if (zookeeper_server_ask(server, command, START_MS, answer))
        at = strstr(answer, name);
    if (!at)
        fatal("ZooKeeper's %s has no %s", command, name);
    return strtoll(at + strlen(name), NULL, 10);
}

int zookeeper_server_watches(struct zookeeper_server *server)
{
    return (int)count_in(server, "wchs", "Total watches:");
}

struct zookeeper_counts zookeeper_server_counts(struct zookeeper_server *server)
{
    int64_t woken = count_in(server, "mntr", "zk_sum_node_deleted_watch_count");
    int64_t requests = count_in(server, "srvr", "Received: ");
    return (struct zookeeper_counts){requests - server->asked, woken};
}
