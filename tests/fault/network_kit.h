/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Two network namespaces with a cable between them: the server at 10.77.0.2 on one end, the test's
 * process at 10.77.0.1 on the other. Both end with the test.
 */
#ifndef HL_TEST_NETWORK_KIT_H
#define HL_TEST_NETWORK_KIT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "connection_fixture.h"
#include "support/listener.h"

struct network {
    struct redis_server *server;
    char url[64];
};

/* False when the command failed; what it said is in the test's output. */
static inline bool network_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline bool network_run(const char *format, ...)
{
    char command[512];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

static inline void network_leave(void)
{
    if (geteuid() != 0)
        skip("root");
    if (!network_run("command -v ip >/dev/null && command -v nsenter >/dev/null"))
        skip("ip and nsenter (iproute2, util-linux)");
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
        skip("namespaces: %m");
    check_int(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    check(network_run("ip link set lo up"));
}

/* A cable that was just plugged in may lose the first packets. */
static inline bool network_reaches(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    int problem = -1;
    socklen_t size = sizeof problem;
    inet_pton(AF_INET, "10.77.0.2", &address.sin_addr);
    (void)connect(fd, (struct sockaddr *)&address, sizeof address);
    poll(&poller, 1, 200);
    if (poller.revents & POLLOUT)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    close(fd);
    return problem == 0;
}

static inline void network_start(struct network *network)
{
    char config[128];
    network_leave();
    int port = listener_free_port();
    snprintf(config, sizeof config, "bind 0.0.0.0\nprotected-mode no\nport %d", port);
    network->server = redis_server_start(&(struct redis_options){.config = config});
    snprintf(network->url, sizeof network->url, "redis://10.77.0.2:%d", port);
    check_int(unshare(CLONE_NEWNET), 0);
    int pid = (int)redis_server_pid(network->server);
    check(network_run("ip link set lo up"));
    if (!network_run("ip link add here type veth peer name there"))
        skip("veth");
    check(network_run("ip link set there netns %d", pid));
    check(network_run("ip addr add 10.77.0.1/24 dev here && ip link set here up"));
    check(network_run("nsenter -t %d -n sh -c 'ip addr add 10.77.0.2/24 dev there &&"
                      " ip link set there up'",
                      pid));
    struct deadline deadline = deadline_of_wait(10000);
    while (!network_reaches(port))
        check(!deadline_is_over(deadline));
}

static inline void network_stop(struct network *network)
{
    redis_server_stop(network->server);
}

/* The text stands in the file at `path` as long as the test lasts. */
static inline void network_put_file(const char *path, const char *text)
{
    char name[] = "/tmp/hl-network-XXXXXX";
    int fd = mkstemp(name);
    check(fd >= 0);
    check_int(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    check_msg(mount(name, path, NULL, MS_BIND, NULL) == 0, "mount on %s: %m", path);
    unlink(name);
}

#endif
