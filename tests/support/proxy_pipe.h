/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One connection through the proxy: two directions, each a queue with faults. The proxy's mutex
 * protects it. */
#ifndef HL_TEST_PROXY_PIPE_H
#define HL_TEST_PROXY_PIPE_H

#include <poll.h>

#include "byte_queue.h"
#include "proxy.h"
#include "resp.h"

/* The faults of one connection. */
struct proxy_plan {
    bool held[2];
    int64_t delay_ms[2];
    bool cuts[2];
    uint64_t cut_at[2];
    enum proxy_cut cut_how[2];
};

/* The faults that happen once: to a given connection, or to the first that reaches them. */
struct proxy_faults {
    bool cut_armed;
    int cut_which;
    enum proxy_direction cut_direction;
    uint64_t cut_left;
    enum proxy_cut cut_how;
    int cuts;
    char drop_part[128];
    int drops_left;
    int dropped;
    char answer_words[64], answer_error[128]; /* "": none is answered */
    int answered;
};

struct proxy_direction_state {
    struct byte_queue queue;
    uint64_t forwarded;
    bool ended;   /* nothing more comes from the source */
    bool told;    /* the end was forwarded to the destination */
    bool useless; /* the destination is gone: bytes from the source are discarded */
};

struct proxy_pipe {
    struct proxy_pipe *next;
    int number;
    int fd[2]; /* the source of each direction: PROXY_UP: the client; PROXY_DOWN: the server */
    bool closed, doomed;
    struct proxy_direction_state way[2];
    struct resp_scan scan; /* of the bytes from the server */
    char *message;         /* the value under way, kept back while messages are dropped */
    size_t message_length;
    char *command; /* from the client, not whole yet, while commands are answered */
    size_t command_length;
    char opening[4096]; /* the first bytes from the client */
    size_t opening_length;
};

struct proxy_pipe *proxy_pipe_new(int number, int client_fd, int server_fd);
void proxy_pipe_free(struct proxy_pipe *pipe);

/* Reads all available bytes, writes the bytes that are due, and makes the planned cuts. */
void proxy_pipe_serve(struct proxy_pipe *pipe, const struct proxy_plan *plan,
                      struct proxy_faults *faults);
void proxy_pipe_close(struct proxy_pipe *pipe, enum proxy_cut how);

/* The descriptors to poll, and the time at which to serve the pipe even if none is ready. */
void proxy_pipe_interest(const struct proxy_pipe *pipe, const struct proxy_plan *plan,
                         struct pollfd ret_polls[2], int64_t *ret_due_ns);

#endif
