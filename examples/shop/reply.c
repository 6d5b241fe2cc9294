/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* JSON is written by json-c, which escapes what a buyer or a server has said. */
#define _POSIX_C_SOURCE 200809L
#include "reply.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <json-c/json.h>

#include <string.h>

/* The page loads from nowhere else, and nothing that a buyer sends can become a script. */
static void reply_headers(const struct http *http, struct evhttp_request *request, const char *type)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(
        headers, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    if (http->is_closing)
        evhttp_add_header(headers, "Connection", "close");
}

struct body {
    const char *type;
    const void *bytes;
    size_t size;
};

static void reply_send(const struct http *http, struct evhttp_request *request, int status,
                       struct body body)
{
    struct evbuffer *buffer = evbuffer_new();

    reply_headers(http, request, body.type);
    if (buffer && evbuffer_add(buffer, body.bytes, body.size) == 0)
        evhttp_send_reply(request, status, NULL, buffer);
    else
        evhttp_send_reply(request, HTTP_INTERNAL, NULL, NULL);
    if (buffer)
        evbuffer_free(buffer);
}

void reply_bytes(const struct http *http, struct evhttp_request *request, const char *type,
                 const void *bytes, size_t size)
{
    reply_send(http, request, HTTP_OK, (struct body){type, bytes, size});
}

void reply_text(const struct http *http, struct evhttp_request *request, int status,
                const char *text)
{
    reply_send(http, request, status,
               (struct body){"text/plain; charset=utf-8", text, strlen(text)});
}

static void reply_json(const struct http *http, struct evhttp_request *request, int status,
                       json_object *json)
{
    if (status == 503)
        evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After", "1");
    const char *text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
    reply_send(http, request, status, (struct body){"application/json", text, strlen(text)});
    json_object_put(json);
}

void reply_refuse(const struct http *http, struct evhttp_request *request, int status,
                  const char *why)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "error", json_object_new_string(why));
    reply_json(http, request, status, json);
}

void reply_answer(const struct http *http, struct evhttp_request *request, const struct job *job)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "order", json_object_new_string(job->order.id));
    json_object_object_add(json, "answer", json_object_new_string(answer_text(job->answer)));
    reply_json(http, request, answer_status(job->answer), json);
}
