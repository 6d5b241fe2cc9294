/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Names: those of the hosts file, and a name server that is silent, slow, or answers by halves. */

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "network_kit.h"

enum { NAME_TYPE_A = 1, NAME_TYPE_AAAA = 28 };

/* Answers each question for an A record with 127.0.0.1, others with nothing, or not at all. */
struct name_server {
    int fd;
    pthread_t thread;
    atomic_bool stops;
    bool answers_a, answers_aaaa, denies;
    atomic_int questions;
};

static size_t name_server_answer(const struct name_server *server, unsigned char *packet,
                                 size_t length)
{
    static const unsigned char record[] = {0xc0, 12, 0, NAME_TYPE_A, 0,   1, 0, 0,
                                           0,    60, 0, 4,           127, 0, 0, 1};
    size_t end = 12;
    while (end < length && packet[end] != 0)
        end += packet[end] + 1U;
    end += 5;
    bool is_a = packet[end - 3] == NAME_TYPE_A;
    if (end > length || !(is_a ? server->answers_a : server->answers_aaaa))
        return 0;
    packet[2] = 0x81;
    packet[3] = server->denies ? 0x83 : 0x80; /* 3: there is no such name */
    memset(packet + 6, 0, 6);
    if (!is_a || server->denies)
        return end;
    packet[7] = 1;
    memcpy(packet + end, record, sizeof record);
    return end + sizeof record;
}

static void *name_server_run(void *arg)
{
    struct name_server *server = arg;
    unsigned char packet[600];
    while (!atomic_load(&server->stops)) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        struct pollfd poller = {.fd = server->fd, .events = POLLIN};
        if (poll(&poller, 1, 20) <= 0)
            continue;
        ssize_t got = recvfrom(server->fd, packet, 512, 0, (struct sockaddr *)&from, &size);
        size_t length = got > 17 ? name_server_answer(server, packet, (size_t)got) : 0;
        atomic_fetch_add(&server->questions, 1);
        if (length > 0)
            sendto(server->fd, packet, length, 0, (struct sockaddr *)&from, size);
    }
    return NULL;
}

static void name_server_start(struct name_server *server)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    network_leave();
    network_put_file("/etc/resolv.conf", "nameserver 127.0.0.1\n");
    network_put_file("/etc/hosts", "127.0.0.1 localhost\n::1 six.test\n");
    server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check_int(bind(server->fd, (const struct sockaddr *)&address, sizeof address), 0);
    check_int(pthread_create(&server->thread, NULL, name_server_run, server), 0);
}

static void name_server_stop(struct name_server *server)
{
    atomic_store(&server->stops, true);
    pthread_join(server->thread, NULL);
    close(server->fd);
}

static void check_opens(const char *format, int port)
{
    hl_client_options options = connection_options();
    char url[64];
    snprintf(url, sizeof url, format, port);
    options.connect_timeout_ms = slow_ms(2000);
    hl_client *client = connection_open(url, &options);
    expect_code(hl_client_ping(client, -1, err), HL_OK);
    check_int(hl_client_close(client), HL_OK);
}

static struct redis_server *server_on(const char *bind, int *ret_port)
{
    char config[96];
    *ret_port = listener_free_port();
    snprintf(config, sizeof config, "bind %s\nport %d", bind, *ret_port);
    return redis_server_start(&(struct redis_options){.config = config});
}

Test(network_names, of_the_hosts_file_may_be_ipv6)
{
    struct name_server names = {.fd = -1};
    int port;
    name_server_start(&names);
    struct redis_server *server = server_on("::1", &port);
    check_opens("redis://six.test:%d", port);
    check_int(atomic_load(&names.questions), 0);
    redis_server_stop(server);
    name_server_stop(&names);
}

Test(network_names, are_asked_of_the_name_server)
{
    struct name_server names = {.answers_a = true, .answers_aaaa = true};
    int port;
    name_server_start(&names);
    struct redis_server *server = server_on("127.0.0.1", &port);
    check_opens("redis://redis.test:%d", port);
    redis_server_stop(server);
    name_server_stop(&names);
}

/* Some name servers drop what they are asked about IPv6. */
Test(network_names, with_half_an_answer_are_enough)
{
    struct name_server names = {.answers_a = true, .answers_aaaa = false};
    int port;
    name_server_start(&names);
    struct redis_server *server = server_on("127.0.0.1", &port);
    check_opens("redis://redis.test:%d", port);
    redis_server_stop(server);
    name_server_stop(&names);
}

static void check_no_name(int64_t connect_timeout_ms, const char *text)
{
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms();
    options.connect_timeout_ms = connect_timeout_ms;
    check_int(hl_client_open("redis://redis.test:1234", &options, &client, &err), HL_ECONN);
    check_msg(strstr(err.text, "connect redis.test:1234: ") == err.text && strstr(err.text, text),
              "%s", err.text);
    check(now_ms() - begin_ms < connect_timeout_ms + slow_ms(500));
}

Test(network_names, that_do_not_exist_are_told)
{
    struct name_server names = {.answers_a = true, .answers_aaaa = true, .denies = true};
    name_server_start(&names);
    check_no_name(slow_ms(2000), "not known");
    name_server_stop(&names);
}

Test(network_names, that_nobody_resolves_are_given_up_in_time)
{
    struct name_server names = {.answers_a = false};
    name_server_start(&names);
    check_no_name(slow_ms(300), "name server");
    check(atomic_load(&names.questions) > 0);
    name_server_stop(&names);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void __libc_free(void *memory); /* NOLINT(cert-dcl51-cpp): the name is glibc's */

/* Freed memory is filled, so that libevent notices when it touches it: sanitizers do not see into
 * it. */
void free(void *memory)
{
    int saved = errno;
    if (memory != NULL)
        memset(memory, 0x5a, malloc_usable_size(memory));
    __libc_free(memory);
    errno = saved;
}
#endif

/* What is freed while its answer is still to come must not be touched again. */
Test(network_names, that_are_being_resolved_may_be_given_up_at_any_time)
{
    struct name_server names = {.answers_a = false};
    hl_client_options options = connection_options();
    name_server_start(&names);
    options.flags = HL_CLIENT_LAZY;
    options.connect_timeout_ms = slow_ms(30); /* over and over */
    hl_client *client = connection_open("redis://redis.test:1234", &options);
    expect_code(hl_client_ping(client, slow_ms(300), err), HL_ECONN);
    check_int(hl_client_close(client), HL_OK);
    options.connect_timeout_ms = slow_ms(5000);
    for (int i = 0; i < 20; i++) {
        int asked = atomic_load(&names.questions);
        client = connection_open("redis://redis.test:1234", &options);
        struct deadline deadline = deadline_in(2000);
        while (i % 2 && atomic_load(&names.questions) == asked && !deadline_is_over(deadline))
            deadline_nap();
        check_int(hl_client_close(client), HL_OK);
    }
    name_server_stop(&names);
}
