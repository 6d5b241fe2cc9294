/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Dialling: from an address to a connected, non-blocking socket that is closed on exec, and for
 * rediss:// through the handshake of TLS. If a host name has several addresses, a dial tries each
 * in turn, for its share of the time.
 */
#ifndef HLI_REDIS_DIAL_H
#define HLI_REDIS_DIAL_H

#include "redis/loop.h"
#include "redis/resolver.h"
#include "redis/tls.h"
#include "redis/url.h"

#include <stdatomic.h>
#include <sys/socket.h>

struct hli_dial;

/* fd belongs to the callee, or is -1 and err has the reason. tls is NULL without TLS, and borrowed.
 * Runs once, on the loop thread, never inside hli_dial_start. */
typedef void (*hli_dial_cb)(int fd, struct hli_tls *tls, const hl_error *err, void *arg);

/* What all dials of a client share; all borrowed. */
struct hli_dialler {
    struct hli_loop *loop;
    struct hli_resolver *resolver;
    struct hli_tls_context *tls; /* for rediss://; else NULL */
};

struct hli_dial_peer {
    struct sockaddr_storage address;
    socklen_t length;
};

/* Loop thread; what is pointed to is borrowed until `done` or the cancel. *shown has the socket's
 * number, for a forked child, until `done` has taken the socket or it is closed. Errors: HL_ENOMEM.
 */
struct hli_dial_args {
    const struct hli_address *address;
    const char *tls_name;       /* that the certificate must have; NULL: the address' host */
    struct hli_dial_peer *peer; /* length 0: resolve the host, and write its address there; else
                                   dial that address */
    hli_ns deadline; /* divided between the addresses; the caller ends the dial when it is over */
    hli_dial_cb done;
    void *arg;
    atomic_int *shown;
};
int hli_dial_start(const struct hli_dialler *dialler, const struct hli_dial_args *said,
                   struct hli_dial **ret_dial);

/* What the dial waits for, behind "no answer": " of a name server", " to the TLS handshake ...",
 * or "".
 * NULL is fine. */
const char *hli_dial_awaits(const struct hli_dial *dial);

/* Ends the dial, if there is one, and sets the pointer to NULL; `done` will not run. */
void hli_dial_cancel(struct hli_dial **ended);

#endif
