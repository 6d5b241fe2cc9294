/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The listening socket. It is shut while too many are inside, and for good when the shop closes.
 * While it is shut, those who have asked nothing for a while have to leave. */
#ifndef SHOP_DOOR_H
#define SHOP_DOOR_H

#include "config.h"

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include <stdint.h>

/* What is known of the connection that has a descriptor. */
struct door_guest {
    uint64_t cookie;  /* the kernel's number of the socket; another one: another guest */
    int64_t since_ms; /* when it asked last, or was seen first, on CLOCK_MONOTONIC */
};

/* Loop thread. */
struct door {
    struct evhttp *server; /* the caller's */
    struct evhttp_bound_socket *socket;
    struct evconnlistener *listener; /* of the socket */
    struct event *look;              /* while it is shut: is there room again? */
    long limit;
    struct door_guest *guests; /* by descriptor; so many: */
    long guest_count;
    int port;
    int64_t swept_ms;
    unsigned long long shut;  /* how often */
    unsigned long long ended; /* how many had to leave */
    char address[80];         /* "127.0.0.1:8080", with the port that it got */
};

/* False: it has printed why. */
bool door_open(struct door *door, struct event_base *loop, struct evhttp *server,
               const struct config *config);
/* A guest has asked something whole. is_served: and has its answer, so its time begins anew; until
 * then it may stay. */
void door_note(struct door *door, struct evhttp_request *request, bool is_served);
void door_close(struct door *door);

#endif
