/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Routes, and the way of answers back: all in the loop's thread. No route waits for a server. */
#define _POSIX_C_SOURCE 200809L
#include "http.h"

#include "exchange.h"
#include "metrics.h"
#include "page.h"
#include "reply.h"

#include <event2/buffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_MAX_BODY = 4096,
    HTTP_MAX_HEADERS = 16384,
    HTTP_TIMEOUT_S = 30, /* of a connection that is silent, or does not read */
    HTTP_LINGER_S = 5    /* for buyers that do not read their answer when the shop closes */
};

/* From the last answer on. */
static void http_linger(struct http *http)
{
    if (http->is_closing && http->orders_open == 0)
        event_add(http->linger, &(struct timeval){HTTP_LINGER_S, 0});
}

static void http_on_buy(struct evhttp_request *request, void *arg)
{
    exchange_begin(arg, request);
}

static void http_on_events(struct evhttp_request *request, void *arg)
{
    struct http *http = arg;
    unsigned long number = 0;
    char *text = report_text(http->report, 0, &number);

    if (http->is_closing || !events_join(&http->events, request, text))
        reply_refuse(http, request, 503, "too many pages are open");
    free(text);
}

/* The newest report, for programs. */
static void http_on_state(struct evhttp_request *request, void *arg)
{
    struct http *http = arg;
    unsigned long number = 0;
    char *text = report_text(http->report, 0, &number);

    if (text)
        reply_bytes(http, request, "application/json", text, strlen(text));
    else
        reply_refuse(http, request, 503, "there is no report yet");
    free(text);
}

static void http_on_metrics(struct evhttp_request *request, void *arg)
{
    struct http *http = arg;
    struct evbuffer *text = evbuffer_new();

    if (text && metrics_add(text, http))
        reply_bytes(http, request, HL_METRICS_CONTENT_TYPE, evbuffer_pullup(text, -1),
                    evbuffer_get_length(text));
    else
        reply_refuse(http, request, 500, "the metrics cannot be told");
    if (text)
        evbuffer_free(text);
}

/* The loop turns: whoever restarts processes that do not answer may leave this one alone. */
static void http_on_health(struct evhttp_request *request, void *arg)
{
    reply_text(arg, request, 200, "ok\n");
}

/* Both servers can be reached: whoever shares out buyers may send some here. */
static void http_on_ready(struct evhttp_request *request, void *arg)
{
    struct http *http = arg;
    const char *problem = http->is_closing ? "closing" : report_problem(http->report);

    if (problem)
        reply_refuse(http, request, 503, problem);
    else
        reply_text(http, request, 200, "ready\n");
}

static const struct route {
    const char *path;
    enum evhttp_cmd_type method;
    void (*serve)(struct evhttp_request *request, void *arg);
} http_routes[] = {
    {"/buy", EVHTTP_REQ_POST, http_on_buy},      {"/events", EVHTTP_REQ_GET, http_on_events},
    {"/state", EVHTTP_REQ_GET, http_on_state},   {"/metrics", EVHTTP_REQ_GET, http_on_metrics},
    {"/health", EVHTTP_REQ_GET, http_on_health}, {"/ready", EVHTTP_REQ_GET, http_on_ready},
};

static void http_serve_page(struct http *http, struct evhttp_request *request, const char *path)
{
    for (size_t i = 0; i < page_file_count; i++)
        if (strcmp(page_files[i].path, path) == 0) {
            reply_bytes(http, request, page_files[i].type, page_files[i].bytes, page_files[i].size);
            return;
        }
    reply_refuse(http, request, 404, "there is no such page");
}

static void http_on_request(struct evhttp_request *request, void *arg)
{
    struct http *http = arg;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    enum evhttp_cmd_type method = evhttp_request_get_command(request);

    http->requests++;
    door_note(&http->door, request, true);
    path = path ? path : "";
    for (size_t i = 0; i < sizeof(http_routes) / sizeof(*http_routes); i++) {
        if (strcmp(http_routes[i].path, path) != 0)
            continue;
        if (http_routes[i].method == method)
            http_routes[i].serve(request, http);
        else
            reply_refuse(http, request, 405, "another method is needed");
        return;
    }
    http_serve_page(http, request, path);
}

/* Answers of the crew, and a new report. */
static void http_on_bell(evutil_socket_t fd, short what, void *arg)
{
    struct http *http = arg;
    struct job *job = NULL;

    (void)fd, (void)what;
    bell_hush(http->crew->bell); /* first: what comes after this rings again */
    while ((job = queue_poll(&http->crew->answers))) {
        exchange_answer(job);
        http_linger(http);
    }
    char *text = report_text(http->report, http->reported, &http->reported);
    if (text)
        events_send(&http->events, text);
    free(text);
}

static void http_on_linger(evutil_socket_t fd, short what, void *arg)
{
    struct http *http = arg;

    (void)fd, (void)what;
    event_base_loopbreak(http->loop);
}

bool http_open(struct http *http, struct event_base *loop, const struct config *config,
               const struct bell *bell)
{
    *http = (struct http){.loop = loop, .config = config};
    http->server = evhttp_new(loop);
    http->on_bell = event_new(loop, bell->fd, EV_READ | EV_PERSIST, http_on_bell, http);
    http->linger = evtimer_new(loop, http_on_linger, http);
    if (!http->server || !http->on_bell || !http->linger) {
        fprintf(stderr, "shop: out of memory\n");
        return false;
    }
    evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_body_size(http->server, HTTP_MAX_BODY);
    evhttp_set_max_headers_size(http->server, HTTP_MAX_HEADERS);
    evhttp_set_timeout(http->server, HTTP_TIMEOUT_S);
    evhttp_set_gencb(http->server, http_on_request, http);
    return door_open(&http->door, loop, http->server, config);
}

void http_serve(struct http *http, struct crew *crew, struct report *report)
{
    http->crew = crew;
    http->report = report;
    event_add(http->on_bell, NULL);
}

void http_close(struct http *http)
{
    if (!http->is_closing) {
        http->is_closing = true;
        door_close(&http->door);
        events_end(&http->events);
        http_linger(http);
    }
    if (http->orders_open == 0 && http->sends_open == 0)
        event_base_loopexit(http->loop, NULL); /* after what is ready now */
}

void http_deinit(struct http *http)
{
    door_close(&http->door);
    events_end(&http->events);
    if (http->server)
        evhttp_free(http->server);
    if (http->on_bell)
        event_free(http->on_bell);
    if (http->linger)
        event_free(http->linger);
}
