/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The reader: a role. One thread at a time reads a connection, parses and tells the answers. That
 * is the loop, unless a caller that blocks has put the only request in flight there: then that
 * caller leads (lead.h), and is woken by the reply itself instead of by a thread that was woken.
 *
 * The socket lies in an epoll instance of its own, which the loop watches. To disarm it is one
 * epoll_ctl() of any thread, by which the loop is not woken; a hang-up is seen disarmed too.
 */
#ifndef HLI_REDIS_READER_H
#define HLI_REDIS_READER_H

#include "base/buzzer.h"
#include "redis/reply.h"

#include <pthread.h>
#include <stdatomic.h>

enum hli_reader_role {
    HLI_READER_NOBODY, /* armed, or nothing is in flight: who comes first */
    HLI_READER_LOOP,
    HLI_READER_LED,  /* by a caller that is on its way, or asleep: the loop may take it away */
    HLI_READER_BUSY, /* by a caller that reads: the loop has to wait for a moment */
};

struct hli_reader {         /* the connection's mutex, unless it says otherwise */
    bool may_be_led;        /* immutable */
    int fd;                 /* immutable while open */
    atomic_int watched;     /* the epoll instance; closed by a forked child */
    struct hli_buzzer bell; /* wakes whoever leads; the same */
    bool is_open, is_armed;
    bool was_led; /* since it was last set to false */
    enum hli_reader_role role;
    const void *leader; /* a thread, while it is led */
    const void *stray;  /* one from which the role was taken while it slept; until it knows, the
                           bell is its own and stays open, and nobody else leads */
    atomic_bool is_recalled; /* the loop waits for the role */
    atomic_bool has_company; /* others have put requests in flight */
    pthread_cond_t left;

    struct hli_parser *parser; /* of whoever has the role, as all below */
    struct hli_reply *untold;  /* parsed, and left to the loop */
    int parse_error;
    bool has_failed; /* the socket, with this errno; 0: the server hung up */
    int failure;
};

enum hli_received { HLI_RECEIVED, HLI_RECEIVED_NOTHING, HLI_RECEIVED_FAILURE };

void hli_reader_init(struct hli_reader *reader, bool may_be_led);
void hli_reader_deinit(struct hli_reader *reader); /* closed */

/* Armed, and the role is nobody's. Errors: HL_ENOMEM, and errno says what ran out. */
int hli_reader_open(struct hli_reader *reader, int fd);
void hli_reader_close(struct hli_reader *reader);        /* by who has the role */
int hli_reader_watched(const struct hli_reader *reader); /* what the loop watches for reading */

/* In a forked child. */
void hli_reader_abandon(struct hli_reader *reader);

/* This thread will wait for what it sends from now on, and lead if it is given the role; until the
 * promise is redeemed. True: it was. */
void hli_reader_promise(const struct hli_reader *reader);
bool hli_reader_redeem(const struct hli_reader *reader);

/* With the mutex, as all below. A request is put behind those in flight: sees to it that somebody
 * will read, and that is this thread if it has promised and nobody else does. */
void hli_reader_expect(struct hli_reader *reader, unsigned in_flight);

/* This thread takes the role to lead, for messages that nobody asked for. False: somebody has it.
 */
bool hli_reader_try_lead(struct hli_reader *reader);

/* The loop takes the role. Waits, without the mutex, while a leader reads; never for one that
 * sleeps. */
void hli_reader_take(struct hli_reader *reader, pthread_mutex_t *mutex);

/* Loop thread, which found the socket readable: false when a caller leads. */
bool hli_reader_try_take(struct hli_reader *reader);

/* A leader's: begins to read, false when it was taken away; and pauses. */
bool hli_reader_resume(struct hli_reader *reader);
void hli_reader_pause(struct hli_reader *reader);

/* Gives the role back: to the loop, or to nobody. */
void hli_reader_leave(struct hli_reader *reader, enum hli_reader_role role);

void hli_reader_arm(struct hli_reader *reader);

/* Of whoever has the role, and without the mutex. */
enum hli_received hli_reader_receive(struct hli_reader *reader);
/* The next whole reply, or NULL. Errors: HL_EPROTO, HL_ENOMEM, and so they stay. */
int hli_reader_next(struct hli_reader *reader, struct hli_reply **ret_reply);
void hli_reader_put_back(struct hli_reader *reader, struct hli_reply *reply); /* consumed */

#endif
