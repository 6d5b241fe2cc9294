/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The outbox: one thread at a time writes for all threads. */
#include "redis/outbox.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OUTBOX_ROUNDS = 4,             /* writes of a caller for other threads; then the loop goes on */
    OUTBOX_USUAL_BYTES = 4 * 1024, /* ten requests of locks */
    OUTBOX_KEPT_BYTES = 64 * 1024, /* larger buffers are freed after the write */
};

enum outbox_result { OUTBOX_DONE, OUTBOX_BLOCKED, OUTBOX_BROKEN };

void hli_outbox_init(struct hli_outbox *outbox)
{
    *outbox = (struct hli_outbox){.fd = -1};
}

/* Wipes the bytes: one of the requests is AUTH. */
static void outbox_empty(struct hli_outbox_buffer *batch)
{
    if (batch->data)
        explicit_bzero(batch->data, batch->end);
    batch->start = batch->end = 0;
}

static void outbox_free(struct hli_outbox_buffer *batch)
{
    outbox_empty(batch);
    free(batch->data);
    *batch = (struct hli_outbox_buffer){0};
}

/* Makes room for `length` bytes at the end. Errors: HL_ENOMEM, and nothing is changed. */
static int outbox_reserve(struct hli_outbox_buffer *batch, size_t length)
{
    size_t used = batch->end - batch->start;
    size_t size = batch->data ? 2 * (used + length) : length;

    if (batch->size - batch->end >= length)
        return 0;
    char *data = malloc(size);
    if (!data)
        return HL_ENOMEM;
    if (batch->data)
        memcpy(data, batch->data + batch->start, used);
    outbox_free(batch);
    *batch = (struct hli_outbox_buffer){.data = data, .end = used, .size = size};
    return 0;
}

void hli_outbox_deinit(struct hli_outbox *outbox)
{
    HLI_CHECK(outbox->fd < 0);
    outbox_free(&outbox->rest);
    outbox_free(&outbox->waiting);
    outbox_free(&outbox->spare);
}

/* Allocates for the usual size now, since a later request without memory breaks the connection. */
int hli_outbox_open(struct hli_outbox *outbox, int fd, struct hli_tls *tls)
{
    if (outbox_reserve(&outbox->waiting, OUTBOX_USUAL_BYTES) < 0 ||
        outbox_reserve(&outbox->spare, OUTBOX_USUAL_BYTES) < 0)
        return HL_ENOMEM;
    outbox->fd = fd;
    outbox->tls = hli_tls_ref(tls);
    outbox->opened++;
    outbox->is_writing = outbox->is_blocked = outbox->is_broken = outbox->lacks_memory = false;
    outbox->progressed_at = 0;
    return 0;
}

/* SO_LINGER 0: after the close the kernel must not send the bytes that are still in its buffer. */
static void outbox_close_socket(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

void hli_outbox_close(struct hli_outbox *outbox)
{
    if (outbox->is_writing)
        shutdown(outbox->fd, SHUT_RDWR); /* the writing thread returns at once and closes it */
    else
        outbox_close_socket(outbox->fd);
    outbox_empty(&outbox->waiting); /* AUTH */
    outbox_free(&outbox->rest);
    outbox->waiting_count = 0;
    hli_tls_unref(outbox->tls);
    outbox->tls = NULL;
    outbox->fd = -1;
    outbox->opened++;
    outbox->is_writing = false;
}

void hli_outbox_put(struct hli_outbox *outbox, const char *bytes, size_t length)
{
    outbox->waiting_count++;
    hli_outbox_put_before(outbox, bytes, length);
}

void hli_outbox_put_before(struct hli_outbox *outbox, const char *bytes, size_t length)
{
    struct hli_outbox_buffer *waiting = &outbox->waiting;

    if (outbox->is_broken)
        return;
    if (outbox_reserve(waiting, length) < 0) {
        outbox->is_broken = outbox->lacks_memory = true;
        return;
    }
    memcpy(waiting->data + waiting->end, bytes, length);
    waiting->end += length;
}

static enum outbox_result outbox_send(int fd, struct hli_outbox_buffer *batch)
{
    while (batch->start < batch->end) {
        ssize_t sent = send(fd, batch->data + batch->start, batch->end - batch->start,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            batch->start += (size_t)sent;
        else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return OUTBOX_BLOCKED;
        else if (sent < 0 && errno != EINTR)
            return OUTBOX_BROKEN;
    }
    return OUTBOX_DONE;
}

/* Encrypts a batch in place; consumes the reference. The answer of TLS to a message of its own,
 * such as one about new keys, goes out with the bytes. False without memory. */
static bool outbox_encrypt(struct hli_tls *tls, struct hli_outbox_buffer *batch)
{
    bool is_written = hli_tls_write(tls, batch->data, batch->end);
    size_t length = hli_tls_pending(tls);

    outbox_empty(batch);
    is_written = is_written && outbox_reserve(batch, length) == 0;
    if (is_written)
        batch->end = hli_tls_take(tls, batch->data, length);
    hli_tls_unref(tls);
    return is_written;
}

/* Keeps the memory of an empty batch, or gives it back. */
static void outbox_recycle(struct hli_outbox *outbox, struct hli_outbox_buffer *batch)
{
    if (outbox->spare.data || batch->size > OUTBOX_KEPT_BYTES)
        outbox_free(batch);
    else
        outbox->spare = *batch;
    if (!outbox->spare.data)
        outbox_reserve(&outbox->spare, OUTBOX_USUAL_BYTES); /* else the next put tries */
}

/* Takes the next bytes to be written: the rest of an earlier write, or those that wait. */
static struct hli_outbox_buffer outbox_take(struct hli_outbox *outbox)
{
    struct hli_outbox_buffer batch = outbox->rest;

    outbox->rest = (struct hli_outbox_buffer){0};
    if (batch.data)
        return batch;
    batch = outbox->waiting;
    outbox->waiting = outbox->spare;
    outbox->spare = (struct hli_outbox_buffer){0};
    outbox->waiting_count = 0;
    return batch;
}

/* Does one send(), without the mutex. False when the outbox was closed meanwhile. */
static bool outbox_write_batch(struct hli_outbox *outbox, hli_mutex *mutex)
{
    bool is_rest = outbox->rest.data != NULL;
    struct hli_tls *tls = is_rest || !outbox->tls ? NULL : hli_tls_ref(outbox->tls);
    struct hli_outbox_buffer batch = outbox_take(outbox);
    unsigned opened = outbox->opened;
    size_t start = batch.start;
    int fd = outbox->fd;

    hli_mutex_unlock(mutex);
    bool is_ready = !tls || outbox_encrypt(tls, &batch);
    enum outbox_result result = is_ready ? outbox_send(fd, &batch) : OUTBOX_BROKEN;
    bool has_progressed = batch.start > start;
    if (result != OUTBOX_BLOCKED)
        outbox_empty(&batch);
    hli_mutex_lock(mutex);
    if (opened != outbox->opened) {
        outbox_close_socket(fd);
        outbox_free(&batch);
        return false;
    }
    if ((is_rest || result == OUTBOX_BLOCKED) && has_progressed)
        outbox->progressed_at = hli_now();
    if (result == OUTBOX_BLOCKED) {
        outbox->rest = batch;
        outbox->is_blocked = true;
    } else {
        outbox->is_broken = outbox->is_broken || result == OUTBOX_BROKEN;
        outbox_recycle(outbox, &batch);
    }
    return true;
}

void hli_outbox_write(struct hli_outbox *outbox, hli_mutex *mutex)
{
    if (outbox->is_writing || outbox->fd < 0)
        return;
    outbox->is_writing = true;
    for (int round = 0; round < OUTBOX_ROUNDS && !outbox->is_blocked && !outbox->is_broken &&
                        (outbox->rest.data || outbox->waiting.end > 0);
         round++)
        if (!outbox_write_batch(outbox, mutex))
            return;
    outbox->is_writing = false;
}

bool hli_outbox_needs_loop(const struct hli_outbox *outbox)
{
    return outbox->fd >= 0 && !outbox->is_writing &&
           (outbox->is_broken || outbox->rest.data || outbox->waiting.end > 0);
}
