/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Ports are drawn at random, so that tests running side by side rarely meet. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fatal.h"

static struct sockaddr_in listener_loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static struct sockaddr_un listener_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    must(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

static int listener_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fatal_errno("socket");
    return fd;
}

/* A name among abstract sockets (unix(7)), which goes with the process. */
int listener_reserve(int port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = listener_socket(AF_UNIX);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hl-test-port-%d", port);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

bool listener_is_reserved(int port)
{
    int fd = listener_reserve(port);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int listener_random_port(void)
{
    int port = 0;
    do {
        uint16_t random = 0;
        must(getrandom(&random, sizeof random, 0) == sizeof random);
        port = 12000 + random % 20000;
    } while (listener_is_reserved(port));
    return port;
}

/* Bound to the port but not listening yet; -1 when another socket has it. */
static int listener_bind(int port)
{
    int on = 1;
    int fd = listener_socket(AF_INET);
    struct sockaddr_in address = listener_loopback(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

int listener_open_tcp_at(int port)
{
    int fd = listener_bind(port);
    if (fd < 0)
        return -1;
    if (listen(fd, 1024) != 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

int listener_open_tcp(int *ret_port)
{
    for (int i = 0; i < 1000; i++) {
        int port = listener_random_port();
        int fd = listener_open_tcp_at(port);
        if (fd >= 0) {
            *ret_port = port;
            return fd;
        }
    }
    fatal("no free port on 127.0.0.1");
}

int listener_free_port(void)
{
    int port = 0;
    close(listener_open_tcp(&port));
    return port;
}

int listener_open_unix(const char *path)
{
    struct sockaddr_un address = listener_path(path);
    int fd = listener_socket(AF_UNIX);
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1024) != 0)
        fatal_errno("listen on %s", path);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static int listener_connected(int fd, const struct sockaddr *address, socklen_t length)
{
    if (connect(fd, address, length) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    int on = 1;
    if (address->sa_family == AF_INET)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

int listener_connect_tcp(int port)
{
    struct sockaddr_in address = listener_loopback(port);
    int fd = listener_socket(AF_INET);
    return listener_connected(fd, (struct sockaddr *)&address, sizeof address);
}

int listener_connect_unix(const char *path)
{
    struct sockaddr_un address = listener_path(path);
    int fd = listener_socket(AF_UNIX);
    return listener_connected(fd, (struct sockaddr *)&address, sizeof address);
}
