/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Commands of Redis, sent over a client's own routes: its logins, TLS, Sentinels and cluster. For
 * tools of operators that list and inspect what a server has; a program that locks needs none of
 * this.
 *
 * Guarantees: a command goes to the node that serves the given key, wherever its slot has moved to;
 * or to one node by its address, and never to another. Commands of one thread to one node reach it
 * in their order, unless one of them has to be sent again. A command is sent again only if it
 * cannot have run (the server was out of reach, LOADING, MOVED ...), or if HL_COMMAND_READS says
 * that a second copy does no harm. Whatever a command does to its connection, it touches none that
 * locks use; and no command gets the reply to another.
 *
 * Does not guarantee: anything about locks that the command changes. A hold of this client whose
 * key was deleted is reported as lost at its next renewal. What a command changes for the whole
 * server (FLUSHALL, CONFIG SET, CLIENT KILL, CLIENT PAUSE, SCRIPT FLUSH) is changed for the locks,
 * too. Nor the order of a command and a lock's request, unless the first one has ended before the
 * other begins: they go by different connections.
 *
 * All commands of a client to one node share one connection, which is made at the first of them,
 * beside those of the option `connections`. A command that it cannot carry is refused before it is
 * sent: one that holds for the commands behind it (MULTI, SELECT, AUTH, HELLO), that has no reply
 * or more than one (SUBSCRIBE, MONITOR, REPLCONF, CLIENT REPLY), or that ends the connection
 * (QUIT). One that does so under another name is noticed by the PING that follows each command: it
 * fails with HL_EPROTO, the connection is made anew, and other commands that were under way end as
 * after a lost connection. A command that blocks holds up those behind it, and is cut off after
 * request_timeout_ms. Do not send scripts that run for long: the server runs nothing else
 * meanwhile.
 *
 * The async form is quick: many commands are under way at a time. The caller bounds their number,
 * since each takes memory until its completion has run.
 *
 * Ownership: arguments are copied. A reply of hl_client_command belongs to the caller.
 */
#ifndef HIRELOCK_COMMAND_H
#define HIRELOCK_COMMAND_H

#include <hirelock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Later versions add kinds. */
typedef enum hl_reply_kind {
    HL_REPLY_NIL = 0,
    HL_REPLY_INTEGER, /* `integer` */
    HL_REPLY_TEXT,    /* `text`: any bytes */
    HL_REPLY_STATUS,  /* `text`: "OK" */
    HL_REPLY_ARRAY,   /* `elements` */
    HL_REPLY_ERROR    /* `text`; only inside an array: else the call fails */
} hl_reply_kind;

/* The server's reply: a tree. What its kind does not have is 0. */
typedef struct hl_reply {
    size_t size;
    hl_reply_kind kind;
    int64_t integer;
    const char *text; /* `length` bytes, and a NUL behind them */
    size_t length;
    const struct hl_reply *const *elements;
    size_t element_count;
} hl_reply;

enum {
    /* The command changes nothing: it may be sent again although an earlier copy may have run, as
     * when its connection was lost. Without this flag the call then ends in HL_EINDOUBT. */
    HL_COMMAND_READS = 1
};

/* A command; zero is the default. */
typedef struct hl_command {
    size_t size;
    unsigned flags; /* HL_COMMAND_..., joined by | */
    /* "HGETALL", "stock": its name and its arguments, as they are sent; name_prefix is not put
     * before any of them. */
    const char *const *words;
    size_t word_count; /* at least 1 */
    /* The bytes of each word, for words that hold any bytes; NULL: all are C strings. */
    const size_t *lengths;
    /* The command goes to the node that serves this key, which is one of the words. NULL: see
     * `node`. */
    const char *key;
    size_t key_length; /* 0: the key is a C string */
    /* The command goes to this node: hl_node.address of a node with slots, or of the server. NULL
     * without a key, too: to the server, or to any node of a cluster. */
    const char *node;
    /* 0: no limit beside outage_timeout_ms; else at most so long, and never longer than that. The
     * first command to a node waits for its connection; what changes data is not sent any more in
     * the last 100 ms of its time, and ends with HL_ECONN. */
    int64_t timeout_ms;
} hl_command;

/* clang-format off */
#define HL_COMMAND_INIT { sizeof(hl_command), 0, NULL, 0, NULL, NULL, 0, NULL, 0 }
/* clang-format on */

/*
 * Sends a command and waits for its reply. A reply of more than 16 MiB in all, an array of more
 * than 1,048,576 elements, more than seven levels, and the types of RESP3 are HL_EPROTO: ask in
 * steps (SCAN, HSCAN, LRANGE). Each element counts with some 40 bytes beside its text.
 *
 * Threads: any.
 * Returns: 0, and *ret_reply is to be freed by hl_reply_free(). HL_EINVAL (also a command that may
 * not be sent; err says which); HL_ENOENT: no node of that address is in use, or not any more.
 * HL_EINDOUBT: the command may have run, or has run and no memory is left for its reply (with
 * HL_COMMAND_READS: HL_ENOMEM). HL_ETIMEDOUT (connected, and no answer yet); HL_ECONN, HL_EPROTO
 * (no usable server, at the latest after outage_timeout_ms; HL_EPROTO also, at once, of a command
 * that has run, or may have, without a reply that can be given); HL_ESERVER: the server's error,
 * err has its text: at once, but after outage_timeout_ms one that may pass (LOADING, OOM,
 * READONLY). HL_EDENIED, at once; HL_ENOMEM; HL_ECANCELED (closed meanwhile); HL_ECLOSED;
 * HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_client_command(hl_client *client, const hl_command *command,
                                           hl_reply **ret_reply, hl_error *err);

/* The completion of hl_client_command_async; reply is NULL when code is negative, and is valid
 * during the call only. */
typedef void (*hl_reply_cb)(int code, const hl_reply *reply, const hl_error *err, void *arg);

/*
 * hl_client_command without blocking.
 *
 * Threads: any.
 * Returns: 0: done will run exactly once, with a code of hl_client_command. Negative: it never
 * runs: HL_EINVAL, HL_ENOENT, HL_ENOMEM, HL_ECLOSED, HL_EFORKED.
 */
HL_API HL_MUST_CHECK int hl_client_command_async(hl_client *client, const hl_command *command,
                                                 hl_reply_cb done, void *arg);

/*
 * Frees a reply with all that it contains; NULL is fine.
 *
 * Threads: any.
 * Returns: nothing.
 */
HL_API void hl_reply_free(hl_reply *reply);

#ifdef __cplusplus
}
#endif
#endif
