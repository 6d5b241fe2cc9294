/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The client: one process's connection to Redis and its identity, a random UUID.
 *
 * Guarantees: any number of threads may share one client. It reconnects by itself. It keeps three
 * threads of its own (hirelock-loop, hirelock-watch, and hirelock-call once a callback is wanted),
 * all with every signal blocked, and changes nothing process-wide but for one pthread_atfork
 * handler.
 *
 * Does not guarantee: that a hold survives an outage longer than its lease, or exclusion across an
 * asynchronous failover (redis.io, "Distributed Locks with Redis"; M. Kleppmann, "How to do
 * distributed locking", 2016).
 *
 * Callbacks: a completion is invoked exactly once if and only if the call returned 0; never from
 * inside the call; on the client's callback thread or inside hl_client_dispatch(). Events and log
 * lines come the same way. A slow callback delays what is done by callbacks and nothing else: later
 * ones, the next step of async calls that are made of several (a meeting at a latch, inspecting a
 * multi-lock), and the close. Every call is allowed there but hl_client_close and
 * hl_client_dispatch (HL_EDEADLK); one that waits for what a later callback would release waits in
 * vain.
 *
 * Threads: each function says. Signals: only hl_cancel_fire() may be called from a signal handler.
 * fork: a child cannot use its parent's handles; calls answer HL_EFORKED, and the child may open a
 * client of its own.
 *
 * Ownership: what `ret_` parameters give belongs to the caller. Strings passed in are copied.
 */
#ifndef HIRELOCK_CLIENT_H
#define HIRELOCK_CLIENT_H

#include <hirelock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_client hl_client;

typedef enum hl_event_kind {
    HL_EVENT_JEOPARDY = 1, /* no renewal came for two thirds of the lease; validity_ms is left */
    HL_EVENT_SAFE,         /* it came after all; alone when it did before JEOPARDY was told */
    HL_EVENT_LOST,         /* stop: the hold is over; before its expiry if the clock is steady */
    HL_EVENT_DISCONNECTED, /* the server is out of reach; holds live on until their validity ends */
    HL_EVENT_CONNECTED,    /* it is back (not reported for the first connection) */
    /* A posted release (hl_lock_options) did not end well: told to the client's on_event alone. */
    HL_EVENT_RELEASE_FAILED
} hl_event_kind;

typedef struct hl_event {
    size_t size;
    hl_event_kind kind;
    const char *name; /* the lock's name, NULL for connection events; valid during the call only */
    size_t name_length;
    int64_t validity_ms; /* what is left of the hold; 0 when it is lost */
    /* Of LOST: "expired", "gone", "max_hold", "thread exit", "closed"; of DISCONNECTED: the error;
     * of RELEASE_FAILED: what went wrong; "" of CONNECTED; else NULL. */
    const char *reason;
    /* Of a permit (permit_semaphore.h): its id; else NULL. Valid during the call only. */
    const char *permit;
} hl_event;

typedef void (*hl_event_cb)(const hl_event *event, void *arg);

typedef enum hl_log_level { HL_LOG_ERROR = 1, HL_LOG_WARN, HL_LOG_INFO, HL_LOG_DEBUG } hl_log_level;

typedef void (*hl_log_cb)(hl_log_level level, const char *text, void *arg);

enum {
    HL_CLIENT_LAZY = 1, /* open returns at once; the first call waits for the server */
    /* Callbacks run only inside hl_client_dispatch(), inside close, and inside an open that fails.
     */
    HL_CLIENT_DISPATCH = 2,
    /* Holds still open at close are released; by default they are lost, and expire in Redis. */
    HL_CLIENT_RELEASE_ON_CLOSE = 4,
    /* A hold whose thread ends is released; by default it is lost, and expires in Redis. */
    HL_CLIENT_RELEASE_ON_THREAD_EXIT = 8,
    /* Who holds a lock is told to those who ask: host, process and thread, and since when
     * (hl_lock_info). Of holds through this client that last longer than 20 ms, in a key of Redis
     * beside the lock; and to this client, by those who have set this too. */
    HL_CLIENT_TAGS = 16
};

/* Zero or NULL means the default, which is in the comment. Times are in milliseconds, at most
 * 10^11. */
typedef struct hl_client_options {
    size_t size;
    unsigned flags;
    const char *username, *password; /* instead of the URL's; copied, wiped after use */
    const char *client_name;         /* CLIENT SETNAME; "hirelock"; without spaces */
    const char *name_prefix;         /* put before every lock's name */
    int64_t connect_timeout_ms;      /* 2,000; from resolving to the end of the greeting */
    int64_t
        request_timeout_ms; /* 2,000; a request without a reply for so long drops the connection */
    int64_t outage_timeout_ms;   /* 10,000; a call that saw no usable server for so long fails; -1:
                                    waits on */
    int64_t watchdog_timeout_ms; /* 30,000, at least 10; the lease of a hold without a lease time,
                                    renewed every third of it */
    int64_t poll_ms; /* 1,000, at least 10; a waiter asks again so often (up to 30 % later) when
                        nothing wakes it */
    int64_t backoff_min_ms; /* 50; pause before a reconnect, doubled each time, with jitter */
    int64_t backoff_max_ms; /* 2,000; not less than backoff_min_ms */
    hl_event_cb on_event;
    hl_log_cb on_log;
    hl_log_level log_level; /* HL_LOG_WARN; the most that on_log is told */
    void *arg;              /* for on_event and on_log */
    /* 0: off. A caller that is alone with its request looks at the socket for so many microseconds
     * before it sleeps: faster where it has a core to itself, slower where it has not. At most
     * 1,000. */
    int64_t busy_poll_us;
} hl_client_options;

/* clang-format off */
#define HL_CLIENT_OPTIONS_INIT                                                                     \
    { sizeof(hl_client_options), 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0,                   \
      NULL, NULL, HL_LOG_WARN, NULL, 0 }
/* clang-format on */

/*
 * Opens a client. URL: redis://[[user]:password@]host[:port][/db] (percent-encoded; an IPv6 address
 * in brackets) or unix:///path[?db=n]. What the options say beats the URL. A host's name is looked
 * up in /etc/hosts and by the name servers of resolv.conf, and by nothing else. Waits until the
 * server answers or refuses; a server that is still loading its data is waited for up to
 * outage_timeout_ms. With HL_CLIENT_LAZY it does not wait.
 *
 * Threads: any; no other thread may fork the process meanwhile.
 * Returns: 0; HL_EINVAL (URL or options, err says which); HL_ENOTSUP (a kind of URL that this
 * version does not know); HL_ENOMEM (also when threads or descriptors run out); HL_ECONN,
 * HL_EPROTO, HL_ESERVER or HL_EDENIED with the reason, "connect 127.0.0.1:6379: connection
 * refused".
 */
HL_API HL_MUST_CHECK int hl_client_open(const char *url, const hl_client_options *options,
                                        hl_client **ret_client, hl_error *err);

/*
 * Closes a client: refuses new calls, ends every wait with HL_ECANCELED, stops renewing, reports
 * open holds as lost and lets them expire (their threads may still be inside;
 * HL_CLIENT_RELEASE_ON_CLOSE releases them), runs the callbacks that are still queued and joins the
 * client's threads. Waits for the server's answers at most one request timeout. Locks and owners of
 * the client stay to be freed; calls on them answer HL_ECLOSED. NULL is fine.
 *
 * Threads: any but a callback; once for each client. Calls on the client itself (ping, stats,
 * dispatch, hl_lock_new ...) have returned before; calls on its locks may be under way.
 * Returns: 0; HL_EDEADLK from a callback of this client (nothing is closed); HL_EFORKED in a forked
 * child.
 */
HL_API int hl_client_close(hl_client *client);

/*
 * Asks the server for a sign of life, waiting for a connection and the answer at most timeout_ms,
 * and never longer than outage_timeout_ms (-1: for that alone).
 *
 * Threads: any.
 * Returns: 0; HL_ETIMEDOUT (connected, and no answer yet); HL_ECONN, HL_EPROTO, HL_ESERVER (not
 * connected, and why; at the latest after outage_timeout_ms); HL_EDENIED, at once; HL_EINVAL;
 * HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_client_ping(hl_client *client, int64_t timeout_ms, hl_error *err);

/*
 * The client's UUID, the first half of every owner field it writes ("<uuid>:<number>"). An
 * identifier, not a secret.
 *
 * Threads: any.
 * Returns: a string that lives as long as the client; NULL for NULL.
 */
HL_API const char *hl_client_id(const hl_client *client);

/*
 * With HL_CLIENT_DISPATCH: a descriptor that is readable while callbacks wait for
 * hl_client_dispatch(), for your own poll or epoll loop. It belongs to the client.
 *
 * Threads: any.
 * Returns: the descriptor; HL_EINVAL without HL_CLIENT_DISPATCH; HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_client_fd(const hl_client *client);

/*
 * With HL_CLIENT_DISPATCH: runs the callbacks that are waiting, in the calling thread, in order.
 * Never blocks.
 *
 * Threads: any, one at a time.
 * Returns: the number of callbacks run; HL_EINVAL without HL_CLIENT_DISPATCH; HL_EDEADLK from
 * inside a callback; HL_ECLOSED; HL_EFORKED.
 */
HL_API int hl_client_dispatch(hl_client *client);

/* bucket[i] counts the samples below 2^i microseconds that no smaller bucket counts; the last takes
 * all the rest. */
typedef struct hl_histogram {
    uint64_t count, sum_us, max_us;
    uint64_t bucket[32];
} hl_histogram;

/* Counts since the client was opened. They are read one by one, not as of one instant. */
typedef struct hl_stats {
    size_t size;
    uint64_t acquires; /* successful calls, nested ones included */
    uint64_t busy, timeouts, cancels;
    uint64_t releases; /* successful calls, nested ones included */
    uint64_t losses;   /* holds of which LOST was told */
    uint64_t unknowns; /* releases of locks and permits that ended in HL_EUNKNOWN */
    uint64_t renewals; /* holds renewed, not batches */
    uint64_t reconnects;
    uint64_t commands; /* written to the server */
    uint64_t holds_now, waiters_now;
    hl_histogram wait,
        hold; /* of outermost acquires: from call to return, and from there to the release */
    hl_histogram renewal_lag; /* from a renewal's due time to its confirmation */
    /* Of the holds: begun by a release of another owner of this client, without a request; by a
     * release of another client, which wrote us into Redis; and from what lingered. */
    uint64_t passes, grants, lingers;
} hl_stats;

/*
 * Copies the client's statistics; set stats->size to sizeof(hl_stats) before.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL, or no size); HL_EFORKED. A longer struct than this version's is
 * filled as far as it is known.
 */
HL_API int hl_client_stats(hl_client *client, hl_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
