/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A program whose descriptors have run out can neither accept nor reach its servers. So nobody is
 * let in from a number of descriptors on that leaves some to spare: the others wait outside, in the
 * kernel's queue. A byte now and then would keep a place for ever, so when all places are taken,
 * those end whose last request is some seconds ago.
 */
#define _DEFAULT_SOURCE /* SO_COOKIE */
#include "door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    DOOR_SPARE = 150,
    DOOR_LOOK_US = 50000,
    DOOR_BACKLOG = 1024,
    DOOR_SWEEP_MS = 1000,
    DOOR_PATIENCE_MS = 5000, /* with who asks nothing, while others wait outside */
    DOOR_INPUT = 32768       /* bytes that nobody has looked at; the longest headers find room */
};

/* -1: it has none. */
static int door_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    return -1;
}

/* The kernel gives the lowest number that is free, so if that is N, at least N are in use. */
static bool door_has_room(const struct door *door)
{
    int lowest = fcntl(evconnlistener_get_fd(door->listener), F_DUPFD_CLOEXEC, 0);

    if (lowest >= 0)
        close(lowest);
    return lowest >= 0 && lowest < door->limit;
}

static void door_shut(struct door *door)
{
    door->shut++;
    evconnlistener_disable(door->listener);
    event_add(door->look, &(struct timeval){0, DOOR_LOOK_US});
}

static int64_t door_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 0: the descriptor is no guest's. */
static uint64_t door_cookie(const struct door *door, int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    uint64_t cookie = 0;

    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
        return 0; /* a file, the listener */
    size = sizeof(address);
    getsockname(fd, (struct sockaddr *)&address, &size);
    size = sizeof(cookie);
    if (door_port(&address) != door->port ||
        getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0)
        return 0;
    return cookie;
}

void door_note(struct door *door, struct evhttp_request *request, bool is_served)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    int fd = connection ? bufferevent_getfd(evhttp_connection_get_bufferevent(connection)) : -1;

    if (fd >= 0 && fd < door->guest_count)
        door->guests[fd] =
            (struct door_guest){door_cookie(door, fd), is_served ? door_now_ms() : INT64_MAX};
}

/* libevent does not tell which connections are open; the kernel does. */
static void door_sweep(struct door *door)
{
    int64_t now_ms = door_now_ms();

    if (now_ms - door->swept_ms < DOOR_SWEEP_MS)
        return;
    door->swept_ms = now_ms;
    for (int fd = 0; fd < door->guest_count; fd++) {
        struct door_guest *guest = &door->guests[fd];
        uint64_t cookie = door_cookie(door, fd);

        if (guest->cookie != cookie) {
            *guest = (struct door_guest){cookie, now_ms};
        } else if (cookie != 0 && now_ms - guest->since_ms > DOOR_PATIENCE_MS) {
            shutdown(fd, SHUT_RDWR);
            door->ended++;
        }
    }
}

static void door_on_look(evutil_socket_t fd, short what, void *arg)
{
    struct door *door = arg;

    (void)fd, (void)what;
    if (door_has_room(door)) {
        evconnlistener_enable(door->listener);
        return;
    }
    door_sweep(door);
    event_add(door->look, &(struct timeval){0, DOOR_LOOK_US});
}

/* libevent asks for a bufferevent with each guest. Its own kind (NULL) reads on while it writes: a
 * guest who asks and asks, and reads no answer, would fill the memory. */
static struct bufferevent *door_on_guest(struct event_base *loop, void *arg)
{
    struct bufferevent *guest = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);
    struct door *door = arg;

    if (guest)
        bufferevent_setwatermark(guest, EV_READ, 0, DOOR_INPUT);
    if (!door_has_room(door))
        door_shut(door);
    return guest;
}

/* accept() has failed, as when the whole system has no descriptor left. The socket stays readable,
 * so that the loop would spin. */
static void door_on_error(struct evconnlistener *listener, void *arg)
{
    (void)listener;
    door_shut(arg);
}

static bool door_fail(const char *what)
{
    fprintf(stderr, "shop: %s: %s\n", what, strerror(errno));
    return false;
}

static bool door_make_room(const struct door *door)
{
    rlim_t wanted = (rlim_t)door->limit + DOOR_SPARE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return door_fail("getrlimit");
    if (limit.rlim_cur >= wanted)
        return true;
    limit.rlim_cur = wanted;
    if (limit.rlim_max >= wanted && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return true;
    fprintf(
        stderr,
        "shop: SHOP_CONNECTIONS is %ld, which needs %lu descriptors, and this user may have %lu:"
        " choose less, or raise ulimit -Hn\n",
        door->limit, (unsigned long)wanted, (unsigned long)limit.rlim_max);
    return false;
}

static void door_name(struct door *door)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof(bound);
    char host[INET6_ADDRSTRLEN] = "";

    getsockname(evconnlistener_get_fd(door->listener), (struct sockaddr *)&bound, &size);
    door->port = door_port(&bound);
    if (bound.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&bound;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
        snprintf(door->address, sizeof(door->address), "[%s]:%d", host, door->port);
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&bound;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(door->address, sizeof(door->address), "%s:%d", host, door->port);
    }
}

bool door_open(struct door *door, struct event_base *loop, struct evhttp *server,
               const struct config *config)
{
    *door = (struct door){.server = server, .limit = config->connections};
    if (!door_make_room(door))
        return false;
    door->guest_count = door->limit + DOOR_SPARE;
    door->guests = calloc((size_t)door->guest_count, sizeof(*door->guests));
    if (!door->guests)
        return door_fail("SHOP_CONNECTIONS");
    door->listener = evconnlistener_new_bind(
        loop, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
        DOOR_BACKLOG, (const struct sockaddr *)&config->listen, config->listen_size);
    if (!door->listener)
        return door_fail("SHOP_LISTEN");
    door->look = evtimer_new(loop, door_on_look, door);
    door->socket = door->look ? evhttp_bind_listener(server, door->listener) : NULL;
    if (!door->socket) {
        evconnlistener_free(door->listener);
        door->listener = NULL;
        return door_fail("listen");
    }
    evconnlistener_set_error_cb(door->listener, door_on_error);
    evhttp_set_bevcb(server, door_on_guest, door);
    door_name(door);
    return true;
}

void door_close(struct door *door)
{
    if (door->socket)
        evhttp_del_accept_socket(door->server, door->socket); /* frees the listener */
    door->socket = NULL;
    door->listener = NULL;
    if (door->look)
        event_free(door->look);
    door->look = NULL;
    free(door->guests);
    door->guests = NULL;
    door->guest_count = 0;
}
