/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Dialling: resolve, then connect to one address after the other. The caller keeps the deadline. */
#include "redis/dial.h"

#include "base/check.h"
#include "base/error.h"
#include "redis/lookup.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

struct hli_dial { /* loop thread */
    struct hli_loop *loop;
    struct hli_dial_said said;
    struct hli_lookup *lookup; /* of a name */
    struct evutil_addrinfo *addresses, *next;
    struct event *connected; /* the socket became writable, or the dial is to end (timer) */
    int fd;
    hl_error err; /* of the last address that was tried */
};

static void dial_close(struct hli_dial *dial)
{
    if (dial->fd < 0)
        return;
    atomic_store(dial->said.shown, -1);
    close(dial->fd);
    dial->fd = -1;
}

static void dial_free(struct hli_dial *dial)
{
    hli_lookup_drop(dial->lookup);
    if (dial->addresses)
        evutil_freeaddrinfo(dial->addresses);
    if (dial->connected)
        event_free(dial->connected);
    dial_close(dial);
    free(dial);
}

void hli_dial_cancel(struct hli_dial *dial)
{
    if (dial)
        dial_free(dial);
}

bool hli_dial_is_resolving(const struct hli_dial *dial)
{
    return dial && dial->lookup && !hli_lookup_is_over(dial->lookup);
}

/* "127.0.0.1:6379", "[::1]:6379", "/run/redis.sock" */
static void dial_where(const struct hli_url *url, char *text, size_t size)
{
    if (url->kind == HLI_URL_UNIX)
        snprintf(text, size, "%s", url->host);
    else
        snprintf(text, size, strchr(url->host, ':') ? "[%s]:%u" : "%s:%u", url->host, url->port);
}

/* Lower case, as the reason stands behind a colon: "connect 127.0.0.1:6379: connection refused". */
static void dial_note(struct hli_dial *dial, const char *reason)
{
    char where[160];

    dial_where(dial->said.url, where, sizeof(where));
    hli_fail(&dial->err, HL_ECONN, "connect %s: %s", where, reason);
    char *first = strstr(dial->err.text, reason);
    if (first && first[0] >= 'A' && first[0] <= 'Z' && first[1] >= 'a')
        first[0] = (char)(first[0] - 'A' + 'a');
}

static void dial_finish(struct hli_dial *dial)
{
    const struct hli_dial_said said = dial->said;
    int fd = dial->fd;
    hl_error err = dial->err;

    dial->fd = -1;
    dial_free(dial);
    said.done(fd, fd < 0 ? &err : NULL, said.arg);
}

/* Ends the dial from the loop, never inside hli_dial_start. */
static void dial_finish_soon(struct hli_dial *dial)
{
    event_active(dial->connected, EV_TIMEOUT, 0);
}

static void dial_next_address(struct hli_dial *dial);

static void dial_on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct hli_dial *dial = arg;
    int problem = 0;
    socklen_t size = sizeof(problem);

    (void)fd;
    if (!(what & EV_WRITE)) {
        dial_finish(dial);
        return;
    }
    if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0)
        problem = errno;
    if (problem == 0) {
        dial_finish(dial);
        return;
    }
    dial_note(dial, strerrordesc_np(problem));
    dial_close(dial);
    dial_next_address(dial);
}

static int dial_socket(int family)
{
    int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* True when the connection is made or under way. */
static bool dial_connect(struct hli_dial *dial, const struct sockaddr *address, socklen_t length)
{
    dial->fd = dial_socket(address->sa_family);
    atomic_store(dial->said.shown, dial->fd);
    if (dial->fd >= 0 && (connect(dial->fd, address, length) == 0 || errno == EINPROGRESS)) {
        event_assign(dial->connected, hli_loop_base(dial->loop), dial->fd, EV_WRITE,
                     dial_on_connected, dial);
        if (event_add(dial->connected, NULL) == 0)
            return true;
        errno = ENOMEM;
    }
    dial_note(dial, strerrordesc_np(errno));
    dial_close(dial);
    return false;
}

static void dial_next_address(struct hli_dial *dial)
{
    while (dial->next) {
        struct evutil_addrinfo *address = dial->next;
        dial->next = address->ai_next;
        if (dial_connect(dial, address->ai_addr, (socklen_t)address->ai_addrlen))
            return;
    }
    event_assign(dial->connected, hli_loop_base(dial->loop), -1, EV_TIMEOUT, dial_on_connected,
                 dial);
    dial_finish_soon(dial);
}

static void dial_on_resolved(int problem, struct evutil_addrinfo *addresses, void *arg)
{
    struct hli_dial *dial = arg;

    dial->addresses = dial->next = addresses;
    if (problem != 0)
        dial_note(dial, evutil_gai_strerror(problem));
    dial_next_address(dial);
}

static int dial_resolve(struct hli_dial *dial)
{
    struct evutil_addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    char port[8];

    snprintf(port, sizeof(port), "%u", dial->said.url->port);
    hints.ai_flags = EVUTIL_AI_NUMERICHOST | EVUTIL_AI_NUMERICSERV;
    if (evutil_getaddrinfo(dial->said.url->host, port, &hints, &dial->addresses) == 0) {
        dial->next = dial->addresses;
        dial_next_address(dial);
        return 0;
    }
    dial->lookup = hli_lookup_new(dial->loop, dial_on_resolved, dial);
    if (!dial->lookup)
        return HL_ENOMEM;
    hli_lookup_start(dial->lookup, dial->said.url->host, port);
    return 0;
}

static int dial_unix(struct hli_dial *dial)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(dial->said.url->host) >= sizeof(address.sun_path)) {
        dial_note(dial, "the path is too long for a unix socket");
    } else {
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", dial->said.url->host);
        if (dial_connect(dial, (struct sockaddr *)&address, sizeof(address)))
            return 0;
    }
    dial_finish_soon(dial);
    return 0;
}

int hli_dial_start(struct hli_loop *loop, const struct hli_dial_said *said,
                   struct hli_dial **ret_dial)
{
    struct hli_dial *dial = calloc(1, sizeof(*dial));

    if (!dial)
        return HL_ENOMEM;
    *dial = (struct hli_dial){.loop = loop, .said = *said, .fd = -1};
    dial->connected = event_new(hli_loop_base(loop), -1, EV_TIMEOUT, dial_on_connected, dial);
    int rc = !dial->connected                  ? HL_ENOMEM
             : said->url->kind == HLI_URL_UNIX ? dial_unix(dial)
                                               : dial_resolve(dial);
    if (rc < 0)
        dial_free(dial);
    else
        *ret_dial = dial;
    return rc;
}
