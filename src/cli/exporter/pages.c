/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/exporter/pages.h"

#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAGES_BACKLOG = 128,
    PAGES_TIMEOUT_S = 10,   /* of one request, and of a connection at rest */
    PAGES_HEADERS = 8192,   /* bytes; Prometheus sends a few hundred */
    PAGES_BODY = 1024,      /* bytes; none is needed */
    PAGES_INPUT = 16384,    /* bytes that were not looked at; headers and body find room */
    PAGES_CONNECTIONS = 256 /* the client to the server needs descriptors, too */
};

struct pages_place {
    char host[256], port[8];
};

static bool pages_is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 6 && !text[digits] && strtol(text, NULL, 10) <= 65535;
}

/* False: no such place can be. */
static bool pages_read_place(const char *where, struct pages_place *ret_place)
{
    const char *colon = strrchr(where, ':'), *host = where;
    const char *port = colon ? colon + 1 : where;
    size_t length = colon ? (size_t)(colon - where) : 0;
    bool is_braced = length > 2 && where[0] == '[' && where[length - 1] == ']';

    if (is_braced) {
        host++;
        length -= 2;
    }
    bool is_bare = !is_braced && memchr(host, ':', length) != NULL; /* "::1" is to be in brackets */
    if (!pages_is_port(port) || (colon && length == 0) || is_bare ||
        length >= sizeof(ret_place->host))
        return false;
    snprintf(ret_place->host, sizeof(ret_place->host), "%.*s", (int)length, host);
    if (!colon)
        snprintf(ret_place->host, sizeof(ret_place->host), "127.0.0.1");
    snprintf(ret_place->port, sizeof(ret_place->port), "%.7s", port);
    return true;
}

static int pages_bind(const struct addrinfo *address)
{
    const int one = 1;
    int type = address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = socket(address->ai_family, type, address->ai_protocol);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, PAGES_BACKLOG) == 0)
        return fd;
    int number = errno;
    close(fd);
    errno = number;
    return -1;
}

int exporter_listen(const char *where)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct pages_place place;
    int fd = -1;

    if (!pages_read_place(where, &place)) {
        cli_say("--listen %s: PORT, HOST:PORT or [IPV6]:PORT is wanted", where);
        return -1;
    }
    int rc = getaddrinfo(place.host, place.port, &hints, &found);
    if (rc != 0) {
        cli_say("--listen %s: %s", where, gai_strerror(rc));
        return -1;
    }
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = pages_bind(at);
    if (fd < 0)
        cli_say("--listen %s: %s%s", where, strerror(errno),
                errno == EADDRINUSE ? "; take another port, or 0 for one that is free" : "");
    freeaddrinfo(found);
    return fd;
}

static void pages_send(struct evhttp_request *request, const struct exporter_page *page, char *text,
                       size_t length)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct evbuffer *body = evbuffer_new();
    bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD; /* has no body */

    if (body && text && evbuffer_add(body, text, is_head ? 0 : length) == 0) {
        evhttp_add_header(headers, "Content-Type", page->type);
        evhttp_send_reply(request, 200, "OK", body);
    } else {
        evhttp_send_error(request, 503, "there is no memory left");
    }
    if (body)
        evbuffer_free(body);
}

static const struct exporter_page *pages_find(const struct exporter_pages *pages, const char *path)
{
    for (size_t i = 0; path && i < pages->count; i++)
        if (strcmp(pages->page[i].path, path) == 0)
            return &pages->page[i];
    return NULL;
}

static void pages_answer(struct evhttp_request *request, void *arg)
{
    const struct exporter_pages *pages = arg;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const struct exporter_page *page = pages_find(pages, uri ? evhttp_uri_get_path(uri) : NULL);
    enum evhttp_cmd_type method = evhttp_request_get_command(request);
    size_t length = 0;

    if (!page) {
        evhttp_send_error(request, 404, "Not Found");
    } else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
        evhttp_send_reply(request, 405, "Method Not Allowed", NULL); /* an error drops headers */
    } else {
        char *text = page->write(pages->arg, &length);
        pages_send(request, page, text, length);
        free(text);
    }
}

/* ---- How many connections there may be ---- */

struct pages_door {
    struct event_base *loop;
    struct evconnlistener *listener;
    struct event *open; /* a timer */
    DIR *descriptors;   /* of this process; NULL: nobody can tell */
};

/* The address of this end of a socket. */
struct pages_name {
    char host[NI_MAXHOST], port[NI_MAXSERV];
};

static bool pages_name_of(int fd, struct pages_name *ret_name)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6) &&
           getnameinfo((struct sockaddr *)&address, size, ret_name->host, sizeof(ret_name->host),
                       ret_name->port, sizeof(ret_name->port),
                       NI_NUMERICHOST | NI_NUMERICSERV) == 0;
}

/* Those at our port: libevent 2.1 does not tell which connections are open. Returns their number.
 */
static int pages_go_through(struct pages_door *door, bool ends)
{
    int listening = evconnlistener_get_fd(door->listener), count = 0;
    struct pages_name ours, name;
    const struct dirent *entry;

    if (!door->descriptors || !pages_name_of(listening, &ours))
        return 0;
    rewinddir(door->descriptors);
    while ((entry = readdir(door->descriptors))) {
        int fd = (int)strtol(entry->d_name, NULL, 10); /* "." is 0, which is none of them */
        if (fd == listening || !pages_name_of(fd, &name) || strcmp(name.port, ours.port) != 0)
            continue;
        count++;
        if (ends)
            shutdown(fd, SHUT_RDWR);
    }
    return count;
}

static void pages_open_door(evutil_socket_t fd, short what, void *arg)
{
    struct pages_door *door = arg;

    (void)fd, (void)what;
    evconnlistener_enable(door->listener);
}

/* There are too many. All end, since one that sends a byte now and then would stay for ever. */
static void pages_close_door(struct pages_door *door)
{
    const struct timeval second = {1, 0};

    evconnlistener_disable(door->listener);
    event_add(door->open, &second);
    pages_go_through(door, true);
}

/* No descriptor is left: libevent would ask for the next connection at once, again and again. */
static void pages_cannot_accept(struct evconnlistener *listener, void *arg)
{
    (void)listener;
    pages_close_door(arg);
}

/* evhttp goes on reading while it writes: a client that sends requests and reads no answer would
 * fill the memory. */
static struct bufferevent *pages_connection(struct event_base *loop)
{
    struct bufferevent *connection = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);

    if (connection)
        bufferevent_setwatermark(connection, EV_READ, 0, PAGES_INPUT);
    return connection;
}

/* For each connection. While a low descriptor is free, there cannot be too many; else they are
 * counted, for most may be the client's, as with the nodes of a large cluster. */
static struct bufferevent *pages_welcome(struct event_base *loop, void *arg)
{
    struct pages_door *door = arg;
    int lowest = fcntl(evconnlistener_get_fd(door->listener), F_DUPFD_CLOEXEC, 0);

    if (lowest >= 0)
        close(lowest);
    if (lowest < 0 ||
        (lowest >= PAGES_CONNECTIONS && pages_go_through(door, false) >= PAGES_CONNECTIONS))
        pages_close_door(door);
    return pages_connection(loop); /* NULL: evhttp makes one without the bound */
}

/* ---- Serving ---- */

static void pages_print_address(int fd)
{
    struct pages_name name;

    if (!pages_name_of(fd, &name))
        return;
    bool is_ipv6 = strchr(name.host, ':') != NULL;
    printf("http://%s%s%s:%s/metrics\n", is_ipv6 ? "[" : "", name.host, is_ipv6 ? "]" : "",
           name.port);
    fflush(stdout);
}

static void pages_end(evutil_socket_t number, short what, void *arg)
{
    (void)number, (void)what;
    event_base_loopbreak(arg);
}

static struct evhttp *pages_new(struct pages_door *door, int fd, const struct exporter_pages *pages)
{
    struct evhttp *http = evhttp_new(door->loop);
    struct evhttp_bound_socket *bound = http ? evhttp_accept_socket_with_handle(http, fd) : NULL;

    if (!bound) {
        close(fd);
        if (http)
            evhttp_free(http);
        return NULL;
    }
    door->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(door->listener, pages_cannot_accept);
    evhttp_set_bevcb(http, pages_welcome, door);
    evhttp_set_timeout(http, PAGES_TIMEOUT_S);
    evhttp_set_max_headers_size(http, PAGES_HEADERS);
    evhttp_set_max_body_size(http, PAGES_BODY);
    /* All: libevent itself answers another one with 501, and we with 405. */
    evhttp_set_allowed_methods(http, 0xffff);
    evhttp_set_gencb(http, pages_answer, (void *)pages);
    return http;
}

static bool pages_run(struct pages_door *door, int fd, const struct exporter_pages *pages)
{
    struct event *ends[] = {evsignal_new(door->loop, SIGINT, pages_end, door->loop),
                            evsignal_new(door->loop, SIGTERM, pages_end, door->loop)};
    struct evhttp *http = pages_new(door, fd, pages);
    bool is_ready = http && door->open && ends[0] && ends[1] && event_add(ends[0], NULL) == 0 &&
                    event_add(ends[1], NULL) == 0;

    if (is_ready) {
        pages_print_address(fd);
        event_base_dispatch(door->loop);
    }
    if (http)
        evhttp_free(http);
    for (int i = 0; i < 2; i++)
        if (ends[i])
            event_free(ends[i]);
    return is_ready;
}

bool exporter_serve(int fd, const struct exporter_pages *pages)
{
    struct pages_door door = {.loop = event_base_new(), .descriptors = opendir("/proc/self/fd")};
    bool is_served = false;

    signal(SIGPIPE, SIG_IGN); /* a client may be gone when its answer is written */
    if (door.loop) {
        door.open = evtimer_new(door.loop, pages_open_door, &door);
        is_served = pages_run(&door, fd, pages);
        if (door.open)
            event_free(door.open);
        event_base_free(door.loop);
    } else {
        close(fd);
    }
    if (door.descriptors)
        closedir(door.descriptors);
    if (!is_served)
        cli_say("there is no memory left to serve");
    return is_served;
}
