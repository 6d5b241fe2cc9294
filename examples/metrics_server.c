/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A service in libevent's loop: GET /work does something that one process at a time may do, and GET
 * /metrics tells Prometheus how its locks fare. It runs until SIGINT or SIGTERM.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include <hirelock/hirelock.h>

#include <signal.h>
#include <stdio.h>

static hl_client *client;
static hl_lock *till;

/* One GET /work: an owner of its own, since one thread serves all requests. */
struct work {
    struct evhttp_request *request;
    hl_owner *owner;
};

static void work_end(struct work *work, int code)
{
    evhttp_send_reply(work->request, code == 0 ? 200 : 503, hl_err_text(code), NULL);
    hl_owner_free(work->owner);
    free(work);
}

static void work_on_released(int code, const hl_error *err, void *arg)
{
    (void)err;
    work_end(arg, code);
}

static void work_on_acquired(int code, const hl_error *err, void *arg)
{
    struct work *work = arg;

    (void)err;
    if (code == 0) /* held: the work would be here */
        code = hl_lock_release_async(till, work->owner, work_on_released, work);
    if (code < 0)
        work_end(work, code);
}

static void on_work(struct evhttp_request *request, void *arg)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    struct work *work = calloc(1, sizeof(*work));
    int code = work ? hl_owner_new(client, &work->owner) : HL_ENOMEM;

    (void)arg;
    if (code == 0) {
        work->request = request;
        options.wait_ms = 5000;
        options.owner = work->owner;
        code = hl_lock_acquire_async(till, &options, work_on_acquired, work);
    }
    if (code == 0)
        return;
    evhttp_send_error(request, 503, hl_err_text(code));
    if (work)
        hl_owner_free(work->owner);
    free(work);
}

static void on_metrics(struct evhttp_request *request, void *arg)
{
    static const hl_label shop[] = {{"client", "shop"}, {NULL, NULL}};
    static const hl_label *const labels[] = {shop};
    static char text[64 * 1024];
    struct evbuffer *body = evbuffer_new();
    int length = hl_metrics_format(&client, labels, 1, text, sizeof(text));

    (void)arg;
    if (body && length >= 0 && (size_t)length < sizeof(text) &&
        evbuffer_add(body, text, (size_t)length) == 0) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                          HL_METRICS_CONTENT_TYPE);
        evhttp_send_reply(request, 200, "OK", body);
    } else {
        evhttp_send_error(request, 500, length < 0 ? hl_err_last()->text : "no room");
    }
    if (body)
        evbuffer_free(body);
}

static void on_callbacks(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    hl_client_dispatch(client);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)number, (void)what;
    event_base_loopbreak(arg);
}

/* evhttp reads on while it writes: without a bound, who asks and reads no answer fills the memory.
 */
static struct bufferevent *on_connection(struct event_base *loop, void *arg)
{
    struct bufferevent *connection = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);

    (void)arg;
    if (connection)
        bufferevent_setwatermark(connection, EV_READ, 0, 16384);
    return connection;
}

/* The port is METRICS_PORT of the environment, else one that is free. */
static struct evhttp *serve(struct event_base *loop)
{
    const char *wanted = getenv("METRICS_PORT");
    struct evhttp *http = evhttp_new(loop);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(
        http, "127.0.0.1", (ev_uint16_t)(wanted ? strtoul(wanted, NULL, 10) : 0));
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    if (!bound ||
        getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "metrics_server: the port cannot be used\n");
        evhttp_free(http);
        return NULL;
    }
    evhttp_set_bevcb(http, on_connection, NULL);
    evhttp_set_cb(http, "/metrics", on_metrics, NULL);
    evhttp_set_cb(http, "/work", on_work, NULL);
    printf("http://127.0.0.1:%d/metrics\n", ntohs(address.sin_port));
    fflush(stdout);
    return http;
}

static void run(struct event_base *loop)
{
    struct evhttp *http = serve(loop);
    struct event *callbacks =
        event_new(loop, hl_client_fd(client), EV_READ | EV_PERSIST, on_callbacks, NULL);
    struct event *ends[] = {evsignal_new(loop, SIGINT, on_signal, loop),
                            evsignal_new(loop, SIGTERM, on_signal, loop)};

    event_add(callbacks, NULL);
    for (int i = 0; i < 2; i++)
        event_add(ends[i], NULL);
    if (http)
        event_base_dispatch(loop);
    hl_client_close(client); /* runs what callbacks are left, while their requests are there */
    hl_lock_free(till);
    for (int i = 0; i < 2; i++)
        event_free(ends[i]);
    event_free(callbacks);
    if (http)
        evhttp_free(http);
}

static const char does[] = "Serves GET /work, which needs a lock, and GET /metrics for Prometheus.";

int main(int argc, char **argv)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;
    struct event_base *loop = event_base_new();

    signal(SIGPIPE, SIG_IGN); /* libevent writes to clients that have gone */
    options.flags = HL_CLIENT_DISPATCH;
    options.name_prefix = "shop:";
    if (hl_client_open(example_url(argc, argv, does), &options, &client, &err) == 0 &&
        hl_lock_new(client, "till", &till, &err) == 0)
        run(loop);
    else
        hl_client_close(client);
    event_base_free(loop);
    if (err.code < 0)
        fprintf(stderr, "metrics_server: %s\n", err.text);
    return err.code < 0;
}
