/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* How threads wake the event loop: libevent is called by the loop's thread only, and sees a
 * descriptor. */
#ifndef SHOP_BELL_H
#define SHOP_BELL_H

#include <stdbool.h>

struct bell {
    int fd; /* readable while it rings */
};

bool bell_open(struct bell *bell);
void bell_close(struct bell *bell);
void bell_ring(const struct bell *bell); /* Threads: any */
void bell_hush(const struct bell *bell); /* before one looks for what has come */

#endif
