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

static size_t name_server_answer(const struct name_server *names, unsigned char *packet,
                                 size_t length)
{
    static const unsigned char record[] = {0xc0, 12, 0, NAME_TYPE_A, 0,   1, 0, 0,
                                           0,    60, 0, 4,           127, 0, 0, 1};
    size_t end = 12;
    while (end < length && packet[end] != 0)
        end += packet[end] + 1U;
    end += 5;
    bool is_a = packet[end - 3] == NAME_TYPE_A;
    if (end > length || !(is_a ? names->answers_a : names->answers_aaaa))
        return 0;
    packet[2] = 0x81;
    packet[3] = names->denies ? 0x83 : 0x80; /* 3: there is no such name */
    memset(packet + 6, 0, 6);
    if (!is_a || names->denies)
        return end;
    packet[7] = 1;
    memcpy(packet + end, record, sizeof record);
    return end + sizeof record;
}

static void *name_server_run(void *arg)
{
    struct name_server *names = arg;
    unsigned char packet[600];
    while (!atomic_load(&names->stops)) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        struct pollfd poller = {.fd = names->fd, .events = POLLIN};
        if (poll(&poller, 1, 20) <= 0)
            continue;
        ssize_t got = recvfrom(names->fd, packet, 512, 0, (struct sockaddr *)&from, &size);
        size_t length = got > 17 ? name_server_answer(names, packet, (size_t)got) : 0;
        atomic_fetch_add(&names->questions, 1);
        if (length > 0)
            sendto(names->fd, packet, length, 0, (struct sockaddr *)&from, size);
    }
    return NULL;
}

static void name_server_start(struct name_server *names)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    network_leave();
    network_put_file("/etc/resolv.conf", "nameserver 127.0.0.1\n");
    network_put_file("/etc/hosts", "127.0.0.1 localhost\n::1 six.test\n"
                                   "127.0.0.2 two.test\n127.0.0.1 two.test\n");
    names->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check_int(bind(names->fd, (const struct sockaddr *)&address, sizeof address), 0);
    check_int(pthread_create(&names->thread, NULL, name_server_run, names), 0);
}

static void name_server_stop(struct name_server *names)
{
    atomic_store(&names->stops, true);
    pthread_join(names->thread, NULL);
    close(names->fd);
}

static void check_opens(const char *format, int port)
{
    hl_client_options options = connection_options();
    char url[64];
    snprintf(url, sizeof url, format, port);
    options.connect_timeout_ms = slow_ms(2000);
    hl_client *client = open_client_at(url, &options);
    expect_ok(hl_client_ping(client, -1, ERR));
    close_client(client);
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
    server = server_on("::1", &port);
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
    server = server_on("127.0.0.1", &port);
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
    server = server_on("127.0.0.1", &port);
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
    expect_outcome(hl_client_open("redis://redis.test:1234", &options, &client, &err), HL_ECONN);
    check_msg(strstr(err.text, "connect redis.test:1234: ") == err.text && strstr(err.text, text),
              "%s", err.text);
    check(now_ms() - begin_ms < connect_timeout_ms + slow_ms(4000));
}

Test(network_names, that_do_not_exist_are_told)
{
    struct name_server names = {.answers_a = true, .answers_aaaa = true, .denies = true};
    name_server_start(&names);
    check_no_name(slow_ms(2000), "host not found");
    name_server_stop(&names);
}

Test(network_names, without_an_address_are_given_up_in_time)
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
    hl_client *client = open_client_at("redis://redis.test:1234", &options);
    expect_outcome(hl_client_ping(client, slow_ms(300), ERR), HL_ECONN);
    close_client(client);
    options.connect_timeout_ms = slow_ms(5000);
    for (int i = 0; i < 20; i++) {
        int asked = atomic_load(&names.questions);
        client = open_client_at("redis://redis.test:1234", &options);
        struct deadline deadline = deadline_in(2000);
        while (i % 2 && atomic_load(&names.questions) == asked && !deadline_is_over(deadline))
            deadline_nap();
        close_client(client);
    }
    name_server_stop(&names);
}

/* No server answers at the first address: it gets its share of the time, and then it is the
 * second's turn. */
Test(network_names, of_two_addresses_lead_to_the_one_that_answers)
{
    struct name_server names = {.fd = -1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000002)}};
    int fill[4], port;
    name_server_start(&names);
    server = server_on("127.0.0.1", &port);
    int hole = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_port = htons((uint16_t)port);
    check_int(bind(hole, (struct sockaddr *)&address, sizeof address), 0);
    check_int(listen(hole, 0), 0);
    for (int i = 0; i < 4; i++) { /* a full queue drops what comes */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&address, sizeof address);
    }
    check_opens("redis://two.test:%d", port);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(hole);
    redis_server_stop(server);
    name_server_stop(&names);
}
