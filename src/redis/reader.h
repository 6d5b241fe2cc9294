/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The reader: a role. One thread at a time reads a connection, parses and delivers the answers: the
 * loop, or a caller that blocks for its own request. Such a caller leads (lead.h): the reply itself
 * wakes it, instead of a second thread that the reply has woken.
 *
 * The socket is in an epoll instance of its own, which the loop watches. Any thread disarms it by
 * one epoll_ctl(), which does not wake the loop. Disarmed, it still reports a hang-up.
 */
#ifndef HLI_REDIS_READER_H
#define HLI_REDIS_READER_H

#include "base/thread.h"
#include "base/wakefd.h"
#include "redis/reply.h"
#include "redis/tls.h"

#include <stdatomic.h>

enum hli_reader_role {
    HLI_READER_NOBODY, /* armed, or no request is in flight: the first thread takes it */
    HLI_READER_LOOP,
    HLI_READER_LED,  /* a caller has it and sleeps, or is about to: the loop may take the role */
    HLI_READER_BUSY, /* a caller has it and reads: the loop has to wait for a moment */
};

/* While a leader waits inside a receive, nobody can wake it: neither a cancel nor the loop. */
enum { HLI_READER_WAIT_MS = 4 };

struct hli_reader {                        /* guarded by the connection's mutex, but where noted */
    bool may_be_led;                       /* immutable, as the next */
    const struct hli_reply_bounds *bounds; /* borrowed; NULL: the usual ones */
    int fd;                                /* immutable while open */
    struct hli_tls *tls;                   /* the same; NULL: none; counted */
    atomic_int watched;                    /* the epoll instance; a forked child closes it */
    struct hli_wakefd wakefd;              /* wakes the leader; a forked child closes it */
    bool is_open, is_armed;
    bool may_wait; /* immutable while open: a receive without MSG_DONTWAIT ends in time */
    bool was_led;  /* a caller has led since this was last set to false */
    enum hli_reader_role role;
    const void *leader; /* the thread that leads, or NULL */
    const void *ousted; /* a thread that lost the role to the loop while it slept. Until it notices,
                          the wakefd stays open for it, and no other thread leads */
    atomic_bool is_recalled; /* the loop waits for the role */
    atomic_bool has_company; /* other threads have requests in flight */
    hli_cond left;

    struct hli_parser *parser; /* this and all below: of the thread with the role */
    struct hli_reply *untold;  /* parsed, and left to the loop */
    int parse_error;
    bool has_failed; /* the read failed, with errno `failure`; 0: the server hung up */
    int failure;
};

enum hli_received { HLI_RECEIVED, HLI_RECEIVED_NOTHING, HLI_RECEIVED_FAILURE };

void hli_reader_init(struct hli_reader *reader, bool may_be_led);
void hli_reader_deinit(struct hli_reader *reader); /* after the close */

/* Begins armed, and no thread has the role. tls may be NULL. Errors: HL_ENOMEM, and errno has the
 * reason. */
int hli_reader_open(struct hli_reader *reader, int fd, struct hli_tls *tls);
void hli_reader_close(struct hli_reader *reader);        /* by the thread with the role */
int hli_reader_watched(const struct hli_reader *reader); /* the fd that the loop watches */

/* In a forked child. */
void hli_reader_abandon(struct hli_reader *reader);

/* The first promises that this thread will wait for the requests that it sends from now on, and
 * lead if it is given the role. The second ends the promise; true: the thread has been given the
 * role. */
void hli_reader_lead_begin(const struct hli_reader *reader);
bool hli_reader_lead_end(const struct hli_reader *reader);

/* The same for several readers: of each the thread asks by hli_reader_resume() if it has the role.
 */
enum { HLI_READERS_MAX = 31 };
struct hli_readers {
    unsigned count;
    struct hli_reader *reader[HLI_READERS_MAX]; /* each once */
};
void hli_readers_lead_begin(const struct hli_readers *readers);
void hli_readers_lead_end(void);

/* With the mutex, as all below. Called when a request is queued behind `in_flight` others: makes
 * sure that a thread will read. This thread leads if it has promised to and no other thread has the
 * role; else the loop is armed. */
void hli_reader_expect(struct hli_reader *reader, unsigned in_flight);

/* This thread takes the role to lead for messages. False: another thread has the role. */
bool hli_reader_try_lead(struct hli_reader *reader);

/* The loop takes the role. It waits, without the mutex, while a leader reads; never for a leader
 * that sleeps. */
void hli_reader_take(struct hli_reader *reader, hli_mutex *mutex);

/* Loop thread, when the socket is readable: takes the role. False when a caller leads. */
bool hli_reader_try_take(struct hli_reader *reader);

/* For a leader: the first begins to read, and is false when the loop has taken the role; the second
 * pauses. */
bool hli_reader_resume(struct hli_reader *reader);
void hli_reader_pause(struct hli_reader *reader);

/* Gives the role back: to the loop, or to no thread. */
void hli_reader_leave(struct hli_reader *reader, enum hli_reader_role role);

void hli_reader_arm(struct hli_reader *reader);

/* By the thread with the role, without the mutex. `waits`: for HLI_READER_WAIT_MS, or not at all
 * where the socket cannot do that. */
enum hli_received hli_reader_receive(struct hli_reader *reader, bool waits);
/* The next whole reply, or NULL. Errors: HL_EPROTO, HL_ENOMEM; each later call returns the same. */
int hli_reader_next(struct hli_reader *reader, struct hli_reply **ret_reply);
void hli_reader_put_back(struct hli_reader *reader, struct hli_reply *reply); /* consumed */

#endif
