/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A network that carries a few megabytes a second: a large value takes longer than a request may.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "connection_fixture.h"
#include "support/listener.h"

enum { SLOW_CHUNK = 16 * 1024, SLOW_CHUNK_MS = 4, SLOW_LINKS = 16 };

/* Before a server; what goes up goes slowly. */
struct slow_relay {
    int listener, port, server_port;
    int pair[SLOW_LINKS][2], count;
    pthread_t acceptor, pump[SLOW_LINKS];
};

static bool slow_copy(int from, int to, bool is_slow)
{
    char bytes[SLOW_CHUNK];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    for (ssize_t sent = 0, more; sent < got; sent += more)
        if ((more = send(to, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL)) <= 0)
            return false;
    if (got > 0 && is_slow)
        usleep((useconds_t)(slow_ms(SLOW_CHUNK_MS) * 1000 * got / SLOW_CHUNK));
    return got > 0;
}

static void *slow_pump(void *arg)
{
    const int *pair = arg;
    struct pollfd polled[] = {{.fd = pair[0], .events = POLLIN}, {.fd = pair[1], .events = POLLIN}};
    bool goes_on = true;
    while (goes_on && poll(polled, 2, -1) > 0)
        for (int i = 0; i < 2 && goes_on; i++)
            if (polled[i].revents)
                goes_on = slow_copy(pair[i], pair[1 - i], i == 0);
    shutdown(pair[0], SHUT_RDWR);
    shutdown(pair[1], SHUT_RDWR);
    return NULL;
}

static void *slow_accept(void *arg)
{
    struct slow_relay *relay = arg;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)relay->server_port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd;
    while (relay->count < SLOW_LINKS && (fd = accept(relay->listener, NULL, NULL)) >= 0) {
        int *pair = relay->pair[relay->count];
        pair[0] = fd;
        pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        check_int(connect(pair[1], (struct sockaddr *)&address, sizeof address), 0);
        check_int(pthread_create(&relay->pump[relay->count++], NULL, slow_pump, pair), 0);
    }
    return NULL;
}

static void slow_start(struct slow_relay *relay)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int small = 64 * 1024;
    *relay = (struct slow_relay){.server_port = redis_server_port(server)};
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(relay->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    check_int(bind(relay->listener, (struct sockaddr *)&address, size), 0);
    check_int(listen(relay->listener, 16), 0);
    check_int(getsockname(relay->listener, (struct sockaddr *)&address, &size), 0);
    relay->port = ntohs(address.sin_port);
    check_int(pthread_create(&relay->acceptor, NULL, slow_accept, relay), 0);
}

static void slow_stop(struct slow_relay *relay)
{
    shutdown(relay->listener, SHUT_RDWR);
    pthread_join(relay->acceptor, NULL);
    for (int i = 0; i < relay->count; i++) {
        pthread_join(relay->pump[i], NULL);
        close(relay->pair[i][0]);
        close(relay->pair[i][1]);
    }
    close(relay->listener);
}

/* The call ends with its own time, and the write goes on behind it: as long as the server takes
 * some of it the connection is kept, and with it whatever else the client holds. */
Test(network_slow, carries_a_large_value_without_losing_the_connection)
{
    enum { VALUE = 8 << 20 };
    server = redis_server_start(&(struct redis_options){.tcp = true});
    struct slow_relay relay;
    char url[64];
    hl_client_options options = connection_options();
    hl_fenced_write write = HL_FENCED_WRITE_INIT;
    slow_start(&relay);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", relay.port);
    options.request_timeout_ms = slow_ms(1000);
    options.outage_timeout_ms = slow_ms(30000);
    hl_client *client = open_client_at(url, &options);
    hl_lock *lock = new_lock(client, "n"), *innocent = new_lock(client, "innocent");
    char *value = malloc(VALUE);
    memset(value, 'x', VALUE);
    write.key = "data";
    write.value = value;
    write.value_length = VALUE;
    expect_ok(hl_lock_acquire(innocent, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_outcome(hl_lock_set_and_release(lock, NULL, &write, ERR), HL_EINDOUBT);
    check(redis_wait_int(server, VALUE, 20000, "STRLEN data"));
    check_int(stats_of(client).reconnects, 0);
    check(hl_lock_is_held(innocent, NULL));
    expect_ok(hl_lock_release(innocent, ERR));
    free(value);
    free_lock(lock);
    free_lock(innocent);
    close_client(client);
    slow_stop(&relay);
    redis_server_stop(server);
}
