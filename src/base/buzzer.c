/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Buzzers: eventfds with a count of their users. */
#include "base/buzzer.h"

#include <hirelock/error.h>

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

void hli_buzzer_init(struct hli_buzzer *buzzer)
{
    atomic_init(&buzzer->fd, -1);
    atomic_init(&buzzer->users, 0);
}

int hli_buzzer_open(struct hli_buzzer *buzzer)
{
    if (atomic_load(&buzzer->fd) < 0)
        atomic_store(&buzzer->fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return atomic_load(&buzzer->fd) < 0 ? HL_ENOMEM : 0;
}

/* A user counts itself before it reads fd; so once fd is changed and the count has been zero, none
 * can still write to it. */
void hli_buzzer_close(struct hli_buzzer *buzzer)
{
    int fd = atomic_exchange(&buzzer->fd, -1);

    if (fd < 0)
        return;
    while (atomic_load(&buzzer->users) > 0)
        sched_yield();
    close(fd);
}

void hli_buzzer_buzz(struct hli_buzzer *buzzer)
{
    atomic_fetch_add(&buzzer->users, 1);
    int fd = atomic_load(&buzzer->fd);
    if (fd >= 0)
        eventfd_write(fd, 1);
    atomic_fetch_sub(&buzzer->users, 1);
}

void hli_buzzer_hush(struct hli_buzzer *buzzer)
{
    eventfd_t count;

    eventfd_read(atomic_load(&buzzer->fd), &count);
}

/* Those who were counted in the parent are not here. */
void hli_buzzer_abandon(struct hli_buzzer *buzzer)
{
    int fd = atomic_exchange(&buzzer->fd, -1);

    if (fd >= 0)
        close(fd);
}
