/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Name servers in a network namespace of the test's own. Each knows one address of every name,
 * 127.0.0.1 at first, and no IPv6 address; what it does with a question is up to the test.
 */
#ifndef HL_TEST_NAME_SERVER_H
#define HL_TEST_NAME_SERVER_H

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "network_kit.h"

enum { NAME_UNKNOWN = 3, NAME_REFUSED = 5 }; /* RFC 1035, 4.1.1 */
enum { NAME_SERVER_LATE = 16 };

struct name_server {
    int host;             /* 127.0.0.host; 0: 127.0.0.1 */
    atomic_int leads_to;  /* the address 127.0.0.leads_to; 0: 127.0.0.1 */
    bool has_a, has_aaaa; /* questions for them are answered; others are dropped */
    bool truncates;       /* by UDP it says that the answer is too long */
    int code;             /* 0: all is well */
    int loses;            /* so many questions for an address are lost */
    int delay_ms;         /* until an answer with an address goes out */
    atomic_int questions, questions_aaaa, questions_by_tcp;
    struct name_server_late { /* answers that are still to go out */
        unsigned char packet[512];
        size_t length; /* 0: none */
        struct sockaddr_in to;
        int64_t at_ms;
    } late[NAME_SERVER_LATE];
    int next_late;
    int fd, listener;
    atomic_bool stops;
    pthread_t thread;
};

/* The answer takes the question's place. Its length; 0: none. */
static inline size_t name_server_answer(struct name_server *names, unsigned char *packet,
                                        size_t length)
{
    static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1};
    size_t end = 12;
    while (end < length && packet[end] != 0)
        end += packet[end] + 1U;
    end += 5;
    bool is_a = packet[end - 3] == 1;
    atomic_fetch_add(&names->questions_aaaa, !is_a);
    if (end > length || !(is_a ? names->has_a : names->has_aaaa) || (is_a && names->loses-- > 0))
        return 0;
    packet[2] = 0x81;
    packet[3] = (unsigned char)(0x80 | names->code);
    memset(packet + 6, 0, 6);
    if (!is_a || names->code != 0)
        return end;
    packet[7] = 1;
    memcpy(packet + end, record, sizeof record);
    if (atomic_load(&names->leads_to) > 0)
        packet[end + sizeof record - 1] = (unsigned char)atomic_load(&names->leads_to);
    return end + sizeof record;
}

static inline void name_server_send(struct name_server *names, struct name_server_late *answer)
{
    if (answer->length > 0 && now_ms() >= answer->at_ms) {
        sendto(names->fd, answer->packet, answer->length, 0, (struct sockaddr *)&answer->to,
               sizeof answer->to);
        answer->length = 0;
    }
}

static inline void name_server_udp(struct name_server *names)
{
    struct name_server_late answer = {.at_ms = now_ms()};
    socklen_t size = sizeof answer.to;
    ssize_t got = recvfrom(names->fd, answer.packet, 400, 0, (struct sockaddr *)&answer.to, &size);
    answer.length = got > 17 ? name_server_answer(names, answer.packet, (size_t)got) : 0;
    atomic_fetch_add(&names->questions, 1);
    if (names->truncates)
        answer.packet[2] |= 2;
    if (names->delay_ms > 0 && answer.packet[7] > 0) {
        answer.at_ms += names->delay_ms;
        names->late[names->next_late++ % NAME_SERVER_LATE] = answer;
    } else {
        name_server_send(names, &answer);
    }
}

/* Each packet has its length before it (RFC 1035, 4.2.2). */
static inline void name_server_tcp(struct name_server *names)
{
    unsigned char packet[602];
    int peer = accept4(names->listener, NULL, NULL, SOCK_CLOEXEC);
    while (recv(peer, packet, 2, MSG_WAITALL) == 2) {
        size_t length = packet[0] * 256U + packet[1];
        check(length <= 512 && recv(peer, packet + 2, length, MSG_WAITALL) == (ssize_t)length);
        length = name_server_answer(names, packet + 2, length);
        atomic_fetch_add(&names->questions_by_tcp, 1);
        packet[0] = (unsigned char)(length / 256);
        packet[1] = (unsigned char)length;
        send(peer, packet, length + 2, MSG_NOSIGNAL);
    }
    close(peer);
}

static inline void *name_server_run(void *arg)
{
    struct name_server *names = arg;
    while (!atomic_load(&names->stops)) {
        struct pollfd poller[] = {{.fd = names->fd, .events = POLLIN},
                                  {.fd = names->listener, .events = POLLIN}};
        int count = poll(poller, 2, 20);
        for (int i = 0; i < NAME_SERVER_LATE; i++)
            name_server_send(names, &names->late[i]);
        if (count <= 0)
            continue;
        if (poller[0].revents)
            name_server_udp(names);
        if (poller[1].revents)
            name_server_tcp(names);
    }
    return NULL;
}

static inline int name_server_listen(const struct name_server *names, int type)
{
    const uint32_t host = INADDR_LOOPBACK + (names->host > 0 ? (uint32_t)names->host - 1 : 0);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(host)}};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    check_int(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    if (type == SOCK_STREAM)
        check_int(listen(fd, 8), 0);
    return fd;
}

/* A further one, in the namespace that there is. */
static inline void name_server_add(struct name_server *names)
{
    names->fd = name_server_listen(names, SOCK_DGRAM);
    names->listener = name_server_listen(names, SOCK_STREAM);
    check_int(pthread_create(&names->thread, NULL, name_server_run, names), 0);
}

/* The first one, and the resolv.conf that names all. */
static inline void name_server_start(struct name_server *names, const char *resolv_conf)
{
    network_leave();
    network_put_file("/etc/resolv.conf", resolv_conf);
    network_put_file("/etc/hosts", "127.0.0.1 localhost\n::1 six.test\n"
                                   "127.0.0.2 two.test\n127.0.0.1 two.test\n");
    name_server_add(names);
}

static inline void name_server_stop(struct name_server *names)
{
    atomic_store(&names->stops, true);
    pthread_join(names->thread, NULL);
    close(names->fd);
    close(names->listener);
}

#endif
