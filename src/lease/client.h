/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What all names of one client share: the link to the server, the loop, the watchdog, the
 * callbacks, the map of names, the settings and the counters. How it is opened and closed is
 * client/'s business.
 */
#ifndef HLI_LEASE_CLIENT_H
#define HLI_LEASE_CLIENT_H

#include "base/histogram.h"
#include "base/map.h"
#include "base/random.h"
#include "base/ref.h"
#include "lease/callbacks.h"
#include "lease/wait.h"
#include "redis/link.h"

struct hli_watchdog;
struct hli_call;

struct hli_settings { /* immutable */
    unsigned flags;
    char *name_prefix;
    int64_t request_timeout_ms, outage_timeout_ms, watchdog_timeout_ms, poll_ms;
    hl_event_cb on_event;
    hl_log_cb on_log;
    hl_log_level log_level;
    void *arg;
};

struct hli_counters { /* atomic */
    atomic_uint_fast64_t acquires, busy, timeouts, cancels, releases, losses, unknowns;
    atomic_uint_fast64_t renewals, reconnects, commands, holds_now, waiters_now;
    atomic_uint_fast64_t passes, grants, lingers;
    struct hli_histogram wait, hold, renewal_lag;
};

struct hl_client {
    struct hli_ref ref;  /* the user's until close, and one for each handle, name and async call */
    unsigned generation; /* immutable: how many forks lie before it; see hli_client_check */
    char id[HLI_UUID_LENGTH + 1]; /* immutable */
    char self[96];                /* immutable: "pid host" */
    struct hli_settings settings;
    atomic_bool is_closed;

    struct hli_loop *loop;
    struct hli_link *link;
    struct hli_channel mailbox; /* what other clients write to this one */
    char mailbox_name[64];
    struct hli_watchdog *watchdog;
    struct hli_callbacks callbacks;
    struct hli_counters counters;
    atomic_bool was_up; /* the link, at least once */

    atomic_uint_fast64_t tenure_numbers;
    atomic_uint_fast64_t dying;  /* tenures whose release is not answered yet */
    struct hli_gate dying_gate;  /* poked when there is none left */
    atomic_uint inside;          /* calls on locks that have begun and not returned */
    struct hli_gate inside_gate; /* the same */

    struct hli_gate opening; /* opened when the first attempt to connect has ended */
    hl_error opening_err;    /* how, written before that */

    pthread_mutex_t names_mutex; /* guards names */
    struct hli_map names;

    pthread_mutex_t waits_mutex; /* guards waits: those that carry a cancel */
    struct hli_waits waits;

    pthread_mutex_t calls_mutex; /* guards calls: those that wait for a usable server */
    TAILQ_HEAD(, hli_call) calls;
    struct hli_timer calls_timer;

    struct hli_timer starved; /* for names that had no memory for a timer of their own */

    TAILQ_ENTRY(hl_client)
    clients_link; /* the process's list of clients; its mutex is in client/clients.c */
};

/* How many forks lie between the first process that loaded the library and this one. */
extern atomic_uint hli_generation;

/* May this client be used? Looked at before any mutex of it. Errors: HL_EINVAL (NULL), HL_EFORKED,
 * HL_ECLOSED. */
int hli_client_check(const hl_client *client);

/* The same, and counts the caller in: until it leaves, a close waits, and it cannot be cancelled.
 * An async call leaves by what it has noted of the client, for its completion may free the handle
 * before the call returns. */
int hli_client_enter(hl_client *client);
void hli_client_leave(hl_client *client);

void hli_client_ref(hl_client *client);
/* The last one frees it; it is closed by then. */
void hli_client_unref(hl_client *client);

static inline void hli_count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void hli_uncount(atomic_uint_fast64_t *counter)
{
    atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

/* For one client's on_log, by its callbacks; dropped when nobody listens or memory is out. Never a
 * secret in it. */
void hli_log(hl_client *client, hl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DISCONNECTED and CONNECTED, for on_event. */
void hli_client_tell(hl_client *client, hl_event_kind kind, const char *reason);

/* On the loop thread: the `starved` timer's function; every name is visited. */
void hli_client_feed(void *client);

/* On the loop thread: the link came up, went down, or could not come up. */
void hli_client_link_up(hl_client *client);
void hli_client_link_down(hl_client *client, const hl_error *err);
void hli_client_link_failed(hl_client *client, const hl_error *err);

#endif
