/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The outbox: bytes on their way to a socket. Any thread puts its bytes in; whoever finds nobody
 * writing writes, for all that came meanwhile too, and holds no mutex during the system call. So a
 * sender never waits for another's write, and under load many requests go out in one.
 */
#ifndef HLI_REDIS_OUTBOX_H
#define HLI_REDIS_OUTBOX_H

#include "base/buffer.h"

#include <pthread.h>
#include <stdbool.h>

struct hli_outbox { /* the connection's mutex, all of it */
    int fd;         /* -1 while closed */
    unsigned
        opened; /* how often: a writer that finds another number has been overtaken by a close */
    bool is_writing;   /* somebody is in the system call, without the mutex */
    bool is_blocked;   /* the socket is full: the loop says when it is not */
    bool lacks_memory; /* that is why it is broken */
    bool is_broken;    /* a write failed, or a request could not be put in: nothing more goes out */
    struct hli_buffer waiting; /* for the next write */
    unsigned waiting_count;    /* requests in it */
    struct hli_buffer spare;   /* empty; its memory is used again */
};

void hli_outbox_init(struct hli_outbox *outbox);
void hli_outbox_deinit(struct hli_outbox *outbox); /* closed */

/* Errors: HL_ENOMEM, and the socket is still the caller's. */
int hli_outbox_open(struct hli_outbox *outbox, int fd);

/* Closes the socket; if somebody is writing, that one does it. */
void hli_outbox_close(struct hli_outbox *outbox);

/* Without memory the outbox is broken. */
void hli_outbox_put(struct hli_outbox *outbox, const char *bytes, size_t length);

/* Writes what waits, unless somebody does already. Lets go of the mutex meanwhile. */
void hli_outbox_write(struct hli_outbox *outbox, pthread_mutex_t *mutex);

/* The socket has room again. */
void hli_outbox_unblock(struct hli_outbox *outbox);

/* Is there something that only the loop can do: write the rest later, or close? */
bool hli_outbox_needs_loop(const struct hli_outbox *outbox);

#endif
