/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * libevent frees a request with its connection, unless a callback still has to answer it; such a
 * request is taken off its connection, and freed by the answer. So a buyer may leave at any moment:
 * the order is served all the same, and its answer waits in the table.
 */
#define _POSIX_C_SOURCE 200809L
#include "exchange.h"

#include "reply.h"

#include <event2/buffer.h>

#include <stdlib.h>
#include <string.h>

struct exchange {
    struct job job;
    struct http *http;
    struct evhttp_request *request;
    bool is_answered;
};

static void exchange_end(struct exchange *exchange)
{
    struct http *http = exchange->http;

    http->sends_open--;
    free(exchange);
    if (http->is_closing)
        http_close(http);
}

static void exchange_on_sent(struct evhttp_request *request, void *arg)
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
    exchange_end(arg);
}

static void exchange_on_close(struct evhttp_connection *connection, void *arg)
{
    struct exchange *exchange = arg;

    (void)connection;
    if (exchange->is_answered)
        exchange_end(exchange);
}

static bool exchange_is_json(struct evhttp_request *request)
{
    const char *type =
        evhttp_find_header(evhttp_request_get_input_headers(request), "Content-Type");

    /* A form of another site's page cannot send this type. */
    return type && strncmp(type, "application/json", 16) == 0 && strchr("; ", type[16]);
}

static int exchange_read(const struct http *http, struct evhttp_request *request,
                         struct order *order, const char **ret_why)
{
    struct evbuffer *body = evhttp_request_get_input_buffer(request);
    size_t length = evbuffer_get_length(body);
    const char *text = (const char *)evbuffer_pullup(body, -1);

    if (!exchange_is_json(request)) {
        *ret_why = "Content-Type: application/json is needed";
        return 415;
    }
    return order_parse(http->config, text, length, order, ret_why);
}

void exchange_begin(struct http *http, struct evhttp_request *request)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    const char *why = "too many orders are waiting; try again with the same id";
    int status = exchange ? exchange_read(http, request, &exchange->job.order, &why) : 503;

    if (status == 0) {
        exchange->http = http;
        exchange->request = request;
        exchange->job.exchange = exchange;
        status = !http->is_closing && queue_put(&http->crew->orders, &exchange->job) ? 0 : 503;
    }
    if (status != 0) {
        http->refused++;
        free(exchange);
        reply_refuse(http, request, status, why);
        return;
    }
    http->orders_open++;
    door_note(&http->door, request, false);
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), exchange_on_close,
                                  exchange);
}

void exchange_answer(struct job *job)
{
    struct exchange *exchange = job->exchange;
    bool has_buyer = evhttp_request_get_connection(exchange->request) != NULL;

    exchange->is_answered = true;
    exchange->http->orders_open--;
    exchange->http->sends_open++;
    door_note(&exchange->http->door, exchange->request, true);
    if (has_buyer)
        evhttp_request_set_on_complete_cb(exchange->request, exchange_on_sent, exchange);
    reply_answer(exchange->http, exchange->request, job);
    if (!has_buyer) /* the reply has only freed the request */
        exchange_end(exchange);
}
