/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Confirmed requests: those whose completion waits until replicas have what they wrote. The command
 * for it is WAIT (Redis docs, "WAIT"). It holds its connection up until so many replicas have
 * acknowledged all that the connection wrote before, or until its time is over. So one WAIT serves
 * every request that was sent before it, and those that are sent while it is in flight share the
 * next one (a group commit, as a database has it): 64 threads cost one round trip to the replicas,
 * and not 64.
 */
#ifndef HLI_REDIS_CONFIRM_H
#define HLI_REDIS_CONFIRM_H

#include "redis/op.h"

enum { HLI_CONFIRM_BYTES = 80 };

struct hli_confirm { /* the connection's mutex */
    int64_t timeout_ms;
    unsigned majority;  /* of the master's replicas; 0: it does not tell how many it has */
    struct hli_op wait; /* the WAIT, whose bytes are: */
    char bytes[HLI_CONFIRM_BYTES];
    bool is_waiting;     /* it is in flight */
    unsigned behind;     /* how many replicas the requests sent behind it need; 0: there are none */
    struct hli_ops kept; /* answered, and not confirmed yet; in order */
    bool keeps_for_loop; /* one of their answers is not plain (script.h) */
};

void hli_confirm_init(struct hli_confirm *confirm);

/* A request that is to be confirmed is queued. Returns the WAIT that is to be queued behind it;
 * NULL if one that is in flight has to be answered first. */
struct hli_op *hli_confirm_sent(struct hli_confirm *confirm, struct hli_op *op);

/* Takes over a request and its reply until the WAIT behind it is answered. False: the request need
 * not wait. */
bool hli_confirm_keep(struct hli_confirm *confirm, struct hli_op *op, struct hli_reply *reply);

/* The WAIT was answered. Moves what it confirms to `ret`. Returns the WAIT for the requests that
 * were sent meanwhile, to be queued now; NULL if there are none. */
struct hli_op *hli_confirm_answered(struct hli_confirm *confirm, struct hli_ops *ret);

/* The connection is closed: moves what it kept to `ret`, without the replies. */
void hli_confirm_drop(struct hli_confirm *confirm, struct hli_ops *ret);

/* Ends each of these requests, with its own reply and what WAIT answered. Without the mutex. */
void hli_confirm_tell(struct hli_ops *ops, const struct hli_answer *waited);

#endif
