/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A contest: what is known of a name that others want too, or whose server gives trouble. Made when
 * there is something to know, for most locks meet nobody; and then it stays with the name.
 */
#ifndef HLI_LEASE_CONTEST_H
#define HLI_LEASE_CONTEST_H

#include "lease/name.h"
#include "redis/pubsub.h"

enum {
    HLI_COURTESY_MS = 20,  /* Redisson's waiters get a turn at most so often */
    HLI_STAND_BACK_MS = 3, /* and so long to take it */
};

struct hli_holder;

/* What the last busy answer said. */
struct hli_busy {
    hli_ns at; /* 0: there was none */
    int64_t pttl_ms;
    uint32_t count;
    char owner[HLI_FIELD_SIZE];
    struct hli_holder *holder; /* owned: what it told of itself, or NULL */
};

struct hli_contest {
    struct hli_name *name; /* borrowed, immutable */

    struct hli_busy busy; /* name mutex, as the next group */
    hli_ns heard_at; /* the last message; one that comes while a request is in flight may be about
                        what it missed */
    hli_ns quiet_until;    /* messages that told nothing new are listened to again from then on */
    unsigned misled;       /* such messages in a row */
    hli_ns confirmed_at;   /* when the subscription was; what was sent later is ordered behind it */
    bool is_listen_posted; /* the loop is about to subscribe */
    hli_ns idle_since;     /* no waiters; the subscription lingers for a while */
    hli_ns stands_back_until; /* it is Redisson's turn: not asked before */
    hli_ns courteous_at;      /* when it was last looked whether somebody waits, or he had it */
    bool was_handed_over;     /* our last release granted it to another client */
    bool has_strangers;       /* the last word was that some of Redisson's listen */
    unsigned refusals;        /* of the current tenure's requests, in a row */
    int problem;              /* code of the last refusal, 0 when the last answer was none */
    char problem_text[128];

    struct hli_channel channel; /* loop thread */
    bool has_channel_ref;       /* loop thread */
    struct hli_task listen;
    struct hli_timer timer;

    char bytes[]; /* the names of both channels */
};

/* The name's contest, made if there is none. Errors: NULL when memory is out. Name mutex. */
struct hli_contest *hli_contest_of(struct hli_name *name);
void hli_contest_free(struct hli_contest *contest); /* with its name; NULL is fine */

/* Subscribes, from now until hli_contest_stop_listening(). Any thread, which has a reference on the
 * name; the loop does it. */
void hli_contest_listen(struct hli_contest *contest);
void hli_contest_stop_listening(struct hli_contest *contest); /* loop thread */

/* It is Redisson's turn for a moment. Name mutex. */
void hli_contest_stand_back(struct hli_contest *contest, hli_ns now);

/* May a release be courteous again? Name mutex. */
bool hli_contest_is_courteous(const struct hli_name *name, hli_ns now);

/* Why there is no answer that a waiter can use; told to those whose time is over. Name mutex. */
void hli_contest_note_problem(struct hli_name *name, int code, const char *text);
void hli_contest_forget_problem(struct hli_name *name);

#endif
