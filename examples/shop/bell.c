/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* An eventfd: many rings before the loop has looked are one. */
#define _POSIX_C_SOURCE 200809L
#include "bell.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool bell_open(struct bell *bell)
{
    bell->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return bell->fd >= 0;
}

void bell_close(struct bell *bell)
{
    if (bell->fd >= 0)
        close(bell->fd);
    bell->fd = -1;
}

void bell_ring(const struct bell *bell)
{
    uint64_t one = 1;
    ssize_t written = write(bell->fd, &one, sizeof(one));

    (void)written; /* it fails only when it rings already */
}

void bell_hush(const struct bell *bell)
{
    uint64_t rings = 0;
    ssize_t got = read(bell->fd, &rings, sizeof(rings));

    (void)got; /* it fails only when it does not ring */
}
