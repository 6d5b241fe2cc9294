/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock run: the lock, locks or permit that the guard holds. All of it is used by one thread;
 * the answers come in run_hold_dispatch(). */
#ifndef CLI_RUN_HOLD_H
#define CLI_RUN_HOLD_H

#include "cli/run/words.h"

enum run_hold_state {
    RUN_HOLD_ASKING,
    RUN_HOLD_HELD,
    RUN_HOLD_NONE, /* --no-server=run: the command runs without it */
    RUN_HOLD_REFUSED,
};

struct run_hold {
    const struct run_words *words;
    enum run_hold_state state;
    int status;       /* of RUN_HOLD_REFUSED: the exit status */
    bool is_canceled; /* the wait was cancelled by run_hold_cancel() */
    bool is_lost;
    /* The last event of trouble, HL_EVENT_JEOPARDY or HL_EVENT_LOST, that the guard has not yet
     * answered; 0: none. */
    int trouble;
    uint64_t token;
    int64_t began_at;
    hl_client *client;
    hl_owner *owner;
    hl_cancel *cancel;
    hl_lock *lock; /* or */
    hl_permits *permits;
    hl_permit permit;
    bool has_asked; /* --verbose: without waiting, to hear who holds it */
};

/* Connects. A failure is a refusal. */
void run_hold_open(struct run_hold *hold, struct run_words *words);
void run_hold_ask(struct run_hold *hold);
void run_hold_cancel(struct run_hold *hold);

/* For poll(2); -1: there is no client. */
int run_hold_fd(const struct run_hold *hold);
void run_hold_dispatch(struct run_hold *hold);

/* Releases what is held. Returns false when it had been lost. */
bool run_hold_release(struct run_hold *hold);
void run_hold_close(struct run_hold *hold, struct run_words *words);

#endif
