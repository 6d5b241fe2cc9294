/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Each report is whole, so a page that reads slowly misses some and loses nothing: while the one
 * before is still on its way to a page, that page gets no other. So a page that does not read at
 * all costs one report of memory, until its connection is given up.
 */
#define _POSIX_C_SOURCE 200809L
#include "events.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>

#include <stdlib.h>
#include <sys/socket.h>

enum {
    EVENTS_SILENCE_S = 30,
    EVENTS_MAX_INPUT = 4096,
    EVENTS_KERNEL_BUFFER = 32768 /* else the kernel keeps megabytes of reports that are old */
};

struct listener {
    struct listener *next, **here;
    struct events *events;
    struct evhttp_request *request;
};

static void listener_send(struct listener *listener, const char *text)
{
    struct evbuffer *event = evbuffer_new();

    if (event && evbuffer_add_printf(event, "data: %s\n\n", text) > 0) {
        evhttp_send_reply_chunk(listener->request, event);
        listener->events->sent++;
    }
    if (event)
        evbuffer_free(event);
}

static struct bufferevent *listener_stream(const struct listener *listener)
{
    return evhttp_connection_get_bufferevent(evhttp_request_get_connection(listener->request));
}

/* It has read all that it was sent, as far as this side knows. */
static bool listener_keeps_up(const struct listener *listener)
{
    return evbuffer_get_length(bufferevent_get_output(listener_stream(listener))) == 0;
}

static void listener_free(struct listener *listener)
{
    *listener->here = listener->next;
    if (listener->next)
        listener->next->here = listener->here;
    listener->events->count--;
    free(listener);
}

/* The page has gone. libevent has taken the request off its connection then, and leaves it to us.
 */
static void listener_on_close(struct evhttp_connection *connection, void *arg)
{
    struct listener *listener = arg;
    struct evhttp_request *request = listener->request;

    (void)connection;
    listener_free(listener);
    if (!evhttp_request_get_connection(request))
        evhttp_request_free(request);
}

static void listener_begin(struct listener *listener)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(listener->request);
    struct bufferevent *stream = listener_stream(listener);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(listener->request);
    int size = EVENTS_KERNEL_BUFFER;

    setsockopt(bufferevent_getfd(stream), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    evhttp_add_header(headers, "Content-Type", "text/event-stream");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_connection_set_closecb(connection, listener_on_close, listener);
    evhttp_send_reply_start(listener->request, HTTP_OK, "OK");
    /* A page never says anything more; one that does not read is given up. */
    bufferevent_set_timeouts(stream, NULL, &(struct timeval){EVENTS_SILENCE_S, 0});
    bufferevent_setwatermark(stream, EV_READ, 0, EVENTS_MAX_INPUT);
}

bool events_join(struct events *events, struct evhttp_request *request, const char *text)
{
    struct listener *listener =
        events->count < EVENTS_MAX_LISTENERS ? calloc(1, sizeof(*listener)) : NULL;

    if (!listener)
        return false;
    listener->events = events;
    listener->request = request;
    listener->next = events->first;
    listener->here = &events->first;
    if (events->first)
        events->first->here = &listener->next;
    events->first = listener;
    events->count++;
    listener_begin(listener);
    if (text)
        listener_send(listener, text);
    return true;
}

void events_send(struct events *events, const char *text)
{
    for (struct listener *listener = events->first, *next = NULL; listener; listener = next) {
        next = listener->next;
        if (listener_keeps_up(listener))
            listener_send(listener, text);
        else
            events->dropped++;
    }
}

void events_end(struct events *events)
{
    while (events->first) {
        struct evhttp_request *request = events->first->request;

        evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
        listener_free(events->first);
        evhttp_send_reply_end(request);
    }
}
