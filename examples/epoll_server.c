/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A server with an event loop of its own. Nothing blocks, and no other thread calls back:
 * HL_CLIENT_DISPATCH gives the loop a descriptor. Each connection is an owner; they are socket
 * pairs here, and the last one hangs up while it waits.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNS = 5 };

struct conn {
    int fd[2];       /* the server's end, and the customer's */
    hl_owner *owner; /* connections exclude each other, though one thread serves them */
    hl_cancel *gone; /* fired when the customer hangs up */
};

static hl_lock *till; /* all want the same one */
static int ended;

static void conn_end(int code, const hl_error *err)
{
    ended++;
    if (code < 0 && code != HL_ECANCELED)
        fprintf(stderr, "epoll_server: %s\n", err && err->code < 0 ? err->text : hl_err_text(code));
}

/* The customer is answered after the release: only then is it sure that no other was inside. */
static void conn_on_released(int code, const hl_error *err, void *arg)
{
    if (code == 0 && send(((struct conn *)arg)->fd[0], "y", 1, MSG_NOSIGNAL) != 1)
        code = HL_ECANCELED; /* it hung up meanwhile */
    conn_end(code, err);
}

static void conn_on_acquired(int code, const hl_error *err, void *arg)
{
    if (code == 0) /* held; longer work would begin here, and release when it is done */
        code = hl_lock_release_async(till, ((struct conn *)arg)->owner, conn_on_released, arg);
    if (code < 0) /* no release is under way, so no other callback follows */
        conn_end(code, err);
}

static void conn_on_readable(struct conn *conn, int epoll)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    char request = 0;

    if (read(conn->fd[0], &request, 1) <= 0) { /* ends its wait, whose callback still comes */
        hl_cancel_fire(conn->gone);
        epoll_ctl(epoll, EPOLL_CTL_DEL, conn->fd[0], NULL);
        return;
    }
    options.wait_ms = 5000;
    options.owner = conn->owner;
    options.cancel = conn->gone;
    int rc = hl_lock_acquire_async(till, &options, conn_on_acquired, conn);
    if (rc < 0) /* the callback never runs */
        conn_end(rc, NULL);
}

static void serve(int epoll, hl_client *client)
{
    struct epoll_event got[CONNS + 1];
    int count = 0;

    while (ended < CONNS && (count = epoll_wait(epoll, got, CONNS + 1, 10000)) > 0)
        for (int i = 0; i < count; i++)
            if (got[i].data.ptr)
                conn_on_readable(got[i].data.ptr, epoll);
            else
                hl_client_dispatch(client); /* runs the callbacks that wait, in here */
}

/* A connection with a request on it. */
static bool conn_open(struct conn *conn, hl_client *client, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};

    return hl_owner_new(client, &conn->owner) == 0 && hl_cancel_new(&conn->gone) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM, 0, conn->fd) == 0 && write(conn->fd[1], "?", 1) == 1 &&
           epoll_ctl(epoll, EPOLL_CTL_ADD, conn->fd[0], &event) == 0;
}

static const char does[] = "Async calls and callbacks in an event loop of your own.";

int main(int argc, char **argv)
{
    static struct conn conns[CONNS];
    struct epoll_event event = {.events = EPOLLIN};
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int epoll = epoll_create1(EPOLL_CLOEXEC), ready = 0;

    options.flags = HL_CLIENT_DISPATCH;
    if (hl_client_open(example_url(argc, argv, does), &options, &client, &err) == 0 &&
        hl_lock_new(client, "till", &till, &err) == 0 &&
        epoll_ctl(epoll, EPOLL_CTL_ADD, hl_client_fd(client), &event) == 0) {
        while (ready < CONNS && conn_open(&conns[ready], client, epoll))
            ready++;
        if (ready == CONNS && close(conns[CONNS - 1].fd[1]) == 0) /* the last one hangs up */
            serve(epoll, client);
    }
    if (err.code < 0)
        fprintf(stderr, "epoll_server: %s\n", err.text);
    hl_client_close(client); /* runs what callbacks are left: what they use is freed after it */
    hl_lock_free(till);
    for (int i = 0; i < CONNS; i++) {
        hl_owner_free(conns[i].owner);
        hl_cancel_free(conns[i].gone);
    }
    printf("%d of %d requests ended\n", ended, CONNS);
    return ended != CONNS;
}
