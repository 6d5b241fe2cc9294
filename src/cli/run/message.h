/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock run: what front and guard tell each other, by a socket of packets. The end of one is the
 * end of the other's socket. */
#ifndef CLI_RUN_MESSAGE_H
#define CLI_RUN_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

enum run_message_kind {
    RUN_SIGNAL = 1, /* front to guard: pass this signal on */
    RUN_GO,         /* front to guard: it may take the lock, and will not be killed any more */
    RUN_RESUMED,    /* front to guard: a RUN_STOPPED is dealt with, and the front runs */
    RUN_OPENED,     /* guard to front, as all that follow: signals are attended to after RUN_GO */
    RUN_STARTED,    /* the process id of the command; with -F: become the command */
    RUN_STOPPED,    /* by this signal: the command, or the wait for it */
    RUN_ENDED,      /* with this exit status */
    RUN_CANCELED,   /* the wait has ended by this signal, and nothing is held */
};

struct run_message {
    enum run_message_kind kind;
    int value;
    uint64_t token; /* RUN_STARTED with -F and --fence */
};

/* A peer that is gone is noticed by the end of its socket, not here. */
void run_tell(int socket, enum run_message_kind kind, int value, uint64_t token);

/* Waits for a message; false at the end of the socket. */
bool run_hear(int socket, struct run_message *ret_message);

#endif
