/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The shop as its buyers see it: the page, POST /buy, and what operators ask for. */
#ifndef SHOP_HTTP_H
#define SHOP_HTTP_H

#include "crew.h"
#include "door.h"
#include "events.h"
#include "report.h"

/* Loop thread. */
struct http {
    struct event_base *loop; /* the caller's, as are config, crew and report */
    const struct config *config;
    struct crew *crew;
    struct report *report;
    struct evhttp *server;
    struct door door;
    struct events events;
    struct event *on_bell, *linger;
    unsigned long reported;       /* the number of the last report that was sent */
    long orders_open, sends_open; /* orders that the crew has; answers on their way to buyers */
    unsigned long long requests, refused;
    bool is_closing;
};

/* False: it has printed why. Then, and at the end, http_deinit(). */
bool http_open(struct http *http, struct event_base *loop, const struct config *config,
               const struct bell *bell);

/* Requests are served from here on. */
void http_serve(struct http *http, struct crew *crew, struct report *report);

/* Lets nobody in any more, and ends the loop when each order has its answer and each answer has
 * been sent. */
void http_close(struct http *http);
void http_deinit(struct http *http);

#endif
