/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* lag TO-PORT MICROSECONDS: a relay on 127.0.0.1 that delivers every byte so much later, in both
 * directions. It prints its port, and serves connections until it is killed. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 16384, CHUNKS = 4096 };

struct chunk {
    int64_t due_ns;
    size_t length;
    char bytes[CHUNK];
};

struct way { /* one direction; a ring of chunks */
    int from, to;
    struct chunk *chunk;
    unsigned first, count;
};

static int64_t lag_ns;

static void need(bool fact, const char *what)
{
    if (fact)
        return;
    perror(what);
    _exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct sockaddr_in address_of(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* False at the end of the stream. */
static bool way_read(struct way *way)
{
    struct chunk *chunk = &way->chunk[(way->first + way->count) % CHUNKS];
    ssize_t length = read(way->from, chunk->bytes, CHUNK);

    if (length <= 0)
        return false;
    chunk->due_ns = now_ns() + lag_ns;
    chunk->length = (size_t)length;
    way->count++;
    return true;
}

static bool way_write(struct way *way)
{
    struct chunk *chunk = &way->chunk[way->first];
    size_t sent = 0;

    while (sent < chunk->length) {
        ssize_t length = write(way->to, chunk->bytes + sent, chunk->length - sent);
        if (length <= 0)
            return false;
        sent += (size_t)length;
    }
    way->first = (way->first + 1) % CHUNKS;
    way->count--;
    return true;
}

static void *way_run(void *arg)
{
    struct way *way = arg;
    bool goes_on = true;

    prctl(PR_SET_TIMERSLACK, 1UL);
    while (goes_on) {
        struct pollfd watched = {.fd = way->count < CHUNKS ? way->from : -1, .events = POLLIN};
        int64_t left_ns = way->count > 0 ? way->chunk[way->first].due_ns - now_ns() : 0;
        struct timespec wait = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        if (left_ns >= 0 && ppoll(&watched, 1, way->count > 0 ? &wait : NULL, NULL) > 0)
            goes_on = way_read(way);
        while (goes_on && way->count > 0 && way->chunk[way->first].due_ns <= now_ns())
            goes_on = way_write(way);
    }
    shutdown(way->to, SHUT_RDWR);
    shutdown(way->from, SHUT_RDWR); /* both stay open: the other direction reads them */
    free(way->chunk);
    free(way);
    return NULL;
}

static void way_start(int from, int to)
{
    struct way *way = calloc(1, sizeof(*way));
    pthread_t thread;
    int at_once = 1;

    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    need(way && (way->chunk = calloc(CHUNKS, sizeof(struct chunk))), "calloc");
    way->from = from;
    way->to = to;
    need(pthread_create(&thread, NULL, way_run, way) == 0, "pthread_create");
    pthread_detach(thread);
}

int main(int argc, char **argv)
{
    struct sockaddr_in own = address_of(0), other;
    socklen_t length = sizeof(own);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (argc != 3)
        return 2;
    other = address_of((int)strtol(argv[1], NULL, 10));
    lag_ns = strtoll(argv[2], NULL, 10) * 1000;
    need(bind(listener, (struct sockaddr *)&own, length) == 0 && listen(listener, 16) == 0, "bind");
    need(getsockname(listener, (struct sockaddr *)&own, &length) == 0, "getsockname");
    printf("%d\n", ntohs(own.sin_port));
    fflush(stdout);
    for (;;) {
        int near = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        need(near >= 0, "accept");
        if (connect(far, (struct sockaddr *)&other, sizeof(other)) == 0) {
            way_start(near, far);
            way_start(far, near);
            continue;
        }
        close(near);
        close(far);
    }
}
