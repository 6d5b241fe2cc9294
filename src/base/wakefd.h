/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A wakefd: an eventfd by which any thread wakes a thread that polls it. It can be closed while
 * other threads are about to write to it: none of them then writes to a later file with the same
 * number.
 */
#ifndef HLI_BASE_WAKEFD_H
#define HLI_BASE_WAKEFD_H

#include <stdatomic.h>
#include <stdbool.h>

struct hli_wakefd {
    atomic_int fd;    /* -1 while closed */
    atomic_int users; /* threads that may be about to write to it */
};

void hli_wakefd_init(struct hli_wakefd *wakefd);

/* Does nothing if it is open. Errors: HL_ENOMEM, and errno has the reason. */
int hli_wakefd_open(struct hli_wakefd *wakefd);
void hli_wakefd_close(struct hli_wakefd *wakefd); /* does nothing if it is closed */

/* Any thread. Does nothing if it is closed. */
void hli_wakefd_wake(struct hli_wakefd *wakefd);
/* By the thread that was woken, before it polls again. */
void hli_wakefd_clear(struct hli_wakefd *wakefd);

/* In a forked child. */
void hli_wakefd_abandon(struct hli_wakefd *wakefd);

/*
 * The wake list: by it a signal handler reaches every client's loop. hl_cancel_fire() may run in a
 * signal handler, so it can neither lock a mutex nor walk a list that other threads change: it
 * wakes all listed wakefds, and each loop checks its own waits. An entry is never freed, only used
 * again by a later client, so the list may be walked at any time.
 */

/* Opens a listed wakefd. Returns NULL when memory or descriptors are out. */
struct hli_wakefd *hli_wakefd_open_listed(void);
void hli_wakefd_close_listed(struct hli_wakefd *wakefd); /* NULL is fine */

/* Async-signal-safe. */
void hli_wakefd_fire_all(void);

/* True if this listed wakefd was fired since the last call. */
bool hli_wakefd_was_fired(struct hli_wakefd *wakefd);

/* In a forked child: gives up all listed wakefds, which are the parent's. */
void hli_wakefd_abandon_all(void);

#endif
