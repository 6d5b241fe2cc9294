/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The client: a process's access to Redis and its identity, a random UUID.
 *
 * Guarantees: any number of threads may share one client. The client reconnects by itself. It has
 * threads of its own (in this version hirelock-loop, hirelock-watch and, once they are needed,
 * hirelock-call, hirelock-login and hirelock-name), which block every signal. One pthread_atfork
 * handler is the only process-wide change.
 *
 * Does not guarantee: that a hold survives an outage longer than its lease; nor, without the option
 * failover_grace_ms, exclusion across an asynchronous failover (redis.io, "Distributed Locks with
 * Redis"; M. Kleppmann, "How to do distributed locking", 2016).
 *
 * Async calls: a completion runs exactly once if its call returned 0, and never otherwise. It does
 * not run inside the call, and may run before the call has returned. An async call reads all its
 * arguments before it returns: its handle, its owner and its options may be freed afterwards, by
 * the completion too. Only options->cancel, event_arg and arg must live longer.
 *
 * Callbacks: completions, events and log lines are delivered on the client's callback thread, or
 * inside hl_client_dispatch(), inside close and inside an open that fails. (hl_credentials_cb and
 * hl_address_map_cb are of another kind, and so may callbacks of later versions be.) They run one
 * after the other, so a slow callback delays later callbacks, the next step of
 * hl_lock_inspect_async of a multi-lock, and the close. Do not block in a callback on something
 * that a later callback releases: that is a deadlock. Inside a callback hl_client_close and
 * hl_client_dispatch return HL_EDEADLK, and an acquire of a lock without options->owner returns
 * HL_EINVAL: all callbacks share one thread, so two of them would be the same owner, and the second
 * acquire would nest in the hold of the first.
 *
 * Threads: see each declaration. A pthread_cancel takes effect after a call, not inside it.
 * Signals: only hl_cancel_fire() may be called from a signal handler. fork: a child cannot use its
 * parent's handles: calls return HL_EFORKED. The child may open a client of its own.
 *
 * Ownership: objects that `ret_` parameters return belong to the caller. Strings passed in are
 * copied.
 */
#ifndef HIRELOCK_CLIENT_H
#define HIRELOCK_CLIENT_H

#include <hirelock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_client hl_client;

/* Later versions add kinds; ignore those that you do not know. */
typedef enum hl_event_kind {
    HL_EVENT_JEOPARDY = 1, /* no renewal for two thirds of the lease; validity_ms is left */
    HL_EVENT_SAFE,         /* the renewal succeeded after all; may come without a JEOPARDY */
    HL_EVENT_LOST,         /* the hold is over: stop; sent before its expiry if clocks are steady */
    HL_EVENT_DISCONNECTED, /* a connection is lost; holds continue until their validity ends */
    HL_EVENT_CONNECTED,    /* the server's are all there again (not reported for the first one) */
    /* A release with HL_LOCK_ASYNC_RELEASE failed; only the client's on_event receives it. */
    HL_EVENT_RELEASE_FAILED,
    /* With redis-sentinel:// and redis-cluster://: the client is about to use another master than
     * before; comes ahead of the CONNECTED. What the old master had not yet replicated is not there
     * any more (Redis docs, "Replication"), locks too: each hold is renewed at once, and is LOST if
     * its key is gone. */
    HL_EVENT_MASTER_CHANGED,
    /* With redis-sentinel://: the master may have been replaced, and the client cannot know. The
     * client is connected to its master, but no sentinel answers, and no replica has followed this
     * master for 8 seconds. In a partition the sentinels may have made a replica the master of all
     * others meanwhile. The client goes on with its master, so hl_lock_is_held() stays true: stop
     * work that must not be done twice. Reported once, until the MASTER_CONFIRMED; and never for a
     * master that has had no replica since the client connected to it, because sentinels can put
     * only a replica in its place. */
    HL_EVENT_MASTER_ISOLATED,
    /* The end of a MASTER_ISOLATED: a sentinel names this master, or a replica follows it again; or
     * the client has connected anew to the master that a sentinel names (then this event comes
     * ahead of the CONNECTED, and behind the MASTER_CHANGED if there is one). Not reported when the
     * client is closed before. */
    HL_EVENT_MASTER_CONFIRMED,
    /* With HL_CLIENT_KEEP_UNCONFIRMED or HL_LOCK_KEEP_UNCONFIRMED: fewer replicas than min_replicas
     * have the hold or its renewal, so a failover may lose it. Reported once, until they have it
     * again. */
    HL_EVENT_UNCONFIRMED,
    /* With failover_grace_ms: the server's data are of a new term, as after a failover or a
     * restart. For validity_ms nobody acquires what is free, and each holder renews what it holds.
     * Reported once for each term, ahead of the CONNECTED; also when the client connects first. */
    HL_EVENT_GRACE,
    /* Of a Redlock (redlock.h): just a majority of its masters has the hold, so that each further
     * one that fails ends it. Reported once, until more masters have it again. */
    HL_EVENT_NARROW,
    /* The server refuses a subscription for good, as to a user without channels: no message comes,
     * so waiters poll, and take turns by that (docs/semantics.md). Reported once. */
    HL_EVENT_CHANNELS_DENIED
} hl_event_kind;

typedef struct hl_event {
    size_t size;
    hl_event_kind kind;
    const char *name; /* the lock's name, NULL for connection events; valid during the call only */
    size_t name_length;
    int64_t validity_ms; /* the remaining validity of the hold; 0 when it is lost */
    /* For logs, and for no decision: the texts may change. LOST: "expired", "gone", "max_hold",
     * "thread exit" or "closed". DISCONNECTED: the error. RELEASE_FAILED: the failure. CONNECTED:
     * "". JEOPARDY and SAFE: NULL. MASTER_CHANGED: who says so, "sentinel 10.0.0.5:26379 names it".
     * MASTER_ISOLATED: "no replica follows 10.0.0.7:6379, and no sentinel of 'mymaster' is of use".
     * MASTER_CONFIRMED: who says so, or "a replica follows it again". UNCONFIRMED: "too few
     * replicas". GRACE: "the data of 10.0.0.7:6379 are of a new term".
     * NARROW: "no master to spare". CHANNELS_DENIED: the server's words, "NOPERM ...". */
    const char *reason;
    /* The id of the permit (permits.h) that was held; NULL for locks. Valid during the call
     * only. */
    const char *permit;
    /* MASTER_CHANGED: the addresses of the old and the new master, "10.0.0.7:6379"; else NULL.
     * Valid during the call only. */
    const char *from, *to;
} hl_event;

typedef void (*hl_event_cb)(const hl_event *event, void *arg);

/*
 * The name of a kind of event, for logs: "jeopardy", "safe", "lost", "disconnected", "connected",
 * "release failed", "master changed", "master isolated", "master confirmed", "unconfirmed",
 * "grace", "narrow", "channels denied".
 *
 * Threads: any.
 * Returns: a constant string; "unknown event" for other numbers.
 */
HL_API const char *hl_event_name(hl_event_kind kind);

typedef enum hl_log_level { HL_LOG_ERROR = 1, HL_LOG_WARN, HL_LOG_INFO, HL_LOG_DEBUG } hl_log_level;

/*
 * The name of a log level: "error", "warning", "info", "debug".
 *
 * Threads: any.
 * Returns: a constant string; "unknown level" for other numbers.
 */
HL_API const char *hl_log_level_name(hl_log_level level);

typedef void (*hl_log_cb)(hl_log_level level, const char *text, void *arg);

/* What a login is for. Later versions may add purposes. */
typedef enum hl_credentials_purpose {
    HL_CREDENTIALS_SERVER = 1, /* a server that has the locks */
    HL_CREDENTIALS_SENTINEL = 2
} hl_credentials_purpose;

typedef struct hl_credentials_request {
    size_t size;
    hl_credentials_purpose purpose;
    /* Which server asks for it: "10.0.0.3:6379" or "redis.example:6379", as the URL, a node of the
     * cluster, a Sentinel or address_map names it; or the path of a unix socket. Valid during the
     * call only. */
    const char *address;
} hl_credentials_request;

typedef struct hl_credentials hl_credentials;

/*
 * Gives the login for one server: the callback calls hl_credentials_set or hl_credentials_fail on
 * `credentials` before it returns (the last call counts; without one the attempt fails). The client
 * calls it at each attempt to connect, and again before the login ends (valid_ms).
 *
 * It runs on the client's thread hirelock-login, one call at a time. It may block, as for a token
 * service; the locks go on meanwhile. An attempt to connect waits for it for connect_timeout_ms,
 * then fails with HL_ECONN, and what the callback gives later is used by the next attempt. A
 * close, and an open that fails, wait until the callback has returned, however long that takes: so
 * give each thing that it waits for a time limit. Inside it hl_client_close returns HL_EDEADLK; do
 * not call other functions of this client there, since they may wait for the login. Programs that
 * it starts inherit a mask that blocks every signal.
 */
typedef void (*hl_credentials_cb)(const hl_credentials_request *request,
                                  hl_credentials *credentials, void *arg);

/*
 * Gives a login. Both texts are copied, into memory that is in no core dump, and the copies are
 * wiped once the server has accepted them; wipe your own. username NULL: the user "default". Both
 * NULL: no AUTH is sent, as to a Sentinel without a password. valid_ms: how long from now the
 * server leaves connections with this login alone; 0: for ever. After 70 to 80 % of that time, and
 * at most once a second, the client asks the callback again and says AUTH on its live connections.
 *
 * Threads: the callback's, inside the callback.
 * Returns: 0; HL_EINVAL (credentials is NULL; a username without a password; an empty password; a
 * text longer than 16,384 bytes, which is Redis' own limit before a login; valid_ms not from 0 to
 * 10^11); HL_ENOMEM. The two errors also fail the attempt, with their reason.
 */
HL_API int hl_credentials_set(hl_credentials *credentials, const char *username,
                              const char *password, int64_t valid_ms);

/*
 * Says why there is no login. The attempt to connect fails with HL_ECONN and this reason, which is
 * copied, and is tried again after the pause. The reason goes to logs: no secret belongs into it.
 *
 * Threads: the callback's, inside the callback.
 * Returns: 0; HL_EINVAL for NULL.
 */
HL_API int hl_credentials_fail(hl_credentials *credentials, const char *reason);

typedef struct hl_address {
    size_t size;
    char host[256]; /* a name or a numeric address; IPv6 without brackets */
    int port;       /* from 1 to 65,535 */
} hl_address;

/*
 * Translates an address that a server announces into the address that this program can connect to:
 * for containers, NAT and forwarded ports (as Redisson's natMapper, redis-py's address_remap).
 * `address` is what was announced; the callback changes its host, its port or both, or leaves it.
 *
 * The client asks for every address that a node of a cluster announces (CLUSTER SLOTS, MOVED, ASK)
 * or a Sentinel (the master, other sentinels), each time that it is announced; so the same address
 * must always have the same result. A node that announces no host is asked for with the host by
 * which the client reached the node that told of it. The addresses of the URL are not translated,
 * and redis:// and unix:// announce none.
 *
 * The result stands for the server from then on: in hl_client_nodes(), events, logs, and as the
 * name that a certificate must have. A result that is no address is not used: the log has a
 * warning, and calls that need this server fail with HL_ECONN or HL_ESERVER and "address_map gave
 * no address for 172.17.0.2:6379".
 *
 * Threads: the client's thread hirelock-loop. It must not block, since all requests and renewals
 * wait for it; and it must not call functions of this client (hl_client_close returns HL_EDEADLK).
 */
typedef void (*hl_address_map_cb)(hl_address *address, void *arg);

enum {
    HL_CLIENT_LAZY = 1, /* open returns at once; the first call waits for the server */
    /* Callbacks run only inside hl_client_dispatch(), inside close, and inside an open that fails.
     */
    HL_CLIENT_DISPATCH = 2,
    /* Holds still open at close are released; by default they are lost, and expire in Redis. */
    HL_CLIENT_RELEASE_ON_CLOSE = 4,
    /* A hold whose thread ends is released; by default it is lost, and expires in Redis. */
    HL_CLIENT_RELEASE_ON_THREAD_EXIT = 8,
    /* A refused call reports the holder's host, process and thread, and the age of the hold
     * (hl_lock_info). The client writes these to a key beside the lock for its own holds that last
     * longer than 20 ms, and reads those of other clients that have this flag. A call that waits
     * for longer than a second shows that in a key, too (docs/semantics.md, "The waiter's tag").
     */
    HL_CLIENT_HOLDER_INFO = 16,
    /* With rediss://: the server's certificate is not verified, so any server that is between this
     * program and Redis can read and change everything. Each connect logs a warning. */
    HL_CLIENT_TLS_UNVERIFIED = 32,
    /* With min_replicas: a lock that too few replicas have confirmed is held all the same, and
     * HL_EVENT_UNCONFIRMED says so; by default the acquire is undone, and fails. */
    HL_CLIENT_KEEP_UNCONFIRMED = 64,
    /* What neither this struct nor the URL sets is read from the environment when the client is
     * opened, HIRELOCK_WATCHDOG_TIMEOUT=10s and others, and a URL that is NULL is HIRELOCK_URL
     * (docs/options.md). No other thread may change the environment meanwhile (POSIX, getenv()). */
    HL_CLIENT_ENVIRONMENT = 128,
    /* Threads of this process that wait for each other's locks in a circle go on waiting; by
     * default the acquire that would close the circle returns HL_EDEADLK. */
    HL_CLIENT_NO_DEADLOCK_CHECK = 256
};

/* Values of min_replicas beside a number. */
enum {
    HL_REPLICAS_MAJORITY = -1, /* more than half of those that the master has, but at least one */
    HL_REPLICAS_NONE = -2      /* none; of a client: none, unless a lock asks for some */
};

/* Zero or NULL means the default; each comment begins with the default value. Times are in
 * milliseconds, at most 10^11. */
typedef struct hl_client_options {
    size_t size;
    unsigned flags; /* none; HL_CLIENT_LAZY, HL_CLIENT_DISPATCH and others, joined by | */
    /* Those of the URL, which these override. A password without a username is the password of the
     * user "default". The client wipes its copies when it and all its handles are freed. */
    const char *username, *password;
    const char *client_name; /* "hirelock"; CLIENT SETNAME, without spaces */
    const char *name_prefix; /* none; put before the name of every handle */
    /* 2,000; from the lookup of the host to the end of the handshake. */
    int64_t connect_timeout_ms;
    /* 2,000; the client drops a connection on which a request has no reply for this long. */
    int64_t request_timeout_ms;
    /* 10,000; a call fails when it has met no usable server for this long; -1: it goes on
     * waiting. */
    int64_t outage_timeout_ms;
    /* 30,000, at least 10; the lease of a hold without a lease time, renewed every third of
     * it. */
    int64_t watchdog_timeout_ms;
    /* 1,000, at least 10; how often a waiter asks again (up to 30 % later) when nothing wakes
     * it. */
    int64_t poll_ms;
    int64_t backoff_min_ms; /* 50; pause before a reconnect, doubled each time, with jitter */
    int64_t backoff_max_ms; /* 2,000; not less than backoff_min_ms */
    hl_event_cb on_event;   /* none; receives all events of the client and its holds */
    hl_log_cb on_log;       /* none; receives messages for an operator */
    hl_log_level log_level; /* HL_LOG_WARN; the most detailed level that on_log receives */
    void *arg;              /* for on_event and on_log */
    /* 0: off; at most 1,000. A caller whose request is the only one in flight polls the socket for
     * so many microseconds before it sleeps: faster if the caller has a core to itself, slower if
     * not. */
    int64_t busy_poll_us;
    /* For rediss:// only; all are files in PEM, read anew at a connect when they have changed. */
    const char *tls_ca_file;   /* the system's authorities; instead of them, these sign the server's
                                  certificate */
    const char *tls_ca_dir;    /* the same; a folder with hashed names (openssl rehash) */
    const char *tls_cert_file; /* none; the client's certificate, and those between it and its
                                  authority */
    const char *tls_key_file;  /* none; the private key of tls_cert_file, not encrypted */
    const char *tls_server_name; /* the server's host; the name that its certificate must have */
    /* For redis-sentinel:// only: none; the login at the sentinels, which is not that of the
     * servers they name. Wiped as the other login. */
    const char *sentinel_username, *sentinel_password;
    /* None; the file that has the password, instead of `password`. Read at each attempt to connect;
     * one newline at its end is no part of the password. */
    const char *password_file;
    const char *sentinel_password_file; /* the same, instead of sentinel_password */
    /* None; gives user and password, instead of all other options and the URL. With
     * redis-sentinel:// it gives those for the sentinels, too, unless sentinel_password or its file
     * does. */
    hl_credentials_cb credentials_cb;
    void *credentials_arg; /* for credentials_cb; must live until the client is closed */
    /* None; translates the addresses that nodes of a cluster and Sentinels announce. */
    hl_address_map_cb address_map;
    void *address_map_arg; /* for address_map; must live until the client is closed */
    /* 4, at most 16; so many connections for locks' requests to one server, beside the one for
     * pub/sub, and one that hl_client_command() makes.
     * The client begins with one, and opens another when threads with locks of different names find
     * all of them busy again and again; it closes the last one when they do not any more for
     * watchdog_timeout_ms. The requests of one name take one connection. */
    int connections;
    /* 0: no lock may ask for replicas. Else so many (at most 1,000), HL_REPLICAS_MAJORITY, or
     * HL_REPLICAS_NONE for all locks, fences and permits that ask for nothing else: an acquire
     * returns, and a renewal counts, when so many replicas of the server have it
     * (docs/replicas.md). The client then has one more connection to each server, for the names
     * that ask for replicas: WAIT holds it up (Redis docs, "WAIT"), and no other name's request
     * stands behind it. */
    int min_replicas;
    /* 200; at most half of request_timeout_ms, for a request may stand behind the WAIT of others
     * before its own. How long a WAIT lasts. */
    int64_t replicas_timeout_ms;
    /* 0: off. How long after a failover, or a start of the server, nobody acquires what is free,
     * while each holder brings its hold into the new server (docs/failover.md): so no two owners
     * hold a lock though the new server has lost the first one's. At least old_master_ms and
     * the longest lease together, which is watchdog_timeout_ms, or 2 * poll_ms, the lease of a
     * grant; no call may ask for a longer one. The same for all clients of a server. */
    int64_t failover_grace_ms;
    /* 0: a master that is replaced is dead by then. With failover_grace_ms: for how long at most it
     * may go on, as when it is cut off from its replicas and stops itself by min-replicas-to-write
     * and min-replicas-max-lag (Redis docs, "Replication"). */
    int64_t old_master_ms;
    /* For rediss-sentinel:// only: none; tls_server_name for the sentinels, which may have other
     * certificates than the servers. Without it each sentinel's host. */
    const char *sentinel_tls_server_name;
} hl_client_options;

/* clang-format off */
#define HL_CLIENT_OPTIONS_INIT                                                                     \
    { sizeof(hl_client_options), 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0,                   \
      NULL, NULL, HL_LOG_WARN, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,      \
      NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL }
/* clang-format on */

/*
 * Opens a client. URL: redis://[[user]:password@]host[:port][/db] (percent-encoded; an IPv6 address
 * in brackets), rediss:// with the same parts for TLS with a verified server, or
 * unix:///path[?db=n]; valkey:// and valkeys:// mean redis:// and rediss://. With
 * redis-sentinel://[user:password@]host[:port],host.../name[?db=n] sentinels name the server, the
 * master of that name; rediss-sentinel:// is all by TLS (docs/sentinel.md). With
 * redis-cluster://[user:password@]host[:port],host... the addresses are those of some nodes of a
 * cluster; rediss-cluster:// is by TLS (docs/cluster.md). Behind each may stand options by their
 * words, ?watchdog_timeout=10s&connections=8 (docs/options.md). The struct overrides the URL, and
 * the URL the environment (HL_CLIENT_ENVIRONMENT), each option by itself. A host name is
 * looked up as getaddrinfo(3) does it, at each attempt to connect; so a name that leads to another
 * server after a failover is followed. A look-up has threads of its own, hirelock-name: one that
 * hangs holds up no other name, no deadline and no close, and may outlive the client. The call
 * waits until the server
 * answers or refuses, and up to outage_timeout_ms for a server that is still loading its data; in a
 * cluster, until one node has answered and each other has done so or cannot be reached. With
 * HL_CLIENT_LAZY the call does not wait.
 *
 * Threads: any; no other thread may fork the process meanwhile.
 * Returns: 0; HL_EINVAL (URL or options, err says which; a file of TLS or of a password that cannot
 * be read); HL_ENOTSUP (redis-masters://: reserved for a later version; rediss:// in a build
 * without TLS; redis:// at a node of a cluster); HL_ENOMEM (also when threads or descriptors run
 * out); HL_ECONN, HL_EPROTO, HL_ESERVER or HL_EDENIED with the reason, "connect 127.0.0.1:6379:
 * connection refused".
 */
HL_API HL_MUST_CHECK int hl_client_open(const char *url, const hl_client_options *options,
                                        hl_client **ret_client, hl_error *err);

/*
 * Closes a client: refuses new calls, ends every wait with HL_ECANCELED, stops renewing, reports
 * open holds as lost and lets them expire (their threads may still be inside;
 * HL_CLIENT_RELEASE_ON_CLOSE releases them), runs the callbacks that are still queued and joins the
 * client's threads. Waits for the server's answers at most one request timeout, and for a
 * credentials_cb that is under way until it returns. After a result of 0
 * the client itself, its id and its descriptor are invalid. The client's handles and owners must
 * still be freed; other calls on them return HL_ECLOSED. NULL is fine.
 *
 * Threads: any but a callback; once for each client. Calls on the client itself (ping, stats,
 * dispatch, hl_lock_new ...) must have returned before; calls on its locks may be under way.
 * Returns: 0; HL_EDEADLK from a callback of this client, also its credentials_cb (nothing is
 * closed); HL_EFORKED in a forked child.
 */
HL_API int hl_client_close(hl_client *client);

/*
 * Checks that the server answers a PING. The call waits for a connection and the answer at most
 * timeout_ms (-1: no limit of its own), and never longer than outage_timeout_ms. A PING that the
 * ACL refuses (NOPERM) is an answer.
 *
 * Threads: any.
 * Returns: 0; HL_ETIMEDOUT (connected, and no answer yet); HL_ECONN, HL_EPROTO, HL_ESERVER (not
 * connected, and why; at the latest after outage_timeout_ms); HL_EDENIED, at once; HL_EINVAL;
 * HL_ENOMEM; HL_ECLOSED; HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_client_ping(hl_client *client, int64_t timeout_ms, hl_error *err);

/* The completion of an async call; err is NULL when code is 0, else filled, and valid during the
 * call only. */
typedef void (*hl_done_cb)(int code, const hl_error *err, void *arg);

/*
 * hl_client_ping without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_client_ping or, when the client is
 * closed meanwhile, HL_ECANCELED. Negative: it never runs: HL_EINVAL, HL_ENOMEM, HL_ECLOSED,
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_client_ping_async(hl_client *client, int64_t timeout_ms,
                                              hl_done_cb done, void *arg);

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

/* What failed, in hl_stats: a call that was to acquire or to release, another call, or the renewal
 * of a hold, which is tried again until the hold is lost. */
typedef enum hl_call {
    HL_CALL_OTHER = 0,
    HL_CALL_ACQUIRE = 1,
    HL_CALL_RELEASE = 2,
    HL_CALL_RENEWAL = 3
} hl_call;

/*
 * Why it failed, in hl_stats: the server's word, if it refused; else by the result code.
 * X(NAME, value, name in metrics)
 */
#define HL_REASON_MAP(X)                                                                           \
    X(OTHER, 0, "other")              /* HL_EEXIST, HL_ENOENT, and what is in no other line */     \
    X(BUSY, 1, "busy")                /* HL_EBUSY */                                               \
    X(TIMEOUT, 2, "timeout")          /* HL_ETIMEDOUT */                                           \
    X(CANCELED, 3, "canceled")        /* HL_ECANCELED */                                           \
    X(LOST, 4, "lost")                /* HL_ELOST */                                               \
    X(IN_DOUBT, 5, "in_doubt")        /* HL_EINDOUBT */                                            \
    X(FENCED, 6, "fenced")            /* HL_EFENCED */                                             \
    X(DEADLOCK, 7, "deadlock")        /* HL_EDEADLK */                                             \
    X(MISUSE, 8, "misuse")            /* HL_EINVAL, HL_ENOTOWNER, HL_ECLOSED, HL_ENOTSUP ... */    \
    X(MEMORY, 9, "memory")            /* HL_ENOMEM: of this process */                             \
    X(UNREACHABLE, 10, "unreachable") /* HL_ECONN, HL_EPROTO */                                    \
    X(DENIED, 11, "denied")           /* HL_EDENIED: NOPERM, NOAUTH, WRONGPASS */                  \
    X(REPLICAS, 12, "replicas")       /* HL_EREPLICAS: too few of min_replicas confirmed it */     \
    X(OOM, 13, "oom")                 /* the server is full: maxmemory */                          \
    X(READONLY, 14, "readonly")       /* the server is a replica */                                \
    X(MISCONF, 15, "misconf")         /* the server cannot save its data */                        \
    X(NOREPLICAS, 16, "noreplicas")   /* the server lacks replicas: min-replicas-to-write */       \
    X(LOADING, 17, "loading")         /* the server reads its data */                              \
    X(SCRIPT, 18, "script")           /* BUSY: the server runs a slow script */                    \
    X(DOWN, 19, "down")               /* CLUSTERDOWN, MASTERDOWN */                                \
    X(WRONGTYPE, 20, "wrongtype")     /* the key holds a value of another kind */                  \
    X(SERVER, 21, "server")           /* any other HL_ESERVER */

typedef enum hl_reason {
#define HL_REASON_ENUM(name, value, text) HL_REASON_##name = (value),
    HL_REASON_MAP(HL_REASON_ENUM)
#undef HL_REASON_ENUM
} hl_reason;

/*
 * The name of a reason in the metrics, "oom".
 *
 * Threads: any.
 * Returns: a constant string; NULL for what this version does not know.
 */
HL_API const char *hl_reason_name(hl_reason reason);

/* Counts since the client was opened. They are read one by one, not as of one instant. */
typedef struct hl_stats {
    size_t size;
    uint64_t acquires; /* successful calls, nested ones included */
    /* Acquires that ended in HL_EBUSY, in HL_ETIMEDOUT, in HL_ECANCELED; see `failures` for all. */
    uint64_t busy, timeouts, cancels;
    uint64_t releases;               /* successful calls, nested ones included */
    uint64_t losses;                 /* holds that were reported as LOST */
    uint64_t in_doubt;               /* releases that ended in HL_EINDOUBT, for whatever reason */
    uint64_t renewals;               /* holds renewed, not batches */
    uint64_t reconnects;             /* after the first connection */
    uint64_t commands;               /* written to the server */
    uint64_t holds_now, waiters_now; /* at this moment: holds, and calls that wait */
    /* Holds that began without a request of their own: passed on by another owner of this client;
     * granted by another client's release; taken up from a retained lock. */
    uint64_t passes, grants, retained;
    uint64_t nodes_now;      /* at this moment: servers that the client is connected to for locks */
    uint64_t master_changes; /* events MASTER_CHANGED */
    /* Of a cluster: requests that a node sent elsewhere (MOVED, ASK), because their slot had moved
     * or was about to. */
    uint64_t redirects;
    /* At this moment: connections for locks' requests to the nodes_now; none of
     * hl_client_command().
     */
    uint64_t lanes_now;
    /* Acquires, renewals and other requests that fewer replicas than min_replicas confirmed. */
    uint64_t unconfirmed;
    /* With failover_grace_ms: terms that began with a grace, events GRACE; holds that were brought
     * into a new term in its grace. */
    uint64_t graces, reclaims;
    /* Of Redlocks whose first client this is: masters that were asked and said yes, said no, and
     * had no answer in time; events NARROW. */
    uint64_t votes, votes_refused, votes_missing, narrow;
    uint64_t jeopardies; /* events JEOPARDY */
    /* What failed, and why: failures[HL_CALL_ACQUIRE][HL_REASON_OOM]. A call on several locks
     * counts at the lock that ended it; a release that was posted counts, too. A call that is
     * refused for its arguments may not. */
    uint64_t failures[4][32];
    /* Subscriptions that the server refused for good (ACL): their waiters get no message, and poll.
     * One line of the log and the event CHANNELS_DENIED tell of the first. */
    uint64_t channels_denied;
} hl_stats;

/* clang-format off */
#define HL_STATS_INIT                                                                              \
    { sizeof(hl_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      0, { { 0 } }, 0 }
/* clang-format on */

/*
 * Copies the client's statistics; begin with HL_STATS_INIT, which sets the size.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL, or no size); HL_EFORKED. A longer struct than this version's is
 * filled as far as it is known.
 */
HL_API int hl_client_stats(hl_client *client, hl_stats *stats);

/* What a server is to the client. Later versions add roles. */
typedef enum hl_node_role {
    HL_NODE_UNKNOWN = 0, /* the client has not been connected to it yet */
    HL_NODE_MASTER,      /* it has the locks */
    HL_NODE_SENTINEL     /* it says where the master is */
} hl_node_role;

/* A server that a client uses; valid during the call of hl_node_cb only. */
typedef struct hl_node {
    size_t size;
    /* "10.0.0.7:6379", or the path of a unix socket: where the client connects to, that is, what
     * address_map made of it */
    const char *address;
    hl_node_role role;
    int is_connected;
    /* Not connected: why, "connect 10.0.0.7:6379: connection refused"; else NULL. */
    const char *problem;
    int64_t since_ms; /* connected for so many milliseconds; -1: not connected */
    unsigned lanes;   /* open connections for commands; beside them there is one for pub/sub */
    unsigned slots;   /* of a cluster: how many of its 16,384 the node serves; else 0 */
} hl_node;

typedef void (*hl_node_cb)(const hl_node *node, void *arg);

/*
 * Calls `visit` for each server that the client uses now: the server, or the master and the
 * sentinel that the client is connected to, or the masters of the cluster. The view is of one
 * moment. `visit` runs in the calling thread, before the call returns, and may call the library.
 *
 * Threads: any, also a callback.
 * Returns: the number of servers; HL_EINVAL (NULL), HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API int hl_client_nodes(hl_client *client, hl_node_cb visit, void *arg);

/* The measures of hl_client_histogram. */
typedef enum hl_measure {
    HL_MEASURE_WAIT = 1,   /* of outermost acquires that succeed: from the call to its return */
    HL_MEASURE_HOLD = 2,   /* of holds: from that return to the release */
    HL_MEASURE_RENEWAL = 3 /* of renewals: from the time when one is due to its confirmation */
} hl_measure;

/* bucket[i] counts the samples below 2^i microseconds that no smaller bucket counts; the last
 * bucket counts all the rest. */
typedef struct hl_histogram {
    size_t size;
    uint64_t count, sum_us, max_us;
    uint64_t bucket[32];
} hl_histogram;

/* clang-format off */
#define HL_HISTOGRAM_INIT { sizeof(hl_histogram), 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Copies a histogram of all samples since the client was opened; begin with HL_HISTOGRAM_INIT,
 * which sets the size.
 *
 * Threads: any.
 * Returns: 0; HL_EINVAL (NULL, no size, or a measure that this version does not know); HL_EFORKED.
 */
HL_API int hl_client_histogram(hl_client *client, hl_measure measure, hl_histogram *histogram);

#ifdef __cplusplus
}
#endif
#endif
