/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The outbox: one writer at a time, for everybody. */
#include "redis/outbox.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OUTBOX_ROUNDS = 4, /* a caller writes for others so often, and then leaves it to the loop */
    OUTBOX_USUAL_BYTES = 8 * 1024,
};

enum outbox_result { OUTBOX_DONE, OUTBOX_BLOCKED, OUTBOX_BROKEN };

void hli_outbox_init(struct hli_outbox *outbox)
{
    *outbox = (struct hli_outbox){.fd = -1};
}

/* One of the requests is AUTH: what was written is left nowhere in memory. */
static void outbox_wipe(struct hli_buffer *buffer, size_t used)
{
    if (used > 0)
        explicit_bzero(buffer->data, used);
}

void hli_outbox_deinit(struct hli_outbox *outbox)
{
    HLI_CHECK(outbox->fd < 0);
    outbox_wipe(&outbox->waiting, outbox->waiting.end);
    hli_buffer_deinit(&outbox->waiting);
    hli_buffer_deinit(&outbox->spare);
}

/* With memory for what is usual: a request that finds none breaks the connection. */
int hli_outbox_open(struct hli_outbox *outbox, int fd)
{
    if (hli_buffer_reserve(&outbox->waiting, OUTBOX_USUAL_BYTES) < 0 ||
        hli_buffer_reserve(&outbox->spare, OUTBOX_USUAL_BYTES) < 0)
        return HL_ENOMEM;
    outbox->fd = fd;
    outbox->opened++;
    outbox->is_writing = outbox->is_blocked = outbox->is_broken = outbox->lacks_memory = false;
    outbox->waiting_count = 0;
    hli_buffer_clear(&outbox->waiting);
    return 0;
}

/* SO_LINGER 0: the kernel shall not go on sending what was written to a link that is given up. */
static void outbox_close_socket(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

void hli_outbox_close(struct hli_outbox *outbox)
{
    if (outbox->is_writing)
        shutdown(outbox->fd, SHUT_RDWR); /* the writer comes back at once, and closes it */
    else
        outbox_close_socket(outbox->fd);
    outbox->fd = -1;
    outbox->opened++;
    outbox->is_writing = false;
}

void hli_outbox_put(struct hli_outbox *outbox, const char *bytes, size_t length)
{
    if (!outbox->is_broken && hli_buffer_append(&outbox->waiting, bytes, length) < 0)
        outbox->is_broken = outbox->lacks_memory = true;
    outbox->waiting_count++;
}

static enum outbox_result outbox_send(int fd, struct hli_buffer *batch)
{
    while (hli_buffer_length(batch) > 0) {
        ssize_t sent = send(fd, hli_buffer_front(batch), hli_buffer_length(batch),
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            hli_buffer_consume(batch, (size_t)sent);
        else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return OUTBOX_BLOCKED;
        else if (sent < 0 && errno != EINTR)
            return OUTBOX_BROKEN;
    }
    return OUTBOX_DONE;
}

/* Keeps the memory of an emptied buffer, or gives it back. */
static void outbox_recycle(struct hli_outbox *outbox, struct hli_buffer *empty)
{
    hli_buffer_clear(empty);
    if (outbox->spare.data)
        hli_buffer_deinit(empty);
    else
        outbox->spare = *empty;
}

/* What the socket did not take goes in front of what has come meanwhile. */
static void outbox_put_back(struct hli_outbox *outbox, struct hli_buffer *rest)
{
    struct hli_buffer later = outbox->waiting;

    outbox->waiting = *rest;
    outbox->is_blocked = true;
    if (hli_buffer_length(&later) > 0)
        hli_outbox_put(outbox, hli_buffer_front(&later), hli_buffer_length(&later));
    outbox_recycle(outbox, &later);
}

/* One system call's worth, without the mutex. False when the outbox was closed meanwhile. */
static bool outbox_write_batch(struct hli_outbox *outbox, pthread_mutex_t *mutex)
{
    struct hli_buffer batch = outbox->waiting;
    unsigned opened = outbox->opened;
    size_t used = batch.end;
    int fd = outbox->fd;

    outbox->waiting = outbox->spare;
    outbox->spare = (struct hli_buffer){0};
    outbox->waiting_count = 0;
    pthread_mutex_unlock(mutex);
    enum outbox_result result = outbox_send(fd, &batch);
    if (result != OUTBOX_BLOCKED)
        outbox_wipe(&batch, used);
    pthread_mutex_lock(mutex);
    if (opened != outbox->opened) {
        outbox_close_socket(fd);
        outbox_wipe(&batch, used);
        hli_buffer_deinit(&batch);
        return false;
    }
    if (result == OUTBOX_BLOCKED) {
        outbox_put_back(outbox, &batch);
    } else {
        outbox->is_broken = outbox->is_broken || result == OUTBOX_BROKEN;
        outbox_recycle(outbox, &batch);
    }
    return true;
}

static bool outbox_may_write(const struct hli_outbox *outbox)
{
    return !outbox->is_blocked && !outbox->is_broken && hli_buffer_length(&outbox->waiting) > 0;
}

void hli_outbox_write(struct hli_outbox *outbox, pthread_mutex_t *mutex)
{
    if (outbox->is_writing || outbox->fd < 0)
        return;
    outbox->is_writing = true;
    for (int round = 0; round < OUTBOX_ROUNDS && outbox_may_write(outbox); round++)
        if (!outbox_write_batch(outbox, mutex))
            return;
    outbox->is_writing = false;
}

void hli_outbox_unblock(struct hli_outbox *outbox)
{
    outbox->is_blocked = false;
}

bool hli_outbox_needs_loop(const struct hli_outbox *outbox)
{
    return outbox->fd >= 0 && !outbox->is_writing &&
           (outbox->is_broken || hli_buffer_length(&outbox->waiting) > 0);
}
