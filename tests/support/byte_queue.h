/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Bytes on their way to a socket, each piece with the time from which it may be written. What the
 * socket does not take stays, so a thread that serves many sockets never blocks in one.
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

/* Writes what is due, at most `limit` bytes; returns how many were taken, -1 when the other end is
 * gone. */
ssize_t byte_queue_write(struct byte_queue *queue, int fd, size_t limit, int64_t now_ns);

/* When its first byte may go; INT64_MAX when it is empty. */
int64_t byte_queue_due_ns(const struct byte_queue *queue);

#endif
