/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Dialling: resolve, then connect to one address after the other. The caller watches the deadline.
 */
#include "redis/dial.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

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

enum {
    DIAL_QUEUE_MS = 20,
    DIAL_UNSENT_BYTES = 128 * 1024, /* more stays with us: accepted bytes are progress */
};

struct hli_dial { /* loop thread */
    const struct hli_dialler *dialler;
    struct hli_dial_args said;
    struct hli_name_ask name;
    struct addrinfo *numeric;    /* the host is an address: owned */
    const struct addrinfo *next; /* of these, or of the name's */
    struct event *connected;     /* the socket became writable, or the dial is to end (timer) */
    int fd;
    struct hli_tls *tls; /* of that socket */
    struct {             /* bytes of its handshake, on their way to the socket */
        char bytes[2048];
        size_t start, end;
    } out;
    hl_error err; /* of the last address that was tried */
};

static void dial_close(struct hli_dial *dial)
{
    if (dial->fd < 0)
        return;
    atomic_store(dial->said.shown, -1);
    close(dial->fd);
    dial->fd = -1;
    hli_tls_unref(dial->tls);
    dial->tls = NULL;
}

void hli_dial_cancel(struct hli_dial **ended)
{
    struct hli_dial *dial = *ended;

    if (!dial)
        return;
    *ended = NULL;
    hli_name_ask_drop(&dial->name);
    if (dial->numeric)
        freeaddrinfo(dial->numeric);
    if (dial->connected)
        event_free(dial->connected);
    dial_close(dial);
    free(dial);
}

const char *hli_dial_awaits(const struct hli_dial *dial)
{
    if (dial && dial->name.is_waiting)
        return " of a name server";
    return dial && dial->tls ? " to the TLS handshake (does the server speak TLS at this port?)"
                             : "";
}

static void dial_note(struct hli_dial *dial, const char *reason)
{
    hli_fail(&dial->err, HL_ECONN, "%s", reason);
}

static void dial_note_problem(struct hli_dial *dial, int problem)
{
    char reason[96];

    dial_note(dial, hli_error_reason(reason, sizeof(reason), problem));
}

static void dial_finish(struct hli_dial *dial)
{
    const struct hli_dial_args said = dial->said;
    int fd = dial->fd;
    struct hli_tls *tls = dial->tls;
    hl_error err = dial->err;

    dial->fd = -1;
    dial->tls = NULL;
    hli_dial_cancel(&dial);
    said.done(fd, tls, fd < 0 ? &err : NULL, said.arg);
    hli_tls_unref(tls);
}

static void dial_next_address(struct hli_dial *dial);
static void dial_on_connected(evutil_socket_t fd, short what, void *arg);

/* Ends the dial from the loop, never inside hli_dial_start. */
static void dial_finish_soon(struct hli_dial *dial)
{
    event_assign(dial->connected, hli_loop_base(dial->dialler->loop), -1, EV_TIMEOUT,
                 dial_on_connected, dial);
    event_active(dial->connected, EV_TIMEOUT, 0);
}

/* This address is no good. */
static void dial_go_on(struct hli_dial *dial)
{
    dial_close(dial);
    dial_next_address(dial);
}

/* The time for this address when more addresses are left; NULL for the last one. */
static const struct timeval *dial_share(const struct hli_dial *dial, struct timeval *share)
{
    int64_t count = 1;

    for (const struct addrinfo *next = dial->next; next; next = next->ai_next)
        count++;
    hli_ns time = hli_later(dial->said.deadline - hli_now(), 0) / count;
    *share = (struct timeval){.tv_sec = time / 1000000000, .tv_usec = time % 1000000000 / 1000};
    return count > 1 ? share : NULL;
}

/* Sends what TLS has to say. False: the socket must become writable first, or has failed, which
 * reading it will tell. */
static bool dial_send(struct hli_dial *dial)
{
    for (;;) {
        if (dial->out.start == dial->out.end) {
            dial->out.start = 0;
            dial->out.end = hli_tls_take(dial->tls, dial->out.bytes, sizeof(dial->out.bytes));
        }
        if (dial->out.end == 0)
            return true;
        ssize_t sent = send(dial->fd, dial->out.bytes + dial->out.start,
                            dial->out.end - dial->out.start, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return false;
        dial->out.start += (size_t)sent;
    }
}

static void dial_on_tls(evutil_socket_t fd, short what, void *arg);

static void dial_shake(struct hli_dial *dial)
{
    enum hli_tls_step step = hli_tls_shake(dial->tls);
    struct timeval share;

    bool is_sent = dial_send(dial);
    if (step == HLI_TLS_FAILED) {
        hli_tls_problem(dial->tls, &dial->err);
        dial_go_on(dial);
        return;
    }
    if (step == HLI_TLS_DONE && is_sent) {
        dial_finish(dial);
        return;
    }
    event_assign(dial->connected, hli_loop_base(dial->dialler->loop), dial->fd,
                 (short)(EV_READ | (is_sent ? 0 : EV_WRITE)), dial_on_tls, dial);
    if (event_add(dial->connected, dial_share(dial, &share)) == 0)
        return;
    dial_note_problem(dial, ENOMEM);
    dial_go_on(dial);
}

static void dial_on_tls(evutil_socket_t fd, short what, void *arg)
{
    struct hli_dial *dial = arg;
    char bytes[4096];
    ssize_t got = what & EV_READ ? recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) : 0;

    if (what & EV_TIMEOUT) {
        dial_note(dial, "TLS: the server does not go on with the handshake");
        dial_go_on(dial);
    } else if (what & EV_READ && got == 0) {
        dial_note(dial, "TLS: the server closed the connection in the handshake (does it speak "
                        "TLS at this port?)");
        dial_go_on(dial);
    } else if (got < 0 && errno != EAGAIN && errno != EINTR) {
        dial_note_problem(dial, errno);
        dial_go_on(dial);
    } else {
        if (got > 0)
            hli_tls_put(dial->tls, bytes, (size_t)got);
        dial_shake(dial);
    }
}

/* The socket is connected. */
static void dial_begin_tls(struct hli_dial *dial)
{
    hl_error err;

    dial->out.start = dial->out.end = 0;
    const char *name = dial->said.tls_name ? dial->said.tls_name : dial->said.address->host;
    if (hli_tls_new(dial->dialler->tls, name, &dial->tls, &err) == 0) {
        dial_shake(dial);
        return;
    }
    dial_note(dial, err.text); /* HL_ECONN: the file may be there again at the next attempt */
    dial_go_on(dial);
}

static void dial_on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct hli_dial *dial = arg;
    int problem = what & EV_WRITE ? 0 : ETIMEDOUT;
    socklen_t size = sizeof(problem);

    (void)fd;
    if (what & EV_WRITE && getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0)
        problem = errno;
    if (problem == 0 && dial->fd >= 0 && dial->dialler->tls) {
        dial_begin_tls(dial);
    } else if (problem == 0 || dial->fd < 0) {
        dial_finish(dial);
    } else {
        dial_note_problem(dial, problem);
        dial_go_on(dial);
    }
}

static int dial_socket(int family)
{
    int one = 1, unsent = DIAL_UNSENT_BYTES;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    }
    return fd;
}

/* True when the connection is made or under way. */
static bool dial_connect(struct hli_dial *dial, const struct sockaddr *address, socklen_t length)
{
    struct hli_dial_peer *peer = dial->said.peer;
    struct timeval share;

    memcpy(&peer->address, address, length);
    peer->length = length;
    dial->fd = dial_socket(address->sa_family);
    atomic_store(dial->said.shown, dial->fd);
    if (dial->fd >= 0 && (connect(dial->fd, address, length) == 0 || errno == EINPROGRESS)) {
        event_assign(dial->connected, hli_loop_base(dial->dialler->loop), dial->fd, EV_WRITE,
                     dial_on_connected, dial);
        if (event_add(dial->connected, dial_share(dial, &share)) == 0)
            return true;
        errno = ENOMEM;
    }
    int problem = errno;
    dial_note_problem(dial, problem);
    dial_close(dial);
    errno = problem;
    return false;
}

/* The resolver's addresses have no port: it looks a host up for all its servers. */
static bool dial_try(struct hli_dial *dial, const struct addrinfo *found)
{
    struct sockaddr_storage address;
    uint16_t port = htons(dial->said.address->port);

    memcpy(&address, found->ai_addr, found->ai_addrlen);
    if (found->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = port;
    else
        ((struct sockaddr_in *)&address)->sin_port = port;
    return dial_connect(dial, (const struct sockaddr *)&address, found->ai_addrlen);
}

static void dial_next_address(struct hli_dial *dial)
{
    while (dial->next) {
        const struct addrinfo *found = dial->next;
        dial->next = found->ai_next;
        if (dial_try(dial, found))
            return;
    }
    dial_finish_soon(dial);
}

static void dial_on_name(struct hli_name_ask *ask, const struct addrinfo *addresses,
                         const char *why)
{
    struct hli_dial *dial = HLI_OF(ask, struct hli_dial, name);

    if (!addresses)
        dial_note(dial, why);
    dial->next = addresses;
    dial_next_address(dial);
}

static void dial_resolve(struct hli_dial *dial)
{
    const char *host = dial->said.address->host;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};

    dial->name.done = dial_on_name;
    int problem = getaddrinfo(host, NULL, &hints, &dial->numeric);
    if (problem == EAI_NONAME) { /* it is no number */
        dial->numeric = NULL;
        hli_resolver_ask(dial->dialler->resolver, &dial->name, host);
        return;
    }
    if (problem != 0) {
        dial->numeric = NULL;
        dial_note_problem(dial, problem == EAI_SYSTEM ? errno : ENOMEM);
    }
    dial->next = dial->numeric;
    dial_next_address(dial);
}

/* Dials the address that the first connection reached: a name may resolve to several servers, and
 * both connections must reach the same one. */
static void dial_beside(struct hli_dial *dial)
{
    const struct hli_dial_peer peer = *dial->said.peer;

    if (!dial_connect(dial, (const struct sockaddr *)&peer.address, peer.length))
        dial_finish_soon(dial);
}

static void dial_unix(evutil_socket_t fd, short what, void *arg);

/* If the server's accept queue is full, connect() on a unix socket fails at once where TCP waits:
 * so try again later. */
static void dial_await_queue(struct hli_dial *dial)
{
    const struct timeval pause = {.tv_usec = (suseconds_t)DIAL_QUEUE_MS * 1000};

    event_assign(dial->connected, hli_loop_base(dial->dialler->loop), -1, EV_TIMEOUT, dial_unix,
                 dial);
    if (event_add(dial->connected, &pause) < 0)
        dial_finish_soon(dial);
}

static void dial_unix(evutil_socket_t fd, short what, void *arg)
{
    struct hli_dial *dial = arg;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)fd, (void)what;
    if (strlen(dial->said.address->host) >= sizeof(address.sun_path)) {
        dial_note(dial, "the path is too long for a unix socket");
        dial_finish_soon(dial);
        return;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", dial->said.address->host);
    if (dial_connect(dial, (struct sockaddr *)&address, sizeof(address)))
        return;
    if (errno == EAGAIN)
        dial_await_queue(dial);
    else
        dial_finish_soon(dial);
}

int hli_dial_start(const struct hli_dialler *dialler, const struct hli_dial_args *said,
                   struct hli_dial **ret_dial)
{
    struct hli_dial *dial = calloc(1, sizeof(*dial));

    if (!dial)
        return HL_ENOMEM;
    *dial = (struct hli_dial){.dialler = dialler, .said = *said, .fd = -1};
    dial->connected =
        event_new(hli_loop_base(dialler->loop), -1, EV_TIMEOUT, dial_on_connected, dial);
    if (!dial->connected) {
        free(dial);
        return HL_ENOMEM;
    }
    *ret_dial = dial;
    if (said->address->port == 0)
        dial_unix(-1, 0, dial);
    else if (said->peer->length > 0)
        dial_beside(dial);
    else
        dial_resolve(dial);
    return 0;
}
