/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A contention: what this process knows of a name that others want too, or whose server gives
 * trouble. It is made with the first such fact, because most locks never meet contention; then it
 * stays with the name.
 */
#ifndef HLI_LEASE_STATE_CONTENTION_H
#define HLI_LEASE_STATE_CONTENTION_H

#include "lease/state/name.h"
#include "redis/pubsub.h"

enum {
    HLI_YIELD_EVERY_MS = 20, /* Redisson's waiters get a turn at most once in this time */
    HLI_YIELD_MS = 3,        /* and have so long to take it */
};

struct hli_listener;

/* The contents of the last busy answer. */
struct hli_busy {
    hli_ns at; /* 0: there was none */
    hl_lock_info info;
};

struct hli_contention {
    struct hli_name *name; /* borrowed, immutable */

    struct hli_busy busy; /* name mutex, as the next group */
    hli_ns heard_at;      /* when the last message came; a message during a request may announce a
                             release that the request missed */
    hli_ns quiet_until;   /* before that no message makes us ask, because the last ones told nothing
                             new */
    unsigned misled;      /* such messages in a row */
    hli_ns confirmed_at;  /* when the subscription was confirmed; a request that was sent later
                             cannot miss a release; 0: not yet */
    bool listens;         /* it is subscribed, or about to be */
    bool is_deaf;         /* the server refuses its channels: no message comes */
    bool is_listen_posted; /* the loop is about to subscribe: at most one such task is posted */
    hli_ns idle_since;     /* when the last waiter left; the subscription stays for a while */
    hli_ns timer_at;       /* when the timer fires; HLI_NEVER: it is not set */
    hli_ns yields_until;   /* Redisson's turn: no ACQUIRE is sent before */
    hli_ns yielded_at; /* when a release last checked for Redisson's waiters, or they last had their
                          turn */
    bool has_foreign_waiters; /* when last checked, clients of Redisson were listening */
    unsigned refusals;        /* of the current tenure's requests, in a row */
    int problem;              /* code of the last refusal, 0 when the last answer was none */
    char problem_text[128];

    struct hli_listener *listener; /* loop thread; NULL: there is no subscription */
    struct hli_task listen;
    struct hli_timer timer;
};

/* The name's contention, made if there is none. Errors: NULL when memory is out. Name mutex. */
struct hli_contention *hli_contention_of(struct hli_name *name);

/* Subscribes to the channel of the name, or of its current tenure instead of an earlier one, until
 * hli_contention_stop_listening(). The caller has set `is_listen_posted`. Any thread that has a
 * reference on the name; the loop thread does the work. */
void hli_contention_listen(struct hli_contention *contention);
void hli_contention_stop_listening(struct hli_contention *contention); /* loop thread */

/* The server has refused this channel for good: counted, and told once, in the log and by
 * an event. Loop thread. */
void hli_contention_tell_denied(hl_client *client, const struct hli_channel *channel);

/* Has the server refused its channels? Loop thread. */
bool hli_contention_is_denied(const struct hli_contention *contention);

/* Do other names of this process share the subscription? Loop thread. */
bool hli_contention_is_shared(const struct hli_contention *contention);

/* Gives Redisson's waiters their turn, for HLI_YIELD_MS from now. Name mutex. */
void hli_contention_yield(struct hli_contention *contention, hli_ns now);

/* May a release yield to Redisson's waiters again? Name mutex. */
bool hli_contention_may_yield(const struct hli_name *name, hli_ns now);

/* Records why there is no usable answer, for the error of a waiter whose time is over. Name mutex.
 */
void hli_contention_note_problem(struct hli_name *name, int code, const char *text);
void hli_contention_forget_problem(struct hli_contention *contention);

#endif
