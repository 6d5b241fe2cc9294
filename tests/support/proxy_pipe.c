/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each direction is its own pipe: the end of one is told on only when all before it was. */
#include "proxy_pipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"

struct proxy_pipe *proxy_pipe_new(int number, int client_fd, int server_fd)
{
    struct proxy_pipe *pipe = calloc(1, sizeof *pipe);
    must(pipe);
    pipe->number = number;
    pipe->fd[PROXY_UP] = client_fd;
    pipe->fd[PROXY_DOWN] = server_fd;
    return pipe;
}

void proxy_pipe_close(struct proxy_pipe *pipe, enum proxy_cut how)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (pipe->closed)
        return;
    if (how == PROXY_RST)
        setsockopt(pipe->fd[PROXY_UP], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(pipe->fd[PROXY_UP]);
    close(pipe->fd[PROXY_DOWN]);
    byte_queue_clear(&pipe->way[PROXY_UP].queue);
    byte_queue_clear(&pipe->way[PROXY_DOWN].queue);
    free(pipe->message);
    free(pipe->command);
    pipe->message = pipe->command = NULL;
    pipe->closed = true;
}

void proxy_pipe_free(struct proxy_pipe *pipe)
{
    proxy_pipe_close(pipe, PROXY_FIN);
    free(pipe);
}

static void proxy_pipe_keep_opening(struct proxy_pipe *pipe, const char *bytes, size_t length)
{
    size_t room = sizeof pipe->opening - pipe->opening_length;
    size_t kept = length < room ? length : room;
    memcpy(pipe->opening + pipe->opening_length, bytes, kept);
    pipe->opening_length += kept;
}

static bool proxy_pipe_is_unwanted(const struct proxy_pipe *pipe, const struct proxy_faults *faults)
{
    struct resp_command value;
    size_t part = strlen(faults->drop_part);
    if (faults->drops_left == 0 ||
        resp_command_parse(&value, pipe->message, pipe->message_length) <= 0)
        return false;
    return value.argc == 3 && resp_command_arg_is(&value, 0, "message") &&
           memmem(value.argv[1], value.length[1], faults->drop_part, part) != NULL;
}

/* The value under way is complete: forward it or lose it. */
static void proxy_pipe_end_message(struct proxy_pipe *pipe, struct proxy_faults *faults,
                                   int64_t due_ns)
{
    if (proxy_pipe_is_unwanted(pipe, faults)) {
        faults->drops_left--;
        faults->dropped++;
    } else {
        byte_queue_push(&pipe->way[PROXY_DOWN].queue, pipe->message, pipe->message_length, due_ns);
    }
    free(pipe->message);
    pipe->message = NULL;
    pipe->message_length = 0;
}

static void proxy_pipe_grow(char **text, size_t *text_length, const char *bytes, size_t length)
{
    char *grown = realloc(*text, *text_length + length);
    must(grown);
    memcpy(grown + *text_length, bytes, length);
    *text = grown;
    *text_length += length;
}

/* Values are kept back whole only while messages are to be lost; else bytes pass as they come. */
static void proxy_pipe_take_down(struct proxy_pipe *pipe, struct proxy_faults *faults,
                                 const char *bytes, size_t length, int64_t due_ns)
{
    while (length > 0) {
        bool ended = false;
        bool between = resp_scan_is_between(&pipe->scan);
        bool keep = pipe->message || (between && faults->drops_left > 0);
        size_t taken = resp_scan_take(&pipe->scan, bytes, length, &ended);
        if (keep)
            proxy_pipe_grow(&pipe->message, &pipe->message_length, bytes, taken);
        else
            byte_queue_push(&pipe->way[PROXY_DOWN].queue, bytes, taken, due_ns);
        if (keep && (ended || pipe->scan.lost))
            proxy_pipe_end_message(pipe, faults, due_ns);
        bytes += taken;
        length -= taken;
    }
}

/* The server itself gives the error, at its place among the other answers. */
static void proxy_pipe_put_error(struct proxy_pipe *pipe, const char *error, int64_t due_ns)
{
    static const char script[] = "return redis.error_reply(ARGV[1])";
    char command[256];
    int length = snprintf(command, sizeof command,
                          "*4\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n0\r\n$%zu\r\n%s\r\n",
                          strlen(script), script, strlen(error), error);
    must(length > 0 && (size_t)length < sizeof command);
    byte_queue_push(&pipe->way[PROXY_UP].queue, command, (size_t)length, due_ns);
}

/* Commands are taken one by one only while some of them are answered; else bytes pass as they come.
 */
static void proxy_pipe_take_up(struct proxy_pipe *pipe, struct proxy_faults *faults,
                               const char *bytes, size_t length, int64_t due_ns)
{
    struct byte_queue *queue = &pipe->way[PROXY_UP].queue;
    struct resp_command command;
    ssize_t used = 0;
    size_t at = 0;
    if (!faults->answer_words[0] && pipe->command_length == 0) {
        byte_queue_push(queue, bytes, length, due_ns);
        return;
    }
    proxy_pipe_grow(&pipe->command, &pipe->command_length, bytes, length);
    while ((used = resp_command_parse(&command, pipe->command + at, pipe->command_length - at)) >
           0) {
        if (faults->answer_words[0] && resp_command_begins(&command, faults->answer_words)) {
            proxy_pipe_put_error(pipe, faults->answer_error, due_ns);
            faults->answered++;
        } else {
            byte_queue_push(queue, pipe->command + at, (size_t)used, due_ns);
        }
        at += (size_t)used;
    }
    must(used == 0);
    pipe->command_length -= at;
    memmove(pipe->command, pipe->command + at, pipe->command_length);
}

/* One read; false when there is nothing (more) to read. */
static bool proxy_pipe_read(struct proxy_pipe *pipe, enum proxy_direction direction,
                            int64_t delay_ms, struct proxy_faults *faults)
{
    char bytes[16384];
    struct proxy_direction_state *way = &pipe->way[direction];
    ssize_t got = recv(pipe->fd[direction], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        way->ended = true;
        return false;
    }
    int64_t due_ns = delay_ms > 0 ? now_ns() + delay_ms * 1000000 : 0;
    if (way->useless)
        return true;
    if (direction == PROXY_DOWN) {
        proxy_pipe_take_down(pipe, faults, bytes, (size_t)got, due_ns);
        return true;
    }
    proxy_pipe_keep_opening(pipe, bytes, (size_t)got);
    proxy_pipe_take_up(pipe, faults, bytes, (size_t)got, due_ns);
    return true;
}

static bool proxy_pipe_may_be_cut(const struct proxy_pipe *pipe, enum proxy_direction direction,
                                  const struct proxy_faults *faults)
{
    return faults->cut_armed && faults->cut_direction == direction &&
           (faults->cut_which == PROXY_EVERY || faults->cut_which == pipe->number);
}

static uint64_t proxy_pipe_left(const struct proxy_pipe *pipe, enum proxy_direction direction,
                                const struct proxy_plan *plan, const struct proxy_faults *faults)
{
    uint64_t left = UINT64_MAX, forwarded = pipe->way[direction].forwarded;
    if (plan->cuts[direction])
        left = plan->cut_at[direction] > forwarded ? plan->cut_at[direction] - forwarded : 0;
    if (proxy_pipe_may_be_cut(pipe, direction, faults) && faults->cut_left < left)
        left = faults->cut_left;
    return left;
}

static void proxy_pipe_cut(struct proxy_pipe *pipe, enum proxy_direction direction,
                           const struct proxy_plan *plan, struct proxy_faults *faults)
{
    enum proxy_cut how = plan->cut_how[direction];
    if (proxy_pipe_may_be_cut(pipe, direction, faults) && faults->cut_left == 0) {
        faults->cut_armed = false;
        how = faults->cut_how;
    }
    faults->cuts++;
    proxy_pipe_close(pipe, how);
}

static void proxy_pipe_write(struct proxy_pipe *pipe, enum proxy_direction direction,
                             const struct proxy_plan *plan, struct proxy_faults *faults)
{
    int64_t now = now_ns();
    struct proxy_direction_state *way = &pipe->way[direction];
    if (plan->held[direction] || byte_queue_due_ns(&way->queue) > now)
        return;
    uint64_t left = proxy_pipe_left(pipe, direction, plan, faults);
    size_t limit = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    ssize_t written = byte_queue_write(&way->queue, pipe->fd[!direction], limit, now);
    if (written < 0) {
        way->useless = true;
        byte_queue_clear(&way->queue);
        return;
    }
    way->forwarded += (uint64_t)written;
    if (proxy_pipe_may_be_cut(pipe, direction, faults))
        faults->cut_left -= (uint64_t)written;
    if ((uint64_t)written == left)
        proxy_pipe_cut(pipe, direction, plan, faults);
}

static bool proxy_pipe_is_done(struct proxy_pipe *pipe, enum proxy_direction direction,
                               const struct proxy_plan *plan)
{
    struct proxy_direction_state *way = &pipe->way[direction];
    if (way->useless)
        return true;
    if (!way->ended || plan->held[direction] || way->queue.first)
        return false;
    if (!way->told)
        shutdown(pipe->fd[!direction], SHUT_WR);
    way->told = true;
    return true;
}

void proxy_pipe_serve(struct proxy_pipe *pipe, const struct proxy_plan *plan,
                      struct proxy_faults *faults)
{
    bool done = true;
    if (pipe->doomed)
        proxy_pipe_close(pipe, PROXY_RST);
    for (int i = 0; i < 2 && !pipe->closed; i++) {
        enum proxy_direction direction = i == 0 ? PROXY_UP : PROXY_DOWN;
        for (int reads = 0; reads < 16 && !pipe->way[direction].ended; reads++)
            if (!proxy_pipe_read(pipe, direction, plan->delay_ms[direction], faults))
                break;
        proxy_pipe_write(pipe, direction, plan, faults);
        done = !pipe->closed && proxy_pipe_is_done(pipe, direction, plan) && done;
    }
    if (!pipe->closed && done)
        proxy_pipe_close(pipe, PROXY_FIN);
}

void proxy_pipe_interest(const struct proxy_pipe *pipe, const struct proxy_plan *plan,
                         struct pollfd ret_polls[2], int64_t *ret_due_ns)
{
    int64_t now = now_ns();
    for (int i = 0; i < 2; i++)
        ret_polls[i].events = pipe->way[i].ended ? 0 : POLLIN;
    for (int i = 0; i < 2; i++) {
        int64_t due_ns = plan->held[i] ? INT64_MAX : byte_queue_due_ns(&pipe->way[i].queue);
        if (due_ns <= now)
            ret_polls[!i].events |= POLLOUT;
        else if (due_ns < *ret_due_ns)
            *ret_due_ns = due_ns;
    }
    for (int i = 0; i < 2; i++)
        ret_polls[i].fd = ret_polls[i].events ? pipe->fd[i] : -1;
}
