/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A queue of bytes for a socket; each piece has a time before which it is not written. Bytes that
 * the socket does not accept stay queued, so a thread that serves many sockets never blocks in one.
 */
#ifndef HL_TEST_BYTE_QUEUE_H
#define HL_TEST_BYTE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct byte_piece;

struct byte_queue {
    struct byte_piece *first, *last;
    size_t waiting; /* bytes in all pieces */
};

void byte_queue_push(struct byte_queue *queue, const void *bytes, size_t length, int64_t due_ns);
void byte_queue_clear(struct byte_queue *queue);

/* Writes the pieces that are due, at most `limit` bytes. Returns the number of bytes written, or -1
 * when the peer has closed the connection. */
ssize_t byte_queue_write(struct byte_queue *queue, int fd, size_t limit, int64_t now_ns);

/* The time at which the first piece is due; INT64_MAX for an empty queue. */
int64_t byte_queue_due_ns(const struct byte_queue *queue);

#endif
