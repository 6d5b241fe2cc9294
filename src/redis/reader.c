/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The reader: the role, and the read itself. */
#include "redis/reader.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    READER_BYTES = 16 * 1024,
    READER_CROWD = 8, /* with so many requests in flight the loop reads: it has no other work, and
                          finds several answers at a time */
};

static const uint32_t reader_armed = EPOLLIN | EPOLLRDHUP;
/* Edge-triggered: the loop is told of a hang-up once; a leader then finds the end of the stream. */
static const uint32_t reader_disarmed = EPOLLRDHUP | EPOLLET;

/* The reader that this thread has promised to lead, and the reader that it leads. The address of
 * reader_led identifies the thread. */
static _Thread_local const struct hli_reader *reader_may_lead, *reader_led;
/* The readers, if it has promised to lead several; else NULL. */
static _Thread_local const struct hli_readers *reader_may_lead_all;

void hli_reader_init(struct hli_reader *reader, bool may_be_led)
{
    *reader = (struct hli_reader){.may_be_led = may_be_led, .fd = -1};
    atomic_init(&reader->watched, -1);
    hli_wakefd_init(&reader->wakefd);
    hli_cond_init(&reader->left);
}

void hli_reader_deinit(struct hli_reader *reader)
{
    HLI_CHECK(!reader->is_open && !reader->ousted);
    hli_cond_deinit(&reader->left);
}

static int reader_open_watched(struct hli_reader *reader)
{
    struct epoll_event event = {.events = reader_armed};

    if (!reader->may_be_led)
        return 0;
    if (hli_wakefd_open(&reader->wakefd) < 0)
        return HL_ENOMEM;
    atomic_store(&reader->watched, epoll_create1(EPOLL_CLOEXEC));
    if (reader->watched < 0 || epoll_ctl(reader->watched, EPOLL_CTL_ADD, reader->fd, &event) < 0)
        return HL_ENOMEM;
    return 0;
}

static void reader_forget(struct hli_reader *reader)
{
    int watched = atomic_exchange(&reader->watched, -1);

    if (watched >= 0)
        close(watched);
    if (!reader->ousted)
        hli_wakefd_close(&reader->wakefd);
    hli_parser_free(reader->parser);
    hli_reply_free(reader->untold);
    hli_tls_unref(reader->tls);
    reader->parser = NULL;
    reader->untold = NULL;
    reader->tls = NULL;
    reader->parse_error = reader->failure = 0;
    reader->has_failed = false;
}

/* All other calls on this socket say MSG_DONTWAIT, so it need not be non-blocking itself. */
static bool reader_limit_waits(int fd)
{
    const struct timeval limit = {.tv_usec = HLI_READER_WAIT_MS * 1000L};
    int flags = fcntl(fd, F_GETFL);

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 && flags >= 0 &&
           fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

int hli_reader_open(struct hli_reader *reader, int fd, struct hli_tls *tls)
{
    reader->fd = fd;
    reader->tls = hli_tls_ref(tls);
    reader->parser = hli_parser_new(reader->bounds);
    if (!reader->parser || reader_open_watched(reader) < 0) {
        int reason = errno;
        reader_forget(reader);
        errno = reason;
        return HL_ENOMEM;
    }
    reader->may_wait = reader->may_be_led && reader_limit_waits(fd);
    reader->is_open = reader->is_armed = true;
    reader->role = HLI_READER_NOBODY;
    return 0;
}

void hli_reader_close(struct hli_reader *reader)
{
    reader_forget(reader);
    reader->is_open = reader->is_armed = false;
    reader->role = HLI_READER_NOBODY;
    reader->leader = NULL;
    reader->fd = -1;
}

int hli_reader_watched(const struct hli_reader *reader)
{
    return reader->may_be_led ? atomic_load(&reader->watched) : reader->fd;
}

void hli_reader_abandon(struct hli_reader *reader)
{
    int watched = atomic_exchange(&reader->watched, -1);

    if (watched >= 0)
        close(watched);
    reader->fd = -1; /* a leading thread may fork in a signal handler, and then go on */
    hli_wakefd_abandon(&reader->wakefd);
}

void hli_reader_lead_begin(const struct hli_reader *reader)
{
    reader_may_lead = reader;
}

bool hli_reader_lead_end(const struct hli_reader *reader)
{
    bool leads = reader_led == reader;

    reader_may_lead = reader_led = NULL;
    return leads;
}

void hli_readers_lead_begin(const struct hli_readers *readers)
{
    reader_may_lead_all = readers;
}

void hli_readers_lead_end(void)
{
    reader_may_lead_all = NULL;
    reader_led = NULL;
}

static bool reader_is_of_all(const struct hli_reader *reader)
{
    const struct hli_readers *all = reader_may_lead_all;

    for (unsigned i = 0; all && i < all->count; i++)
        if (all->reader[i] == reader)
            return true;
    return false;
}

/* EPOLL_CTL_MOD of a registered descriptor needs no memory and does not fail. */
static void reader_set(struct hli_reader *reader, bool is_armed)
{
    struct epoll_event event = {.events = is_armed ? reader_armed : reader_disarmed};

    if (reader->is_armed == is_armed || !reader->may_be_led)
        return;
    reader->is_armed = is_armed;
    epoll_ctl(reader->watched, EPOLL_CTL_MOD, reader->fd, &event);
}

void hli_reader_arm(struct hli_reader *reader)
{
    reader_set(reader, true);
}

static void reader_begin_to_be_led(struct hli_reader *reader, bool is_alone)
{
    reader->role = HLI_READER_LED;
    reader->leader = &reader_led;
    reader_led = reader;
    reader->was_led = true;
    atomic_store_explicit(&reader->is_recalled, false, memory_order_relaxed);
    atomic_store_explicit(&reader->has_company, !is_alone, memory_order_relaxed);
    reader_set(reader, false);
}

void hli_reader_expect(struct hli_reader *reader, unsigned in_flight)
{
    if (!reader->may_be_led)
        return;
    if (reader->role == HLI_READER_NOBODY && in_flight < READER_CROWD && !reader->ousted &&
        (reader_may_lead == reader || reader_is_of_all(reader)))
        reader_begin_to_be_led(reader, in_flight == 0);
    else if (reader->role == HLI_READER_NOBODY)
        hli_reader_arm(reader);
    else if (reader->leader && reader->leader != &reader_led)
        atomic_store_explicit(&reader->has_company, true, memory_order_relaxed);
}

bool hli_reader_try_lead(struct hli_reader *reader)
{
    if (!reader->is_open || !reader->may_be_led || reader->role != HLI_READER_NOBODY ||
        reader->ousted)
        return false;
    reader_begin_to_be_led(reader, true);
    return true;
}

static void reader_give_to_loop(struct hli_reader *reader)
{
    if (reader->role == HLI_READER_LED) {
        reader->ousted = reader->leader;
        hli_wakefd_wake(&reader->wakefd);
    }
    reader->role = HLI_READER_LOOP;
    reader->leader = NULL;
}

void hli_reader_take(struct hli_reader *reader, hli_mutex *mutex)
{
    while (reader->role == HLI_READER_BUSY) {
        atomic_store_explicit(&reader->is_recalled, true, memory_order_relaxed);
        hli_cond_wait(&reader->left, mutex);
    }
    reader_give_to_loop(reader);
}

/* The loop may have been woken before the socket was disarmed. If a hang-up woke it, epoll_wait()
 * consumes that event; else epoll would report it again and again until the leader finds it. */
bool hli_reader_try_take(struct hli_reader *reader)
{
    struct epoll_event event;

    if (reader->role == HLI_READER_LED || reader->role == HLI_READER_BUSY) {
        epoll_wait(reader->watched, &event, 1, 0);
        return false;
    }
    reader_give_to_loop(reader);
    return true;
}

bool hli_reader_resume(struct hli_reader *reader)
{
    if (reader->leader == &reader_led) {
        reader->role = HLI_READER_BUSY;
        return true;
    }
    if (reader->ousted == &reader_led) {
        reader->ousted = NULL;
        if (!reader->is_open)
            hli_wakefd_close(&reader->wakefd);
    }
    return false;
}

void hli_reader_pause(struct hli_reader *reader)
{
    reader->role = HLI_READER_LED;
}

void hli_reader_leave(struct hli_reader *reader, enum hli_reader_role role)
{
    if (reader->role == HLI_READER_BUSY)
        hli_cond_signal(&reader->left);
    reader->role = role;
    reader->leader = NULL;
}

/* Decrypts what was received, in the same place. */
static void reader_decrypt(struct hli_reader *reader, char *bytes, size_t size, size_t received)
{
    int got;

    hli_tls_put(reader->tls, bytes, received);
    while ((got = hli_tls_read(reader->tls, bytes, size)) > 0)
        reader->parse_error = hli_parser_feed(reader->parser, bytes, (size_t)got);
    reader->has_failed = got < 0;
}

enum hli_received hli_reader_receive(struct hli_reader *reader, bool waits)
{
    char bytes[READER_BYTES];

    if (reader->has_failed)
        return HLI_RECEIVED_FAILURE;
    int flags = waits && reader->may_wait ? 0 : MSG_DONTWAIT;
    ssize_t got = recv(reader->fd, bytes, sizeof(bytes), flags);
    if (got > 0) {
        if (reader->tls)
            reader_decrypt(reader, bytes, sizeof(bytes), (size_t)got);
        else
            reader->parse_error = hli_parser_feed(reader->parser, bytes, (size_t)got);
        return HLI_RECEIVED;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return HLI_RECEIVED_NOTHING;
    reader->has_failed = true;
    reader->failure = got < 0 ? errno : 0;
    return HLI_RECEIVED_FAILURE;
}

int hli_reader_next(struct hli_reader *reader, struct hli_reply **ret_reply)
{
    *ret_reply = reader->untold;
    reader->untold = NULL;
    if (*ret_reply)
        return 0;
    if (reader->parse_error == 0)
        reader->parse_error = hli_parser_next(reader->parser, ret_reply);
    return reader->parse_error;
}

void hli_reader_put_back(struct hli_reader *reader, struct hli_reply *reply)
{
    HLI_CHECK(!reader->untold);
    reader->untold = reply;
}
