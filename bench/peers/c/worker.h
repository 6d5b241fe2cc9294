/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A worker: one client process of the peers' benchmark. It speaks the driver's protocol (README.md)
 * and knows nothing of the lock that it acquires and releases.
 */
#ifndef HL_PEERS_WORKER_H
#define HL_PEERS_WORKER_H

struct peer {
    void *(*open)(int port);                       /* once for each process */
    void *(*join)(void *client, const char *name); /* once for each thread: its lock */
    void (*acquire)(void *lock);
    void (*release)(void *lock);
};

/* The ports of the masters, for `open` of a peer that locks several; none: there is one server. */
enum { WORKER_MASTERS = 5 };
extern int worker_masters[WORKER_MASTERS], worker_masters_count;

int worker_main(char **argv, const struct peer *peer);

/* Ends the process with a message when what the benchmark relies on does not hold. */
__attribute__((format(printf, 2, 3))) void worker_must(int fact, const char *format, ...);

#endif
