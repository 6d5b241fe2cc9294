/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Calls that are one request and one answer: ping, inspect, force-release. A request that did not
 * run is asked again, and one that may have run too if that does no harm; until the server answers
 * or the call's time is over.
 */
#ifndef HLI_LEASE_CALL_H
#define HLI_LEASE_CALL_H

#include "lease/client.h"

struct hli_call {
    struct hli_ref ref; /* the caller's, the op's, and the async timer's */
    struct hli_wait wait;
    hl_client *client;          /* counted */
    TAILQ_ENTRY(hli_call) link; /* calls mutex */
    bool is_repeatable;         /* immutable, as the next */
    int64_t repeat_ms;          /* so long after the first that may have run; 0: without end */
    bool is_deed;               /* immutable: it changes something; so without an answer it ends as
                                   HL_EUNKNOWN once it was sent */
    const char *verb;           /* immutable: of the error text, "inspect" */
    struct hli_op op;
    pthread_mutex_t mutex; /* guards the wait, and the problem */
    bool is_in_flight;
    bool may_have_run; /* a copy was sent whose answer will not come */
    hli_ns ran_at;     /* the first of these was sent */
    int problem;
    char problem_text[128];
    hl_error err;

    /* Must it not be sent yet? It is asked again after a pause. NULL: it goes at once. Without a
     * mutex. */
    bool (*is_early)(struct hli_call *call);
    /* Reads the answer; returns the call's code. With the mutex. */
    int (*read)(struct hli_call *call, const struct hli_reply *reply);
    void (*freed)(struct hli_call *call); /* frees the object that embeds it */

    /* Of an async call, as all below: it has ended, and is told later, for callbacks may be slow.
     * NULL: nothing is to be done. Without a mutex. */
    void (*settle)(struct hli_call *call);
    struct hli_callback callback;
    void (*tell)(struct hli_call *call); /* runs the user's code with the result */
};

/* For at most timeout_ms, -1: without end but for the outage timeout. The op is to be formatted by
 * the caller. */
void hli_call_init(struct hli_call *call, hl_client *client, const char *verb, int64_t timeout_ms);
void hli_call_ref(struct hli_call *call);
void hli_call_unref(struct hli_call *call);

/* Begins, and blocks until the end. Returns the code. */
int hli_call_block(struct hli_call *call, hl_error *err);

/* Begins an async call: with 0, `tell` runs once, in the callbacks. The caller's reference is
 * dropped. Errors: HL_ENOMEM, and nothing was begun. */
int hli_call_begin(struct hli_call *call, void (*tell)(struct hli_call *call));

/* The code of an async call that has ended, and its error if it failed; for `tell`. */
static inline const hl_error *hli_call_error(const struct hli_call *call)
{
    return call->wait.code < 0 ? &call->err : NULL;
}

/* The link is up, or time has passed: sends what waits for it. */
void hli_calls_retry(hl_client *client);

/* The link could not come up; a denial ends all calls. The client is closed: so does that. */
void hli_calls_fail(hl_client *client, int code, const char *text);

#endif
