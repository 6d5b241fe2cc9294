/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Calls that are one request and one answer: ping, inspect, force-release. A request that did not
 * run is sent again, until the server answers or the call's time is over. A request that may have
 * run is sent again only if a second copy does no harm.
 */
#ifndef HLI_LEASE_CALLS_CALL_H
#define HLI_LEASE_CALLS_CALL_H

#include "lease/calls/async.h"
#include "lease/calls/client.h"

struct hli_call;

struct hli_call_kind {    /* immutable */
    const char *verb;     /* of the error text, "inspect" */
    hli_script_id script; /* for `prepare`, if the request is always of the same script */
    size_t size;          /* of the struct that begins with the call; 0: the call has none */
    int no;               /* the code of the reply {0}; 0: the script never gives it */
    const char *no_text;  /* the text of that code; NULL: hl_err_text() */
    bool changes_data;    /* once sent, it ends as HL_EINDOUBT without an answer */
    bool is_repeatable;   /* a second copy of it does no harm */
    bool may_be_denied;   /* NOPERM counts as success */
    /* The words are the caller's own: an error that the library does not know is final. */
    bool is_foreign;
    hl_call counts_as; /* in the statistics of failures */

    /* Checks the arguments of the public call, makes ready what the call changes, and begins and
     * writes the words of the request. Returns 0, or the code of hli_call_fail(), before it has
     * begun the words; then the call ends with that code. Without a mutex. */
    int (*prepare)(struct hli_call *call, struct hli_args *args, const void *what);
    /* True while the request must not be sent yet; called again after a pause. NULL: the request
     * goes at once. Without a mutex. */
    bool (*is_early)(struct hli_call *call);
    /* Returns the code that the reply means; a count goes to call->count. With the mutex. NULL:
     * hli_call_read_done(). */
    int (*read)(struct hli_call *call, const struct hli_reply *reply);
    /* Called once when the call is over, before its caller hears of it, also if the call did not
     * begin; the completion of an async call runs later, in another thread. May overrule the code
     * (hli_call_overrule()). NULL: nothing to do. Without a mutex. */
    void (*settle)(struct hli_call *call, int code);
};

struct hli_call {
    struct hli_async async; /* references: the op has one, too */
    struct hli_wait wait;
    const struct hli_call_kind *kind; /* immutable, as the next */
    hl_client *client;                /* counted */
    struct hli_name *name;            /* the name that the call is about; counted, or NULL ... */
    void (*drop_name)(struct hli_name *name); /* ... and this drops the reference */
    unsigned slot, lane;    /* where the request goes: those of the name; 0 if it is about none */
    struct hli_link *node;  /* NULL; or the request goes there, whatever its slot, ... */
    const char *node_where; /* ... as long as the link leads to this address; borrowed */
    struct hli_bytes about; /* borrowed: the name in the error's text; empty: none */
    int64_t repeat_ms; /* how long after the first copy that may have run others may be sent; 0: for
                          ever */
    TAILQ_ENTRY(hli_call) link; /* calls mutex */
    struct hli_op op;
    int64_t count;

    hli_mutex mutex; /* guards the wait, and the problem */
    bool is_in_flight;
    bool is_unconfirmed; /* it has run, and fails because too few replicas have it */
    bool may_have_run;   /* a copy was sent whose answer will not come */
    hl_reason reason;    /* of hli_call_fail() */
    hli_ns ran_at;       /* when the first such copy was sent */
    int problem;
    char problem_text[128];
};

/* Makes a call without a timeout but the outage timeout; all behind it in its struct is zero.
 * Errors: NULL when memory is out. */
struct hli_call *hli_call_new(const struct hli_call_kind *kind, hl_client *client);
/* For `prepare`. */
void hli_call_set_timeout(struct hli_call *call, int64_t timeout_ms);

/* Reads {1} as HL_OK, {0} as the kind's `no`, {-1} as HL_ELOST; further elements are ignored. */
int hli_call_read_done(struct hli_call *call, const struct hli_reply *reply);

/* Sets the error of a call that fails with this code: "verb 'name': text". For `prepare`, and for
 * `read` with the mutex; returns the code. */
int hli_call_fail(struct hli_call *call, int code, const char *text);

/* For `settle`: ends the call with this code and text instead. */
void hli_call_overrule(struct hli_call *call, int code, const char *text);

/* Prepares the call for `what`, runs it and consumes it; a call of NULL is HL_ENOMEM. A blocking
 * call returns its code. An async call is begun: with 0, its completion runs exactly once. */
int hli_call_run(struct hli_call *call, const void *what, const struct hli_completion *completion);

/* A whole public call: enters the client, and runs a new call of this kind. */
int hli_client_run(hl_client *client, const struct hli_call_kind *kind, const void *what,
                   const struct hli_completion *completion);

/* Sends the calls that wait for the link, or for a pause to end. */
void hli_calls_retry(hl_client *client);

/* Ends the calls that wait to be sent by this link, whose server denies access; NULL: by any, since
 * the client is closed. Loop thread, or when it has no more to do. */
void hli_calls_fail(hl_client *client, const struct hli_link *link, int code, const char *text);

#endif
