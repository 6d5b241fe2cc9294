/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The outbox: bytes on their way to a socket. Any thread puts its bytes in. A thread that finds no
 * other thread writing writes its own bytes and all that came meanwhile, and holds no mutex during
 * the system call. So a sender never waits for another thread's write, and under load one write
 * sends many requests. TLS encrypts in that write, so that one record has many requests, too.
 */
#ifndef HLI_REDIS_OUTBOX_H
#define HLI_REDIS_OUTBOX_H

#include "base/clock.h"
#include "base/thread.h"
#include "redis/tls.h"

#include <stdbool.h>

struct hli_outbox_buffer { /* data[start] to data[end] is to be written */
    char *data;            /* owned; NULL without memory */
    size_t start, end, size;
};

struct hli_outbox {      /* guarded by the connection's mutex */
    int fd;              /* -1 while closed */
    struct hli_tls *tls; /* NULL: none; counted */
    unsigned
        opened; /* number of opens: if it changes during a write, the outbox was closed meanwhile */
    bool is_writing;      /* a thread is in the system call, without the mutex */
    bool is_blocked;      /* the socket is full; the loop clears this */
    bool lacks_memory;    /* the reason for is_broken */
    bool is_broken;       /* a write failed, or a request found no memory: no more bytes are sent */
    hli_ns progressed_at; /* when the socket last accepted bytes of a rest */
    struct hli_outbox_buffer
        rest; /* of a write that the socket did not accept whole; data NULL: none */
    struct hli_outbox_buffer waiting; /* bytes for the write after that */
    unsigned waiting_count;           /* requests in it */
    struct hli_outbox_buffer spare;   /* empty; its memory is used again */
};

void hli_outbox_init(struct hli_outbox *outbox);
void hli_outbox_deinit(struct hli_outbox *outbox); /* after the close */

/* tls may be NULL. Errors: HL_ENOMEM: the socket still belongs to the caller. */
int hli_outbox_open(struct hli_outbox *outbox, int fd, struct hli_tls *tls);

/* Closes the socket; if a thread is writing, that thread closes it. */
void hli_outbox_close(struct hli_outbox *outbox);

/* Without memory the outbox becomes broken. */
void hli_outbox_put(struct hli_outbox *outbox, const char *bytes, size_t length);
/* The same, of bytes that belong to the request that is put next. */
void hli_outbox_put_before(struct hli_outbox *outbox, const char *bytes, size_t length);

/* Writes the waiting bytes, unless another thread is writing. Unlocks the mutex meanwhile. */
void hli_outbox_write(struct hli_outbox *outbox, hli_mutex *mutex);

/* True if the loop must act: write the rest later, or close. */
bool hli_outbox_needs_loop(const struct hli_outbox *outbox);

#endif
