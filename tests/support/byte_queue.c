/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A list of pieces; a piece is freed when its last byte was written. */
#include "byte_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fatal.h"

struct byte_piece {
    struct byte_piece *next;
    int64_t due_ns;
    size_t length, written;
    char bytes[];
};

void byte_queue_push(struct byte_queue *queue, const void *bytes, size_t length, int64_t due_ns)
{
    if (length == 0)
        return;
    struct byte_piece *piece = malloc(sizeof *piece + length);
    must(piece);
    *piece = (struct byte_piece){.due_ns = due_ns, .length = length};
    memcpy(piece->bytes, bytes, length);
    if (queue->last)
        queue->last->next = piece;
    else
        queue->first = piece;
    queue->last = piece;
    queue->waiting += length;
}

static void byte_queue_pop(struct byte_queue *queue)
{
    struct byte_piece *piece = queue->first;
    queue->waiting -= piece->length - piece->written;
    queue->first = piece->next;
    if (!queue->first)
        queue->last = NULL;
    free(piece);
}

void byte_queue_clear(struct byte_queue *queue)
{
    while (queue->first)
        byte_queue_pop(queue);
}

int64_t byte_queue_due_ns(const struct byte_queue *queue)
{
    return queue->first ? queue->first->due_ns : INT64_MAX;
}

/* Bytes that the socket took of the first piece; 0: none now; -1: the other end is gone. */
static ssize_t byte_queue_write_first(struct byte_queue *queue, int fd, size_t limit)
{
    struct byte_piece *piece = queue->first;
    size_t left = piece->length - piece->written;
    ssize_t taken = send(fd, piece->bytes + piece->written, left < limit ? left : limit,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    piece->written += (size_t)taken;
    queue->waiting -= (size_t)taken;
    if (piece->written == piece->length)
        byte_queue_pop(queue);
    return taken;
}

ssize_t byte_queue_write(struct byte_queue *queue, int fd, size_t limit, int64_t now_ns)
{
    size_t total = 0;
    while (total < limit && byte_queue_due_ns(queue) <= now_ns) {
        ssize_t taken = byte_queue_write_first(queue, fd, limit - total);
        if (taken < 0)
            return -1;
        if (taken == 0)
            break;
        total += (size_t)taken;
    }
    return (ssize_t)total;
}
