/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One connection through the proxy: two directions, each a queue with faults. Proxy's mutex. */
#ifndef HL_TEST_PROXY_PIPE_H
#define HL_TEST_PROXY_PIPE_H

#include <poll.h>

#include "byte_queue.h"
#include "proxy.h"
#include "resp.h"

/* What to do to one connection. */
struct proxy_plan {
    bool held[2];
    int64_t delay_ms[2];
    bool cuts[2];
    uint64_t cut_at[2];
    enum proxy_cut cut_how[2];
};

/* What to do to whichever connection meets it first. */
struct proxy_faults {
    bool cut_armed;
    enum proxy_direction cut_direction;
    uint64_t cut_left;
    enum proxy_cut cut_how;
    int cuts;
    char drop_part[128];
    int drops_left;
    int dropped;
};

struct proxy_direction_state {
    struct byte_queue queue;
    uint64_t forwarded;
    bool ended;   /* nothing more comes from the source */
    bool told;    /* the destination knows that */
    bool useless; /* the destination is gone: what comes is thrown away */
};

struct proxy_pipe {
    struct proxy_pipe *next;
    int number;
    int fd[2]; /* PROXY_UP: the client's, the source of what goes up; PROXY_DOWN: the server's */
    bool closed, doomed;
    struct proxy_direction_state way[2];
    struct resp_scan scan; /* of what comes down */
    char *message;         /* the value under way, kept back while messages are dropped */
    size_t message_length;
    char opening[4096]; /* the first bytes that went up */
    size_t opening_length;
};

struct proxy_pipe *proxy_pipe_new(int number, int client_fd, int server_fd);
void proxy_pipe_free(struct proxy_pipe *pipe);

/* Reads what is there, writes what may go, cuts what is to be cut. */
void proxy_pipe_serve(struct proxy_pipe *pipe, const struct proxy_plan *plan,
                      struct proxy_faults *faults);
void proxy_pipe_close(struct proxy_pipe *pipe, enum proxy_cut how);

/* What to poll for, and when to come back even if nothing is polled. */
void proxy_pipe_interest(const struct proxy_pipe *pipe, const struct proxy_plan *plan,
                         struct pollfd ret_polls[2], int64_t *ret_due_ns);

#endif
