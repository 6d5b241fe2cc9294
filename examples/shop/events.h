/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Pages that listen: each gets the newest report as a server-sent event (WHATWG, "Server-sent
 * events"). */
#ifndef SHOP_EVENTS_H
#define SHOP_EVENTS_H

#include <event2/http.h>

#include <stdbool.h>

enum { EVENTS_MAX_LISTENERS = 100 };

/* Loop thread. */
struct events {
    struct listener *first;
    long count;
    unsigned long long sent, dropped;
};

/* False: there are too many, and the request is the caller's still. */
bool events_join(struct events *events, struct evhttp_request *request, const char *text);
void events_send(struct events *events, const char *text);
void events_end(struct events *events);

#endif
