/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A client, as all its names share it: the topology of servers, the loop, the watchdog, the
 * callbacks, the map of names, the settings and the counters. The files of src/client/ open and
 * close it.
 */
#ifndef HLI_LEASE_CALLS_CLIENT_H
#define HLI_LEASE_CALLS_CLIENT_H

#include "base/histogram.h"
#include "base/map.h"
#include "base/random.h"
#include "base/ref.h"
#include "lease/calls/callbacks.h"
#include "lease/calls/wait.h"
#include "lease/calls/wording.h"
#include "route/topology.h"

struct hli_kind;
struct hli_name;
struct hli_tenure;
struct hli_turn;
struct hli_watchdog;
struct hli_call;

struct hli_counters { /* atomic */
    atomic_uint_fast64_t acquires, releases, losses, in_doubt;
    atomic_uint_fast64_t renewals, reconnects, commands, holds_now, waiters_now;
    atomic_uint_fast64_t passes, grants, retained;
    atomic_uint_fast64_t nodes_now, lanes_now, master_changes, redirects, unconfirmed;
    atomic_uint_fast64_t graces, reclaims;
    atomic_uint_fast64_t votes, votes_refused, votes_missing, narrow;
    atomic_uint_fast64_t jeopardies;
    atomic_uint_fast64_t failures[4][32]; /* as in hl_stats */
    atomic_uint_fast64_t channels_denied;
    struct hli_histogram wait, hold, renewal_lag;
};

/* What may be sent on a new link. Renewals go first, so that no hold is lost while other requests
 * and their answers fill the connection. Releases that write a value go last, because a value may
 * be big and delay everything behind it. */
enum hli_sends { HLI_SENDS_ALL, HLI_SENDS_NO_VALUES, HLI_SENDS_RENEWALS };

/* The engine: the functions of higher rooms of src/lease/ that lower rooms call. A client has it
 * from its opening on; acquire/plan.c defines it. */
struct hli_engine {
    void (*plan)(
        struct hli_turn *turn); /* derives what follows from the name's state; name mutex */
    void (*answered)(struct hli_op *op, const struct hli_answer *answer); /* a tenure's `ask` */
    /* watch: the watchdog visits the tenure no later than `at`, and takes over the caller's
     * reference. unwatch: the watchdog does not visit it any more. */
    void (*watch)(struct hli_tenure *tenure, hli_ns at);
    void (*unwatch)(struct hli_tenure *tenure);
    void (*free_watchdog)(struct hli_watchdog *watchdog);

    /* Events from outside. Loop thread; the caller has a reference on the name. */
    bool (*on_message)(struct hli_name *name); /* true: an ACQUIRE is sent because of it */
    void (*on_yield)(struct hli_name *name);
    void (*on_confirmed)(struct hli_name *name);
    void (*on_moved)(struct hli_name *name); /* its subscription has ended: its slot has moved */
    void (*on_timer)(struct hli_name *name);
};

struct hl_client {
    struct hli_ref ref;  /* the user's until close, and one for each handle, name and async call */
    unsigned generation; /* immutable: how many forks came before it; see hli_client_check() */
    char id[HLI_UUID_LENGTH + 1]; /* immutable */
    char self[96];                /* immutable: "pid host" */
    hl_client_options settings;   /* immutable; without the login, and with strings of its own */
    atomic_bool is_closed;
    atomic_bool has_ended;                       /* closed, and no name has a tenure any more */
    const struct hli_engine *engine;             /* immutable */
    _Atomic(const struct hli_wording *) wording; /* never NULL */

    struct hli_loop *loop;
    struct hli_topology *topology;
    const _Atomic(struct hli_link *) *links; /* of each slot: the topology's table */
    struct hli_channel mailbox; /* the channel by which other clients tell this one of grants */
    char mailbox_name[64];
    atomic_bool is_deaf; /* the server refuses that channel: grants are found by polls */
    atomic_bool has_told_denial;
    const struct hli_kind *mailbox_kind; /* immutable: the kind of the names in those messages */
    struct hli_watchdog *watchdog;
    struct hli_callbacks callbacks;
    struct hli_counters counters;
    atomic_bool was_up; /* a link, at least once */

    atomic_uint_fast64_t tenure_numbers;
    atomic_uint_fast64_t dying;     /* tenures whose release is not answered yet */
    struct hli_gate releasing_gate; /* nudged when none is left */
    atomic_uint inside;             /* calls on locks that have begun and not returned */
    struct hli_gate inside_gate;    /* nudged when none is left */

    struct hli_gate opening; /* opened when the first attempts to connect have ended */
    hl_error opening_err;    /* their error, written before the gate opens */
    atomic_bool has_met;     /* a server was up */

    hli_mutex names_mutex; /* guards names */
    struct hli_map names;

    hli_mutex waits_mutex; /* guards `waits`: the waits that carry a cancel */
    struct hli_waits waits;

    hli_mutex calls_mutex; /* guards `calls`, which wait for a usable server, and the next three */
    TAILQ_HEAD(, hli_call) calls;
    bool were_refused; /* the server has refused some since the last round */
    unsigned refusals; /* rounds in a row with refusals: the pause grows with it */
    hli_ns retried_at; /* the last round */
    struct hli_timer calls_timer;

    struct hli_timer timerless;    /* for names that had no memory for a timer of their own */
    struct hli_task sending_again; /* runs behind the renewals of a new link */
    _Atomic int sends;             /* hli_sends: the kinds of requests that may go out until then */

    TAILQ_ENTRY(hl_client)
    clients_link; /* the process's list of clients; its mutex is in client/clients.c */
};

/* How many forks lie between the first process that loaded the library and this one. */
extern atomic_uint hli_generation;

/* May this client be used? To be checked before any mutex of the client is taken. Errors: HL_EINVAL
 * (NULL), HL_EFORKED, HL_ECLOSED. */
int hli_client_check(const hl_client *client);

/* The same, and counts the caller in: until hli_client_leave(), a close waits for the caller, and
 * its thread cannot be cancelled. An async call keeps the client in a variable for
 * hli_client_leave(), because its completion may free the handle before the call returns. */
int hli_client_enter(hl_client *client);
/* The same for a thread of another client, which is about to visit a name of this one: also while
 * the client closes. False when the close has ended all tenures, and its threads are about to stop.
 */
bool hli_client_visit(hl_client *client);
/* The same for a public call, with the reason in completion->err; HL_EINVAL also without a
 * completion. After a 0 the call ends with hli_client_leave(), on a variable that was set before,
 * because a completion may free the handle. */
struct hli_completion;
int hli_client_enter_call(hl_client *client, const struct hli_completion *completion);
void hli_client_leave(hl_client *client);

/* How requests are worded from now on, and how they are. A client begins with the plain wording; in
 * a cluster another is chosen before its first request, and once more if the first node that
 * answers has no sharded pub/sub. Any thread. */
void hli_client_set_wording(hl_client *client, const struct hli_wording *wording);

/* The number of the next tenure: positive, of 63 bits as Redisson's thread ids, never used twice.
 */
uint64_t hli_client_next_number(hl_client *client);

/* The strings of the settings, which own them. */
enum { HLI_SETTINGS_STRINGS = 10 };
void hli_settings_strings(hl_client_options *settings, const char **ret_text[HLI_SETTINGS_STRINGS]);
void hli_settings_deinit(hl_client_options *settings);

/* Any thread: the link for requests about names of this slot with this lane (lanes.h), now. It is
 * asked for each time that one is sent, since slots move between servers. */
struct hli_link *hli_client_link(const hl_client *client, unsigned slot, unsigned lane);

void hli_client_ref(hl_client *client);
/* The last reference frees the client, which is closed by then. */
void hli_client_unref(hl_client *client);

void hli_count(atomic_uint_fast64_t *counter);
void hli_uncount(atomic_uint_fast64_t *counter);
/* Counts what failed with this code, for this reason (hli_answer_reason()). */
void hli_count_failure(hl_client *client, hl_call call, int code, hl_reason reason);

/* Queues a line for the client's on_log; drops it without on_log or without memory. The line must
 * not contain a secret. */
void hli_log(hl_client *client, hl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Queues an event of the client (not of a hold) for on_event: a copy of its kind, reason, from and
 * to. Drops it without memory. */
void hli_client_tell(hl_client *client, const hl_event *event);

#endif
