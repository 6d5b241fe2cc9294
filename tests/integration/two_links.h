/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A client behind a proxy that knows the client's two connections, for commands and for messages,
 * so that a test decides which arrives first. And what the server runs meanwhile.
 */
#ifndef HL_TEST_TWO_LINKS_H
#define HL_TEST_TWO_LINKS_H

#include "support/kit.h"
#include "support/proxy.h"
#include "support/recorder.h"

struct two_links {
    struct proxy *proxy;
    hl_client *client;
    int commands, messages; /* numbers of the proxy's */
};

/* Of a server that listens on TCP. Returns when grants can reach the client. */
void two_links_open(struct two_links *links, const hl_client_options *options);
void two_links_find(struct two_links *links); /* again, after a reconnect */
void two_links_close(struct two_links *links);

/* Waits until the proxy keeps bytes that the server, or the client, has sent to the other. */
void expect_kept(struct two_links *links, int which, enum proxy_direction direction);

/*
 * Contention for the lock "stock": one client holds it by `held`, in this thread; another one,
 * whose links are apart, is to wait for it by `lock`, as `owner` or `other`. The server knows the
 * scripts.
 */
extern hl_client *holder;
extern struct two_links waiter;
extern hl_lock *held, *lock;
extern hl_owner *owner, *other;

void contention_begin(int64_t holders_poll_ms, int64_t poll_ms);
void contention_end(void);

/* Begins a wait without end. */
void wait_async(hl_owner *whose, struct recorder *recorder, const hl_acquire_options *options);

/* The waiter stands in the queue, listens, and was told what it is going to be told: no request of
 * its is under way. */
void expect_settled(void);
void expect_in_queue(int n);

/* The channel on which a client is told what is granted to it. */
const char *mailbox_of(hl_client *client);

/* The server has run so many scripts, soon. */
void expect_calls(int64_t calls);

/* What the server runs, by MONITOR: the words of each command, those of scripts too, one line each,
 * until the end of the watch. */
redisContext *watch_begin(void);
const char *watch_end(redisContext *watch);

#endif
